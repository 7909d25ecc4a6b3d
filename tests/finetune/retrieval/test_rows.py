"""Texts that find themselves: what they lose, and what is said."""

import numpy as np
import pytest

from helpers.letters import CLS, SEP, TOKENIZER
from maskedlm.data.labelled.formats import passages
from maskedlm.data.labelled.formats.passages import Example
from maskedlm.finetune.retrieval.rows import make_rows

TEXTS = ("a b c d e f g h i j k", "k j i h g f e d c b a", "b")
COPIES = [Example(text, (text,)) for text in TEXTS]
PAIR = Example("a b c d", ("e f g",))


def sequences(rows):
  """Returns the ids of each row's sequences, without specials and padding."""
  lengths = rows.values["sequence_lengths"]
  ids = rows.tokens["input_ids"]
  return [
    [x[1 : n - 1].tolist() for x, n in zip(*pair, strict=True)]
    for pair in zip(ids, lengths, strict=True)
  ]


def test_a_copy_loses_tokens():
  rows = make_rows([*COPIES, PAIR], TOKENIZER, length=20, delete=0.6)
  *copies, pair = sequences(rows)
  whole = sequences(make_rows([*COPIES, PAIR], TOKENIZER, length=20))
  for (query, passage), (same, known) in zip(copies, whole, strict=False):
    assert passage == known == same
    assert 1 <= len(query) < max(len(known), 2)
    left = iter(known)
    assert all(x in left for x in query)  # In their order.
  assert copies[2][0] == whole[2][0]  # The last token stays.
  assert pair == whole[3]  # A query that is no copy keeps all.
  again = make_rows(COPIES[::-1], TOKENIZER, length=20, delete=0.6)
  assert sequences(again) == copies[::-1]
  assert rows.tokens["input_ids"][0][0][0] == CLS
  assert SEP in rows.tokens["input_ids"][0][0]


def test_the_share_of_tokens():
  rng = np.random.default_rng(2)
  texts = [" ".join(rng.choice([*"abcdefghijk"], 200)) for _ in range(20)]
  rows = make_rows(
    [Example(x, (x,)) for x in texts], TOKENIZER, length=300, delete=0.6
  )
  kept = np.mean([len(query) for query, _ in sequences(rows)]) / 200
  assert kept == pytest.approx(0.4, abs=0.03)


def test_what_is_said():
  (_, note) = make_rows(COPIES, TOKENIZER, length=20).notes
  assert note.startswith("3 texts to find themselves, by dropout alone")
  assert len(make_rows(COPIES, TOKENIZER, length=20, delete=0.1).notes) == 1
  assert len(make_rows([PAIR], TOKENIZER, length=20).notes) == 1


def test_lines_of_text_are_read(tmp_path):
  path = tmp_path / "texts.txt"
  path.write_text('the cat "sat"\n\nquery, passage\n')
  columns = passages.Columns(("text",), ("text",))
  found = passages.read_examples(str(path), columns, header=("text",))
  assert [x[:2] for x in found] == [
    ('the cat "sat"', ('the cat "sat"',)),
    ("query, passage", ("query, passage",)),
  ]
