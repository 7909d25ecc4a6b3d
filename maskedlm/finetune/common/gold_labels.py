"""Gold labels: each must be there, and a training set must have several."""

from collections.abc import Sequence
from typing import Any

from maskedlm.core.errors import DataError
from maskedlm.finetune.contract import Example


def gold_labels(
  examples: Sequence[Example], field: str, expected: str
) -> list[Any]:
  """Returns a field of each example.

  Args:
    examples: NamedTuples with the field and `where`.
    field: the name of the field, such as "label".
    expected: where the label should be; ends the error message.

  Raises:
    DataError: the field of an example is None.
  """
  for example in examples:
    if getattr(example, field) is None:
      where = example.where or "input"
      raise DataError(f"{where}: no {field}; expected {expected}.")
  return [getattr(example, field) for example in examples]


def require_two_labels(
  examples: Sequence[Example], labels: Sequence[Any], name: str
) -> None:
  """Checks that a training set has different labels.

  Args:
    examples: the training set; the error names the first example's file.
    labels: a label for each example.
    name: the kind of label, such as "relation".

  Raises:
    DataError: all labels are the same.
  """
  if len(set(labels)) < 2:
    raise DataError(
      f"{examples[0].where.rpartition(':')[0]}: all {len(examples):,} examples "
      f"for training have the {name} {labels[0]!r}; expected at least two."
    )
