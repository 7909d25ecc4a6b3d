"""Gold labels that training did not have: wrong, whatever is predicted.

A test set may have some, and official scorers count them. The model has no such
label, so their id is UNKNOWN: they have no part in a loss, and every accuracy
counts them as wrong. On the host labels are compared as strings, so nothing
need be done there.
"""

from collections.abc import Sequence

import numpy as np

from maskedlm.modeling import losses

UNSEEN = -1


def loss_and_accuracy(logits, labels, *, weights):
  """(cross-entropy, accuracy), as losses.py has them; labels may be UNKNOWN.

  Args:
    logits: [..., V].
    labels: [...] ids.
    weights: [...], 0 for what does not count, not even as wrong.
  """
  is_known = labels != UNSEEN
  nats, hits = losses.loss_and_correct(logits, labels)
  return (
    losses.weighted_sum(nats, weights * is_known),
    losses.weighted_sum(hits & is_known, weights),
  )


def label_ids(
  gold: Sequence[tuple[str | None, str]], labels: Sequence[str]
) -> tuple[np.ndarray, tuple[str, ...]]:
  """(label, FILE:LINE) of each of n examples -> (ids [n], Rows.notes).

  Where there is no label, None, the id is 0.
  """
  known = {None: 0, **{label: i for i, label in enumerate(labels)}}
  ids = np.array([known.get(label, UNSEEN) for label, _ in gold], np.int32)
  return ids, unseen_notes([gold[i] for i in np.flatnonzero(ids == UNSEEN)])


def unseen_notes(found: Sequence[tuple[str, str]]) -> tuple[str, ...]:
  """Rows.notes of these (label, FILE:LINE): a line, or none."""
  if not found:
    return ()
  label, where = found[0]
  different = len({label for label, _ in found})
  return (
    f"gold labels that training did not have: {len(found):,} ({different:,} "
    f"different), such as {label!r} ({where}); they are in no loss, and count "
    "as wrong",
  )
