"""Reads multiple-choice files: SWAG, CODAH, ComVE, and the user's own.

The columns, which data/labelled/tables.py reads, identify the format. A label
is the index of the correct choice, from 0.
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
  """A context and the choices that may continue, explain or answer it."""

  context: str
  choices: tuple[str, ...]
  question: str = ""  # Text that precedes each choice; "" = none.
  label: int | None = None
  key: str = ""  # The id in the official files, not unique; "" = none.
  category: str = ""  # For accuracies by category; "" = none.
  where: str = ""  # FILE:LINE.


class FileLayout(NamedTuple):
  """The names of a file's columns; "" = there is none."""

  context: str
  choice: str  # A regular expression; choices keep the file's order.
  question: str = ""
  label: str = "label"
  id: str = ""
  category: str = ""


LAYOUTS = (
  # SWAG (arXiv:1808.05326); sent2 is the beginning of each ending.
  FileLayout(context="sent1", choice=r"ending\d+", question="sent2"),
  # ComVE, subtask B (SemEval-2020 task 4); its labels are in another file.
  FileLayout(context="FalseSent", choice="Option[A-Z]", label="", id="id"),
  # CODAH (W19-2008), whose files have no header: see _codah_header.
  FileLayout(context="prompt", choice=r"ending\d+", category="category"),
  FileLayout(context="context", choice=r"choice\d+", question="question"),
)
_EXPECTED = (
  "expected sent1, sent2, ending0, ... (SWAG), FalseSent, OptionA, ... "
  "(ComVE), context, choice0, ..., label, or CODAH's columns without a header"
)


def read_examples(path: str) -> list[Example]:
  """Reads the examples of a file; in a test set, labels are None.

  A .csv or .tsv file has one of LAYOUTS, or is CODAH's; a .jsonl or .parquet
  file has {"context", "question", "choices": [...], "label"}, of which question
  and label are optional. For ComVE, `path` is the data file, and the answers
  are read from the file next to it.

  Raises:
    DataError: see tables.read_records; unknown columns, fewer than two choices,
      or a label that is not a choice.
  """
  suffix = pathlib.Path(path).suffix.lower()
  if suffix in tables.OBJECTS:
    return [_from_json(r.fields, r.where) for r in tables.read_records(path)]
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
    _from_columns(record, layout, answers)
    for record in tables.read_records(path, header=header)
  ]


def parse_line(line: str) -> Example:
  """Parses a line of predict's input: context and choices, separated by tabs.

  A JSON object is read like a line of a .jsonl file.

  Raises:
    DataError: there are fewer than two choices, or the object is malformed.
  """
  if line.startswith("{"):
    return _from_json(tables.parse_json_fields(line, "input"), "input")
  context, *choices = map(replace_surrogates, line.split("\t"))
  if len(choices) < 2:
    raise DataError(
      f"input {line[:40]!r} has {len(choices)} choices; expected the context "
      "and two choices or more, with tabs between them."
    )
  return Example(context, tuple(choices))


def check_num_choices(
  examples: Sequence[Example], expected: int | None = None
) -> int:
  """Returns the number of choices that all examples have.

  Raises:
    DataError: an example's number is not `expected`, or not that of the first.
  """
  if expected is None:
    expected = len(examples[0].choices) if examples else 2
  for example in examples:
    if len(example.choices) != expected:
      raise DataError(
        f"{example.where or 'input'} has {len(example.choices)} choices; "
        f"expected {expected}, as in the examples before it or in training: "
        "change the examples, or train one model for each number."
      )
  return expected


def _codah_header(first: Sequence[str]) -> tuple[str, ...]:
  """Returns names for CODAH's columns; () if `first` is not a row of CODAH.

  The category consists of the letters i, r, p, n, q and o, or is empty.
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


def _from_columns(
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
        f"{record.where}: there is no answer for the id {text(layout.id)!r}; "
        "expected a line ID,LETTER for each example."
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


def _from_json(fields: Mapping[str, str], where: str) -> Example:
  try:
    texts = json.loads(fields.get("choices", "null"))
  except ValueError:
    texts = None
  is_list = isinstance(texts, list) and all(isinstance(t, str) for t in texts)
  if not is_list or len(texts) < 2 or "context" not in fields:
    raise DataError(
      f"{where}: no context, or no list of at least two choices; expected "
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
  """Returns the index of the correct choice, given "2" or "C"; None for "".

  Raises:
    DataError: there is no such choice.
  """
  text = text.strip()
  if not text:
    return None
  letters = [chr(ord("A") + i) for i in range(count)]
  for names in (letters, [*map(str, range(count))]):
    if text in names:
      return names.index(text)
  raise DataError(
    f"{where}: label {text!r}; expected the index of the correct choice, 0 to "
    f"{count - 1} or A to {letters[-1]}."
  )


def _answers(path: str) -> dict[str, str]:
  """Returns {id: letter} from ComVE's file of answers; {} if there is none.

  For subtaskB_data_all.csv it is subtaskB_answers_all.csv, for other files
  subtaskB_gold_answers.csv, as in the task's repository.
  """
  data = pathlib.Path(path)
  named = data.with_name(data.name.replace("_data", "_answers"))
  for file in (named, data.with_name("subtaskB_gold_answers.csv")):
    if file != data and file.is_file():
      rows = tables.read_records(file, header=("id", "answer"))
      return {row.fields["id"]: row.fields["answer"] for row in rows}
  return {}
