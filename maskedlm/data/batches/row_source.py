"""Defines the rows of a split, and the order in which epochs read them.

Pretraining reads one endless stream of rows, epoch after epoch; fine-tuning
reads epochs that end in filler rows (finetune/common/batching.py). Both shuffle
an epoch by `shuffle` and divide a batch among the hosts by `host_slice`.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from maskedlm.data import hashing


class DomainShare(NamedTuple):
  """A domain's share of the rows of an epoch."""

  name: str
  num_rows: int  # Distinct rows of the domain.
  drawn: int  # Rows that an epoch reads, repeats included.


class RowSource(NamedTuple):
  """The rows that a split is cut into, for one length."""

  num_rows: int
  seed: int  # Determines the order of the rows.
  # (row [b], epoch [b]), int64 -> arrays [b, ...].
  read: Callable[[np.ndarray, np.ndarray], dict[str, np.ndarray]]
  # For a source that can be packed (packed_rows.py): what determines the
  # lengths in addition to the corpus, and () -> [num_rows], an upper bound on
  # the number of tokens of each row.
  key: tuple = ()
  lengths: Callable[[], np.ndarray] | None = None
  # For several domains: place [b] -> (row, epoch), and each domain's share.
  order: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None
  shares: tuple[DomainShare, ...] = ()


def shuffle(index, size, *, seed, epoch) -> np.ndarray:
  """Returns the rows at places `index` of an epoch, int64.

  All arguments may be arrays, which broadcast to the result's shape; each
  (seed, epoch) has its own permutation of range(size), computed for the given
  places only.
  """
  return hashing.permute(index, size, hashing.bits(seed, "order", epoch))


def row_at(source: RowSource, place) -> tuple[np.ndarray, np.ndarray]:
  """Returns (row [b], epoch [b]) at places [b] of a source's endless stream.

  Unless the source has its own order, every epoch has each row exactly once.
  """
  if source.order:
    return source.order(place)
  epoch, index = np.divmod(place, source.num_rows)
  size, seed = source.num_rows, source.seed
  return shuffle(index, size, seed=seed, epoch=epoch), epoch


def host_slice(values: np.ndarray, shard) -> np.ndarray:
  """Returns the slice of a global batch's values [B] that belongs to a host.

  `shard` is (index, count): the index-th of count equal slices; index may be a
  sequence, for several slices (sharding.data_shard).
  """
  index, count = shard
  return values.reshape(count, -1)[np.atleast_1d(index)].ravel()
