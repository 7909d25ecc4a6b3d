"""Standardised vectors: (x - mean) / standard deviation, fitted on a corpus.

Contextual vectors all point one way, for a few of their dimensions are large
wherever they come from. Standardising is what Timkey & van Schijndel do about
it (EMNLP 2021, https://aclanthology.org/2021.emnlp-main.372); Jurafsky &
Martin, equations 11.10 to 11.12.
"""

import json
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from maskedlm.core.errors import ConfigError
from maskedlm.runtime import output_files

# What fitted and standardised vectors share.
SAME = ("layers", "combine", "normalize")


class Moments(NamedTuple):
  """Of the vectors seen so far, in float64; C is the shape of one."""

  count: int
  mean: np.ndarray  # [C]
  squares: np.ndarray  # [C]: sum of (x - mean)^2.


class Fitted(NamedTuple):
  """What vectors are standardised with."""

  mean: np.ndarray  # [C] float32.
  stddev: np.ndarray  # [C] float32: of all of them, not of n - 1.
  about: Mapping[str, Any]  # Which vectors: layers, combine, ..., count.


def add(moments: Moments | None, x: np.ndarray) -> Moments:
  """With the vectors x [n, C] too; n > 0 (Chan, Golub & LeVeque 1983)."""
  x = np.float64(x)
  mean = x.mean(axis=0)
  new = Moments(len(x), mean, np.sum((x - mean) ** 2, axis=0))
  if moments is None:
    return new
  count = moments.count + new.count
  apart = new.mean - moments.mean
  return Moments(
    count=count,
    mean=moments.mean + apart * (new.count / count),
    squares=moments.squares
    + new.squares
    + apart**2 * (moments.count * new.count / count),
  )


def finish(moments: Moments, about: Mapping[str, Any]) -> Fitted:
  """Equations 11.10 and 11.11."""
  stddev = np.sqrt(moments.squares / moments.count)
  return Fitted(
    np.float32(moments.mean),
    np.float32(stddev),
    {**about, "count": moments.count},
  )


def fit(x: np.ndarray) -> Fitted:
  """To the vectors x [n, C], n > 0."""
  return finish(add(None, x), {})


def apply(fitted: Fitted, x: np.ndarray) -> np.ndarray:
  """Equation 11.12: x [n, C] -> [n, C]; a dimension that never varied is 0."""
  constant = fitted.stddev == 0
  scaled = (x - fitted.mean) / np.where(constant, 1, fitted.stddev)
  return np.where(constant, 0, scaled).astype(np.float32)


def save(path: str | pathlib.Path, fitted: Fitted) -> None:
  """Writes an .npz, all of it or nothing."""
  about = np.array(json.dumps(fitted.about))
  output_files.save_npz(
    path, mean=fitted.mean, stddev=fitted.stddev, about=about
  )


def load(path: str | pathlib.Path) -> Fitted:
  """Reads what `save` wrote.

  Raises:
    ConfigError: no such file, or another kind of file.
  """
  with output_files.open_npz(path, made_by="maskedlm embed --fit") as file:
    about = json.loads(str(file["about"]))
    return Fitted(file["mean"], file["stddev"], about)


def check(fitted: Fitted, about: Mapping[str, Any], *, width: int) -> None:
  """That vectors of `width` numbers, of which `about` tells, fit.

  Args:
    fitted: of `embed --fit`.
    about: unit, pool, layers, combine, and encoder: vectors.fingerprint.
    width: C.

  Raises:
    ConfigError: they have another width, come from another encoder or other
      layers, or are pooled in another way.
  """
  (own,) = fitted.mean.shape
  if own != width:
    raise ConfigError(
      f"--standardise was fitted to vectors of {own} numbers, these have "
      f"{width}: fit it with this checkpoint and these layers (--fit)."
    )
  own, theirs = about["encoder"], fitted.about.get("encoder", "unknown")
  if own != theirs:
    raise ConfigError(
      f"--standardise was fitted to vectors of another encoder ({theirs[:12]}, "
      f"of {fitted.about.get('checkpoint', 'unknown')}; this is {own[:12]}): "
      "fit it with this checkpoint (--fit)."
    )
  # A token is one, however it is pooled; means and maxima of standardised
  # tokens are the standardised means and maxima; but [CLS] is like no other.
  units, pools = (
    (fitted.about.get(name), about[name]) for name in ("unit", "pool")
  )
  is_pooled = "token" not in units or "cls" in pools
  for name in (*SAME, "pool") if is_pooled else SAME:
    own, theirs = (x.get(name, False) for x in (fitted.about, about))
    if own != theirs:
      raise ConfigError(
        f"--standardise was fitted with {name}={own}, these "
        f"vectors have {name}={theirs}: fit it with the same (--fit)."
      )
