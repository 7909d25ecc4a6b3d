"""Examples without a gold label, and gold labels of another kind."""

from typing import NamedTuple

import pytest

from maskedlm.core.errors import DataError
from maskedlm.finetune.common import labels


class Example(NamedTuple):
  """An example with a label."""

  label: str | None
  where: str = "f:1"


def test_examples_without_a_label_are_counted(capsys):
  examples = [Example("a"), Example(None, "f:2"), Example("b"), Example(None)]
  kept = labels.keep_labelled(
    examples, lambda example: example.label is not None, "dev"
  )
  assert [example.label for example in kept] == ["a", "b"]
  assert "dev: 2 of 4 examples have no gold label" in capsys.readouterr().err
  # If none has one, require_labels says so.
  assert labels.keep_labelled(examples[1:2], lambda e: False, "dev")


@pytest.mark.parametrize(
  ("gold", "known"),
  [
    (["LABEL_0", "LABEL_1"], ["neg", "pos"]),
    (["NEG"], ["neg", "pos"]),
    (["1.0", "0.0"], ["0", "1"]),
    (["0", "1.0"], ["0", "1"]),  # Some are known, but one is misread.
    (["true"], ["True", "False"]),
  ],
)
def test_gold_labels_of_another_kind_are_refused(gold, known):
  with pytest.raises(DataError) as error:
    labels.check_known([(label, "f:7") for label in gold], known)
  message = str(error.value)
  assert message.startswith("f:7: ")
  assert all(repr(label) in message for label in known)
  assert any(repr(label) in message for label in gold)


def test_gold_labels_of_which_some_are_known_are_scored():
  labels.check_known([("a", ""), ("new", "")], ["a", "b"])
  labels.check_known([], ["a", "b"])


class Tagged(NamedTuple):
  tags: tuple[str, ...] | None
  where: str
  no_label: str = ""


GOLD = labels.Gold(
  "tags",
  "a column of tags",
  lambda example: [(tag, example.where) for tag in example.tags],
  thing="name",
)
EXAMPLES = [Tagged(("a", "b"), "f:1"), Tagged(None, "f:2")]
EXAMPLES += [Tagged(("a", "c", "d", "c"), "f:3")]


def test_where_gold_labels_are():
  assert GOLD.labelled(EXAMPLES) == EXAMPLES[::2]
  assert GOLD.labelled(EXAMPLES[1:2]) == EXAMPLES[1:2]
  assert GOLD.of(EXAMPLES[::2]) == [("a", "b"), ("a", "c", "d", "c")]
  with pytest.raises(DataError, match="f:2: no tags; expected a column of tag"):
    GOLD.of(EXAMPLES)
  why = Tagged(None, "f:4", "f:4: no column 'x'.")
  with pytest.raises(DataError, match=r"^f:4: no column 'x'\.$"):
    GOLD.require([why], ["a"])


def test_labels_that_the_model_does_not_know(capsys):
  (note,) = GOLD.unseen_notes(EXAMPLES, ["a", "b"])
  assert "3 (2 different), such as 'c' (f:3)" in note
  assert GOLD.unseen_notes(EXAMPLES, "abcd") == ()
  ids = labels.label_ids(["b", None, "c", "a"], labels.ids_of("ab"))
  assert ids.tolist() == [1, 0, labels.UNSEEN, 0]
  GOLD.require(EXAMPLES[::2], ["a"])
  assert not capsys.readouterr().err
  GOLD.require([Tagged((), "f:5")], ["a"])
  assert "f: no name in 1 example to be scored, so f1 is 0" in (
    capsys.readouterr().err
  )
