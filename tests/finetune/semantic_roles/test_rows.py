"""Rows: words, predicates and tags; more predicates; windows; unseen labels."""

import numpy as np

from helpers.letters import CLS, SEP, TOKENIZER
from maskedlm.data.labelled import bio
from maskedlm.data.labelled.bio import Entity
from maskedlm.data.labelled.formats.predicates import Example, Predicate
from maskedlm.finetune.semantic_roles.rows import PER_ROW, make_rows

LABELS = bio.all_tags({"V", "A", "C-A"}, "bio")
TAGS = dict(enumerate(LABELS))
LETTERS = tuple("abcdefghijklmnopqrstuvwxyz")


def rows_of(*examples, length=32, stride=0):
  return make_rows(examples, TOKENIZER, LABELS, length=length, stride=stride)


def tags_of(rows, i, slot):
  count = np.sum(rows.tokens["word_starts"][i] > 0)
  return [TAGS.get(t, "?") for t in rows.tokens["role_tags"][i][slot][:count]]


def test_one_row():
  predicates = (
    Predicate(1, (Entity("A", 2, 4), Entity("C-A", 4, 5))),
    Predicate(3, (Entity("A", 0, 3), Entity("V", 3, 5))),
  )
  rows = rows_of(Example(LETTERS[:5], predicates))
  assert rows.tokens["input_ids"][0].tolist() == [CLS, 10, 11, 12, 13, 14, SEP]
  assert rows.tokens["word_starts"][0].tolist() == [1, 2, 3, 4, 5, 0, 0]
  assert rows.tokens["is_predicate"][0].tolist() == [0, 1, 0, 1, 0, 0, 0]
  assert rows.tokens["is_judged"][0].tolist() == [1, 1, 1, 1, 1, 0, 0]
  assert rows.values["predicates"][0].tolist() == [1, 3, *[0] * (PER_ROW - 2)]
  assert rows.values["is_slot"][0].tolist() == [1, 1, *[0] * (PER_ROW - 2)]
  assert tags_of(rows, 0, 0) == ["O", "B-V", "B-A", "I-A", "B-C-A"]
  assert tags_of(rows, 0, 1) == ["B-A", "I-A", "I-A", "B-V", "I-V"]
  assert not rows.notes and not rows.cut


def test_many_predicates_have_more_rows_but_are_found_once():
  count = 2 * PER_ROW + 1
  every = tuple(Predicate(i) for i in range(count))
  rows = rows_of(Example(("z",)), Example(LETTERS[:count], every))
  assert rows.example.tolist() == [0, 1, 1, 1]
  assert rows.values["is_slot"].sum(axis=1).tolist() == [0, PER_ROW, PER_ROW, 1]
  judged = [x.sum() for x in rows.tokens["is_judged"]]
  assert judged == [1, count, 0, 0]
  given = np.sum(rows.tokens["is_given"][1:], axis=0)
  assert given.tolist() == [*[1] * count, 0, 0]


def test_windows():
  """A predicate is in one window; what does not fit is reported."""
  args = (Entity("A", 0, 2), Entity("C-A", 3, 12))
  before = (Entity("C-A", 0, 2), Entity("A", 2, 6), Entity("C-A", 11, 12))
  predicates = (Predicate(2, args), Predicate(10, before))
  rows = rows_of(Example(LETTERS[:12], predicates), length=9, stride=4)
  first = rows.values["first_word"].tolist()
  assert len(first) > 1 and first[0] == 0
  judged = [
    begin + word
    for begin, x in zip(first, rows.tokens["is_judged"], strict=True)
    for word in np.flatnonzero(x)
  ]
  assert judged == list(range(12))
  assert rows.values["is_slot"].sum() == 2
  # C-A is cut off where the window ends.
  assert tags_of(rows, 0, 0) == ["B-A", "I-A", "B-V", "B-C-A", *["I-C-A"] * 3]
  assert rows.values["predicates"][-1][0] == 10 - first[-1]
  assert first[-1] == 5 and tags_of(rows, len(first) - 1, 0) == [
    "B-A",
    "O",
    "O",
    "O",
    "O",
    "B-V",
    "B-C-A",
  ]
  (note,) = rows.notes
  assert note.startswith("3 of 5 arguments") and "raise data.length" in note


def test_labels_that_training_lacks():
  made = Predicate(0, (Entity("B", 1, 3), Entity("A", 3, 4)))
  rows = rows_of(Example(LETTERS[:4], (made,), where="f:7"))
  assert tags_of(rows, 0, 0) == ["B-V", "?", "?", "B-A"]
  assert "'B' (f:7)" in rows.notes[0]


def test_a_word_that_no_row_holds():
  rows = rows_of(Example(("a b c d e f g h i j", "k")), length=8)
  assert rows.cut == [12]
  assert sum(x.sum() for x in rows.tokens["is_judged"]) == 2
