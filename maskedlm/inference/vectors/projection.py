"""Vectors -> points in a plane, to be looked at. The same vectors, the same
points: whatever is random has a fixed seed.
"""

import warnings
from typing import NamedTuple

import numpy as np

from maskedlm.core.errors import ConfigError

NEIGHBOURS = 15  # UMAP's own default.


class Projection(NamedTuple):
  """n points, and what their axes are."""

  points: np.ndarray  # [n, 2] float64.
  axes: tuple[str, str]
  has_unit: bool  # Whether distances along the axes can be read off.


def pca(x: np.ndarray) -> Projection:
  """The two directions in which x [n, C] varies most, n > 1."""
  from sklearn.decomposition import PCA

  if x.shape[1] < 2:
    x = np.pad(x, ((0, 0), (0, 1)))
  x = np.float64(x)
  with np.errstate(invalid="ignore"):  # Of vectors that are all the same.
    points = PCA(2, svd_solver="full").fit_transform(x)
  total = x.var(axis=0).sum()
  shares = points.var(axis=0) / (total if total > 0 else 1)
  first, second = (
    f"principal component {i} ({share:.0%} of the variance)"
    for i, share in enumerate(shares, 1)
  )
  return Projection(points, (first, second), True)


def umap(x: np.ndarray) -> Projection:
  """UMAP (arXiv:1802.03426) of x [n, C] by cosine, n > 1: who is near whom.

  Both axes are from 0 to 1, as they have no unit.

  Raises:
    ConfigError: umap-learn, which is an extra, is not installed.
  """
  library = load_umap()
  if len(x) <= 3:  # There is no neighbourhood to preserve.
    points = pca(x).points
  else:
    # The spectral beginning wants more points than it has dimensions to spare.
    reducer = library.UMAP(
      n_neighbors=min(NEIGHBOURS, len(x) - 1),
      metric="cosine",
      init="spectral" if len(x) > NEIGHBOURS else "random",
      random_state=0,
      n_jobs=1,
    )
    with warnings.catch_warnings():
      warnings.simplefilter("ignore")
      points = np.float64(reducer.fit_transform(x))
  points = points - points.min(axis=0)
  points /= np.where(np.ptp(points, axis=0) > 0, np.ptp(points, axis=0), 1)
  axes = ("UMAP 1 (no unit)", "UMAP 2 (no unit)")
  return Projection(points, axes, False)


def load_umap():
  """The library; a ConfigError with the remedy where it isn't installed."""
  try:
    import umap as library
  except ImportError:
    raise ConfigError(
      "--projection=umap needs umap-learn: pip install 'maskedlm[umap]'; "
      "--projection=pca needs nothing more."
    ) from None
  return library


PROJECTIONS = {"pca": pca, "umap": umap}
