"""Computes indices of ranges of tokens and copies them, many at a time."""

import numpy as np


def span_indices(begin, length) -> np.ndarray:
  """Returns the concatenation of arange(begin[i], begin[i] + length[i]).

  Args:
    begin, length: int64 [n]; a length may be 0.
  """
  end = np.cumsum(length)
  total = int(end[-1]) if len(end) else 0
  return np.arange(total) + np.repeat(begin - (end - length), length)


def copy_spans(tokens, begin, length, out, at) -> None:
  """Sets out[at : at + length] = tokens[begin : begin + length] for each span.

  A span lies in one document and therefore in one shard. Sorted by place in the
  text, the spans of a shard are adjacent, so each shard takes one gather. The
  places are int64 arrays of one shape; a length may be 0.
  """
  order = np.argsort(begin, axis=None)
  begin, length, at = (x.ravel()[order] for x in (begin, length, at))
  source, target = span_indices(begin, length), span_indices(at, length)
  spans = np.searchsorted(begin, tokens.starts)
  cuts = np.concatenate([[0], np.cumsum(length)])[spans]
  for array, start, i, j in zip(
    tokens.arrays, tokens.starts, cuts, cuts[1:], strict=False
  ):
    if i < j:
      out[target[i:j]] = array[source[i:j] - start]
