"""Reads labelled examples from TFDS datasets (data/sources/tfds.py)."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from maskedlm.core.errors import DataError
from maskedlm.data.labelled.tables import Record
from maskedlm.data.sources import tfds

PREFIX = "tfds:"


def read_records(source: str) -> Iterator[Record]:
  """Yields the examples, in the order of their "idx" if they have one.

  TFDS shuffles when it writes; idx (in GLUE) is the row of the original file. A
  class becomes its name, or "" if there is none (-1); `line` counts from 1.

  Raises:
    DataError: the name is wrong, or TFDS can't open or read it.
  """
  data = open_data_source(source)
  found = [
    {name: feature_value(data, name, value) for name, value in example.items()}
    for example in read_examples(data, source)
  ]
  if found and "idx" in found[0]:
    found.sort(key=lambda fields: int(fields["idx"]))
  for number, fields in enumerate(found, 1):
    yield Record(number, fields, source)


def open_data_source(source: str):
  """Returns TFDS's data source: a sequence with .dataset_info.features.

  Raises:
    DataError: the name is wrong, there is no such dataset or split, or it is
      not prepared.
  """
  try:
    return tfds.open_records(source)
  except tfds.TfdsError as error:
    raise DataError(str(error)) from error


def feature_value(data, name: str, value: Any) -> str | list:
  """Returns a feature's value as text, as it would be in a file, or a list."""
  if isinstance(value, bytes):
    return value.decode("utf-8", "replace")
  if isinstance(value, str):
    return value
  if np.ndim(value):
    return [feature_value(data, name, x) for x in value]
  feature = data.dataset_info.features[name]
  names = getattr(feature, "names", None)
  if names is not None:  # A ClassLabel.
    return names[value] if value >= 0 else ""
  # A float32 as 3.8, not 3.799999952316284.
  return str(np.asarray(value, feature.np_dtype))


def read_examples(data, source: str) -> Iterator[dict[str, Any]]:
  """Yields the examples of an open data source, with TFDS's values.

  Raises:
    DataError: an example can't be read.
  """
  try:
    yield from tfds.read_records(data, source)
  except tfds.TfdsError as error:
    raise DataError(str(error)) from error
