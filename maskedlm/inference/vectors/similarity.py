"""Measures how similar vectors are, and how much a few dimensions contribute.

All functions are numpy and accept vectors of any encoder, layer and unit.
"""

import numpy as np


def unit_length(x: np.ndarray) -> np.ndarray:
  """Returns x [..., D] scaled to length 1, as float64; 0 stays 0."""
  return scaled(np.asarray(x, np.float64))


def scaled(x: np.ndarray) -> np.ndarray:
  """Returns x [..., D] scaled to length 1, of the same type; 0 stays 0."""
  lengths = np.linalg.norm(x, axis=-1, keepdims=True)
  return x / np.where(lengths == 0, 1, lengths)


def cosine(x: np.ndarray, y: np.ndarray) -> np.ndarray:
  """Returns the cosines [...] of x and y [..., D]; 0 where either is 0."""
  return np.einsum("...D,...D->...", unit_length(x), unit_length(y))


def contributions(x: np.ndarray) -> np.ndarray:
  """Returns each dimension's contribution [D] to the mean cosine of x [n, D].

  It is the mean of u_i v_i / (|u| |v|) over all pairs u, v of different rows
  (Timkey & van Schijndel 2021, section 3, who estimate it from sampled pairs).
  All pairs together cost only O(n), as the sum of u_i v_i over pairs is half of
  (sum of u_i)^2 - sum of u_i^2. n > 1.
  """
  u = unit_length(x)
  pairs = len(u) * (len(u) - 1)
  return (np.sum(u, axis=0) ** 2 - np.sum(u**2, axis=0)) / pairs


def anisotropy(x: np.ndarray) -> float:
  """Returns the mean cosine of two different vectors of x [n, D], n > 1.

  It is 0 for uniformly distributed directions and 1 for a single one
  (Ethayarajh 2019, https://arxiv.org/abs/1909.00512, section 3.4).
  """
  return float(np.sum(contributions(x)))


def rogue_dimensions(x: np.ndarray, count: int) -> list[tuple[int, float]]:
  """Returns the dimensions that contribute most to the anisotropy of x [n, D].

  They are `count` pairs (dimension, share of the anisotropy), largest first.
  n > 1.
  """
  parts = contributions(x)
  total = np.sum(parts)
  largest = np.argsort(-parts, kind="stable")[:count]
  return [(int(i), float(parts[i] / total)) for i in largest]
