"""Computes how much of each language is sampled: shares and row counts."""

import numpy as np


def sampling_shares(counts, alpha: float) -> np.ndarray:
  """Returns shares [n] of counts [n] > 0; alpha 1 = proportional, 0 = equal."""
  # In logarithms, so that large counts don't overflow.
  logs = alpha * np.log(np.asarray(counts, np.float64))
  weights = np.exp(logs - logs.max())
  return weights / weights.sum()


def apportion(total: int, shares) -> np.ndarray:
  """Returns int64 [n] with sum `total`, nearest to total * shares [n].

  Uses the largest remainder method: each is its quota rounded down, and those
  with the largest remainders get one more (the first of equal ones).
  """
  quotas = total * np.asarray(shares, np.float64)
  counts = np.floor(quotas).astype(np.int64)
  order = np.argsort(counts - quotas, kind="stable")
  counts[order[: total - int(counts.sum())]] += 1
  return counts


def equal_counts(total: int, sizes) -> np.ndarray:
  """Returns int64 [n] with sum <= total, as equal as sizes [n] allow."""
  counts = np.zeros(len(sizes), np.int64)
  order = np.argsort(sizes, kind="stable")
  for done, i in enumerate(order):
    counts[i] = min(sizes[i], total // (len(sizes) - done))
    total -= counts[i]
  return counts
