"""Chooses the rows of a step: phases, epochs, hosts and the held-out sample.

Rows come as a RowSource (pair_rows.py, text_rows.py), and this module turns
sources into batches as a pure function of the step; the domains of a corpus are
mixed first (domain_mixture.py). Every random choice is a hash, so there is no
iterator and no state, and a host gathers only its own rows.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from maskedlm.core.errors import ConfigError
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

MIN_LENGTH = 8
# The held-out rows don't follow config.seed, so that runs can be compared.
_HELDOUT_SEED = 0


class BatchShape(NamedTuple):
  """The shape of a phase's batches."""

  num_rows: int  # Rows of the global batch.
  length: int  # Tokens in a row.
  first_step: int  # First step of the phase.


class Batches(NamedTuple):
  """Fields of core.task.Task that come from the host, under the same names."""

  # (split, step) -> this host's rows of the step's batch.
  batch_at: Callable[[str, int], dict[str, np.ndarray]]
  # (split, step) -> int64 [B]: rows of the global batch in the phase's table.
  row_ids: Callable[[str, int], np.ndarray]
  num_heldout_batches: int
  rows_per_epoch: tuple[int, ...]  # One per phase.
  # For each phase, each domain's share of an epoch; () = one domain.
  shares: tuple[tuple[DomainShare, ...], ...] = ()


