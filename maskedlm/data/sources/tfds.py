"""Reads the records of TFDS datasets, dicts of features, without TensorFlow.

  tfds:NAME[/CONFIG][:VERSION][:SPLIT][@DATA_DIR]      e.g. tfds:glue/mrpc:test

SPLIT defaults to "train", DATA_DIR to the data folder of TFDS.
"""

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

# A version begins with a digit, which no split does.
_TFDS = re.compile(
  r"tfds:(?P<name>[^:@]+(:\d[\d.*]*)?)(:(?P<split>[^@]+))?(@(?P<data_dir>.+))?"
)


class TfdsError(ValueError):
  """A dataset that can't be opened or read; the message gives the reason."""


def open_records(source: str) -> Sequence[dict[str, Any]]:
  """Returns the records; `dataset_info.features` describes their fields.

  Raises:
    TfdsError: the name is misspelt, there is no such dataset or split, or it is
      not prepared.
  """
  match = _TFDS.fullmatch(source)
  if not match:
    raise TfdsError(
      f"{source}: expected tfds:NAME[/CONFIG][:VERSION][:SPLIT][@DATA_DIR], "
      "such as tfds:glue/mrpc:train."
    )
  data_dir = match["data_dir"] and os.path.expanduser(match["data_dir"])
  try:
    import tensorflow_datasets as tfds  # 0.7 s to import.
    import tensorflow_datasets.text  # Registers glue, wikipedia, c4 ...

    return tfds.data_source(
      match["name"], split=match["split"] or "train", data_dir=data_dir
    )
  except Exception as error:  # Any type: unknown name, no network ...
    reason = (str(error) or type(error).__name__).splitlines()[0]
    raise TfdsError(
      f"{source}: TFDS can't open it: {reason}; expected a dataset that is "
      "prepared, or can be, as array_record or parquet."
    ) from error


def read_records(
  records: Sequence[dict[str, Any]],
  source: str,
  indices: Sequence[int] | None = None,
) -> Iterator[dict[str, Any]]:
  """Yields the records at these indices, or all records if None.

  Raises:
    TfdsError: the dataset's files are damaged.
  """
  for index in range(len(records)) if indices is None else indices:
    try:
      yield records[index]
    except (RuntimeError, ValueError, OSError) as error:
      raise TfdsError(
        f"{source}: record {index + 1} can't be read ({error}); its files are "
        "damaged: delete and prepare the dataset again."
      ) from error
