"""Formats of objects, as tables of fields: JSON, Parquet and TFDS.

A format names its fields, says what each holds, and shows an object:

  SENTENCE = Format(
    {
      "words": texts("tokens", "words"),
      "tags": texts("ner_tags", "tags", optional=True, same_length="words"),
    },
    such_as='{"tokens": ["Ann", "went"], "ner_tags": ["B-PER", "O"]}',
    filled="words",
  )

read.read_objects gives the values under the format's own names. What breaks the
format is refused here, in one of four sentences: a field is missing, or is
something else, or two differ in length, or the whole file is empty.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from maskedlm.core.errors import DataError, did_you_mean

_SHOWN = 40  # Characters of a value, and names of fields, in a message.


class Field(NamedTuple):
  """A field: its names in files, and what it holds."""

  names: tuple[str, ...]  # The first one that is there, and not null, is read.
  expected: str  # What it holds, for errors.
  # Returns the value as the format has it. Raises ValueError for another value.
  parse: Callable[[Any], Any]
  optional: bool = False  # It may be absent or null: None.
  same_length: str = ""  # The field that has as many items.


class Format(NamedTuple):
  """An object's fields."""

  fields: Mapping[str, Field]  # The format's own name -> the field.
  such_as: str  # An object, for errors.
  # The field that must have items: an object in which it has none is left out,
  # and counted.
  filled: str = ""
  # Whether an object may also be a document, {"sentences": [object, ...]}.
  documents: bool = False


def values(fields: Mapping[str, Any], form: Format, where: str) -> dict:
  """Returns the values of an object's fields, by the format's own names.

  Fields that the format doesn't have are passed over.

  Raises:
    DataError: a field is missing, holds something else, or has not as many
      items as its `same_length` field.
  """
  parsed = {
    name: value_of(fields, field, form.such_as, where)
    for name, field in form.fields.items()
  }
  for name, field in form.fields.items():
    other = field.same_length
    if other and None not in (parsed[name], parsed[other]):
      sizes = len(parsed[other]), len(parsed[name])
      if sizes[0] != sizes[1]:
        raise DataError(
          f"{where}: {sizes[0]:,} {other}, but {sizes[1]:,} {name}; expected "
          f"as many of each, as in {form.such_as}."
        )
  return parsed


def value_of(
  fields: Mapping[str, Any], field: Field, such_as: str, where: str
) -> Any:
  """Returns the value of one field of an object; None if it is optional.

  Raises:
    DataError: it is missing or holds something else.
  """
  present = [name for name in field.names if fields.get(name) is not None]
  if not present:
    if field.optional:
      return None
    raise DataError(missing(where, field.names, fields, f"expected {such_as}."))
  value = fields[present[0]]
  try:
    return field.parse(value)
  except ValueError as error:
    why = f" ({error})" if str(error) else ""
    raise DataError(
      f"{where}: {present[0]!r} is {str(value)[:_SHOWN]!r}{why}; expected "
      f"{field.expected}, as in {such_as}."
    ) from None


def missing(
  where: str, names: Sequence[str], fields: Mapping[str, Any], remedy: str
) -> str:
  """Returns the error message for a row that has none of some fields.

  `names` were looked for, `fields` are there; the remedy ends the message.
  """
  shown = list(fields)[:_SHOWN]
  more = f" and {len(fields) - len(shown):,} more" * (len(fields) > len(shown))
  present = ", ".join(map(repr, shown)) or "no fields"
  near = did_you_mean(names[0], fields)
  return (
    f"{where}: no {' or '.join(map(repr, names))}; there are {present}{more}"
    f"{near}; {remedy}"
  )


def no_rows(source: str, form: Format) -> DataError:
  """Returns the error for a file in which nothing is filled."""
  return DataError(
    f"{source}: no row with {form.filled or 'fields'}; expected {form.such_as}."
  )


# --- Kinds of fields ---


def text(*names: str, optional: bool = False) -> Field:
  """Returns a field that holds a text, which may be empty."""
  return Field(names, "a text", text_of, optional)


