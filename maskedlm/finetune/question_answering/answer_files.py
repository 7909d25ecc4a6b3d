"""Reads questions on texts, with their answers.

  {"data": [{"paragraphs": [{"context", "qas"}]}]}   SQuAD's own; also a list of
                                                     such articles or paragraphs
  {"id", "question", "context", "answers"}           the Hub's flat rows: in
                                                     lines, a list, "data",
                                                     Parquet, or TFDS

and in them

  id             a text or a number, as text; none: FILE:N, counted
  answers        a list of {text, answer_start}, one of them, or {text: [...],
                 answer_start: [...]}; null or absent: unknown
  text           empty: no answer, counted
  answer_start   a whole number, also as text; null, -1 or absent: not given
  is_impossible  true, false, 0, 1, also as text; null or absent: no answers

Other fields, such as version, title and plausible_answers, are ignored. What is
counted is logged by squad.read_questions.
"""

import pathlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.core.parse_json import parse_json
from maskedlm.data.labelled import objects, tfds_rows
from maskedlm.data.labelled.lines import read_lines
from maskedlm.finetune.question_answering import mrqa
from maskedlm.finetune.question_answering.questions import (
  GUIDE,
  Example,
  GoldAnswer,
  get_field,
  parse,
)

NO_ID = "questions without an id, which are numbered"
EMPTY = "empty answers, which are none"


def read_file(path: str, seen: Counter) -> Iterator[tuple[Example, bool]]:
  """Yields pairs (example, whether it is marked impossible).

  Args:
    path: the file, or "tfds:squad/v1.1:train"; offsets of answers are as it
      has them.
    seen: its NO_ID and EMPTY are increased.

  Raises:
    DataError: the file is missing, empty or not JSON; a field is missing or has
      the wrong type.
  """
  name = pathlib.Path(path).name
  contexts: dict[str, str] = {}  # Equal ones become one string.
  for number, (entry, text, place) in enumerate(_entries(path), 1):
    if mrqa.is_question(entry):
      entry = {**entry, "id": entry.get("qid", entry.get("id"))}
    key, where = id_text(entry, place), place
    if not key:
      seen[NO_ID] += 1
      key = f"{name}:{number}"
    elif not re.fullmatch(":[0-9]+", place.removeprefix(path)):
      where = f"{path}: question {key}"
    context = objects.encodable(get_field(text, "context", str, place))
    context = contexts.setdefault(context, context)
    yield _example(entry, key, context, where, seen)


def id_text(fields: Mapping[str, Any], where: str) -> str:
  """Returns the id as text; "" if there is none.

  Raises:
    DataError: it is neither a text nor a number.
  """
  value = fields.get("id")
  if value is None:
    return ""
  if isinstance(value, float) and value.is_integer():
    value = int(value)
  if isinstance(value, bool) or not isinstance(value, str | int | float):
    raise DataError(
      f"{where}: 'id' is {str(value)[:40]!r}; expected a text or a number."
    )
  return objects.encodable(str(value))


def _entries(path: str) -> Iterator[tuple[Mapping, Any, str]]:
  """Yields (question, the object with its context, place) of a file."""
  if objects.are_named(path):
    is_tfds = tfds_rows.is_source(path)  # It shuffles: a number says nothing.
    for number, row in objects.read_objects(path):
      yield row, row, path if is_tfds else f"{path}:{number}"
    return
  lines = list(read_lines(pathlib.Path(path)))
  found = [(n, line) for n, line in enumerate(lines, 1) if line.strip()]
  if not found:
    raise DataError(
      f"{path}: the file is empty; expected questions (JSON; {GUIDE})."
    )
  if _is_object(found[0][1]) and len(found) > 1:  # JSON lines.
    for number, line in found:
      yield from _flat(parse(line, path, number), f"{path}:{number}", "")
  else:
    yield from _flat(parse("\n".join(lines), path, 1), path, "")


