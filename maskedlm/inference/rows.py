"""Makes rows of texts' tokens, and batches of rows, for all verbs of inference.

text -> windows of tokens -> rows [CLS] tokens [SEP] -> batches -> results by
row. A text longer than a row is read in overlapping windows, and each token's
result is taken from the window that has most of its context
(data/labelled/windows.py). Batches have few shapes, as each is compiled once.
They are packed, several rows side by side in a longer one, where a result
belongs to each token, and padded where it belongs to a row or to some places.
"""

import bisect
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from maskedlm.core.counts import counted
from maskedlm.core.task import Batch
from maskedlm.data.batches import packed_rows
from maskedlm.data.batches.bin_packing import first_fit, shared_buckets
from maskedlm.data.labelled import windows

_EMPTY = np.zeros(0, np.int32)


class Row(NamedTuple):
  """A row of l tokens, of which p are predicted."""

  ids: np.ndarray  # [l] int32.
  positions: np.ndarray = _EMPTY  # [p] int32: where the head is applied.
  labels: np.ndarray = _EMPTY  # [p] int32: the tokens that belong there.
  types: np.ndarray | None = None  # [l] int32: token types; None = all 0.


def token_windows(
  count: int, capacity: int, words: Callable[[], np.ndarray] | None = None
) -> list[windows.Window]:
  """Returns the windows in which a text of `count` tokens is read.

  Args:
    count: n, the tokens of the text.
    capacity: the most tokens in a window.
    words: returns the word of each token, [n]. Words are not split across
      windows if they fit; None = tokens are cut anywhere.
  """
  if count <= capacity:
    return [windows.Window(0, count, 0, count)]
  if words is None:
    return windows.cut_windows([1] * count, capacity)
  sizes = _word_sizes(words(), capacity)
  starts = np.concatenate([[0], np.cumsum(sizes)])
  return [
    windows.Window(*(int(starts[item]) for item in window))
    for window in windows.cut_windows(sizes, capacity)
  ]


def _word_sizes(words: np.ndarray, capacity: int) -> list[int]:
  """Returns the number of tokens of each word, split if above capacity."""
  changes = np.flatnonzero(np.diff(words)) + 1
  sizes = np.diff(np.concatenate([[0], changes, [len(words)]]))
  return [
    min(int(size) - done, capacity)
    for size in sizes
    for done in range(0, int(size), capacity)
  ]


def long_note(
  count: int,
  longest: int,
  how: str,
  *,
  length: int,
  positions: int,
  option: str,
) -> str:
  """Returns a line about texts that were longer than a row.

  Args:
    count: how many there were.
    longest: the tokens of the longest.
    how: what was done, such as "vectors combine windows"; " of N" follows.
    length: the most tokens in a row.
    positions: the most that the encoder supports.
    option: the option that sets the length, such as "--length={}".
  """
  wanted = min(longest, positions)
  return (
    f"{counted(count, 'text')} of more than {length:,} tokens (the longest "
    f"has {longest:,}): {how} of {length:,}"
    + (
      f"; {option.format(wanted)} makes longer ones" if wanted > length else ""
    )
  )


def chunk_rows(
  rows: Iterable[Any], num_tokens: int, length: Callable[[Any], int]
) -> Iterator[list]:
  """Yields lists of rows with at least num_tokens tokens in total.

  The rows are consumed as needed; the last list may have fewer.
  """
  chunk, held = [], 0
  for row in rows:
    chunk.append(row)
    held += length(row)
    if held >= num_tokens:
      yield chunk
      chunk, held = [], 0
  if chunk:
    yield chunk


# Which rows make a batch.


def bucket_lengths(length: int) -> tuple[int, ...]:
  """Returns the lengths that rows are padded to.

  Above 64, each is an eighth to a quarter longer than the one before: 8, 16,
  24, ... 64, 80, 96, 112, 128, 160, ... up to length. Each is compiled when a
  batch first has it.
  """
  powers = range(length.bit_length())
  steps = {step << k for step in (8, 10, 12, 14) for k in powers}
  return (*sorted(s for s in steps if s < length and s % 8 == 0), length)


def power_of_2(n: int, *, least: int = 1) -> int:
  """Returns the smallest power of 2 that is at least n and `least`."""
  return max(1 << max(n - 1, 0).bit_length(), least)


class PackedBatch(NamedTuple):
  """Where the rows of a batch stand, side by side in longer ones."""

  which: np.ndarray  # [n], indices of rows.
  starts: np.ndarray  # [n], the place of each in the flattened batch.
  shape: tuple[int, int]  # (B, L).


