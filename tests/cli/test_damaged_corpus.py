"""A damaged corpus is one line, the same from every verb that opens it."""

import shutil

import pytest

from helpers import damage
from maskedlm.cli import main

DAMAGED = {
  "meta.json": (damage.fifo, damage.deep),
  "tokenizer": (damage.loop,),
  "train-00000.tokens.npy": (damage.pickled,),
  "token_counts.npy": (damage.zeros,),
}


@pytest.mark.parametrize(
  ("name", "spoil"), [(n, d) for n, found in DAMAGED.items() for d in found]
)
def test_it_is_named_with_the_remedy(tiny, tmp_path, capsys, name, spoil):
  config, corpus = tiny
  corpus = shutil.copytree(corpus, tmp_path / "corpus")
  spoil(corpus / name)
  lines = set()
  for argv in (
    ["prepare", f"--verify={corpus}"],
    ["prepare", f"--config={config}", f"--out={corpus}"],
    ["inspect", f"--config={config}", f"--config.corpus.path={corpus}"],
    ["inspect", f"--config={config}", f"--workdir={tmp_path}"],
    ["pretrain", f"--config={config}", f"--config.corpus.path={corpus}",
     f"--workdir={tmp_path / 'run'}"],
    ["pretrain", f"--config={config}", f"--workdir={tmp_path}"],
  ):  # fmt: skip
    assert main.main(argv) == 2
    lines.add(capsys.readouterr().err)
  (text,) = lines
  assert text.startswith(f"error: {corpus}") and text.count("\n") == 1
  assert name in text and text.count("restore it from a copy") == 1


@pytest.mark.parametrize(
  ("spoil", "expected"),
  [
    (damage.fifo, "is not a folder, as runs write it: move it"),
    (damage.folder, "is damaged"),
  ],
)
def test_a_damaged_tokenizer_of_a_run_may_be_removed(
  tiny, tmp_path, capsys, spoil, expected
):
  config, corpus = tiny
  path = tmp_path / "tokenizer"
  path.mkdir()
  spoil(path)
  argv = ["pretrain", f"--config={config}", f"--config.corpus.path={corpus}"]
  assert main.main([*argv, f"--workdir={tmp_path}"]) == 2
  *_, line = capsys.readouterr().err.splitlines()
  assert f"{path} {expected}" in line
  assert "move it" in line or "remove it" in line


@pytest.mark.parametrize("verb", ["inspect", "pretrain"])
def test_ids_that_are_not_in_the_vocabulary(tiny, tmp_path, capsys, verb):
  config, corpus = tiny
  corpus = shutil.copytree(corpus, tmp_path / "corpus")
  tokens = corpus / "train-00000.tokens.npy"
  content = tokens.read_bytes()
  tokens.write_bytes(content[:128] + b"\xff" * (len(content) - 128))
  assert main.main([verb, f"--config={config}", f"--workdir={tmp_path}"]) == 2
  assert "id 65535" in capsys.readouterr().err.splitlines()[-1]


def test_a_start_far_outside_does_not_hang(tiny, tmp_path, capsys, uncompiled):
  """The row table is there, so that the starts are not read as a whole."""
  config, corpus = tiny
  corpus = shutil.copytree(corpus, tmp_path / "corpus")
  argv = ["inspect", f"--config={config}", f"--workdir={tmp_path}", "--rows=0"]
  assert main.main(argv) == 0
  starts = corpus / "train-00000.sentences.npy"
  content = bytearray(starts.read_bytes())
  content[131::4] = b"\x40" * len(content[131::4])  # 2^30 and more.
  starts.write_bytes(content)
  assert main.main(argv) == 2
  error = capsys.readouterr().err.splitlines()[-1]
  assert f"{starts.name} is damaged" in error
