"""Reads multiple-choice data: SWAG, CODAH, ComVE, the Hub's, and one's own.

The columns, which data/labelled/tables.py reads, identify the format: LAYOUTS
have a column for each choice, LISTS a list of choices. labels.py reads the
labels.
"""

import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.core.parse_json import parse_json
from maskedlm.data.labelled import delimited, tables
from maskedlm.data.tokenizers.training import replace_surrogates
from maskedlm.finetune.multiple_choice.labels import Label, find_indices


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
  has_empty: bool = False  # Whether an empty choice is one.


LAYOUTS = (
  # SWAG (arXiv:1808.05326); sent2 is the beginning of each ending.
  FileLayout(context="sent1", choice=r"ending\d+", question="sent2"),
  # ComVE, subtask B (SemEval-2020 task 4); its labels are in another file.
  # It has an empty choice or two.
  FileLayout("FalseSent", "Option[A-Z]", label="", id="id", has_empty=True),
  # CODAH (W19-2008), whose files have no header: see _codah_header.
  FileLayout(context="prompt", choice=r"ending\d+", category="category"),
  FileLayout(context="context", choice=r"choice\d+", question="question"),
  # COPA, whose question is "cause" or "effect" (SuperGLUE, arXiv:1905.00537).
  FileLayout("premise", r"choice\d+", question="question", id="idx"),
  # Cosmos QA (arXiv:1909.00277) and Social IQa (arXiv:1904.09728).
  FileLayout("context", r"answer[\dA-Z]", question="question"),
  FileLayout("goal", r"sol\d"),  # PIQA (arXiv:1911.11641).
  # WinoGrande (arXiv:1907.10641): on the Hub, and in TFDS.
  FileLayout("sentence", r"option\d", label="answer"),
  FileLayout("sentence", r"option\d"),
)
_EXPECTED = (
  "expected sent1, sent2, ending0, ... (SWAG), FalseSent, OptionA, ... "
  "(ComVE), context, choice0, ..., label, or CODAH's columns without a header"
)


# How labels are compared with the letters of choices.
_NAMED = "choices.label={}"


class ListLayout(NamedTuple):
  """The names of the fields of objects with a list of choices."""

  context: str
  choices: str  # A list, or {"text": [...], "label": ["A", "B", ...]}.
  label: str
  question: str = ""


LISTS = (
  ListLayout("context", "choices", "label", question="question"),
  # HellaSwag (arXiv:1905.07830): on the Hub, and in TFDS.
  ListLayout("ctx", "endings", "label"),
  ListLayout("context", "endings", "label"),
  # RACE (arXiv:1704.04683).
  ListLayout("article", "options", "answer", question="question"),
  # ARC (arXiv:1803.05457), CommonsenseQA (arXiv:1811.00937), OpenBookQA
  # (arXiv:1809.02789), MMLU (arXiv:2009.03300) and CoS-E (arXiv:1906.02361).
  ListLayout("question", "choices", "answerKey"),
  ListLayout("question_stem", "choices", "answerKey"),
  ListLayout("question", "choices", "answer"),
)


def read_examples(path: str, *, first_label: str = "") -> list[Example]:
  """Reads the examples of a file; in a test set, labels are None.

  A .csv or .tsv file has one of LAYOUTS, or is CODAH's; JSON, Parquet and TFDS
  have one of LAYOUTS or LISTS, of which question and label are optional. For
  ComVE, `path` is the data file, and the answers are read from the file next to
  it. Empty choices at the end of a row are none.

  Args:
    path: the file, or "tfds:...".
    first_label: the label of the first choice; "" for what the file shows.

  Raises:
    DataError: see tables.read_records; unknown columns, fewer than two choices,
      an empty text, or labels that don't say which choice is correct.
  """
  odd: tables.Odd = {}
  if tables.find_suffix(path) not in delimited.SUFFIXES:
    records = tables.read_records(path)
    found = [_from_object(record, odd) for record in records]
  else:
    found = _read_columns(path, odd)
  tables.report_odd(odd)
  indices = find_indices([label for _, label in found], first_label=first_label)
  return [
    example._replace(label=index)
    for (example, _), index in zip(found, indices, strict=True)
  ]


def _read_columns(path: str, odd: tables.Odd) -> list[tuple[Example, Label]]:
  """Returns the examples of a table without their labels, and the labels."""
  names = [name.strip() for name in tables.read_first_row(path)]
  is_named = tables.find_suffix(path) == ".csv" or _layout(names)
  header = () if is_named else _codah_header(names)
  layout = _layout(header or names)
  if layout is None:
    raise DataError(
      f"{path}:1: the columns are {', '.join(map(repr, names))}; {_EXPECTED}."
    )
  answers = _answers(path) if layout.id else {}
  return [
    _from_columns(record, layout, answers, odd)
    for record in tables.read_records(path, header=header)
  ]


