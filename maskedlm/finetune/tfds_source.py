"""TFDS datasets as records, without TensorFlow.

  tfds:NAME[/CONFIG][:VERSION][:SPLIT][@DATA_DIR]      e.g. tfds:glue/mrpc:test

SPLIT is "train" unless given, DATA_DIR where TFDS keeps its data.
"""

import os
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from maskedlm.finetune.application import DataError
from maskedlm.finetune.tables import Record

PREFIX = "tfds:"
# A version begins with a digit, which no split does.
_SOURCE = re.compile(
  r"tfds:(?P<name>[^:@]+(:\d[\d.*]*)?)(:(?P<split>[^@]+))?(@(?P<data_dir>.+))?"
)


def iterate(source: str) -> Iterator[Record]:
  """The examples, in the order of their "idx" where they have one.

  TFDS shuffles what it writes; idx (GLUE's) is the row of the original file. A
  class is given by its name, "" where there is none (-1); `line` counts from 1.

  Raises:
    DataError: misspelt, or TFDS can't open or read it.
  """
  data = open_source(source)
  found = [
    {name: text(data, name, value) for name, value in example.items()}
    for example in examples(data, source)
  ]
  if found and "idx" in found[0]:
    found.sort(key=lambda fields: int(fields["idx"]))
  for number, fields in enumerate(found, 1):
    yield Record(number, fields, source)


def open_source(source: str):
  """The data source of TFDS: a sequence, with .dataset_info.features.

  Raises:
    DataError: misspelt, no such dataset or split, not prepared.
  """
  match = _SOURCE.fullmatch(source)
  if not match:
    raise DataError(
      f"{source}: expected tfds:NAME[/CONFIG][:VERSION][:SPLIT][@DATA_DIR], "
      "such as tfds:glue/mrpc:train."
    )
  data_dir = match["data_dir"] and os.path.expanduser(match["data_dir"])
  try:
    import tensorflow_datasets as tfds  # 0.7 s to import.
    import tensorflow_datasets.text  # Registers glue.

    return tfds.data_source(
      match["name"], split=match["split"] or "train", data_dir=data_dir
    )
  except Exception as error:  # Of any type: no such name, no network ...
    reason = (str(error) or type(error).__name__).splitlines()[0]
    raise DataError(
      f"{source}: TFDS can't open it: {reason}; expected a dataset that is "
      "prepared as array_record or parquet, or can be."
    ) from error


def text(data, name: str, value: Any) -> str:
  """A feature's value as a file would have it."""
  if isinstance(value, bytes):
    return value.decode("utf-8", "replace")
  if isinstance(value, str):
    return value
  feature = data.dataset_info.features[name]
  names = getattr(feature, "names", None)
  if names is not None:  # A ClassLabel.
    return names[value] if value >= 0 else ""
  if np.ndim(value) == 0:  # A float32 as 3.8, not 3.799999952316284.
    return str(np.asarray(value, feature.np_dtype))
  return repr(value)


def examples(data, source: str) -> Iterator[dict[str, Any]]:
  """The examples of what open_source gave, their values as TFDS has them.

  Raises:
    DataError: one can't be read.
  """
  for index in range(len(data)):
    try:
      yield data[index]
    except (RuntimeError, ValueError, OSError) as error:
      raise DataError(
        f"{source}: example {index + 1} can't be read ({error}); its files are "
        "damaged: delete and prepare the dataset again."
      ) from error
