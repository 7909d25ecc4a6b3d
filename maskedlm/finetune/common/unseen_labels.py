"""Gold labels that are not in the training set and count as wrong.

A test set may contain some, and official scorers count them. As the model has
no id for such a label, its id is UNSEEN: it contributes to no loss, and every
accuracy counts it as wrong. Metrics on the host compare labels as strings and
need no special case.
"""

from collections.abc import Sequence

import numpy as np

from maskedlm.modeling import losses

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
