"""Rows of tagged sentences: each word is in exactly one row."""

import random

import numpy as np
import pytest

from helpers import finetune_runs as runs
from helpers.english_tokenizer import KINDS, english_tokenizer
from maskedlm.data.labelled import words
from maskedlm.finetune.tagging import rows as tag_rows
from maskedlm.finetune.tagging.tagging import Example


@pytest.mark.parametrize("kind", KINDS)
def test_rows_by_hand(kind):
  tokenizer = english_tokenizer(kind)
  example = Example(("the", "xylophone", "cat"), ("O", "B-A", "I-A"))
  rows = tag_rows.make_rows(
    [example], tokenizer, {"O": 0, "B-A": 1, "I-A": 2}, length=48, stride=0
  )
  sizes = [len(x) for x in words.word_encoder(tokenizer)(example.words)]
  assert sizes[1] > 2  # An unknown word of several tokens.
  ids, of_tokens, starts, tags = (
    rows.tokens[name][0].tolist()
    for name in ("input_ids", "token_words", "word_starts", "word_tags")
  )
  assert ids[0] == tokenizer.special.cls and ids[-1] == tokenizer.special.sep
  a, b, c = sizes
  assert of_tokens == [0] + [1] * a + [2] * b + [3] * c + [0]
  assert starts == [1, 1 + a, 1 + a + b] + [0] * (len(ids) - 3)
  assert tags == [0, 1, 2] + [0] * (len(ids) - 3)
  assert not rows.cut


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_every_word_is_in_one_row_whatever_the_length(kind, seed):
  rng = random.Random(seed)
  vocabulary = [*" ".join(runs.TEXTS).split(), "\x00", "x" * 40, "日本語", ""]
  examples = [
    Example(tuple(rng.choice(vocabulary) for _ in range(rng.randrange(60))))
    for _ in range(7)
  ]
  length = rng.choice([8, 11, 17])
  rows = tag_rows.make_rows(
    examples,
    english_tokenizer(kind),
    {"O": 0},
    length=length,
    stride=rng.choice([0, 1, 5]),
  )
  assert max(rows.lengths) <= length
  assert rows.example.tolist() == sorted(rows.example)
  find = words.word_encoder(english_tokenizer(kind))
  for index, example in enumerate(examples):
    found = []
    mine = np.flatnonzero(rows.example == index)
    for i in mine:
      ids, of_tokens = (
        rows.tokens["input_ids"][i],
        rows.tokens["token_words"][i],
      )
      starts = rows.tokens["word_starts"][i]
      for slot in range(int(np.sum(starts > 0))):
        places = np.flatnonzero(of_tokens == slot + 1)
        assert places[0] == starts[slot]
        found.append(ids[places].tolist())
    expected = [x[: length - 2].tolist() for x in find(example.words)]
    assert found == expected
    assert rows.values["begins"][mine].tolist() == [1] + [0] * (len(mine) - 1)
    assert rows.values["ends"][mine].tolist() == [0] * (len(mine) - 1) + [1]
  cut = [any(len(t) > length - 2 for t in find(e.words)) for e in examples]
  assert len(rows.cut) == sum(cut)