def _flat(
  value: Any, path: str, inside: str
) -> Iterator[tuple[Mapping, Any, str]]:
  """Yields the questions in a JSON value: a list, article, paragraph or row."""
  place = f"{path}: {inside}" if inside else path
  if isinstance(value, list):
    for i, item in enumerate(value):
      yield from _flat(item, path, f"{inside}[{i}]")
    return
  if isinstance(value, Mapping) and value.keys() == {"header"}:
    return  # MRQA's first line.
  if isinstance(value, Mapping) and "qas" in value:
    get_field(value, "context", str, place)
    for k, entry in enumerate(get_field(value, "qas", list, place)):
      if not isinstance(entry, Mapping):
        get_field(entry, "question", str, f"{place}.qas[{k}]")
      yield entry, value, f"{place}.qas[{k}]"
    return
  if isinstance(value, Mapping) and "question" in value:
    yield value, value, place
    return
  is_article = "paragraphs" in (value if isinstance(value, Mapping) else ())
  name = "paragraphs" if is_article or inside else "data"
  inner = f"{inside}.{name}".lstrip(".")
  yield from _flat(get_field(value, name, list, place), path, inner)


def _is_object(line: str) -> bool:
  try:
    return isinstance(parse_json(line), dict)
  except ValueError:
    return False


def _example(
  entry: Mapping[str, Any], key: str, context: str, where: str, seen: Counter
) -> tuple[Example, bool]:
  question = objects.encodable(get_field(entry, "question", str, where))
  if not question.strip():
    raise DataError(f"{where}: the question is empty.")
  if mrqa.is_question(entry):
    return Example(
      question, context, key, mrqa.gold_answers(entry, context, where), where
    ), False
  answers = _answers(entry.get("answers"), where)
  impossible = _flag(entry, where)
  if answers is not None:
    kept = tuple(answer for answer in answers if answer.text.strip())
    seen[EMPTY] += len(answers) - len(kept)
    answers = kept
  elif impossible:
    answers = ()
  if impossible is None:
    impossible = answers == ()
  return Example(question, context, key, answers, where), impossible


def _answers(value: Any, where: str) -> tuple[GoldAnswer, ...] | None:
  if value is None:
    return None
  if isinstance(value, Mapping) and isinstance(value.get("text"), list):
    texts = value["text"]
    starts = value.get("answer_start")
    starts = [None] * len(texts) if starts is None else starts
    if not isinstance(starts, list) or len(starts) != len(texts):
      raise DataError(
        f"{where}: {counted(len(texts), 'text')} of answers, but answer_start "
        "is "
        f"{str(starts)[:40]!r}; expected a list of as many."
      )
    value = [
      {"text": text, "answer_start": start}
      for text, start in zip(texts, starts, strict=True)
    ]
  if isinstance(value, Mapping):
    value = [value]
  if not isinstance(value, list):
    raise DataError(
      f"{where}: 'answers' is {str(value)[:40]!r}; expected a list."
    )
  return tuple(
    GoldAnswer(
      objects.encodable(get_field(answer, "text", str, where)),
      _start(answer.get("answer_start"), where),
    )
    for answer in value
  )


def _start(value: Any, where: str) -> int | None:
  if value is None:
    return None
  try:
    if isinstance(value, bool) or int(value) != float(value):
      raise ValueError
  except (TypeError, ValueError, OverflowError):
    raise DataError(
      f"{where}: 'answer_start' is {str(value)[:40]!r}; expected a whole "
      "number."
    ) from None
  return None if int(value) == -1 else int(value)


def _flag(entry: Mapping[str, Any], where: str) -> bool | None:
  value = entry.get("is_impossible")
  if value is None:
    return None
  names = {"true": True, "1": True, "false": False, "0": False}
  if (name := str(value).strip().lower()) not in names:
    raise DataError(
      f"{where}: 'is_impossible' is {str(value)[:40]!r}; expected true or "
      "false."
    )
  return names[name]
