"""Predicates and arguments: V, and their tags."""

from maskedlm.data.labelled import bio
from maskedlm.data.labelled.bio import Entity
from maskedlm.data.labelled.formats.predicates import (
  Predicate,
  make_predicate,
  with_verb,
)


def make(*args, index=3, count=7):
  return make_predicate(
    index, [Entity(*x) for x in args], count=count, where="f:9"
  )


def test_arguments_are_sorted_and_the_predicate_alone_is_no_argument():
  made = make(("A1", 4, 7), ("V", 3, 4), ("A0", 0, 2))
  assert made == Predicate(3, (Entity("A0", 0, 2), Entity("A1", 4, 7)))


def test_v_may_be_wider_or_elsewhere():
  """As in "lighten up", and in "took an X-ray" of the predicate X-ray."""
  wide, before = Entity("V", 3, 5), [Entity("V", 1, 2), Entity("C-V", 3, 4)]
  assert with_verb(make(wide)) == [wide]
  assert with_verb(make(*before)) == before
  one, args = Entity("V", 3, 4), [Entity("A0", 0, 2), Entity("C-V", 5, 6)]
  assert with_verb(make(*args)) == [args[0], one, args[1]]


def test_tags_of_arguments():
  made = make(("A0", 0, 2), ("A1", 4, 6), ("C-V", 6, 7))
  tags = bio.entity_tags(with_verb(made), 7)
  assert tags == ["B-A0", "I-A0", "O", "B-V", "B-A1", "I-A1", "B-C-V"]
