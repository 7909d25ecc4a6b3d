"""Gold labels: which examples have one, and what a model knows of them.

A test set may have labels that the training set lacks, and official scorers
count them. As the model has no id for such a label, its id is UNSEEN: it
contributes to no loss, and every accuracy counts it as wrong. Metrics on the
host compare labels as strings and need no special case.
"""

from collections.abc import (
  Callable,
  Collection,
  Hashable,
  Iterable,
  Mapping,
  Sequence,
)
from typing import Any, NamedTuple

import numpy as np

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError, did_you_mean
from maskedlm.data.labelled.labels import canonical
from maskedlm.finetune.contract import Example
from maskedlm.modeling.losses import UNSEEN
from maskedlm.runtime.console import log


class Gold(NamedTuple):
  """Where a task's examples have their gold label, and the labels in it."""

  field: str  # Of an example; None where there is no gold label.
  expected: str  # Where the label should be; ends an error message.
  # example -> (label, FILE:LINE) of each label that the model may not know.
  labels: Callable[[Example], Iterable[tuple[str, str]]] = lambda example: ()
  # What the metric counts, if it is 0 without any: "entity".
  thing: str = ""
  metric: str = "f1"

  def has(self, example: Example) -> bool:
    """Returns whether an example has a gold label."""
    return getattr(example, self.field) is not None

  def of(self, examples: Sequence[Example]) -> list[Any]:
    """Returns the gold label of each example.

    Raises:
      DataError: one has none.
    """
    for example in examples:
      if not self.has(example):
        where = example.where or "input"
        # Formats of tables know why there is none.
        why = getattr(example, "no_label", "")
        raise DataError(
          why or f"{where}: no {self.field}; expected {self.expected}."
        )
    return [getattr(example, self.field) for example in examples]

  def labelled(self, examples: Sequence[Example]) -> list:
    """Returns the examples with a gold label; all of them if none has one."""
    return [e for e in examples if self.has(e)] or list(examples)

  def pairs(self, examples: Sequence[Example]) -> list[tuple[str, str]]:
    """Returns (label, FILE:LINE) of each label of all examples."""
    return [x for e in examples if self.has(e) for x in self.labels(e)]

  def require(self, examples: Sequence[Example], known: Sequence[str]) -> None:
    """Checks that examples can be scored; reports if none has a `thing`.

    The model knows the labels `known`.
    """
    self.of(examples)
    gold = self.pairs(examples)
    check_known(gold, known)
    if self.thing and examples and not gold:
      log(
        f"warning: {file_of(examples)}: no {self.thing} in "
        f"{counted(len(examples), 'example')} to be scored, so {self.metric} "
        "is 0 whatever is predicted"
      )

  def unseen_notes(
    self, examples: Sequence[Example], known: Collection[str]
  ) -> tuple[str, ...]:
    """Returns Rows.notes about labels that the model doesn't know."""
    return unseen_notes([x for x in self.pairs(examples) if x[0] not in known])


def file_of(examples: Sequence[Example]) -> str:
  """Returns the file of the first example, for errors."""
  return examples[0].where.rpartition(":")[0]


def keep_labelled(
  examples: Sequence[Example], has_label: Callable[[Example], bool], name: str
) -> list:
  """Returns the examples with a gold label, and reports how many have none.

  If none has one, all are returned; Application.require_labels then raises. The
  report names the set `name`.
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


def require_two_labels(
  examples: Sequence[Example], labels: Sequence[Any], name: str
) -> None:
  """Checks that a training set, of these labels, has different ones.

  Raises:
    DataError: all labels, called `name`, are the same; the first example's file
      is named.
  """
  if len(set(labels)) < 2:
    who = f"all {len(examples):,} examples for training have"
    if len(examples) == 1:
      who = "the only example for training has"
    raise DataError(
      f"{file_of(examples)}: {who} the {name} "
      f"{labels[0]!r}; expected at least two."
    )


def ids_of(labels: Iterable[Hashable]) -> dict[Any, int]:
  """Returns label -> id of labels that are listed by id."""
  return {label: i for i, label in enumerate(labels)}


def label_ids(
  gold: Iterable[Hashable | None], ids: Mapping[Any, int]
) -> np.ndarray:
  """Returns the labels' ids, int32 [n]: 0 for None, UNSEEN for unknown ones."""
  known = {None: 0, **ids}
  return np.array([known.get(label, UNSEEN) for label in gold], np.int32)


def check_known(gold: Sequence[tuple[str, str]], labels: Sequence[str]) -> None:
  """Checks that the model knows the gold labels that are to be scored.

  `gold` are (label, FILE:LINE), `labels` the model's.

  Raises:
    DataError: the model knows none of them, or one of them is the same number
      or truth value as one of the model's, but written in another way.
  """
  known = set(labels)
  unknown: dict[str, str] = {}  # label -> where it is first.
  for label, where in gold:
    if label not in known:
      unknown.setdefault(label, where)
  twins = {canonical(label): label for label in labels}
  for label, where in unknown.items():
    if twin := twins.get(canonical(label)):
      raise DataError(
        f"{where}: the gold label {label!r} is the model's {twin!r}, in "
        f"another form; expected the model's labels: {_names(labels)}."
      )
  if unknown and all(label in unknown for label, _ in gold):
    label, where = next(iter(unknown.items()))
    near = did_you_mean(label, labels)
    raise DataError(
      f"{where}: the model knows none of the gold labels: they are "
      f"{_names([*unknown])}; the model's are {_names(labels)}. "
      f"Write them as in the training data{near}."
    )


def unseen_notes(unseen: Sequence[tuple[str, str]]) -> tuple[str, ...]:
  """Returns Rows.notes about these (label, FILE:LINE): one line or none."""
  if not unseen:
    return ()
  label, where = unseen[0]
  different = len({label for label, _ in unseen})
  return (
    f"gold labels that are not in the training set: {len(unseen):,} "
    f"({different:,} different), such as {label!r} ({where}); they are left "
    "out of the loss and count as wrong",
  )


def _names(labels: Sequence[str], most: int = 8) -> str:
  shown = ", ".join(map(repr, labels[:most]))
  return f"{shown}, ..." if len(labels) > most else shown