def plan_packed_batches(
  lengths: Sequence[int], buckets: Sequence[int], *, batch_tokens: int
) -> Iterator[PackedBatch]:
  """Yields batches of rows packed into longer ones, the longest first.

  These are SHARED_LENGTH long, or of the bucket of a row that is longer: almost
  no position is padding, and only a few shapes are compiled. A batch has about
  batch_tokens positions; the last one of a length may have fewer rows, a power
  of 2. If one row holds everything, its length is the smallest bucket.
  """
  row_lengths = np.asarray(lengths)
  for L, indices in shared_buckets(row_lengths, buckets):
    row, start, count = first_fit(row_lengths[indices], L)
    if count == 1:
      L = buckets[bisect.bisect_left(buckets, row_lengths[indices].sum())]
    size = max(batch_tokens // L, 1)
    for first in range(0, count, size):
      taken = (first <= row) & (row < first + size)
      places = (row[taken] - first) * L + start[taken]
      B = min(size, power_of_2(count - first))
      yield PackedBatch(indices[taken], places, (B, L))


def plan_padded_batches(
  lengths: Sequence[int], buckets: Sequence[int], *, batch_tokens: int
) -> Iterator[tuple[np.ndarray, int, int]]:
  """Yields (row indices, B and L) of each batch, the longest rows first.

  A batch is padded to the bucket of its longest row and has about batch_tokens
  positions; the last batch may have fewer rows, of which B is a power of 2.
  """
  row_lengths = np.asarray(lengths)
  order = np.argsort(-row_lengths, kind="stable")
  while len(order):
    L = buckets[bisect.bisect_left(buckets, row_lengths[order[0]])]
    B = min(max(batch_tokens // L, 1), power_of_2(len(order)))
    yield order[:B], B, L
    order = order[B:]


# The arrays of a batch.


def pad_rows(
  rows: Sequence[Row], B: int, L: int, *, pad: int, least: int = 1
) -> Batch:
  """Returns rows as a batch [B, L], for masked_lm.loss_and_correct.

  It has input_ids, token_type_ids, segment_ids; and masked_positions,
  masked_labels, masked_weights [B, P] for a power of 2, P. Rows of padding fill
  it, of which the first [PAD] attends to itself, so that no softmax is over an
  empty set.

  Args:
    rows: at most B, of at most L tokens.
    pad: id that fills input_ids.
    least: the smallest P.
  """
  ids, is_token = _stack([row.ids for row in rows], (B, L), pad)
  is_token[len(rows) :, 0] = True
  types = [0 * row.ids if row.types is None else row.types for row in rows]
  P = power_of_2(max(len(row.positions) for row in rows), least=least)
  positions, is_used = _stack([row.positions for row in rows], (B, P))
  return {
    "input_ids": ids,
    "token_type_ids": _stack(types, (B, L))[0],
    "segment_ids": is_token.astype(np.int32),
    "masked_positions": positions,
    "masked_labels": _stack([row.labels for row in rows], (B, P))[0],
    "masked_weights": is_used.astype(np.float32),
  }


def _stack(
  arrays: Sequence[np.ndarray], shape: tuple[int, int], fill: int = 0
) -> tuple[np.ndarray, np.ndarray]:
  """Returns arrays as the rows of one, int32, and a mask of what isn't fill."""
  sizes = np.zeros(shape[0], np.int64)
  sizes[: len(arrays)] = [len(array) for array in arrays]
  is_used = np.arange(shape[1]) < sizes[:, None]
  stacked = np.full(shape, fill, np.int32)
  stacked[is_used] = np.concatenate(arrays)
  return stacked, is_used


# Results by row.


def compute_packed(
  encode: Callable[[Batch], jax.Array],
  rows: Sequence[np.ndarray],
  plan: Iterable[PackedBatch],
  *,
  pad: int,
) -> Iterator[tuple[int, np.ndarray]]:
  """Yields the index and the vectors [l, ...] of each row, in the plan's order.

  `encode` makes [B, L, ...] of a batch; the rows are ids [l], and `pad` fills
  input_ids.
  """

  def batches() -> Iterator[tuple]:
    for packed in plan:
      ids = [rows[i] for i in packed.which]
      sizes, tokens = np.array(list(map(len, ids))), np.concatenate(ids)
      batch = packed_rows.segment_arrays(
        {"input_ids": tokens, "token_type_ids": np.zeros_like(tokens)},
        packed.starts,
        sizes,
        np.arange(1, len(ids) + 1),
        shape=packed.shape,
        pad=pad,
      )
      yield (packed.which, packed.starts, sizes), encode(batch)

  for where, vectors in one_ahead(batches()):
    vectors = vectors.reshape(-1, *vectors.shape[2:])
    for row, start, size in zip(*where, strict=True):
      yield int(row), vectors[start : start + size]


def compute_padded(
  apply: Callable[[Batch], jax.Array],
  rows: Sequence[Row],
  *,
  length: int,
  batch_tokens: int,
  pad: int,
) -> Iterator[tuple[int, np.ndarray]]:
  """Yields the index and the result [...] of each row, longest rows first.

  `apply` makes [B, ...] of a batch of pad_rows, of about batch_tokens
  positions; a row has at most `length`, and `pad` fills input_ids.
  """
  plan = plan_padded_batches(
    [len(row.ids) for row in rows],
    bucket_lengths(length),
    batch_tokens=batch_tokens,
  )
  batches = (
    (indices, apply(pad_rows([rows[i] for i in indices], B, L, pad=pad)))
    for indices, B, L in plan
  )
  for indices, results in one_ahead(batches):
    yield from zip(indices.tolist(), results, strict=False)


def one_ahead(batches: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
  """Yields each pair with its second element, device arrays, on the host.

  The device computes the next batch while they are copied.
  """
  # A pair asks for the next batch, which so begins before this one is copied.
  with_end = itertools.chain(batches, [(None, None)])
  for (key, arrays), _ in itertools.pairwise(with_end):
    yield key, jax.device_get(arrays)
