"""maskedlm.load: its functions return what the verbs print or write."""

import json
import subprocess
import sys

import numpy as np
import pytest

import maskedlm
from helpers.repository import ROOT
from helpers.untrained import D, H, N

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
TEXTS = ["The cat sat on the mat.", " \t", "she sold a red book to the man"]
MASKED = "the [MASK] sat on the [MASK] ."


@pytest.fixture
def model(pretrained):
  return pretrained


@pytest.fixture
def workdir(run):
  return run


# The package.


def test_import_is_light_and_resolves_names():
  code = (
    "import sys, maskedlm\n"
    "assert 'load' in dir(maskedlm) and 'Model' in dir(maskedlm)\n"
    "heavy = {'jax', 'numpy', 'flax', 'orbax'} & set(sys.modules)\n"
    "assert not heavy, heavy\n"
    "from maskedlm import Model, load\n"
    "assert load is maskedlm.in_python.load and 'jax' in sys.modules\n"
  )
  subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


# What can be opened.


def test_a_pretraining_workdir(model, workdir):
  assert model.path == str(workdir)
  cfg = model.cfg
  assert (cfg.num_layers, cfg.num_heads, cfg.width) == (N, H, D)
  assert model.meta["step"] == 12 and model.meta["task"]["encoder"]
  assert model.tokenizer.tokens(model.tokenizer.special.mask) == "[MASK]"
  assert repr(model) == f"Model(path={str(workdir)!r}, length=0)"


def test_a_finetuning_workdir_opens_its_best_checkpoint(tagger, tagged):
  assert tagger.meta["step"] == 2
  last = maskedlm.load(tagged / "checkpoints" / "3")
  assert last.meta["step"] == 3
  first = maskedlm.load(tagged / "checkpoints" / "2")
  np.testing.assert_array_equal(first.embed(TEXTS), tagger.embed(TEXTS))
  assert np.abs(last.embed(TEXTS) - tagger.embed(TEXTS)).max() > 0.1


# Tokens and vectors.


def test_tokenize(model):
  text = "The cat [MASK]"
  plain = model.tokenize(text)
  special = model.tokenize(text, specials=True)
  assert model.tokenizer.special.mask not in plain.ids
  assert special.ids[-1] == model.tokenizer.special.mask
  assert [text[a:b] for a, b in special.offsets] == ["The", "cat", "[MASK]"]
  assert special.word_ids.tolist() == [0, 1, 2]


def run_embed(verb, workdir, tmp_path, *options):
  """Returns the vectors that `maskedlm embed` writes for TEXTS, and their
  texts.
  """
  lines = tmp_path / "texts.jsonl"
  lines.write_text("".join(json.dumps({"text": t}) + "\n" for t in TEXTS))
  out = tmp_path / "v.npz"
  argv = ("--checkpoint", workdir, "--input", lines, "--out", out, *options)
  verb("embed", *argv)
  with np.load(out) as file:
    return file["vectors"], file["text_lines"][file["texts"]] - 1


def test_rows_of_encode_are_tokens(model, workdir, tmp_path, verb):
  made = model.encode(TEXTS)
  counts = [len(model.tokenize(text).ids) for text in TEXTS]
  assert [x.shape for x in made] == [(n, D) for n in counts]
  assert counts[1] == 0 and made[0].dtype == np.float32
  for x, y in zip(made, model.encode(text for text in TEXTS), strict=True):
    np.testing.assert_array_equal(x, y)
  expected, texts = run_embed(verb, workdir, tmp_path)
  for i, x in enumerate(made):
    np.testing.assert_allclose(x, expected[texts == i], **CLOSE)
  # The vectors are contextual: with less text to the right they differ.
  assert np.abs(model.encode(["The cat"])[0] - made[0][:2]).max() > 1e-2


def test_embed_has_a_row_for_each_text(model, workdir, tmp_path, verb):
  texts = [TEXTS[0], TEXTS[2]]
  made = model.embed(texts)
  assert made.shape == (2, D) and made.dtype == np.float32
  expected, rows = run_embed(verb, workdir, tmp_path, "--unit=sentence")
  where = [np.flatnonzero(rows == i)[0] for i in (0, 2)]
  np.testing.assert_allclose(made, expected[where], **CLOSE)
  np.testing.assert_allclose(model.embed(texts[1:])[0], made[1], **CLOSE)
  long = model.embed(["the cat sat " * 100])  # 300 words; 48 positions.
  assert long.shape == (1, D) and np.isfinite(long).all()


def test_no_texts_give_no_vectors(model):
  assert model.embed([]).shape == (0, D)
  assert model.encode([]) == []
  stacked = model.embed([" "], unit="word", layers=(0, 1), combine="stack")
  assert stacked.shape == (0, 2, D)


# Masks and predictions.


def test_fill_mask_equals_the_verb(model, workdir, verb):
  made = model.fill_mask(MASKED, top=4)
  argv = ("--checkpoint", workdir, "--top_k", 4, "--json", MASKED)
  printed = json.loads(verb("fill-mask", *argv).out)["masks"]
  assert [[word for word, _ in mask] for mask in made] == [
    [candidate["token"] for candidate in mask] for mask in printed
  ]
  np.testing.assert_allclose(
    [[p for _, p in mask] for mask in made],
    [[candidate["probability"] for candidate in mask] for mask in printed],
    rtol=1e-4,
  )
  assert [len(mask) for mask in made] == [4, 4]


def test_fill_mask_output_has_the_line_numbers_of_stdin(workdir, verb):
  text_in = b"\xef\xbb\xbfa [MASK]\n\nthe [MASK]\ncaf\xe9 [MASK]\n"
  argv = ("fill-mask", "--checkpoint", workdir, "--json")
  shown = verb(*argv, stdin=text_in[:24])
  printed = [json.loads(line) for line in shown.out.splitlines()]
  assert [(s["line"], s["text"]) for s in printed] == [
    (1, "a [MASK]"),
    (3, "the [MASK]"),
  ]
  shown = verb(*argv, stdin=text_in, expect=2)
  assert "error: stdin:4: not UTF-8" in shown.err and not shown.out


def test_candidates_are_a_distribution(model):
  (mask,) = model.fill_mask("the [MASK]", top=10_000)
  shares = [p for _, p in mask]
  assert shares == sorted(shares, reverse=True)
  assert sum(shares) == pytest.approx(1, abs=1e-5)
  # Special tokens and rows without a token are not among them.
  special = model.tokenizer.special_ids
  assert len(mask) == model.tokenizer.vocab_size - len(special)
  assert not {word for word, _ in mask} & set(
    map(model.tokenizer.tokens, special)
  )
  assert len(model.fill_mask("the [MASK]")[0]) == 5


def test_predict_equals_the_verb(tagger, tagged, verb):
  lines = ["The cat sat.", '{"tokens": ["a", "red", "book"]}']
  made = tagger.predict([lines[0], json.loads(lines[1])])
  shown = verb("predict", "--checkpoint", tagged, "--json", *lines).out
  printed = [json.loads(line) for line in shown.splitlines()]
  assert made == printed
  assert [len(p["tags"]) for p in made] == [4, 3]
  assert tagger.predict(lines, batch_size=1)[1]["tags"] == made[1]["tags"]
  assert tagger.predict([]) == []
  numpys = {"tokens": np.array(["a", "red", "book"]), "id": np.int64(7)}
  assert tagger.predict([numpys])[0]["tags"] == made[1]["tags"]
