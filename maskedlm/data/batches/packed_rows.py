"""Packs several short rows side by side in one.

A packed row holds whole rows of another source, each a segment with its own
positions, so a model that attends by segment id computes for each segment
exactly what it would compute for that row alone. Which rows share one follows
from their lengths when the table is built, at the first batch; which packed
rows a step reads is a hash, as for any source (row_source.py).
"""

import functools
import threading
from collections.abc import Callable, Mapping

import numpy as np

from maskedlm.data.batches import bin_packing, row_tables
from maskedlm.data.batches.row_source import RowSource
from maskedlm.data.batches.token_spans import span_indices

_VERSION = 1  # Version of the rule by which rows are packed.
_INDEX = np.dtype("<i8")


def max_segments(length: int) -> int:
  """Returns G, the maximum number of rows that share one of `length` tokens."""
  return max(1, length // 8)


def with_packing(open_source: Callable[..., RowSource]):
  """Wraps an open_source (see batching.make_batches) to return packed rows."""

  def open_packed(corpus, name, length, seed):
    source = open_source(corpus, name, length, seed)
    return pack_rows(corpus, source, length=length)

  return open_packed


def pack_rows(corpus, source: RowSource, *, length) -> RowSource:
  """Returns the packed rows of a source.

  Args:
    corpus: store.Corpus.
    source: the rows to pack. Its arrays [b, L] hold one value for each token
      (segment_ids: 1 on real tokens), its arrays [b] one for each row.
    length: L.

  Returns:
    A RowSource of the same arrays, with those of shape [b] as [b, G], and of
    segment_ids [b, L], 1, 2, ... (0 on padding); positions [b, L], from 0 in
    each segment; cls_positions [b, G], each segment's first token; and
    segment_weights [b, G] float32, 0 where a row has fewer than G segments.
  """
  special = corpus.tokenizer.special
  G = max_segments(length)
  lengths = source.lengths
  assert lengths is not None  # Sources that can be packed have them.
  counts = row_tables.open_table(  # Number of rows of each length, 0 to L.
    corpus,
    ["lengths", _VERSION, source.seed, length, source.key],
    _INDEX,
    lambda: [np.bincount(lengths(), minlength=length + 1)],
  )
  patterns = bin_packing.best_fit_patterns(counts, length, G)
  num_rows = sum(count for _, count in patterns)
  lock = threading.Lock()

  @functools.cache
  def open_columns() -> tuple[np.ndarray, np.ndarray]:
    """Returns bin_packing.best_fit's (members, starts), at the first read.

    Where packing doesn't pay, only the number of packed rows is needed.
    """

    @functools.cache
    def compose():
      return bin_packing.best_fit(lengths(), length, G, seed=source.seed)

    def column(index, name):
      key = ["packed", name, _VERSION, source.seed, length, G, source.key]
      return row_tables.open_table(
        corpus, key, _INDEX, lambda: [compose()[index]]
      )

    return column(0, "members"), column(1, "starts")

  def read(row, epoch):
    with lock:  # Several threads read.
      members, starts = open_columns()
    first = starts[row][:, None]
    slot = np.arange(G)
    used = slot < starts[row + 1][:, None] - first
    source_rows = members[(first + slot)[used]]
    arrays = source.read(source_rows, np.repeat(epoch, used.sum(1)))
    return side_by_side(arrays, used, length, special.pad)

  return RowSource(num_rows, source.seed, read)


def segment_arrays(
  tokens: Mapping[str, np.ndarray], starts, sizes, numbers, *, shape, pad
) -> dict[str, np.ndarray]:
  """Returns rows of several segments: int32 arrays of `shape`.

  Args:
    tokens: name -> [T], the values of all segments, one after the other.
    starts: [n], the first place of each segment in the flattened rows.
    sizes: [n], tokens of each segment, with sum T.
    numbers: [n], the segment ids, from 1.
    shape: shape of the result; the last axis is the length of a row.
    pad: fills input_ids; the other arrays are filled with 0.

  Returns:
    The arrays of `tokens`, segment_ids, and positions from 0 in each segment.
  """
  at = span_indices(starts, sizes)

  def place(values, fill=0):
    out = np.full(shape, fill, np.int32)
    out.reshape(-1)[at] = values
    return out

  fills = {"input_ids": pad}
  return {
    **{name: place(x, fills.get(name, 0)) for name, x in tokens.items()},
    "segment_ids": place(np.repeat(numbers, sizes)),
    "positions": place(at - np.repeat(starts, sizes)),
  }


def side_by_side(arrays, used, L, pad) -> dict[str, np.ndarray]:
  """Returns b packed rows of the `arrays` of n rows, [n, L] and [n].

  `used`, bool [b, G], says which segments there are: n. `pad` fills input_ids.
  """
  b, G = used.shape
  real = arrays["segment_ids"] > 0
  size = np.zeros((b, G), np.int64)
  size[used] = real.sum(1)
  begin = np.cumsum(size, axis=1) - size

  def by_segment(values, dtype=np.int32):
    out = np.zeros((b, G), dtype)
    out[used] = values
    return out

  by_token = segment_arrays(
    {name: values[real] for name, values in arrays.items() if values.ndim == 2},
    (begin + L * np.arange(b)[:, None])[used],
    size[used],
    np.broadcast_to(1 + np.arange(G), (b, G))[used],
    shape=(b, L),
    pad=pad,
  )
  return {
    **{n: by_segment(x) for n, x in arrays.items() if x.ndim == 1},
    **by_token,
    "cls_positions": by_segment(begin[used]),
    "segment_weights": by_segment(1, np.float32),
  }
