"""Makes the vectors of a list of texts, all in memory."""

import operator
from collections.abc import Sequence

import numpy as np

from maskedlm.core.errors import ConfigError
from maskedlm.data.labelled.text_lines import Text
from maskedlm.inference.vectors import vectors
from maskedlm.inference.vectors.vectors import (
  TextEncoder,
  VectorOptions,
  Vectors,
)


def make_vectors(
  model: TextEncoder,
  texts: Sequence[str],
  options: VectorOptions,
  *,
  length_option: str,
) -> Vectors:
  """Returns the vectors of the units of texts; there may be none.

  Args:
    model: the encoder.
    texts: a list of any length, of texts of any length.
    options: which vectors to compute; `layers` are not checked yet, and `pool`
      may be "".
    length_option: the option that sets the length, for log lines.

  Returns:
    Vectors whose `texts` are indices of `texts`.

  Raises:
    ConfigError: see vectors.resolve_layers.
  """
  try:
    layers = tuple(map(operator.index, options.layers))
  except TypeError:
    raise ConfigError(
      f"layers={options.layers!r:.40}: expected numbers such as (-1,) or "
      "(-1, -2, -3, -4)."
    ) from None
  options = vectors.resolve_options(options._replace(layers=layers), model)
  lines = (Text(text, line=i + 1) for i, text in enumerate(texts))
  long: list[int] = []
  made = list(vectors.embed(model, lines, options, long=long))
  vectors.log_windows(model, options, long, option=length_option)
  if not made:
    return vectors.empty_vectors(options, model.cfg)
  made = vectors.collect(made)
  places = np.array([text.line - 1 for text in made.sources], np.int64)
  return made._replace(texts=places)
