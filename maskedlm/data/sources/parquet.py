"""Parquet files, in which datasets are published -> rows or texts.

Reading is streaming: pages of a row group rather than all of it, so that memory
stays bounded whatever wrote the file. pyarrow comes with tensorflow-datasets.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_ROWS = 256  # Read at a time.
_TEXTS = (
  *("string", "large_string", "string_view"),
  *("binary", "large_binary", "binary_view"),
)
_BUFFER = 1 << 20  # Bytes of a column that are fetched at a time.


class ParquetError(ValueError):
  """A file that can't be read, or is no Parquet; the message says why."""


@contextlib.contextmanager
def _opened(path: str):
  import pyarrow as pa  # 0.1 s to import.
  import pyarrow.parquet as pq

  try:
    # Without pre_buffer and threads, which would hold whole row groups.
    with pq.ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False) as file:
      names = file.schema_arrow.names
      if twice := [name for name in names if names.count(name) > 1]:
        raise ParquetError(f"{path} has the column {twice[0]!r} twice")
      yield file
  except FileNotFoundError:
    raise ParquetError(f"{path}: no such file") from None
  except (pa.ArrowException, OSError) as error:
    reason = (str(error) or type(error).__name__).splitlines()[0]
    raise ParquetError(f"{path} can't be read as Parquet: {reason}") from error


def text_columns(path: str) -> list[str]:
  """Returns the names of the columns that hold text.

  Raises:
    ParquetError: the file can't be read.
  """
  import pyarrow as pa

  with _opened(path) as file:
    types = {
      column.name: column.type.value_type
      if pa.types.is_dictionary(column.type)
      else column.type
      for column in file.schema_arrow
    }
  return [name for name, type_ in types.items() if str(type_) in _TEXTS]


def read_texts(path: str, column: str) -> Iterator[bytes | None]:
  """Yields the texts of a text column in order; None for a null.

  As bytes, since not every writer checks that its strings are UTF-8.

  Raises:
    ParquetError: the file can't be read.
  """
  import pyarrow as pa

  with _opened(path) as file:
    for batch in file.iter_batches(_ROWS, columns=[column], use_threads=False):
      yield from batch.column(0).cast(pa.large_binary()).to_pylist()


def read_rows(path: str) -> Iterator[dict[str, Any]]:
  """Yields the rows of a file, column -> value.

  A class is given by its name, or "" if there is none (-1), if the file has the
  names, as those written by Hugging Face's datasets do; so are lists of them.

  Raises:
    ParquetError: the file can't be read.
  """
  with _opened(path) as file:
    classes = _classes(file.schema_arrow.metadata or {})
    for batch in file.iter_batches(_ROWS, use_threads=False):
      for row in batch.to_pylist():
        for column in classes.keys() & row.keys():
          row[column] = _named(row[column], classes[column])
        yield row


def _named(value: Any, names: Sequence[str]) -> Any:
  if isinstance(value, list):
    return [_named(one, names) for one in value]
  if not isinstance(value, int):  # A null.
    return value
  return names[value] if 0 <= value < len(names) else ""


def _classes(metadata: Mapping[bytes, bytes]) -> dict[str, Sequence[str]]:
  """Returns the class names of the columns that hold a ClassLabel.

  Or a list of them: {"feature": ...}, and [...] in older files.
  """
  try:
    told = json.loads(metadata[b"huggingface"])["info"]["features"].items()
  except (AttributeError, KeyError, TypeError, ValueError):
    return {}  # It tells no names; who wrote it can't be asked.
  classes = {}
  for column, feature in told:
    if isinstance(feature, list) and feature:
      feature = feature[0]
    elif isinstance(feature, dict):
      feature = feature.get("feature", feature)
    if not isinstance(feature, dict) or feature.get("_type") != "ClassLabel":
      continue
    if feature.get("names"):
      classes[column] = feature["names"]
  return classes
