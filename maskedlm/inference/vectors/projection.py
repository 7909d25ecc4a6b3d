"""Projects vectors to points in a plane.

The same vectors give the same points: the random seed is fixed.
"""

import warnings
from typing import NamedTuple

import numpy as np

from maskedlm.runtime import extras

NEIGHBOURS = 15  # UMAP's own default.


class Projection(NamedTuple):
  """n points and the labels of their axes."""

  points: np.ndarray  # [n, 2] float64.
  axes: tuple[str, str]
  has_unit: bool  # Whether distances along the axes are meaningful.


def pca(x: np.ndarray) -> Projection:
  """Projects x [n, C], n > 1, onto the two directions of largest variance."""
  from sklearn.decomposition import PCA

  if x.shape[1] < 2:
    x = np.pad(x, ((0, 0), (0, 1)))
  x = np.asarray(x, np.float64)
  with np.errstate(invalid="ignore"):  # Vectors may all be equal.
    points = PCA(2, svd_solver="full").fit_transform(x)
  total = x.var(axis=0).sum()
  shares = points.var(axis=0) / (total if total > 0 else 1)
  first, second = (
    f"principal component {i} ({share:.0%} of the variance)"
    for i, share in enumerate(shares, 1)
  )
  return Projection(points, (first, second), True)


def umap(x: np.ndarray) -> Projection:
  """Projects x [n, C], n > 1, by UMAP (arXiv:1802.03426) with cosine distance.

  Both axes are scaled to 0..1, as they have no unit.

  Raises:
    ConfigError: umap-learn, an optional dependency, is not installed.
  """
  library = load_umap()
  if len(x) <= 3:  # There is no neighbourhood to preserve.
    points = pca(x).points
  else:
    # Spectral initialisation needs more points than dimensions.
    reducer = library.UMAP(
      n_neighbors=min(NEIGHBOURS, len(x) - 1),
      metric="cosine",
      init="spectral" if len(x) > NEIGHBOURS else "random",
      random_state=0,
      n_jobs=1,
    )
    with warnings.catch_warnings():
      warnings.simplefilter("ignore")
      points = np.asarray(reducer.fit_transform(x), np.float64)
  points = points - points.min(axis=0)
  points /= np.where(np.ptp(points, axis=0) > 0, np.ptp(points, axis=0), 1)
  axes = ("UMAP 1 (no unit)", "UMAP 2 (no unit)")
  return Projection(points, axes, False)


def load_umap():
  """Imports umap-learn; raises ConfigError if it is not installed."""
  return extras.load("umap", "umap", "--projection=umap")


PROJECTIONS = {"pca": pca, "umap": umap}
