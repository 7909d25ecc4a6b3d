"""Assigns tokens and characters to units, and tokens to rows."""

import numpy as np
import pytest

from helpers import finetune_runs
from maskedlm.data.labelled import text_lines
from maskedlm.data.labelled.text_lines import Text
from maskedlm.data.tokenizers.tokenizer import train_tokenizer
from maskedlm.inference.vectors import rows, units

TEXTS = [
  "the cat sat on the mat , said the man .",
  "The CAT's U.S. house... (3.5%) — don't!?",
  " leading and trailing   spaces\t",
  "cafe\u0301 na\u00efve \U0001f469\u200d\U0001f680 \u4e2d\u6587",
  "\u200b",
  "x" * 200 + " the",
  "",
]


def units_of(tokenizer, unit, text):
  tokens = units.make_tokeniser(tokenizer)(text)
  return tokens, units.UNITS[unit](text, tokens)


@pytest.fixture(scope="module", params=["wordpiece", "bpe"])
def tokenizer(request):
  size = {"wordpiece": 90, "bpe": 300}[request.param]
  return train_tokenizer(
    finetune_runs.TEXTS, kind=request.param, vocab_size=size, lowercase=True
  )


def test_words_by_their_characters():
  spans = [(0, 3), (4, 6), (6, 7), (8, 9), (10, 14)]
  # "the" in two tokens; "us." with the full stop; an empty token; none at (8,
  # 9); "over".
  offsets = np.array([(0, 2), (2, 3), (4, 7), (7, 7), (10, 14)])
  of_tokens, words = units.find_words(spans, offsets)
  assert of_tokens.tolist() == [0, 0, 1, -1, 2]
  assert words.tolist() == [[0, 3], [4, 7], [10, 14]]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_every_visible_token_is_in_its_word(tokenizer, text):
  tokens, words = units_of(tokenizer, "word", Text(text))
  assert tokens.ids.tolist() == tokenizer.encode(text).ids.tolist()
  for (begin, end), word in zip(tokens.offsets, words.of_tokens, strict=True):
    if begin < end and text[begin:end].strip():
      first, last = words.offsets[word]
      assert first <= begin < end <= last
  used = words.of_tokens[words.of_tokens >= 0]
  assert np.all(np.diff(used) >= 0)
  assert np.unique(used).tolist() == list(range(len(words.offsets)))
  for begin, end in words.offsets:
    assert text[begin:end] == text[begin:end].strip() != ""


def test_every_given_word_is_a_unit(tokenizer):
  text = text_lines.text_of_words(["The", "U.S.", "", "cat", "\u200b"])
  assert text.text == "The U.S.  cat \u200b"
  tokens, words = units_of(tokenizer, "word", text)
  assert words.offsets.tolist() == [[0, 3], [4, 8], [9, 9], [10, 13], [14, 15]]
  assert np.unique(words.of_tokens).tolist() == [0, 1, 2, 3, 4]
  expected = words.offsets[words.of_tokens]
  assert tokens.offsets.tolist() == expected.tolist()


def test_sentences_and_tokens(tokenizer):
  text = Text("the man .")
  tokens, whole = units_of(tokenizer, "sentence", text)
  assert whole.offsets.tolist() == [[0, 9]] and whole.ids.tolist() == [-1]
  assert not whole.of_tokens.any()
  _, each = units_of(tokenizer, "token", text)
  assert each.of_tokens.tolist() == list(range(len(tokens.ids)))
  assert each.ids.tolist() == tokens.ids.tolist()


def test_each_token_counts_once_in_its_best_window(tokenizer):
  text = Text(" ".join(finetune_runs.TEXTS[:4]))
  n = len(tokenizer.encode(text.text).ids)
  length = 19  # 17 tokens and [CLS], [SEP].
  made = rows.make_row_cutter(tokenizer, "token", length=length)(text)
  assert len(made.rows) > 3 and max(len(r.ids) for r in made.rows) <= length
  counted = np.concatenate([r.units[r.units >= 0] for r in made.rows])
  assert counted.tolist() == list(range(n))
  for row in made.rows:
    assert row.ids[0] == tokenizer.special.cls
    assert row.ids[-1] == tokenizer.special.sep
    assert row.units[0] == row.units[-1] == -1
    ids = row.ids[row.units >= 0]
    assert ids.tolist() == made.units.ids[row.units[row.units >= 0]].tolist()
  # Elsewhere, a token has some context on both sides.
  middle = made.rows[1].units
  assert np.all(middle[:4] == -1) and np.all(middle[-4:] == -1)


def test_a_sentence_includes_the_outer_special_tokens(tokenizer):
  text = Text(" ".join(finetune_runs.TEXTS[:4]))
  n = len(tokenizer.encode(text.text).ids)
  made = rows.make_row_cutter(tokenizer, "sentence", length=19)(text).rows
  assert sum(int(np.sum(row.units == 0)) for row in made) == n + 2
  assert [row.units[0] for row in made] == [0] + [-1] * (len(made) - 1)
  assert [row.units[-1] for row in made] == [-1] * (len(made) - 1) + [0]
  (empty,) = rows.make_row_cutter(tokenizer, "sentence", length=19)(
    Text("")
  ).rows
  assert empty.units.tolist() == [0, 0]
  assert (
    rows.make_row_cutter(tokenizer, "word", length=19)(Text(" ")).rows == []
  )
