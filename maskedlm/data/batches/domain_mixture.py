"""Mixes the rows of several domains of a corpus (corpus.parts) into one source.

An epoch is as long as all domains together. Domain i, with n_i rows, has the
share of it that data.shares gives or, by default,

  q_i = p_i^alpha / sum_j p_j^alpha,   p_i = n_i / sum_k n_k

exact to the row (Conneau et al., arXiv:1911.02116, section 3; Lample & Conneau,
arXiv:1901.07291). Small domains are read several times in an epoch, each time
in a new order; of a large one an epoch reads a fraction, and the next epoch
continues where it ended. There is no state: the row at any place is computed
directly, by arithmetic and hashes.
"""

import math
from collections.abc import Sequence

import numpy as np

from maskedlm.core.errors import ConfigError, did_you_mean
from maskedlm.data import hashing
from maskedlm.data.batches.row_source import DomainShare, RowSource, shuffle
from maskedlm.data.sampling import apportion, equal_counts


def mix(
  sources: Sequence[RowSource], names: Sequence[str], *, q, seed: int
) -> RowSource:
  """Returns one source in which source i has the share q[i] of an epoch.

  Row r is row r - starts[i] of source i, where starts are the running totals of
  the sources' sizes; the epochs passed to `read` count passes over a domain.
  """
  total = int(_starts(sources)[-1])
  drawn = apportion(total, q)

  def order(place):
    epoch, index = np.divmod(place, total)
    key = hashing.bits(seed, "mixture", epoch)
    domain, nth = _find_domain(drawn, hashing.permute(index, total, key))
    return _joined_rows(sources, domain, epoch * drawn[domain] + nth)

  return _join(sources, names, drawn, order, num_rows=total, seed=seed)


def sample_equally(
  sources: Sequence[RowSource],
  names: Sequence[str],
  *,
  max_rows: int,
  seed: int,
) -> RowSource:
  """Returns a sample with equally many rows per domain, or all of a small one.

  It has at most max_rows rows, domain after domain, each read once. It does
  not depend on the shares, so that runs can be compared.
  """
  drawn = equal_counts(max_rows, [source.num_rows for source in sources])

  def order(place):
    return _joined_rows(sources, *_find_domain(drawn, place))

  num_rows = int(drawn.sum())
  return _join(sources, names, drawn, order, num_rows=num_rows, seed=seed)


def _find_domain(drawn, index) -> tuple[np.ndarray, np.ndarray]:
  """Returns (domain [b], index among its rows [b]) of places in an epoch."""
  ends = np.cumsum(drawn)
  domain = np.searchsorted(ends, index, side="right")
  return domain, index - (ends - drawn)[domain]


def _joined_rows(sources, domain, nth) -> tuple[np.ndarray, np.ndarray]:
  """Returns (joined row, epoch) [b]: the nth row that is read of a domain."""
  starts = _starts(sources)
  sizes = np.diff(starts)[domain]
  seeds = np.array([source.seed for source in sources], np.uint64)[domain]
  epoch, index = np.divmod(nth, sizes)
  return starts[domain] + shuffle(index, sizes, seed=seeds, epoch=epoch), epoch


def _starts(sources) -> np.ndarray:
  return np.cumsum([0, *(source.num_rows for source in sources)])


def _join(sources, names, drawn, order, *, num_rows, seed) -> RowSource:
  starts = _starts(sources)

  def read(row, epoch):
    domain = np.searchsorted(starts, row, side="right") - 1
    arrays = {"language_ids": domain.astype(np.int32)}
    for i in np.unique(domain):
      here = np.flatnonzero(domain == i)
      domain_arrays = sources[i].read(row[here] - starts[i], epoch[here])
      for name, values in domain_arrays.items():
        shape = (len(row), *values.shape[1:])
        arrays.setdefault(name, np.empty(shape, values.dtype))[here] = values
    return arrays

  sizes = [source.num_rows for source in sources]
  domains = zip(names, sizes, drawn.tolist(), strict=True)
  shares = tuple(DomainShare(*domain) for domain in domains)
  return RowSource(num_rows, seed, read, order=order, shares=shares)


def parse_domain_shares(shares: str, names: list[str]) -> np.ndarray | None:
  """Returns each domain's share [n] of an epoch, given data.shares, or None.

  `shares` is NAME=WEIGHT for every name, separated by commas; the weights may
  have any sum. A domain of weight 0 is evaluated, but not trained on.

  Raises:
    ConfigError: a domain is unknown, missing or given twice, a weight is
      invalid, or none is above 0.
  """
  if not shares:
    return None
  weights: dict[str, float] = {}
  for item in filter(None, map(str.strip, shares.split(","))):
    name, _, weight = item.partition("=")
    if name in weights:
      raise ConfigError(f"data.shares={shares!r} has {name!r} twice.")
    try:
      weights[name] = float(weight)
    except ValueError:
      weights[name] = math.nan
    if name not in names:
      known = f"known: {', '.join(names)}" if names else "it has none"
      raise ConfigError(
        f"data.shares={shares!r}: {name!r} is no domain of the corpus "
        f"(corpus.parts){did_you_mean(name, names)}; {known}."
      )
    if not 0 <= weights[name] < math.inf:
      raise ConfigError(
        f"data.shares={shares!r}: {item!r}: expected NAME=WEIGHT with a weight "
        "of 0 or more, such as en-web=0.7."
      )
  if missing := [name for name in names if name not in weights]:
    raise ConfigError(
      f"data.shares={shares!r} leaves out {', '.join(missing)}: give every "
      "domain a weight; a domain of weight 0 is evaluated, not trained on."
    )
  ordered = np.array([weights[name] for name in names])
  if not ordered.sum():
    raise ConfigError(f"data.shares={shares!r}: one weight must be above 0.")
  return ordered / ordered.sum()
