"""Points in a plane: PCA's definition, and reproducible results."""

import os
import subprocess
import sys

import numpy as np
import pytest

from maskedlm.core.errors import ConfigError
from maskedlm.inference.vectors import projection


def clusters(count, dimensions=13, seed=0):
  """Returns vectors in two clusters."""
  rng = np.random.default_rng(seed)
  centers = 5 * rng.standard_normal((2, dimensions))
  x = centers[np.arange(count) % 2] + rng.standard_normal((count, dimensions))
  return np.float32(x)


def test_pca_by_hand():
  # The first axis is (3, 4) / 5, the second (4, -3) / 5, in the first two of 5
  # dimensions.
  along, across = np.array([-6.0, -2, 2, 6]), np.array([1.0, -1, -1, 1])
  x = 7 + np.outer(along, [0.6, 0.8, 0, 0, 0])
  x += np.outer(across, [0.8, -0.6, 0, 0, 0])
  made = projection.pca(np.float32(x))
  np.testing.assert_allclose(
    np.abs(made.points[:, 0]), np.abs(along), atol=1e-5
  )
  np.testing.assert_allclose(np.abs(made.points[:, 1]), 1, atol=1e-5)
  # Variances 20 and 1.
  assert made.axes == (
    "principal component 1 (95% of the variance)",
    "principal component 2 (5% of the variance)",
  )
  assert made.has_unit


@pytest.mark.parametrize("x", [np.ones((4, 5)), np.arange(3.0)[:, None]])
def test_pca_of_few_or_equal_vectors(x):
  made = projection.pca(x)
  assert made.points.shape == (len(x), 2) and np.isfinite(made.points).all()
  np.testing.assert_allclose(made.points[:, 1], 0, atol=1e-9)


def test_umap_without_the_library(monkeypatch):
  monkeypatch.setitem(sys.modules, "umap", None)
  with pytest.raises(ConfigError, match=r"pip install 'maskedlm\[umap\]'"):
    projection.umap(clusters(30))


def test_umap_keeps_clusters_apart(tmp_path):
  """In a process of its own, in which Numba compiles nothing: 2 s, not 9."""
  pytest.importorskip("umap")
  np.save(tmp_path / "x.npy", clusters(17))
  script = (
    "import sys, numpy as np\n"
    "from maskedlm.inference.vectors import projection\n"
    "np.save(sys.argv[2], projection.umap(np.load(sys.argv[1])).points)"
  )
  subprocess.run(
    [sys.executable, "-c", script, tmp_path / "x.npy", tmp_path / "y.npy"],
    env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    check=True,
  )
  assert_apart(np.load(tmp_path / "y.npy"))


def assert_apart(points):
  """Asserts that `clusters` are nowhere as near as a cluster is wide."""
  assert points.min() == 0 and points.max() == 1
  a, b = points[::2], points[1::2]
  gap = np.linalg.norm(a[:, None] - b, axis=2).min()
  assert gap > np.linalg.norm(a - a.mean(0), axis=1).max()
