"""How alike vectors are, and how far that is the doing of a few dimensions.

All in numpy, on vectors of any encoder, layer and unit.
"""

import numpy as np


def unit_length(x: np.ndarray) -> np.ndarray:
  """x [..., D], each divided by its length, as float64; 0 stays 0."""
  x = np.float64(x)
  lengths = np.linalg.norm(x, axis=-1, keepdims=True)
  return x / np.where(lengths == 0, 1, lengths)


def cosine(x: np.ndarray, y: np.ndarray) -> np.ndarray:
  """Cosines of x and y [..., D] -> [...]; 0 where either is 0."""
  return np.einsum("...D,...D->...", unit_length(x), unit_length(y))


def contributions(x: np.ndarray) -> np.ndarray:
  """What each dimension adds to the expected cosine of two of n vectors.

  x [n, D], n > 1 -> [D]: the mean over all pairs u, v of different rows of
  u_i v_i / (|u| |v|) (Timkey & van Schijndel 2021, section 3, who estimate it
  from some pairs). All of the pairs cost no more than n steps, as the sum
  over pairs of u_i v_i is half of (sum of u_i)^2 - sum of u_i^2.
  """
  u = unit_length(x)
  pairs = len(u) * (len(u) - 1)
  return (np.sum(u, axis=0) ** 2 - np.sum(u**2, axis=0)) / pairs


def anisotropy(x: np.ndarray) -> float:
  """The expected cosine of two of the vectors x [n, D], n > 1.

  0 where they point everywhere, 1 where they point one way (Ethayarajh 2019,
  https://arxiv.org/abs/1909.00512, section 3.4).
  """
  return float(np.sum(contributions(x)))


def rogue(x: np.ndarray, count: int) -> list[tuple[int, float]]:
  """The dimensions that add most to the anisotropy of x [n, D], n > 1.

  Returns:
    (dimension, share of the anisotropy) of `count`, the largest first.
  """
  parts = contributions(x)
  total = np.sum(parts)
  most = np.argsort(-parts, kind="stable")[:count]
  return [(int(i), float(parts[i] / total)) for i in most]


def without(x: np.ndarray, dimensions) -> np.ndarray:
  """x [..., D] -> [..., D - d] without those dimensions."""
  return np.delete(x, dimensions, axis=-1)
