"""Gold labels of examples: those without one are left out, and counted.

data/labelled/labels.py says which values in files mean that there is none.
"""

from collections.abc import Callable, Sequence
from typing import Any

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.finetune.contract import Example
from maskedlm.runtime.console import log


def labelled(examples: Sequence[Example], field: str = "label") -> list:
  """Returns the examples with a label; all of them if none has one."""
  found = [e for e in examples if getattr(e, field) is not None]
  return found or list(examples)


def keep_labelled(
  examples: Sequence[Example], has_label: Callable[[Example], bool], name: str
) -> list:
  """Returns the examples with a gold label, and reports how many have none.

  If none has one, all are returned; Application.require_labels then raises.

  Args:
    examples: the examples.
    has_label: Application.has_label.
    name: the set's name, for the report.
  """
  kept = [example for example in examples if has_label(example)]
  if kept and len(kept) < len(examples):
    first = next(e for e in examples if not has_label(e))
    lost = len(examples) - len(kept)
    log(
      f"{name}: {lost:,} of {counted(len(examples), 'example')} "
      f"{'has' if lost == 1 else 'have'} no gold label, left out, such as "
      f"{first.where}"
    )
  return kept or list(examples)


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
    who = f"all {len(examples):,} examples for training have"
    if len(examples) == 1:
      who = "the only example for training has"
    raise DataError(
      f"{examples[0].where.rpartition(':')[0]}: {who} the {name} "
      f"{labels[0]!r}; expected at least two."
    )
