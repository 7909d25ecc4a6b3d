"""Standardising: equations 11.10 to 11.12, incrementally, saved and applied."""

import numpy as np
import pytest

from maskedlm.core.errors import ConfigError
from maskedlm.inference.vectors import standardise

ABOUT = {
  "unit": "word",
  "pool": "mean",
  "layers": [2],
  "combine": "mean",
  "encoder": "a1b2",
  "checkpoint": "runs/x",
}


def fit(x):
  return standardise.make_standardiser(standardise.update_moments(None, x), {})


def test_by_hand():
  fitted = fit(np.array([[1.0, 10, 7], [3, 40, 7]]))
  assert fitted.mean.tolist() == [2, 25, 7]
  assert fitted.stddev.tolist() == [1, 15, 0]  # Divided by n = 2, not by n - 1.
  x = np.array([[3.0, 10, 7], [2, 55, 8]])
  # A constant dimension becomes 0.
  assert standardise.apply_standardiser(fitted, x).tolist() == [
    [1, -1, 0],
    [0, 2, 0],
  ]


def test_incremental_moments_equal_those_of_all_vectors():
  x = 1000 + np.random.default_rng(0).standard_normal((31, 2, 5))
  moments = None
  for piece in np.split(x, [1, 8, 9, 30]):
    moments = standardise.update_moments(moments, piece)
  found = standardise.make_standardiser(moments, ABOUT)
  np.testing.assert_allclose(found.mean, x.mean(0), rtol=1e-6)
  np.testing.assert_allclose(found.stddev, x.std(0), rtol=1e-5)
  assert found.about == {**ABOUT, "count": 31}


def test_save_and_load(tmp_path):
  x = np.random.default_rng(2).standard_normal((7, 3))
  fitted = standardise.make_standardiser(
    standardise.update_moments(None, x), ABOUT
  )
  path = tmp_path / "fitted.npz"
  standardise.save_standardiser(path, fitted)
  loaded = standardise.load_standardiser(path)
  np.testing.assert_array_equal(loaded.mean, fitted.mean)
  np.testing.assert_array_equal(loaded.stddev, fitted.stddev)
  assert loaded.about == fitted.about
  assert [p.name for p in tmp_path.iterdir()] == ["fitted.npz"]


TOKENS = {**ABOUT, "unit": "token"}
OLDER = {name: ABOUT[name] for name in ABOUT if name != "encoder"}


@pytest.mark.parametrize(
  ("fitted_to", "applied_to"),
  [
    (ABOUT, {**ABOUT, "unit": "sentence"}),
    (TOKENS, {**ABOUT, "pool": "max"}),
  ],
)
def test_vectors_that_fit(fitted_to, applied_to):
  fitted = standardise.Standardiser(np.zeros(3), np.ones(3), fitted_to)
  standardise.check_standardiser(fitted, applied_to, width=3)


@pytest.mark.parametrize(
  ("fitted_to", "changes", "width", "message"),
  [
    (ABOUT, {}, 6, "length 3, these have 6"),
    (ABOUT, {"encoder": "c3d4"}, 3, r"\(a1b2, of runs/x; this is c3d4\)"),
    (OLDER, {}, 3, r"\(unknown, of runs/x"),
    (ABOUT, {"normalize": True}, 3, r"normalize=False, these .*=True"),
    (TOKENS, {"unit": "sentence", "pool": "cls"}, 3, "pool=mean, .* pool=cls"),
  ],
)
def test_other_vectors_are_refused(fitted_to, changes, width, message):
  fitted = standardise.Standardiser(np.zeros(3), np.ones(3), fitted_to)
  with pytest.raises(ConfigError, match=message):
    standardise.check_standardiser(fitted, {**ABOUT, **changes}, width=width)
