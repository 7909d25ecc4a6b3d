"""Reads objects with named fields from JSON and Parquet files and from TFDS.

  {...} on each line       JSON Lines: pandas' lines=True, datasets
  [{...}, {...}]           JSON, on one line or many: pandas' orient="records"
  {"data": [{...}, ...]}   JSON with a list of objects, as in SQuAD
  {...} on several lines   one object
  PAR1 ...                 Parquet: pandas, datasets, Spark
  tfds:...                 a TFDS dataset: tfds_rows.py

A value is a str, int, float, bool, list or dict. A null, and NaN, which pandas
writes for one, is None.
"""

import collections
import contextlib
import decimal
import itertools
import json
import math
import pathlib
import re
from collections.abc import Iterator
from typing import Any

from maskedlm.core.errors import DataError
from maskedlm.core.parse_json import parse_json
from maskedlm.data.labelled import bad_rows, tfds_rows
from maskedlm.data.labelled.lines import is_plain, read_head, read_lines
from maskedlm.data.sources import encodings, parquet

JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SUCH_AS = '{"text": "...", "label": "..."}'


def is_parquet_or_tfds(source: str | pathlib.Path) -> bool:
  """Returns whether a source is a TFDS dataset or a Parquet file."""
  if tfds_rows.is_source(source):
    return True
  path = pathlib.Path(source)
  return path.exists() and read_head(path).startswith(encodings.PARQUET)


def read_objects(
  source: str | pathlib.Path, *, such_as: str = _SUCH_AS
) -> Iterator[tuple[int, dict[str, Any]]]:
  """Yields (line or row from 1, fields) of each object of JSON, Parquet, TFDS.

  Errors show `such_as`, an object as it is expected.

  Raises:
    DataError: it is compressed Parquet; see read_json, read_parquet and
      tfds_rows.read_rows.
  """
  if tfds_rows.is_source(source):
    return tfds_rows.read_rows(str(source))
  path = pathlib.Path(source)
  if is_parquet_or_tfds(path):
    if not is_plain(path):
      raise DataError(f"{path} is compressed Parquet; decompress it.")
    return read_parquet(path)
  return read_json(path, such_as=such_as)


def read_json(
  path: pathlib.Path, *, such_as: str = _SUCH_AS
) -> Iterator[tuple[int, dict[str, Any]]]:
  """Yields (line, or place in a list, from 1; fields) of each JSON object.

  Raises:
    DataError: see read_lines; something is not JSON, or no object.
  """
  lines = ((n, x) for n, x in enumerate(read_lines(path), 1) if x.strip())
  begin = list(itertools.islice(lines, 2))
  if len(begin) == 2 and is_object(begin[0][1]):
    yield from bad_rows.map_rows(
      lambda x: (x[0], parse_object(x[1], f"{path}:{x[0]}", such_as=such_as)),
      itertools.chain(begin, lines),
    )
  elif begin:
    text, first = "\n".join(read_lines(path)), begin[0][0]
    yield from _read_whole(text, path, such_as, first)


def is_object(line: str) -> bool:
  """Returns whether a line is a JSON object."""
  try:
    return isinstance(parse_json(line), dict)
  except ValueError:
    return False


def _read_whole(
  text: str, path: pathlib.Path, such_as: str, first: int
) -> Iterator[tuple[int, dict[str, Any]]]:
  """Yields (number, fields) of a list of objects, one in "data", or of one.

  A single object has the number of the `first` line.
  """
  try:
    whole = parse_json(text, object_pairs_hook=_unique)
  except ValueError as error:
    line = getattr(error, "lineno", 1)
    raise DataError(
      f"{path}:{line}: not JSON ({error}); expected objects, such as {such_as}."
    ) from None
  if isinstance(whole, dict) and isinstance(whole.get("data"), list):
    whole = whole["data"]
  numbered = (
    enumerate(whole, 1) if isinstance(whole, list) else [(first, whole)]
  )
  yield from bad_rows.map_rows(
    lambda x: (x[0], _fields_of(x[1], f"{path}:{x[0]}", such_as)), numbered
  )


def parse_object(
  line: str, where: str, *, such_as: str = _SUCH_AS
) -> dict[str, Any]:
  """Returns the JSON object in a line, which is at FILE:LINE; None for a null.

  Raises:
    DataError: the line is not an object, or a name occurs twice in it.
  """
  try:
    value = parse_json(line, object_pairs_hook=_unique)
  except ValueError as error:
    raise DataError(
      f"{where}: not JSON ({error}); expected an object, such as {such_as}."
    ) from None
  return _fields_of(value, where, such_as)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
  fields = dict(pairs)
  if len(fields) < len(pairs):
    counts = collections.Counter(name for name, _ in pairs)
    repeated = next(name for name in counts if counts[name] > 1)
    raise ValueError(f"the name {repeated!r} occurs twice in an object")
  return fields


def _fields_of(value: Any, where: str, such_as: str) -> dict[str, Any]:
  if not isinstance(value, dict):
    raise DataError(
      f"{where}: a JSON {type(value).__name__}; expected an object, such as "
      f"{such_as}."
    )
  return {name: _plain(x) for name, x in value.items()}


def read_parquet(path: pathlib.Path) -> Iterator[tuple[int, dict[str, Any]]]:
  """Yields (row from 1, fields) of a Parquet file.

  Raises:
    DataError: the file can't be read, or a text is not UTF-8.
  """
  number = 0
  try:
    for number, fields in enumerate(parquet.read_rows(str(path)), 1):
      yield number, {name: _plain(x) for name, x in fields.items()}
  except parquet.ParquetError as error:
    raise DataError(f"{error}; expected texts or examples.") from None
  except UnicodeDecodeError as error:
    raise DataError(
      f"{path}:{number}: {error.object[:40]!r} is not UTF-8; expected text."
    ) from None


def _plain(value: Any) -> Any:
  """Returns a value of JSON's types; None for NaN."""
  if isinstance(value, str):
    return encodable(value)
  if isinstance(value, bytes):  # Strings of old Parquet writers.
    return value.decode("utf-8")
  if isinstance(value, list | tuple):
    return [_plain(x) for x in value]
  if isinstance(value, dict):
    return {name: _plain(x) for name, x in value.items()}
  if isinstance(value, float | decimal.Decimal) and math.isnan(value):
    return None
  if value is None or isinstance(value, bool | int | float):
    return value
  return str(value)  # A date, a decimal.


def as_text(value: Any) -> str:
  """Returns a value as it would be in a .csv file; "" for None."""
  if value is None or isinstance(value, str):
    return value or ""
  return json.dumps(value, ensure_ascii=False, default=str)


def as_list(value: Any) -> list | None:
  """Returns a list, or the JSON list that a text is; None for others."""
  if isinstance(value, str) and value.strip().startswith("["):
    with contextlib.suppress(ValueError):
      return parse_json(value)
  return value if isinstance(value, list) else None


def encodable(text: str) -> str:
  """Replaces lone surrogates, which JSON has but UTF-8 hasn't, by U+FFFD."""
  return _SURROGATE.sub("\ufffd", text)
