"""Gold labels that are not in the training set and count as wrong.

A test set may contain some, and official scorers count them. As the model has
no id for such a label, its id is UNSEEN: it contributes to no loss, and every
accuracy counts it as wrong. Metrics on the host compare labels as strings and
need no special case.
"""

from collections.abc import Collection, Sequence

import numpy as np

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError, did_you_mean
from maskedlm.data.labelled.labels import canonical
from maskedlm.finetune.contract import Example
from maskedlm.modeling import losses
from maskedlm.runtime.console import log

UNSEEN = -1


def loss_and_accuracy(logits, labels, *, weights):
  """Returns cross-entropy and accuracy as pairs (sum [B], weight [B]).

  Args:
    logits: [B, ..., V].
    labels: [B, ...] ids; UNSEEN is allowed.
    weights: [B, ...], 0 for labels to ignore entirely.
  """
  is_known = labels != UNSEEN
  loss, correct = losses.loss_and_correct(logits, labels)
  return (
    losses.weighted_sum(loss, weights * is_known),
    losses.weighted_sum(correct & is_known, weights),
  )


def label_ids(
  gold: Sequence[tuple[str | None, str]], labels: Sequence[str]
) -> tuple[np.ndarray, tuple[str, ...]]:
  """Returns the label ids int32 [n] of n examples, and Rows.notes about UNSEEN.

  Args:
    gold: (label, FILE:LINE) for each example; the id of None is 0.
    labels: the training set's labels, by id.
  """
  known = {None: 0, **{label: i for i, label in enumerate(labels)}}
  ids = np.array([known.get(label, UNSEEN) for label, _ in gold], np.int32)
  return ids, unseen_notes([gold[i] for i in np.flatnonzero(ids == UNSEEN)])


def check_known(gold: Sequence[tuple[str, str]], labels: Sequence[str]) -> None:
  """Checks that gold labels that are to be scored mean what the model's mean.

  Args:
    gold: (label, FILE:LINE) of each label.
    labels: the labels that the model knows.

  Raises:
    DataError: the model knows none of them, or one of them is the same number
      or truth value as one of the model's, but written in another way.
  """
  known = set(labels)
  unknown = {}  # label -> where it is first.
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
      f"Write them as in the training data{near or '.'}"
    )


def note_none(
  gold: Collection, examples: Sequence[Example], what: str, metric: str = "f1"
) -> None:
  """Logs that examples to be scored hold none of what their metric counts.

  Args:
    gold: what it counts, such as all entities.
    examples: the examples.
    what: one of them, in words.
    metric: it is 0 without any.
  """
  if examples and not gold:
    file = examples[0].where.rpartition(":")[0]
    log(
      f"warning: {file}: no {what} in {counted(len(examples), 'example')} to be"
      f" scored, so {metric} is 0 whatever is predicted"
    )


def _names(labels: Sequence[str], most: int = 8) -> str:
  shown = ", ".join(map(repr, labels[:most]))
  return f"{shown}, ..." if len(labels) > most else shown


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