def parse_line(line: str) -> Example:
  """Parses a line of predict's input: context and choices, separated by tabs.

  A JSON object is read like a line of a .jsonl file.

  Raises:
    DataError: there are fewer than two choices, or the object is malformed.
  """
  if tables.is_object(line):
    return _from_object(tables.parse_record(line), {})[0]
  context, *choices = map(replace_surrogates, line.split("\t"))
  if len(choices) < 2:
    raise DataError(
      f"input {line[:40]!r} has {counted(len(choices), 'choice')}; expected "
      "the context "
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
        f"{example.where or 'input'} has "
        f"{counted(len(example.choices), 'choice')}; "
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
  found = [
    layout
    for layout in LAYOUTS
    if layout.context in names and len(_choice_names(layout, names)) > 1
  ]
  labelled = [layout for layout in found if layout.label in names]
  return next(iter([*labelled, *found]), None)


def _list_layout(names: Sequence[str]) -> ListLayout | None:
  found = [x for x in LISTS if {x.context, x.choices} <= {*names}]
  labelled = [layout for layout in found if layout.label in names]
  return next(iter([*labelled, *found]), None)


def _choice_names(layout: FileLayout, names: Sequence[str]) -> list[str]:
  return [name for name in names if re.fullmatch(layout.choice, name)]


def _from_columns(
  record: tables.Record,
  layout: FileLayout,
  answers: Mapping[str, str],
  odd: tables.Odd,
) -> tuple[Example, Label]:
  def field(name: str) -> str:
    return tables.as_text(record.fields.get(name)) if name else ""

  names = _choice_names(layout, list(record.fields))
  label = field(layout.label)
  if answers:
    label = answers.get(field(layout.id), "")
    if not label:
      raise DataError(
        f"{record.where}: there is no answer for the id {field(layout.id)!r}; "
        "expected a line ID,LETTER for each example."
      )
  choices = tuple(field(name) for name in names)
  if not layout.has_empty:
    choices = _choices(choices, record)
  question = field(layout.question)
  example = Example(
    context=_context(record, layout.context, question, odd),
    choices=choices,
    question=question,
    key=field(layout.id),
    category=field(layout.category),
    where=record.where,
  )
  return example, Label(
    label.strip(), choices, tuple(names[: len(choices)]), record.where
  )


def _from_object(
  record: tables.Record, odd: tables.Odd
) -> tuple[Example, Label]:
  fields = record.fields
  layout = _list_layout(list(fields))
  columns = None if layout else _layout(list(fields))
  if columns:
    return _from_columns(record, columns, {}, odd)
  texts, letters = _listed(fields.get(layout.choices) if layout else None)
  if len(texts) < 2:
    raise DataError(
      f"{record.where}: no context, or no list of at least two choices; there "
      f"are {', '.join(map(repr, fields)) or 'no fields'}; expected "
      '{"context": "...", "choices": ["...", "..."], "label": 0}.'
    )
  choices = _choices(texts, record)
  question = tables.as_text(fields.get(layout.question))
  example = Example(
    context=_context(record, layout.context, question, odd),
    choices=choices,
    question=question,
    key=tables.as_text(fields.get("id")),
    category=tables.as_text(fields.get("category")),
    where=record.where,
  )
  label = fields.get(layout.label)
  if isinstance(label, list | dict | bool):
    raise DataError(
      f"{record.where}: label {tables.as_text(label):.40}; expected the index "
      "of the correct choice, from 0, or its letter."
    )
  label = tables.as_text(label).strip()
  if (
    letters and label
  ):  # ARC's are A, B, ... in some rows, 1, 2, ... in others.
    label = _NAMED.format(label)
  names = tuple(map(_NAMED.format, letters))
  return example, Label(label, choices, names, record.where)


def _listed(value: Any) -> tuple[list[str], list[str]]:
  """Returns the choices and their letters, if they have any; [] if no list."""
  if isinstance(value, str):  # A list that is written as text.
    value = _parsed(value)
  letters = []
  if isinstance(value, dict):
    value, letters = value.get("text"), value.get("label")
  for found in (value, letters):
    if not isinstance(found, list) or not all(
      x is None or isinstance(x, str) for x in found
    ):
      return [], []
  return [text or "" for text in value], letters


def _parsed(text: str) -> Any:
  try:
    return parse_json(text)
  except ValueError:
    return None


def _context(
  record: tables.Record, name: str, question: str, odd: tables.Odd
) -> str:
  """Returns the context; an empty one is reported if there is no question."""
  if tables.get_field(record, name).strip():
    return tables.get_text(record, name, odd=odd)
  if not question.strip():
    odd.setdefault((name, "are empty"), [0, record.where])[0] += 1
  return ""


def _choices(texts: Sequence[str], record: tables.Record) -> tuple[str, ...]:
  """Returns the choices without empty ones at the end.

  Raises:
    DataError: fewer than two are left, or one of them is empty.
  """
  count = len(texts)
  while count and not texts[count - 1].strip():
    count -= 1
  if count < 2 or not all(text.strip() for text in texts[:count]):
    raise DataError(
      f"{record.where}: a choice is empty; expected at least two texts; only "
      "the last ones may be empty, in a row with fewer choices."
    )
  return tuple(map(replace_surrogates, texts[:count]))


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
