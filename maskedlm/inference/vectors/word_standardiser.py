"""Opens the mean and deviation with which vectors of words are standardised."""

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
  layers = vectors.resolve_layers(options, model.cfg)
  about = {
    **options._asdict(),
    "layers": list(layers),
    "unit": "word",
    "pool": "mean",
    "encoder": vectors.fingerprint(model),
  }
  fitted = standardise.load_standardiser(path)
  width = model.cfg.width * (len(layers) if options.combine == "concat" else 1)
  standardise.check_standardiser(fitted, about, width=width)
  return fitted
