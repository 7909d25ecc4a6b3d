"""Opens the mean and deviation with which vectors of words are standardised."""

import numpy as np

from maskedlm.core.errors import ConfigError
from maskedlm.inference.vectors import standardise, vectors
from maskedlm.inference.vectors.standardise import Standardiser


def open_word_standardiser(
  path: str, model: vectors.TextEncoder, options: vectors.VectorOptions
) -> Standardiser:
  """Returns the Standardiser of `embed --unit=word --fit`, checked.

  Args:
    path: the file.
    model: the encoder.
    options: layers and combine of the words' vectors.

  Raises:
    ConfigError: the file is missing, or was fitted to other vectors.
  """
  fitted = standardise.load_standardiser(path)
  _check(fitted, model, options)
  return fitted


def open_layer_standardisers(
  path: str, model: vectors.TextEncoder
) -> dict[int, Standardiser]:
  """Returns the Standardiser of each layer, by its number, that a file has.

  Args:
    path: the file of `embed --unit=word --fit`: of one layer, or of several
      with --combine=concat.
    model: the encoder.

  Raises:
    ConfigError: the file is missing, or was fitted to other vectors.
  """
  fitted = standardise.load_standardiser(path)
  layers, combine = (fitted.about[name] for name in ("layers", "combine"))
  if len(layers) > 1 and combine != "concat":
    raise ConfigError(
      f"--standardise={path} was fitted to the {combine} of layers "
      f"{', '.join(map(str, layers))}; expected each layer by itself: fit it "
      "with `embed --unit=word --layers=all --combine=concat --fit`."
    )
  options = vectors.VectorOptions(layers=tuple(layers), combine=combine)
  _check(fitted, model, options)
  parts = (np.split(x, len(layers)) for x in (fitted.mean, fitted.stddev))
  return {
    layer: Standardiser(mean, stddev, fitted.about)
    for layer, mean, stddev in zip(layers, *parts, strict=True)
  }


def _check(
  fitted: Standardiser,
  model: vectors.TextEncoder,
  options: vectors.VectorOptions,
) -> None:
  """Checks that it was fitted to the vectors of words with these options."""
  layers = vectors.resolve_layers(options, model.cfg)
  about = {
    **options._asdict(),
    "layers": list(layers),
    "unit": "word",
    "pool": "mean",
    "encoder": vectors.fingerprint(model),
  }
  width = model.cfg.width * (len(layers) if options.combine == "concat" else 1)
  standardise.check_standardiser(fitted, about, width=width)
