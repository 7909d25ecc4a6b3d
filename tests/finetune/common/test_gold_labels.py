"""Examples without a gold label, and gold labels of another kind."""

from typing import NamedTuple

import pytest

from maskedlm.core.errors import DataError
from maskedlm.finetune.common import gold_labels, unseen_labels


class Example(NamedTuple):
  """An example with a label."""

  label: str | None
  where: str = "f:1"


def test_examples_without_a_label_are_counted(capsys):
  examples = [Example("a"), Example(None, "f:2"), Example("b"), Example(None)]
  kept = gold_labels.keep_labelled(
    examples, lambda example: example.label is not None, "dev"
  )
  assert [example.label for example in kept] == ["a", "b"]
  assert "dev: 2 of 4 examples have no gold label" in capsys.readouterr().err
  # If none has one, require_labels says so.
  assert gold_labels.keep_labelled(examples[1:2], lambda e: False, "dev")


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
    unseen_labels.check_known([(label, "f:7") for label in gold], known)
  message = str(error.value)
  assert message.startswith("f:7: ")
  assert all(repr(label) in message for label in known)
  assert any(repr(label) in message for label in gold)


def test_gold_labels_of_which_some_are_known_are_scored():
  unseen_labels.check_known([("a", ""), ("new", "")], ["a", "b"])
  unseen_labels.check_known([], ["a", "b"])
