"""Reads the examples of TFDS datasets as rows (data/sources/tfds.py).

A feature becomes what it would be in a Parquet file of Hugging Face: texts are
decoded, a class is its name, or "" if there is none (-1), and a list of objects
is an object of lists, {"text": [...], "answer_start": [...]}.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from maskedlm.core.errors import DataError
from maskedlm.data.sources import tfds


def is_source(source: Any) -> bool:
  """Returns whether a source is a TFDS dataset, and not a file."""
  return str(source).startswith(tfds.PREFIX)


def read_rows(source: str) -> Iterator[tuple[int, dict[str, Any]]]:
  """Yields (number from 1, fields), in the order of "idx" if they have one.

  TFDS shuffles when it writes; idx (in GLUE) is the row of the original file.

  Raises:
    DataError: the name is wrong, or TFDS can't open or read the dataset.
  """
  try:
    data = tfds.open_records(source)
    features = data.dataset_info.features
    rows: Iterator[dict[str, Any]] = (
      {name: _plain(features[name], x) for name, x in example.items()}
      for example in tfds.read_records(data, source)
    )
    if "idx" in features:
      rows = iter(sorted(rows, key=lambda fields: int(fields["idx"])))
    yield from enumerate(rows, 1)
  except tfds.TfdsError as error:
    raise DataError(str(error)) from error


def _plain(feature, value: Any) -> Any:
  """Returns a feature's value in JSON's types."""
  if isinstance(value, bytes):
    return value.decode("utf-8", "replace")
  if isinstance(value, str):
    return value
  if isinstance(value, Mapping):
    # A Sequence of a FeaturesDict has its features, too.
    return {name: _plain(feature[name], x) for name, x in value.items()}
  if np.ndim(value) or isinstance(value, list):
    inner = getattr(feature, "feature", feature)  # A Tensor has none.
    return [_plain(inner, x) for x in value]
  names = getattr(feature, "names", None)
  if names is not None:  # A ClassLabel.
    return names[value] if value >= 0 else ""
  number = np.asarray(value, feature.np_dtype)
  if number.dtype.kind == "f":
    return float(str(number))  # A float32 as 3.8, not 3.799999952316284.
  return number.item()
