"""Options that name the same files are the same, however they are spelt."""

import pytest

from maskedlm.data.sources import same_files

SOURCE, PARTS = "corpus.source", "corpus.parts"


@pytest.mark.parametrize(
  ("name", "a", "b", "same"),
  [
    (SOURCE, "text:a", "text:./a", True),
    (SOURCE, "text:a", "text:{here}/a", True),
    (SOURCE, "text:a", "text:a/", True),
    (SOURCE, "text:a", "text:link", True),
    (SOURCE, "text:a/*.txt", "text:./a//*.txt", True),
    (SOURCE, "text:a,b", "text: b , ./a,", True),  # Files are sorted.
    (SOURCE, "text:x/a,b/c", "text:./x/a,b/c", True),  # One name, perhaps.
    (SOURCE, "text:~/a", "text:{here}/a", True),
    (SOURCE, "text:a", "lines:a", False),
    (SOURCE, "text:a", "text:A", False),
    (SOURCE, "text:a", "text:a,b", False),
    (SOURCE, "text:a", "text:", False),
    (SOURCE, "text:", "text:.", False),
    (SOURCE, "docstrings:jax,flax", "docstrings:flax, jax", True),
    (SOURCE, "docstrings:jax", "docstrings:./jax", False),
    (SOURCE, "tfds:glue/mrpc:test@a", "tfds:glue/mrpc:test@./a/", True),
    (SOURCE, "tfds:glue/mrpc", "tfds:glue/mrpc@", False),
    (SOURCE, "tfds:glue/mrpc:test", "tfds:glue/mrpc:train", False),
    (PARTS, "en:a", "en:text:./a", True),
    (PARTS, "en:a,de:b", "de:b,en:a", False),  # Their order is kept.
    (PARTS, "en:a", "de:a", False),
    (PARTS, "a", "./a/", True),
    (PARTS, "a", "b", False),
    ("corpus.path", "a", "./a/", True),
    ("corpus.path", "gs://b/a", "gs://b/a/", True),
    ("corpus.path", "", ".", False),
    ("tokenizer.path", "a", "{here}/a", True),
    ("objective.name", "a.py", "./a.py", True),
    ("task.kind", "a.py", "{here}/a.py", True),
    ("objective.name", "a.py", "b/a.py", False),
    ("objective.name", "roberta", "./roberta", False),
    ("data.train", "a,b", "./a,b", True),
    ("data.train", "a,b", "b,a", False),
    ("data.train", "tfds:glue/mrpc", "tfds:./glue/mrpc", False),
    ("corpus.text_field", "a", "./a", False),  # It names no file.
    ("model.width", 8, 8, True),
    ("model.width", 8, 9, False),
    # Files of one's own: by their hashes if both are known.
    ("model.mlp", "a/x.py", "{here}/link/x.py#0123456789ab", True),
    ("model.mlp", "a/x.py", "b/x.py#0123456789ab", False),
    ("model.mlp", "a/x.py#0123456789ab", "b/x.py#0123456789ab", True),
    ("model.mlp", "x.py#0123456789ab", "x.py#1123456789ab", False),
    ("model.mlp", "plain", "x.py", False),
  ],
)
def test_is_same(tmp_path, monkeypatch, name, a, b, same):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setenv("HOME", str(tmp_path))
  (tmp_path / "a").mkdir()
  (tmp_path / "link").symlink_to("a")
  b = b.format(here=tmp_path) if isinstance(b, str) else b
  assert same_files.is_same(name, a, b) is same
  assert same_files.is_same(name, b, a) is same
