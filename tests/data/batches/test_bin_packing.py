"""Bin packing: by hand, complete, and nearly full."""

import itertools

import numpy as np
import pytest

from maskedlm.data.batches import bin_packing, packed_rows


def test_first_fit_places_the_longest_first():
  # 6 | 5 | 6 + 4 | 5 + 3 | 5 + 3 + 2 in bins of 10.
  bins, starts, count = bin_packing.first_fit(np.array([3, 6, 4, 5, 2]), 10)
  assert bins.tolist() == [1, 0, 0, 1, 1]
  assert starts.tolist() == [5, 0, 6, 0, 8]
  assert count == 2


def bins(lengths, L, G, seed=0):
  """Returns the lengths that share each row, sorted."""
  members, starts = bin_packing.best_fit(np.array(lengths), L, G, seed=seed)
  return sorted(
    sorted((lengths[m] for m in members[a:b]), reverse=True)
    for a, b in itertools.pairwise(starts)
  )


def test_best_fit_by_hand():
  # 7 and 2 and 1, 6 and 4, 5 and 5: best fit, longest first.
  assert bins([6, 4, 5, 5, 7, 2, 1], 10, 3) == [[5, 5], [6, 4], [7, 2, 1]]
  # At most two in a row.
  assert bins([6, 4, 5, 5, 7, 2, 1], 10, 2) == [[1], [5, 5], [6, 4], [7, 2]]
  assert bins([6, 4, 5], 10, 1) == [[4], [5], [6]]
  assert bins([3] * 7, 10, 5) == [[3, 3], [3, 3], [3, 3, 3]]
  assert bins([10, 10, 9], 10, 5) == [[9], [10], [10]]


@pytest.mark.parametrize(("L", "mean"), [(40, 20), (128, 20), (128, 200)])
def test_best_fit_holds_each_row_once_and_is_nearly_full(L, mean):
  rng = np.random.default_rng(4)
  lengths = np.minimum(3 + rng.exponential(mean, 5000).astype(int), L)
  G = packed_rows.max_segments(L)
  members, starts = bin_packing.best_fit(lengths, L, G, seed=7)
  np.testing.assert_array_equal(np.sort(members), np.arange(5000))
  sizes = np.diff(starts)
  assert starts[0] == 0 and starts[-1] == 5000
  assert sizes.min() >= 1 and sizes.max() <= G
  tokens = np.add.reduceat(lengths[members], starts[:-1])
  assert tokens.max() <= L
  assert tokens.mean() > 0.93 * L
  again = bin_packing.best_fit(lengths, L, G, seed=7)
  np.testing.assert_array_equal(again[0], members)
  # Another seed: the same lengths together, but other rows.
  other = bin_packing.best_fit(lengths, L, G, seed=8)
  np.testing.assert_array_equal(other[1], starts)
  np.testing.assert_array_equal(lengths[other[0]], lengths[members])
  assert np.mean(other[0] == members) < 0.1
