"""The endless stream of rows that steps read: one source, or several mixed.

A Source is rows of one kind (batches.py, text_rows.py). Alone it is read epoch
after epoch, each in an order of its own. The sources of several languages are
`mixed` to one: an epoch is as long as all of them together, and language i,
with n_i rows, has exactly the share that it is given or

  q_i = p_i^alpha / sum_j p_j^alpha,   p_i = n_i / sum_k n_k

of it, to the row (Conneau et al., arXiv:1911.02116, section 3; Lample &
Conneau, arXiv:1901.07291). Small languages are read several times in an epoch,
each time in a new order; of large ones an epoch has a part, and the next one
goes on where it ended. All of it is arithmetic and hashes: no state, and any
place is reached at once.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.core.errors import (ConfigError, did_you_mean)
from maskedlm.data import hashing
from maskedlm.data.sampling import (apportion, equal_counts)


class DomainShare(NamedTuple):
  """What one language is of an epoch."""

  name: str
  num_rows: int  # That there are.
  drawn: int  # That an epoch reads, repeats counted.


class RowSource(NamedTuple):
  """The rows that a split is cut into, for one length."""

  num_rows: int
  seed: int  # Of their order.
  # (row [b], epoch [b]), int64 -> arrays [b, ...].
  read: Callable[[np.ndarray, np.ndarray], dict[str, np.ndarray]]
  # Of a source that can be packed (packing.py): what determines the lengths,
  # besides the corpus, and () -> [num_rows] tokens of each row at most.
  key: tuple = ()
  lengths: Callable[[], np.ndarray] | None = None
  # Of several languages: place [b] -> (row, epoch), and what each one is.
  order: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None
  shares: tuple[DomainShare, ...] = ()


def row_at(source: RowSource, place) -> tuple[np.ndarray, np.ndarray]:
  """(row, epoch) at each place [b] of the endless stream of a source's rows."""
  return source.order(place) if source.order else _shuffled(source, place)


def _shuffled(source: RowSource, place) -> tuple[np.ndarray, np.ndarray]:
  """Every epoch has each row exactly once."""
  epoch, index = np.divmod(place, source.num_rows)
  key = hashing.bits(source.seed, "order", epoch)
  return hashing.permute(index, source.num_rows, key), epoch


# Several languages


def mix(
  sources: Sequence[RowSource], names: Sequence[str], *, q, seed: int
) -> RowSource:
  """The sources as one, of which each is the share q [n] of an epoch.

  Its row r is row r - starts[i] of source i, the tables being joined; its
  epochs are those of each language, for which the arrays are made.
  """
  sizes = np.array([source.num_rows for source in sources])
  total = int(sizes.sum())
  drawn = apportion(total, q)

  def order(place):
    epoch, index = np.divmod(place, total)
    key = hashing.bits(seed, "mixture", epoch)
    which, nth = _find(drawn, hashing.permute(index, total, key))
    return _rows(sources, which, epoch * drawn[which] + nth)

  return _joined(sources, names, drawn, order, num_rows=total, seed=seed)


def sample_equally(
  sources: Sequence[RowSource], names: Sequence[str], *, max_rows: int, seed: int
) -> RowSource:
  """As many rows of each language, or all where there are fewer: a sample.

  Of max_rows rows, language after language, read but once; it doesn't depend
  on q, so that runs can be compared.
  """
  sizes = np.array([source.num_rows for source in sources])
  drawn = equal_counts(max_rows, sizes)
  num_rows = int(drawn.sum())

  def order(place):
    return _rows(sources, *_find(drawn, place))

  return _joined(sources, names, drawn, order, num_rows=num_rows, seed=seed)


def _find(drawn, index) -> tuple[np.ndarray, np.ndarray]:
  """(language [b], which of its rows [b]) for places within an epoch."""
  ends = np.cumsum(drawn)
  which = np.searchsorted(ends, index, side="right")
  return which, index - (ends - drawn)[which]


def _rows(sources, which, nth) -> tuple[np.ndarray, np.ndarray]:
  """(joined row, epoch) of the nth row [b] that is read of a language [b]."""
  sizes = np.array([source.num_rows for source in sources])[which]
  seeds = np.array([source.seed for source in sources], np.uint64)[which]
  epoch, index = np.divmod(nth, sizes)
  row = hashing.permute(index, sizes, hashing.bits(seeds, "order", epoch))
  return _starts(sources)[which] + row, epoch


def _starts(sources) -> np.ndarray:
  return np.cumsum([0, *(source.num_rows for source in sources)])


def _joined(sources, names, drawn, order, *, num_rows, seed) -> RowSource:
  starts = _starts(sources)

  def read(row, epoch):
    which = np.searchsorted(starts, row, side="right") - 1
    arrays = {"language_ids": which.astype(np.int32)}
    for i in np.unique(which):
      here = np.flatnonzero(which == i)
      part = sources[i].read(row[here] - starts[i], epoch[here])
      for name, values in part.items():
        shape = (len(row), *values.shape[1:])
        arrays.setdefault(name, np.empty(shape, values.dtype))[here] = values
    return arrays

  each = zip(names, (s.num_rows for s in sources), drawn.tolist(), strict=True)
  return RowSource(
    num_rows, seed, read, order=order, shares=tuple(DomainShare(*x) for x in each)
  )


def parse_domain_shares(asked: str, names: list[str]) -> np.ndarray | None:
  """The share [n] of an epoch's rows that data.shares gives each part.

  asked: NAME=WEIGHT for every name, between commas; weights of any sum. A part
  of weight 0 is measured, not trained on. None where nothing is asked for.

  Raises ConfigError for a part that isn't there, one that is left out, and a
  weight that is none.
  """
  if not asked:
    return None
  weights: dict[str, float] = {}
  for item in filter(None, map(str.strip, asked.split(","))):
    name, _, weight = item.partition("=")
    try:
      weights[name] = float(weight)
    except ValueError:
      weights[name] = math.nan
    if name not in names:
      known = f"; known: {', '.join(names)}" if names else ""
      raise ConfigError(
        f"data.shares={asked!r}: {name!r} is no part of the corpus"
        f"{did_you_mean(name, names)}{known or ', which has none'}."
      )
    if not 0 <= weights[name] < math.inf:
      raise ConfigError(
        f"data.shares={asked!r}: {item!r} is not NAME=WEIGHT with a weight of "
        "0 or more, en-web=0.7 say."
      )
  if left_out := [name for name in names if name not in weights]:
    raise ConfigError(
      f"data.shares={asked!r} leaves out {', '.join(left_out)}: give every "
      "part a weight; 0 = it is measured, not trained on."
    )
  found = np.array([weights[name] for name in names])
  if not found.sum():
    raise ConfigError(f"data.shares={asked!r}: one weight must be above 0.")
  return found / found.sum()