def make_batches(
  open_source: Callable[..., RowSource], config, corpus, shard
) -> Batches:
  """Returns the batches of a source's rows.

  Training reads the rows of the train split epoch after epoch, each in its own
  order; a batch may span two epochs. The last long_share of the steps (phase 1)
  have their own rows, batch size and epochs. Held-out batches always have the
  shape of phase 0; they are a fixed sample of at most eval_rows rows, whose
  last batch is filled with rows of weight 0 (`example_weights`). The returned
  functions may be called from several threads at once.

  Each domain of a corpus (corpus.parts) is cut into rows separately, so that no
  row mixes two. Training draws the domains by data.shares or the exponent
  data.alpha, the held-out sample has equally many rows of each, and batches
  have `language_ids` int32 [b]: the domain's index in corpus.parts.

  Args:
    open_source: (corpus, name of the split, length, seed) -> RowSource.
    config: the whole config, of which data, seed, train.num_steps and
      train.eval_rows (maximum number of held-out rows; 0 = none) are read.
    corpus: store.Corpus.
    shard: (index, count) of this host, see row_source.host_slice.

  Raises:
    ConfigError: an option is out of range.
    CorpusError: from open_source; names the domain if there are several.
  """
  data, seed = config.data, config.seed
  num_steps, eval_rows = config.train.num_steps, config.train.eval_rows
  _check(data, num_steps, eval_rows, shard)

  def phase_seed(phase):  # Phases differ even if their lengths are equal.
    return int(hashing.bits(seed, "phase", phase))

  if corpus.domains:
    open_split = _mix(open_source, corpus, data, eval_rows)
  else:
    if data.shares and corpus.meta:  # A placeholder corpus has no meta.
      domain_mixture.parse_domain_shares(data.shares, [])
    open_split = functools.partial(open_source, corpus)
  phases = [(open_split("train", data.length, phase_seed(0)), data.batch_size)]
  if phase_at(num_steps - 1, num_steps, data.long_share)[0] == 1:
    long_rows = open_split("train", data.long_length, phase_seed(1))
    phases.append((long_rows, data.long_batch_size))

  num_heldout = 0
  if eval_rows:
    heldout = open_split("heldout", data.length, _HELDOUT_SEED)
    num_heldout = min(eval_rows, heldout.num_rows)
  num_heldout_batches = -(-num_heldout // data.batch_size)

  def train(step, shard):
    phase, step = phase_at(step, num_steps, data.long_share)
    source, batch_size = phases[phase]
    place = _places(step, batch_size, shard)
    row, epoch = row_at(source, place)
    return source, row, epoch, np.ones(len(place), np.float32)

  def held_out(step, shard):
    if not 0 <= step < num_heldout_batches:
      raise IndexError(f"held-out batch {step} of {num_heldout_batches}")
    place = _places(step, data.batch_size, shard)
    row, epoch = row_at(heldout, place % num_heldout)
    return heldout, row, epoch, (place < num_heldout).astype(np.float32)

  choose = {"train": train, "heldout": held_out}

  def batch_at(split, step):
    source, row, epoch, weight = choose[split](step, shard)
    arrays = source.read(row, epoch)
    memory_map.drop_pages()
    return {**arrays, "example_weights": weight}

  def row_ids(split, step):
    return choose[split](step, (0, 1))[1]

  num_rows = tuple(source.num_rows for source, _ in phases)
  shares = tuple(source.shares for source, _ in phases)
  shares = shares if corpus.domains else ()
  return Batches(batch_at, row_ids, num_heldout_batches, num_rows, shares)


def phase_at(step: int, num_steps: int, long_share: float) -> tuple[int, int]:
  """Returns (phase, step in it); phase 1 is the last long_share of steps."""
  num_long = num_long_steps(num_steps, long_share)
  if num_long == 0 or step < num_steps - num_long:
    return 0, step
  return 1, step - (num_steps - num_long)


def num_long_steps(num_steps: int, long_share: float) -> int:
  """Returns the number of steps of phase 1, with longer rows."""
  return round(num_steps * long_share)


def row_lengths(data) -> list[int]:
  """Returns the row length of each phase (one or two) from config.data."""
  longer = [data.long_length] if data.long_share > 0 else []
  return [data.length, *longer]


def shape_at(step: int, num_steps: int, data) -> BatchShape:
  """Returns the shape of a training step's global batch.

  Args:
    step: training step.
    num_steps: config.train.num_steps.
    data: config.data.
  """
  phase, within = phase_at(step, num_steps, data.long_share)
  sizes = (
    (data.batch_size, data.length),
    (data.long_batch_size, data.long_length),
  )
  return BatchShape(*sizes[phase], first_step=step - within)


def _places(step, batch_size, shard) -> np.ndarray:
  """Returns a host's slice of a batch, int64 [b] places in the row stream."""
  places = step * batch_size + np.arange(batch_size, dtype=np.int64)
  return host_slice(places, shard)


def _mix(open_source, corpus, data, eval_rows) -> Callable[..., RowSource]:
  """Returns a function (split, length, seed) -> RowSource of all domains."""
  check_share("data.alpha", data.alpha)
  corpora = domain_splits.split_by_domain(corpus)

  def open_split(name, length, seed):
    sources = []
    for domain, alone in corpora.items():
      # Seeded by name, so that a new domain doesn't change the others' rows.
      domain_seed = int(hashing.bits(seed, "part", domain))
      with domains.errors_of_domain(domain):
        sources.append(open_source(alone, name, length, domain_seed))
    if name == "heldout":
      return domain_mixture.sample_equally(
        sources, list(corpora), max_rows=eval_rows, seed=seed
      )
    q = domain_mixture.parse_domain_shares(data.shares, list(corpora))
    if q is None:
      q = sampling.sampling_shares(
        [source.num_rows for source in sources], data.alpha
      )
    return domain_mixture.mix(sources, list(corpora), q=q, seed=seed)

  return open_split


def check_share(name: str, share: float) -> None:
  """Raises ConfigError unless 0 <= share <= 1."""
  if not 0 <= share <= 1:
    raise ConfigError(f"{name}={share}: expected a share, from 0 to 1.")


def _check(data, num_steps, eval_rows, shard) -> None:
  """Raises ConfigError for the first option that is out of range."""
  phases = [("length", "batch_size")]
  if data.long_share > 0:
    phases.append(("long_length", "long_batch_size"))
  for length, batch_size in phases:
    if getattr(data, length) < MIN_LENGTH:
      raise ConfigError(
        f"data.{length}={getattr(data, length)} tokens: a row needs at least"
        f" {MIN_LENGTH}, including [CLS] and two [SEP]."
      )
    _check_batch_size(f"data.{batch_size}", getattr(data, batch_size), shard[1])
  check_share("data.long_share", data.long_share)
  for name, count in (
    ("train.num_steps", num_steps),
    ("train.eval_rows", eval_rows),
  ):
    if count < 0:
      raise ConfigError(f"{name}={count}: expected 0 or more.")


def _check_batch_size(name, size, count) -> None:
  if size < 1:
    raise ConfigError(f"{name}={size}: expected at least 1 row.")
  if size % count:
    fits = max(size // count, 1) * count
    raise ConfigError(
      f"{name}={size} must be divisible by the {count} hosts that share it;"
      f" set --config.{name}={fits}."
    )
