"""Joins rankings of the same passages: BM25's, that of vectors, a reranker's.

Scores are standardised for each query and added: a ranking counts as far as it
sets its best passages apart, without a weight to tune. Weak vectors then cost
BM25 little; by reciprocal ranks (Cormack et al. 2009), much
(docs/results/finetuning.md).
"""

from collections.abc import Sequence

import numpy as np


def fused(rankings: Sequence[np.ndarray]) -> np.ndarray:
  """Returns the sum [n] of the rankings' scores [n] in standard deviations."""
  n = max(len(rankings[0]), 1)
  centred = [x - np.sum(x) / n for x in rankings]
  return np.sum([x / (np.sqrt(x @ x / n) or 1) for x in centred], axis=0)
