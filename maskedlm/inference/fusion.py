"""Joins rankings of the same passages: BM25's, that of vectors, a reranker's.

A ranking counts for a query as far as it sets its best passages apart, so that
there is no weight to tune, and vectors that know little take little from BM25;
reciprocal ranks (Cormack et al. 2009) take much (docs/results/finetuning.md).
"""

from collections.abc import Sequence

import numpy as np


def fused(rankings: Sequence[np.ndarray]) -> np.ndarray:
  """Returns the sum [n] of the rankings' scores [n] in standard deviations."""
  n = max(len(rankings[0]), 1)
  apart = [x - np.sum(x) / n for x in rankings]
  return np.sum([x / (np.sqrt(x @ x / n) or 1) for x in apart], axis=0)