def texts(
  *names: str,
  optional: bool = False,
  same_length: str = "",
  of: Callable[[str], str] | None = None,
) -> Field:
  """Returns a field of these names that holds a list of texts, none empty.

  `of` converts each text, or raises ValueError to refuse it; the other
  arguments are as in Field.
  """
  return items(
    *names,
    of=(lambda value: of(_filled(value))) if of else _filled,
    expected="a list of texts, none empty",
    optional=optional,
    same_length=same_length,
  )


def words(*names: str, optional: bool = False) -> Field:
  """Returns a field that holds a sentence's words, perhaps empty ones."""
  expected = "a list of texts"
  return items(*names, of=text_of, expected=expected, optional=optional)


def key(*names: str, optional: bool = False) -> Field:
  """Returns a field that holds a name: a text or a whole number, as a text."""
  return Field(names, "a text or a whole number", key_of, optional)


def whole_number(*names: str, optional: bool = False) -> Field:
  """Returns a field that holds a whole number."""
  return Field(names, "a whole number", whole_number_of, optional)


def truth(*names: str, optional: bool = False) -> Field:
  """Returns a field that holds true or false."""

  def parse(value: Any) -> bool:
    if not isinstance(value, bool):
      raise ValueError
    return value

  return Field(names, "true or false", parse, optional)


def items(
  *names: str,
  of: Callable[[Any], Any],
  expected: str,
  optional: bool = False,
  same_length: str = "",
) -> Field:
  """Returns a field of these names that holds a list of what `of` returns.

  `of` converts an item, or raises ValueError to refuse it; `expected` says in
  errors what the list holds. The other arguments are as in Field.
  """

  def parse(value: Any) -> tuple:
    return tuple(map(of, list_of(value)))

  return Field(names, expected, parse, optional, same_length)


def objects(*names: str, optional: bool = False) -> Field:
  """Returns a field that holds a list of objects, each with a Format."""

  def parse(value: Any) -> dict:
    if not isinstance(value, dict):
      raise ValueError(f"it has {value!r:.{_SHOWN}}")
    return value

  return items(
    *names, of=parse, expected="a list of objects", optional=optional
  )


def rows_of(value: Any, *names: str) -> list[dict[str, Any]]:
  """Returns the values of these names in each object of a list.

  On the Hub a list of objects is an object of lists: {"text": ["a", "b"],
  "start": [0, 2]}.

  Raises:
    ValueError: it is neither, or one of the names is missing.
  """
  if isinstance(value, Mapping):
    columns = [list_of(value.get(name)) for name in names]
    if len({*map(len, columns)}) > 1:
      sizes = " and ".join(f"{len(x):,}" for x in columns)
      raise ValueError(f"{' and '.join(names)} have {sizes} values")
    rows = zip(*columns, strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]
  for row in list_of(value):
    if not isinstance(row, Mapping) or not {*names} <= {*row}:
      raise ValueError(f"it has {str(row)[:_SHOWN]}")
  return [{name: row[name] for name in names} for row in value]


def list_of(value: Any) -> list:
  """Returns a list; raises ValueError for anything else."""
  if not isinstance(value, list):
    raise ValueError
  return value


def text_of(value: Any) -> str:
  """Returns a text; raises ValueError for anything else."""
  if not isinstance(value, str):
    raise ValueError
  return value


def words_or_text(
  value: Mapping[str, Any], where: str, such_as: str, text_field: str = "text"
) -> tuple[tuple[str, ...] | None, str | None]:
  """Returns (words, text) of {"tokens": [...]} or {"text": ...}, one of them.

  Raises:
    DataError: the object has neither, or its value has another type.
  """
  kinds = words("tokens", optional=True), text(text_field, optional=True)
  tokens, content = (value_of(value, kind, such_as, where) for kind in kinds)
  if tokens is None and content is None:
    names = (text_field, "tokens")
    raise DataError(missing(where, names, value, f"expected {such_as}."))
  return tokens, content


def _filled(value: Any) -> str:
  if not isinstance(value, str) or not value:
    raise ValueError(f"it has {value!r:.{_SHOWN}}")
  return value


def key_of(value: Any) -> str:
  """Returns a text or a whole number as a text, without spaces around it."""
  if isinstance(value, str):
    return value.strip()
  return str(whole_number_of(value))


def whole_number_of(value: Any) -> int:
  """Returns a whole number; raises ValueError for anything else."""
  if isinstance(value, bool) or not isinstance(value, int):
    raise ValueError
  return value
