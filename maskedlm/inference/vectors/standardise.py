"""Standardises vectors: (x - mean) / standard deviation, fitted on a corpus.

Contextual vectors all point in similar directions because a few dimensions are
large everywhere. Standardising is the remedy of Timkey & van Schijndel (EMNLP
2021, https://aclanthology.org/2021.emnlp-main.372; Jurafsky & Martin, equations
11.10 to 11.12).
"""

import json
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from maskedlm.core.errors import ConfigError
from maskedlm.core.parse_json import parse_json
from maskedlm.inference.vectors import vectors
from maskedlm.inference.vectors.vectors import TextEncoder, VectorOptions
from maskedlm.runtime import output_files

# Options of the vectors that must be the same for fitting and applying.
MUST_AGREE = ("layers", "combine", "normalize", "normalize_whole")


class Moments(NamedTuple):
  """Moments of the vectors seen so far, in float64; C is a vector's shape."""

  count: int  # type: ignore[assignment]
  mean: np.ndarray  # [C]
  squares: np.ndarray  # [C]: sum of (x - mean)^2.


class Standardiser(NamedTuple):
  """Mean and standard deviation, and which vectors they were fitted to."""

  mean: np.ndarray  # [C] float32.
  stddev: np.ndarray  # [C] float32, with divisor n, not n - 1.
  about: Mapping[str, Any]  # The vectors' layers, combine, ..., count.


def update_moments(moments: Moments | None, x: np.ndarray) -> Moments:
  """Returns the moments with the vectors x [n, C], n > 0, added.

  The algorithm is that of Chan, Golub & LeVeque (1983).
  """
  x = np.asarray(x, np.float64)
  mean = x.mean(axis=0)
  new = Moments(len(x), mean, np.sum((x - mean) ** 2, axis=0))
  if moments is None:
    return new
  count = moments.count + new.count
  difference = new.mean - moments.mean
  mean = moments.mean + difference * (new.count / count)
  between = difference**2 * (moments.count * new.count / count)
  return Moments(count, mean, moments.squares + new.squares + between)


def make_standardiser(
  moments: Moments, about: Mapping[str, Any]
) -> Standardiser:
  """Returns the standardiser of all vectors seen (equations 11.10, 11.11)."""
  stddev = np.sqrt(moments.squares / moments.count).astype(np.float32)
  about = {**about, "count": moments.count}
  return Standardiser(moments.mean.astype(np.float32), stddev, about)


def apply_standardiser(
  fitted: Standardiser | None, x: np.ndarray
) -> np.ndarray:
  """Returns x [n, C] standardised (equation 11.12), float32 [n, C].

  Dimensions that were constant in fitting become 0. None leaves x as it is.
  """
  if fitted is None:
    return x
  constant = fitted.stddev == 0
  scaled = (x - fitted.mean) / np.where(constant, 1, fitted.stddev)
  return np.where(constant, 0, scaled).astype(np.float32)


def save_standardiser(path: str | pathlib.Path, fitted: Standardiser) -> None:
  """Writes an .npz atomically.

  Raises:
    ConfigError, StorageError: the file can't be written.
  """
  about = np.array(json.dumps(fitted.about))
  output_files.save_npz(
    path, mean=fitted.mean, stddev=fitted.stddev, about=about
  )


def load_standardiser(path: str | pathlib.Path) -> Standardiser:
  """Loads a file written by `save_standardiser`.

  Raises:
    ConfigError: the file doesn't exist or has another format.
  """
  with output_files.open_npz(path, made_by="maskedlm embed --fit") as file:
    about = parse_json(str(file["about"]))
    mean = output_files.array(file, "mean", "f4", -1)
    stddev = output_files.array(file, "stddev", "f4", len(mean))
    return Standardiser(mean, stddev, about)


def describe(
  model: TextEncoder, options: VectorOptions, **more: Any
) -> dict[str, Any]:
  """Returns the options of vectors, `more`, and the encoder's fingerprint."""
  layers = vectors.resolve_layers(options, model.cfg)
  return {
    **options._asdict(),
    "layers": list(layers),
    **more,
    "encoder": vectors.fingerprint(model),
  }


def check_standardiser(
  fitted: Standardiser, about: Mapping[str, Any], *, width: int
) -> None:
  """Checks that vectors described by `about` fit the standardiser.

  Raises:
    ConfigError: they are not of `width`, come from another encoder or other
      layers, or are pooled in another way.
  """
  width *= len(about["layers"]) if about["combine"] == "concat" else 1
  width = about.get("truncate_dim") or width
  (fitted_width,) = fitted.mean.shape
  if fitted_width != width:
    raise ConfigError(
      f"--standardise was fitted to vectors of length {fitted_width}, these "
      f"have {width}: fit it with this checkpoint and these layers (--fit)."
    )
  encoder, other = about["encoder"], fitted.about.get("encoder", "unknown")
  if encoder != other:
    raise ConfigError(
      f"--standardise was fitted to vectors of another encoder ({other[:12]}, "
      f"of {fitted.about.get('checkpoint', 'unknown')}; this is "
      f"{encoder[:12]}): fit it on this checkpoint (--fit)."
    )
  # The pool doesn't matter to single tokens. Means and maxima of standardised
  # tokens are the standardised means and maxima, but [CLS] differs from both.
  units, pools = (
    (fitted.about.get(name), about[name]) for name in ("unit", "pool")
  )
  is_pooled = "token" not in units or "cls" in pools
  for name in (*MUST_AGREE, "pool") if is_pooled else MUST_AGREE:
    expected, actual = (x.get(name, False) for x in (fitted.about, about))
    if expected != actual:
      raise ConfigError(
        f"--standardise was fitted with {name}={expected}, these "
        f"vectors have {name}={actual}: use the same for both (--fit)."
      )


def open_word_standardiser(
  path: str | None, model: TextEncoder, options: VectorOptions
) -> Standardiser | None:
  """Returns the Standardiser of `embed --unit=word --fit`, checked.

  The options are those of the words' vectors. Without a path there is none.

  Raises:
    ConfigError: the file is missing, or was fitted to other vectors.
  """
  if not path:
    return None
  fitted = load_standardiser(path)
  _check_words(fitted, model, options)
  return fitted


def open_layer_standardisers(
  path: str, model: TextEncoder
) -> dict[int, Standardiser]:
  """Returns {layer: its Standardiser} of a file of `embed --unit=word --fit`.

  The file is of one layer, or of several with --combine=concat.

  Raises:
    ConfigError: the file is missing, or was fitted to other vectors.
  """
  fitted = load_standardiser(path)
  layers, combine = (fitted.about[name] for name in ("layers", "combine"))
  if len(layers) > 1 and combine != "concat":
    raise ConfigError(
      f"--standardise={path} was fitted to the {combine} of layers "
      f"{', '.join(map(str, layers))}; expected each layer by itself: fit it "
      "with `embed --unit=word --layers=all --combine=concat --fit`."
    )
  options = VectorOptions(layers=tuple(layers), combine=combine)
  _check_words(fitted, model, options)
  parts = (np.split(x, len(layers)) for x in (fitted.mean, fitted.stddev))
  return {
    layer: Standardiser(mean, stddev, fitted.about)
    for layer, mean, stddev in zip(layers, *parts, strict=True)
  }


def _check_words(
  fitted: Standardiser, model: TextEncoder, options: VectorOptions
) -> None:
  options = options._replace(unit="word", pool="mean")
  check_standardiser(fitted, describe(model, options), width=model.cfg.width)
