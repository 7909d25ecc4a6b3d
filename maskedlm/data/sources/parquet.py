"""Reads the rows or texts of Parquet files, a format of published datasets.

Reading is streaming: by pages rather than row groups, so that memory stays
bounded whichever program wrote the file. pyarrow comes with
tensorflow-datasets.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from maskedlm.core.parse_json import parse_json
from maskedlm.data.sources.files import open_source
from maskedlm.runtime import buckets, console, storage_errors

_ROWS = 256  # Rows read at a time.
_TEXTS = (
  *("string", "large_string", "string_view"),
  *("binary", "large_binary", "binary_view"),
)
_BUFFER = 1 << 20  # Bytes of a column fetched at a time.


class ParquetError(ValueError):
  """A file that can't be read as Parquet; the message gives the reason."""


@contextlib.contextmanager
def _open(path: str):
  import pyarrow as pa  # 0.1 s to import.
  import pyarrow.parquet as pq

  try:
    is_local = not buckets.is_address(path)
    source = contextlib.nullcontext(path) if is_local else open_source(path)
    with (
      source as stream,
      # Without pre_buffer and threads, which would hold whole row groups.
      pq.ParquetFile(stream, buffer_size=_BUFFER, pre_buffer=False) as file,
    ):
      names = file.schema_arrow.names
      if repeated := [name for name in names if names.count(name) > 1]:
        raise ParquetError(f"{path} has the column {repeated[0]!r} twice")
      yield file
  except FileNotFoundError:
    raise ParquetError(f"{path}: no such file") from None
  except (pa.ArrowException, OSError) as error:
    storage_errors.raise_if_temporary(path, error)
    reason = (str(error) or type(error).__name__).splitlines()[0]
    raise ParquetError(f"{path} can't be read as Parquet: {reason}") from error


def text_columns(path: str) -> list[str]:
  """Returns the names of the columns that hold text.

  Raises:
    ParquetError: the file can't be read.
  """
  import pyarrow as pa

  with _open(path) as file:
    types = {
      column.name: column.type.value_type
      if pa.types.is_dictionary(column.type)
      else column.type
      for column in file.schema_arrow
    }
  return [name for name, type_ in types.items() if str(type_) in _TEXTS]


def read_texts(path: str, column: str) -> Iterator[bytes | None]:
  """Yields the texts of a text column in order as bytes; None for a null.

  They are not decoded, since not every writer checks that they are UTF-8.

  Raises:
    ParquetError: the file can't be read.
  """
  import pyarrow as pa

  with _open(path) as file:
    for batch in file.iter_batches(_ROWS, columns=[column], use_threads=False):
      yield from batch.column(0).cast(pa.large_binary()).to_pylist()


def read_rows(path: str) -> Iterator[dict[str, Any]]:
  """Yields the rows of a file as dicts, column -> value.

  In files written by Hugging Face's datasets, classes, also within lists and
  objects, become names instead of numbers; no class (-1) is "". Columns of
  times and durations are left out, with a line in the log: Python has no value
  for some of them, and no task reads them.

  Raises:
    ParquetError: the file can't be read.
  """
  with _open(path) as file:
    schema = file.schema_arrow
    classes = _features_with_classes(schema.metadata or {})
    names = [x.name for x in schema if not _has_times(x.type)]
    if left_out := [name for name in schema.names if name not in names]:
      console.log(f"{path}: not read, as times: {', '.join(left_out)}")
    columns = names if left_out else None
    for batch in file.iter_batches(_ROWS, columns=columns, use_threads=False):
      for row in batch.to_pylist():
        for column in classes.keys() & row.keys():
          row[column] = _class_names(row[column], classes[column])
        yield row


def _has_times(type_) -> bool:
  """Returns whether a type is that of a time, or has one within."""
  import pyarrow as pa

  inner = [type_.field(i).type for i in range(type_.num_fields)]
  return pa.types.is_temporal(type_) or any(map(_has_times, inner))


def _class_names(value: Any, feature: Any) -> Any:
  """Returns a value with names for classes.

  A feature of a list is {"feature": ...}, or [...] in older files; that of a
  dict has its names; others have a _type.
  """
  is_list = isinstance(feature, list)
  inner = feature[0] if is_list else feature.get("feature", feature)
  if isinstance(value, list):
    return [_class_names(x, inner) for x in value]
  if isinstance(value, dict):
    return {
      name: _class_names(x, inner[name]) if _has_classes(inner.get(name)) else x
      for name, x in value.items()
    }
  if is_list or feature.get("_type") != "ClassLabel":
    return value
  names = feature.get("names")
  if not isinstance(value, int) or not names:  # A null; unnamed classes.
    return value
  return names[value] if 0 <= value < len(names) else ""


def _features_with_classes(metadata: Mapping[bytes, bytes]) -> dict[str, Any]:
  """Returns column -> feature for the columns with ClassLabels."""
  try:
    features = parse_json(metadata[b"huggingface"])["info"]["features"].items()
  except (AttributeError, KeyError, TypeError, ValueError):
    return {}  # Not written by datasets, or without class names.
  return {name: x for name, x in features if _has_classes(x)}


def _has_classes(feature: Any) -> bool:
  if isinstance(feature, dict):
    if feature.get("_type") == "ClassLabel":
      return True
    feature = list(feature.values())
  return isinstance(feature, list) and any(map(_has_classes, feature))
