"""Bin packing: which rows share a bin, by hand."""

import numpy as np

from maskedlm.data.batches import bin_packing


def test_first_fit_places_the_longest_first():
  # 6 | 5 | 6 + 4 | 5 + 3 | 5 + 3 + 2 in bins of 10.
  bins, starts, count = bin_packing.first_fit(np.array([3, 6, 4, 5, 2]), 10)
  assert bins.tolist() == [1, 0, 0, 1, 1]
  assert starts.tolist() == [5, 0, 6, 0, 8]
  assert count == 2
