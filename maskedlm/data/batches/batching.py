"""Chooses the rows of a step: epochs, hosts and the held-out sample.

Rows come as a RowSource (pair_rows.py, text_rows.py), and this module turns
sources into batches as a pure function of the step; the domains of a corpus are
mixed first (domain_mixture.py). Every random choice is a hash, so there is no
iterator and no state, and a host gathers only its own rows.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from maskedlm.data import hashing, sampling
from maskedlm.data.batches import domain_mixture
from maskedlm.data.batches.row_source import (
  DomainShare,
  RowSource,
  host_slice,
  row_at,
)
from maskedlm.data.corpus import domain_splits, memory_map
from maskedlm.data.sources import domains

# The held-out rows don't follow config.seed, so that runs can be compared.
_HELDOUT_SEED = 0


class Batches(NamedTuple):
  """Fields of core.task.Task that come from the host, under the same names."""

  # (split, step) -> this host's rows of the step's batch.
  batch_at: Callable[[str, int], dict[str, np.ndarray]]
  # (split, step) -> int64 [B]: rows of the global batch in the split's table.
  row_ids: Callable[[str, int], np.ndarray]
  num_heldout_batches: int
  rows_per_epoch: int
  shares: tuple[DomainShare, ...] = ()  # Of an epoch; () = one domain.


def make_batches(
  open_source: Callable[..., RowSource], config, corpus, shard
) -> Batches:
  """Returns the batches of a source's rows.

  Training reads the rows of the train split epoch after epoch, each in its own
  order; a batch may span two epochs. Held-out batches are a fixed sample of at
  most eval_rows rows, whose last batch is filled with rows of weight 0
  (`example_weights`). The returned functions may be called from several threads
  at once.

  Each domain of a corpus (corpus.parts) is cut into rows separately, so that no
  row mixes two. Training draws the domains by data.shares or the exponent
  data.alpha, the held-out sample has equally many rows of each, and batches
  have `language_ids` int32 [b]: the domain's index in corpus.parts.

  Args:
    open_source: (corpus, name of the split, length, seed) -> RowSource.
    config: the whole config, of which data, seed and train.eval_rows (maximum
      number of held-out rows; 0 = none) are read.
    corpus: store.Corpus.
    shard: (index, count) of this host, see row_source.host_slice.

  Raises:
    ConfigError: data.shares doesn't suit the corpus.
    CorpusError: from open_source; names the domain if there are several.
  """
  data, seed = config.data, config.seed
  eval_rows = config.train.eval_rows
  if corpus.domains:
    open_split = _open_domains(open_source, corpus, data, eval_rows)
  else:
    if data.shares and corpus.meta:  # A placeholder corpus has no meta.
      domain_mixture.parse_domain_shares(data.shares, [])
    open_split = functools.partial(open_source, corpus)
  row_seed = int(hashing.bits(seed, "phase", 0))  # The key of earlier versions.
  rows = open_split("train", data.length, row_seed)
  num_heldout = 0
  if eval_rows:
    heldout = open_split("heldout", data.length, _HELDOUT_SEED)
    num_heldout = min(eval_rows, heldout.num_rows)
  num_heldout_batches = -(-num_heldout // data.batch_size)

  def choose(split, step, shard):
    """Returns the source, and the rows, epochs and weights [b] of a host."""
    places = step * data.batch_size + np.arange(data.batch_size, dtype=np.int64)
    place = host_slice(places, shard)
    if split == "train":
      return rows, *row_at(rows, place), np.ones(len(place), np.float32)
    if not 0 <= step < num_heldout_batches:
      raise IndexError(f"held-out batch {step} of {num_heldout_batches}")
    weight = (place < num_heldout).astype(np.float32)
    return heldout, *row_at(heldout, place % num_heldout), weight

  def batch_at(split, step):
    source, row, epoch, weight = choose(split, step, shard)
    arrays = source.read(row, epoch)
    memory_map.drop_pages()
    return {**arrays, "example_weights": weight}

  def row_ids(split, step):
    return choose(split, step, (0, 1))[1]

  return Batches(
    batch_at, row_ids, num_heldout_batches, rows.num_rows, rows.shares
  )


def _open_domains(
  open_source, corpus, data, eval_rows
) -> Callable[..., RowSource]:
  """Returns a function (split, length, seed) -> RowSource of all domains."""
  corpora = domain_splits.split_by_domain(corpus)

  def open_split(name, length, seed):
    sources = []
    for domain, domain_corpus in corpora.items():
      # Seeded by name, so that a new domain doesn't change the others' rows.
      domain_seed = int(hashing.bits(seed, "part", domain))
      with domains.errors_of_domain(domain):
        sources.append(open_source(domain_corpus, name, length, domain_seed))
    if name == "heldout":
      return domain_mixture.sample_equally(
        sources, list(corpora), max_rows=eval_rows, seed=seed
      )
    q = domain_mixture.parse_domain_shares(data.shares, list(corpora))
    if q is None:
      sizes = [source.num_rows for source in sources]
      q = sampling.sampling_shares(sizes, data.alpha)
    return domain_mixture.mix(sources, list(corpora), q=q, seed=seed)

  return open_split
