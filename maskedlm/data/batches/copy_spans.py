"""Spans of the token stream, copied to where they go in a batch's rows."""

import numpy as np


def copy_spans(tokens, begin, length, out, at) -> None:
  """out[at : at + length] = tokens[begin : begin + length] for many spans.

  A span lies in one document and so in one shard. In the order of the text,
  each shard's spans are adjacent: one gather a shard.

  Args:
    tokens: store.Concat, a split's tokens.
    begin, length, at: int64 arrays of one shape; a length may be 0.
    out: 1-d array of ids, written to.
  """
  order = np.argsort(begin, axis=None)
  begin, length, at = (x.ravel()[order] for x in (begin, length, at))
  end = np.cumsum(length)
  run = np.arange(end[-1])
  source = run + np.repeat(begin - (end - length), length)
  target = run + np.repeat(at - (end - length), length)
  spans = np.searchsorted(begin, tokens.starts)
  cuts = np.concatenate([[0], end])[spans]
  for part, start, i, j in zip(
    tokens.parts, tokens.starts, cuts, cuts[1:], strict=False
  ):
    if i < j:
      out[target[i:j]] = part[source[i:j] - start]
