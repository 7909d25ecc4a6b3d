"""Attention and its gradients in numpy, float64, as a reference.

It processes one row, one head and one pair of tokens at a time.
"""

import numpy as np

B, H, K = 3, 3, 8  # Rows, heads, head size.


def rows(length: int):
  """Returns segment_ids [3, L]: one text; three texts and padding; only
  padding.
  """
  segments = np.zeros((B, length), np.int32)
  segments[0] = 1
  segments[1, : length * 3 // 4] = 3
  segments[1, : length // 2] = 2
  segments[1, : length // 5] = 1
  return segments


def arrays(length: int, *, seed: int = 0):
  """Returns query, key, value [B, L, H, K] and a gradient of the result."""
  rng = np.random.default_rng(seed)
  return [rng.standard_normal((B, length, H, K), np.float32) for _ in range(4)]


def attend(query, key, value, gradient, segments, *, attends, bias=None):
  """Returns (result, gradients of query, key and value), [B, L, H, K] each.

  Args:
    query, key, value, gradient: [B, L, H, K].
    segments: [B, L].
    attends: (i, j) -> whether query i attends to key j of its segment.
    bias: (head, i, j) -> a term added to a score; or None.
  """
  arrays = [np.float64(x) for x in (query, key, value, gradient)]
  made = [np.zeros_like(arrays[0]) for _ in range(4)]
  L, scale = query.shape[1], query.shape[-1] ** -0.5
  for b in range(len(query)):
    allowed = np.array(
      [
        [segments[b, i] == segments[b, j] and attends(i, j) for j in range(L)]
        for i in range(L)
      ]
    )
    for h in range(query.shape[2]):
      q, k, v, g = (x[b, :, h] for x in arrays)
      scores = q @ k.T * scale
      if bias:
        scores += [[bias(h, i, j) for j in range(L)] for i in range(L)]
      scores = np.where(allowed, scores, -np.inf)
      weights = np.exp(scores - scores.max(axis=1, keepdims=True))
      weights /= weights.sum(axis=1, keepdims=True)
      change = g @ v.T  # The gradients of the weights, then of the scores.
      change = weights * (change - (weights * change).sum(1, keepdims=True))
      results = weights @ v, change @ k, change.T @ q, weights.T @ g
      scales = 1, scale, scale, 1
      for x, result, by in zip(made, results, scales, strict=True):
        x[b, :, h] = result * by
  return made
