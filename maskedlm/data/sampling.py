"""How much of each language is sampled: shares by alpha, counts of rows."""

import numpy as np


def sampling_shares(counts, alpha: float) -> np.ndarray:
  """q [n] of counts [n], all above 0, by alpha: 1 = as they are, 0 = equal."""
  # Logarithms, so that no count is too large for it.
  logs = alpha * np.log(np.asarray(counts, np.float64))
  weights = np.exp(logs - logs.max())
  return weights / weights.sum()


def apportion(total: int, shares) -> np.ndarray:
  """Whole numbers [n] that sum to total, nearest to total * shares.

  By largest remainder: each is its quota rounded down, and those that lost
  most by it get one more (the first of them where they lost the same).
  """
  quotas = total * np.asarray(shares, np.float64)
  counts = np.floor(quotas).astype(np.int64)
  order = np.argsort(counts - quotas, kind="stable")
  counts[order[: total - int(counts.sum())]] += 1
  return counts


def equal_counts(total: int, sizes) -> np.ndarray:
  """Whole numbers [n], as equal as the sizes allow, with sum at most total."""
  counts = np.zeros(len(sizes), np.int64)
  order = np.argsort(sizes, kind="stable")
  for done, i in enumerate(order):
    counts[i] = min(sizes[i], total // (len(sizes) - done))
    total -= counts[i]
  return counts
