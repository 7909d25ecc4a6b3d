"""Multiple-choice files -> examples: SWAG, CODAH, ComVE, and one's own.

A file is recognised by its columns; what is read line by line and column by
column is tables.py's. A label is the place of the right choice, from 0.
"""

import json
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import tables
from maskedlm.data.tokenizers.training import replace_surrogates


class Example(NamedTuple):
  """A text and what may follow it, or explain it, or answer it."""

  context: str
  choices: tuple[str, ...]
  question: str = ""  # What each choice goes on from; "" = nothing.
  label: int | None = None
  key: str = ""  # The id in the official files; "" = none. Others may have it.
  category: str = ""  # For a table of its own; "" = none.
  where: str = ""  # FILE:LINE.


class FileLayout(NamedTuple):
  """The names of a file's columns; "" = there is none."""

  context: str
  choice: str  # A regex; in the file's order.
  question: str = ""
  label: str = "label"
  id: str = ""
  category: str = ""


LAYOUTS = (
  # SWAG (arXiv:1808.05326): sent2 is the beginning of each ending.
  FileLayout(context="sent1", choice=r"ending\d+", question="sent2"),
  # ComVE, subtask B (SemEval-2020 task 4); its labels are in a file beside.
  FileLayout(context="FalseSent", choice="Option[A-Z]", label="", id="id"),
  # CODAH (W19-2008), whose files have no names: see _codah_header.
  FileLayout(context="prompt", choice=r"ending\d+", category="category"),
  FileLayout(context="context", choice=r"choice\d+", question="question"),
)
_EXPECTED = (
  "expected sent1, sent2, ending0, ... (SWAG), FalseSent, OptionA, ... "
  "(ComVE), context, choice0, ..., label, or CODAH's columns without names"
)


def read_examples(path: str) -> list[Example]:
  """The examples of a file; labels are None where it has none: a test set.

  A .csv or .tsv of one of LAYOUTS, a .tsv as CODAH's, or a .jsonl or .parquet
  of {"context", "question", "choices": [...], "label"}; question and label may
  be left out. Of ComVE give the data: the answers are found beside it.

  Raises:
    DataError: what tables.iterate finds, other columns, fewer than two
      choices, a label that is no choice.
  """
  suffix = pathlib.Path(path).suffix.lower()
  if suffix in tables.OBJECTS:
    return [_of_json(r.fields, r.where) for r in tables.read_records(path)]
  names = [name.strip() for name in tables.read_first_row(path)]
  is_named = suffix == ".csv" or _layout(names)
  header = () if is_named else _codah_header(names)
  layout = _layout(header or names)
  if layout is None:
    raise DataError(
      f"{path}:1: the columns are {', '.join(map(repr, names))}; {_EXPECTED}."
    )
  answers = _answers(path) if layout.id else {}
  return [
    _of_columns(record, layout, answers)
    for record in tables.read_records(path, header=header)
  ]


def parse_line(line: str) -> Example:
  """A line of predict's input: the context and the choices, between tabs.

  Or a JSON object, as a line of a .jsonl file.

  Raises:
    DataError: neither.
  """
  if line.startswith("{"):
    return _of_json(tables.parse_json_fields(line, "input"), "input")
  context, *choices = map(replace_surrogates, line.split("\t"))
  if len(choices) < 2:
    raise DataError(
      f"input {line[:40]!r}: {len(choices)} choices; expected the context and "
      "two choices or more, with tabs between them."
    )
  return Example(context, tuple(choices))


def check_num_choices(
  examples: Sequence[Example], expected: int | None = None
) -> int:
  """The number of choices of each; of the first, where none is expected.

  Raises:
    DataError: an example that has another number.
  """
  if expected is None:
    expected = len(examples[0].choices) if examples else 2
  for example in examples:
    if len(example.choices) != expected:
      raise DataError(
        f"{example.where or 'input'}: {len(example.choices)} choices; expected "
        f"{expected}, as those before it or of training had: make them as "
        "many, or train one model for each number."
      )
  return expected


def _codah_header(first: Sequence[str]) -> tuple[str, ...]:
  """Names for CODAH's columns; () if this first row is not one of its rows.

  The category is made of the letters i, r, p, n, q and o, or empty.
  """
  if len(first) < 4 or not re.fullmatch("[irpnqo]*", first[0]):
    return ()
  label = ("label",) if first[-1].isdigit() else ()
  endings = len(first) - 2 - len(label)
  names = (f"ending{i}" for i in range(endings))
  return ("category", "prompt", *names, *label)


def _layout(names: Sequence[str]) -> FileLayout | None:
  for layout in LAYOUTS:
    if layout.context in names and len(_choice_names(layout, names)) > 1:
      return layout
  return None


def _choice_names(layout: FileLayout, names: Sequence[str]) -> list[str]:
  return [name for name in names if re.fullmatch(layout.choice, name)]


def _of_columns(
  record: tables.Record, layout: FileLayout, answers: Mapping[str, str]
) -> Example:
  def text(name: str) -> str:
    return record.fields.get(name, "") if name else ""

  names = _choice_names(layout, list(record.fields))
  label = text(layout.label)
  if answers:
    label = answers.get(text(layout.id), "")
    if not label:
      raise DataError(
        f"{record.where}: the answers have none for the id "
        f"{text(layout.id)!r}; expected a line ID,LETTER for each example."
      )
  return Example(
    context=text(layout.context),
    choices=tuple(map(text, names)),
    question=text(layout.question),
    label=_label(label, len(names), record.where),
    key=text(layout.id),
    category=text(layout.category),
    where=record.where,
  )


def _of_json(fields: Mapping[str, str], where: str) -> Example:
  try:
    texts = json.loads(fields.get("choices", "null"))
  except ValueError:
    texts = None
  is_list = isinstance(texts, list) and all(isinstance(t, str) for t in texts)
  if not is_list or len(texts) < 2 or "context" not in fields:
    raise DataError(
      f"{where}: no context, or no list of two choices or more; expected "
      '{"context": "...", "choices": ["...", "..."], "label": 0}.'
    )
  return Example(
    context=fields["context"],
    choices=tuple(map(replace_surrogates, texts)),
    question=fields.get("question", ""),
    label=_label(fields.get("label", ""), len(texts), where),
    key=fields.get("id", ""),
    category=fields.get("category", ""),
    where=where,
  )


def _label(text: str, count: int, where: str) -> int | None:
  """The place of the right choice, from "2" or "C"; None from ""."""
  text = text.strip()
  if not text:
    return None
  letters = [chr(ord("A") + i) for i in range(count)]
  for names in (letters, [*map(str, range(count))]):
    if text in names:
      return names.index(text)
  raise DataError(
    f"{where}: label {text!r}; expected the place of the right choice, 0 to "
    f"{count - 1} or A to {letters[-1]}."
  )


def _answers(path: str) -> dict[str, str]:
  """id -> letter, from the answers beside a file of ComVE; {} if none are.

  subtaskB_data_all.csv has subtaskB_answers_all.csv, the others
  subtaskB_gold_answers.csv, as the task's repository has them.
  """
  data = pathlib.Path(path)
  named = data.with_name(data.name.replace("_data", "_answers"))
  for file in (named, data.with_name("subtaskB_gold_answers.csv")):
    if file != data and file.is_file():
      rows = tables.read_records(file, header=("id", "answer"))
      return {row.fields["id"]: row.fields["answer"] for row in rows}
  return {}
