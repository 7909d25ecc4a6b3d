"""Training: reproducible, quiet, on any text; options that are wrong."""

import collections
import logging
import os
import subprocess
import sys

import pytest

from helpers.repository import ROOT
from helpers.tokenizer_texts import KINDS, STRANGE, sentences
from maskedlm.core.errors import CorpusError
from maskedlm.data.tokenizers import training
from maskedlm.data.tokenizers.tokenizer import load_tokenizer, train_tokenizer

SCRIPT = """
import multiprocessing, sys
from helpers.tokenizer_texts import KINDS, ODD, sentences
from maskedlm.data.tokenizers.tokenizer import load_tokenizer, train_tokenizer

def ids(folder):
  return [i.tolist() for i in load_tokenizer(folder).encode_batch(ODD)]

if __name__ == "__main__":
  for kind, lowercase in KINDS[::2]:
    folder = f"{sys.argv[1]}/{kind}{lowercase}"
    new = train_tokenizer(
      sentences(), kind=kind, vocab_size=1009, lowercase=lowercase)
    new.save(folder)
    expected = [i.tolist() for i in new.encode_batch(ODD)]
    with multiprocessing.get_context("fork").Pool(2) as pool:
      assert pool.map(ids, [folder] * 2) == [expected] * 2
    print(new.sha256)
  assert "jax" not in sys.modules
"""


def test_another_process_trains_the_same_and_is_quiet(trained, tmp_path):
  script = tmp_path / "script.py"
  script.write_text(SCRIPT)
  path = f"{ROOT}:{ROOT / 'tests'}"
  done = subprocess.run(
    [sys.executable, str(script), str(tmp_path)],
    env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "12345"},
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.stderr == ""
  assert done.stdout.split() == [trained[key][0].sha256 for key in KINDS[::2]]
  for key in KINDS:
    tokenizer, folder = trained[key]
    assert load_tokenizer(folder).sha256 == tokenizer.sha256
  assert len({trained[key][0].sha256 for key in KINDS}) == 6


def test_options_that_are_wrong():
  def train(**options):
    defaults = {"kind": "wordpiece", "vocab_size": 500, "lowercase": True}
    return train_tokenizer(sentences(), **(defaults | options))

  with pytest.raises(CorpusError, match='did you mean "wordpiece"'):
    train(kind="word_piece")
  for kind, size, least in (
    ("wordpiece", 8, "9"),
    ("bpe", 260, "261"),
    ("unigram", 9, r"\d+, the characters"),
  ):
    with pytest.raises(CorpusError, match=f"={size} is too small.* {least}"):
      train(kind=kind, vocab_size=size)
  for kind in ("wordpiece", "bpe", "unigram"):
    with pytest.raises(CorpusError, match="no text"):
      train_tokenizer(["", "  \n"], kind=kind, vocab_size=500, lowercase=True)


def test_a_vocabulary_that_the_text_cannot_fill(caplog):
  lines = ["the cat sat on the mat"] * 5
  for kind in ("wordpiece", "bpe"):
    with caplog.at_level(logging.WARNING):
      tokenizer = train_tokenizer(
        lines, kind=kind, vocab_size=900, lowercase=True
      )
    warning = caplog.messages[-1]
    assert warning.startswith("tokenizer.vocab_size=900 is more than")
    assert f"{tokenizer.vocab_size} tokens" in warning
    ids = tokenizer.encode_batch(lines)[0]
    assert ids.max() < tokenizer.vocab_size == len(tokenizer.starts_word)
    assert len(ids) == 6  # Each word is one token.
  with pytest.raises(CorpusError, match=r"=900 .* at most (\d+);") as error:
    train_tokenizer(lines, kind="unigram", vocab_size=900, lowercase=True)
  largest = int(str(error.value).split("at most ")[1].split(";")[0])
  tokenizer = train_tokenizer(
    lines, kind="unigram", vocab_size=largest, lowercase=True
  )
  assert tokenizer.vocab_size == largest


def test_the_alphabet_is_the_commonest_characters(monkeypatch):
  counts = collections.Counter({"z": 99_980, "b": 10, "y": 5, "x": 4, "c": 1})
  alphabet = training.choose_alphabet
  assert alphabet(counts, 0.9999, max_size=9) == ["b", "c", "x", "y", "z"]
  assert alphabet(counts, 0.9999, max_size=3) == ["b", "y", "z"]
  assert alphabet(collections.Counter("bca"), 0.9999, max_size=2) == ["a", "b"]
  monkeypatch.setattr(training, "MIN_ALPHABET", 1)
  assert alphabet(counts, 0.9999, max_size=9) == ["b", "z"]  # 99.99%.
  counts["b"] -= 1
  assert alphabet(counts, 0.9999, max_size=9) == ["b", "y", "z"]


def test_training_survives_any_text():
  lines = [*STRANGE, "x" * 20_000, "日本語" * 3_000, *sentences()]
  # Spellings of special tokens, and a character sentencepiece reserves.
  lines += 99 * ["[MASK] [MASK][SEP] <mask><unk> <pad> </s> \u2585 \u2581\t"]
  for kind in ("wordpiece", "bpe", "unigram"):
    tokenizer = train_tokenizer(
      lines, kind=kind, vocab_size=700, lowercase=True
    )
    assert tokenizer.vocab_size <= 700
    assert tokenizer.special_ids.tolist() == [0, 1, 2, 3, 4]
    ids = tokenizer.encode(lines[-1]).ids
    assert set(ids.tolist()) & set(tokenizer.special) <= {tokenizer.special.unk}
