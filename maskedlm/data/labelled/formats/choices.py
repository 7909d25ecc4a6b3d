"""Multiple choice: a context, the choices, and which of them is right.

The columns that data/labelled/tables.py reads identify the layout: a column for
each choice, or a list of choices. Of labels,

  the label                     the first choice is
  0, 1, 2                       0; in the Hub's WinoGrande and Social IQa, 1;
                                beside choice1, ... task.first_label must say it
  A, b, C                       A
  choice1, ending0, OptionA     the column of that name
  the text of a choice          that choice
  "", -, ?, -1, null            none: there is no gold label

Numbers beside letters, and a number that is also a choice's text, are refused
without task.first_label.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.data.labelled import bad_rows, fields, tables
from maskedlm.data.labelled.labels import NO_LABEL, NO_NUMBER
from maskedlm.data.labelled.objects import encodable

_NONE = frozenset((*NO_LABEL, *NO_NUMBER))
_NUMBER = re.compile(r"(\d+)(?:\.0*)?")
_LETTER = re.compile(r"[A-Za-z]")


class Example(NamedTuple):
  """A context and the choices that may continue, explain or answer it."""

  context: str
  choices: tuple[str, ...]
  question: str = ""  # Text that precedes each choice; "" = none.
  label: int | None = None
  key: str = ""  # The id in the official files, not unique; "" = none.
  category: str = ""  # For accuracies by category; "" = none.
  where: str = ""  # FILE:LINE.


class Label(NamedTuple):
  """A label, and what it may mean."""

  text: str
  choices: tuple[str, ...]
  where: str
  names: tuple[str, ...] = ()  # The columns of the choices, if they have any.
  letters: tuple[str, ...] = ()  # The choices' own labels, as in ARC.
  first: str = ""  # The number of the first choice; "" if unknown.


class Layout(NamedTuple):
  """The names of a file's columns; "" = there is none."""

  context: str
  # A list of choices, or {"text": [...], "label": ["A", "B", ...]}; or, with
  # `many`, a regular expression for their columns, in the file's order.
  choices: str
  many: bool = False
  question: str = ""
  label: str = "label"
  id: str = ""
  category: str = ""
  # The number of the first choice; "": 0, unless its column ends in 1 to 9.
  first: str = ""
  has_empty: bool = False  # Whether a choice may be empty.


def _list(context: str, choices: str, label: str = "label", question: str = ""):
  return Layout(
    context, choices, False, question, label, "id", "category", first="0"
  )


def _columns(context: str, choice: str, **names):
  return Layout(context, choice, many=True, **names)


LAYOUTS = (
  _list("context", "choices", question="question"),
  # HellaSwag (arXiv:1905.07830): on the Hub, and in TFDS.
  _list("ctx", "endings"),
  _list("context", "endings"),
  # RACE (arXiv:1704.04683).
  _list("article", "options", "answer", "question"),
  # ARC (arXiv:1803.05457), CommonsenseQA (arXiv:1811.00937), OpenBookQA
  # (arXiv:1809.02789), MMLU (arXiv:2009.03300) and CoS-E (arXiv:1906.02361).
  _list("question", "choices", "answerKey"),
  _list("question_stem", "choices", "answerKey"),
  _list("question", "choices", "answer"),
  # SWAG (arXiv:1808.05326); sent2 is the beginning of each ending.
  _columns("sent1", r"ending\d+", question="sent2"),
  # ComVE, subtask B (SemEval-2020 task 4). It has an empty choice or two.
  _columns("FalseSent", "Option[A-Z]", id="id", has_empty=True),
  # CODAH (W19-2008), whose files have no header line: task.header.
  _columns("prompt", r"ending\d+", category="category"),
  _columns("context", r"choice\d+", question="question"),
  # COPA, whose question is "cause" or "effect" (SuperGLUE, arXiv:1905.00537).
  _columns("premise", r"choice\d+", question="question", id="idx", first="0"),
  # Cosmos QA (arXiv:1909.00277), and Social IQa (arXiv:1904.09728).
  _columns("context", r"answer\d", question="question"),
  _columns("context", "answer[A-Z]", question="question", first="1"),
  _columns("goal", r"sol\d", first="0"),  # PIQA (arXiv:1911.11641).
  # WinoGrande (arXiv:1907.10641): on the Hub, and in TFDS.
  _columns("sentence", r"option\d", label="answer", first="1"),
  _columns("sentence", r"option\d", first="0"),
)
_EXPECTED = (
  "expected context, choices (a list of at least two texts) or choice0, "
  "choice1, ..., and label, or the columns of a data set "
  "(docs/guides/finetune/multiple-choice.md); a file without a header line "
  "needs --config.task.header, such as "
  "('category','prompt','ending0','ending1','label') for CODAH."
)


def read_examples(
  path: str, *, first_label: str = "", header: Sequence[str] = ()
) -> list[Example]:
  """Reads the examples of a file in one of LAYOUTS.

  In a test set, labels are None. Empty choices at the end of a row are dropped.
  `first_label` is that of the first choice, "" for what the layout says, and
  `header` the names of the columns, for a file without a header line.

  Raises:
    DataError: see tables.read_records; unknown columns, fewer than two choices,
      an empty text, or labels that don't say which choice is correct.
  """
  pairs = [*bad_rows.map_rows(_read, tables.read_records(path, header=header))]
  check_labels([label for _, label in pairs], first_label)

  def with_label(pair: tuple[Example, Label]) -> Example:
    return pair[0]._replace(label=find_index(pair[1], first_label))

  return [*bad_rows.map_rows(with_label, pairs)]


def parse_line(line: str) -> Example:
  """Parses a line of predict's input: context and choices, separated by tabs.

  A JSON object is read like a line of a .jsonl file.

  Raises:
    DataError: there are fewer than two choices, or the object is malformed.
  """
  if tables.is_object(line):
    return _read(tables.parse_record(line))[0]
  context, *choices = map(encodable, line.split("\t"))
  if len(choices) < 2:
    raise DataError(
      f"input {line[:40]!r} has {counted(len(choices), 'choice')}; expected "
      "the context and two choices or more, with tabs between them."
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


def _read(record: tables.Record) -> tuple[Example, Label]:
  """Returns an example without its label, and the label."""
  layout = _layout(record)
  value = record.fields.get(layout.label)
  if isinstance(value, list | dict | bool):
    raise DataError(
      f"{record.where}: label {tables.as_text(value):.40}; expected the index "
      "of the correct choice, from 0, or its letter."
    )
  letters: tuple[str, ...] = ()
  first = layout.first
  names = _choice_names(layout, record.fields) if layout.many else ()
  if layout.many:
    texts = [tables.as_text(record.fields[name]) for name in names]
    if not re.search(r"[1-9]$", names[0]):
      first = first or "0"
  else:
    texts, letters = _listed(record, layout.choices)
  choices = tuple(texts) if layout.has_empty else _filled(texts, record)
  question, label, key, category = (
    tables.as_text(record.fields.get(name))
    for name in (layout.question, layout.label, layout.id, layout.category)
  )
  context = _context(record, layout.context, question)
  example = Example(
    context, choices, question, key=key, category=category, where=record.where
  )
  label, names = label.strip(), names[: len(choices)]
  return example, Label(label, choices, record.where, names, letters, first)


def _layout(record: tables.Record) -> Layout:
  """Returns the first layout with a row's columns, best with its label."""
  names = record.fields
  layouts = [
    x
    for x in LAYOUTS
    if x.context in names
    and (len(_choice_names(x, names)) > 1 if x.many else x.choices in names)
  ]
  if not layouts:
    lacks = ("choices",) if "context" in names else ("context",)
    raise DataError(fields.missing(record.where, lacks, names, _EXPECTED))
  return next((x for x in layouts if x.label in names), layouts[0])


def _choice_names(layout: Layout, names: Mapping[str, Any]) -> tuple[str, ...]:
  return tuple(x for x in names if re.fullmatch(layout.choices, x))


def _listed(
  record: tables.Record, name: str
) -> tuple[list[str], tuple[str, ...]]:
  """Returns the choices and their letters, if they have any."""
  value = record.fields[name]
  has_letters = isinstance(value, dict)
  texts = value.get("text") if has_letters else value
  letters = value.get("label") if has_letters else []
  for items in (texts, letters):
    if not isinstance(items, list) or not all(
      x is None or isinstance(x, str) for x in items
    ):
      raise DataError(
        f"{record.where}: {name} is {tables.as_text(value):.40}; expected a "
        "list of at least two texts."
      )
  return [x or "" for x in texts], tuple(x or "" for x in letters)


def _filled(texts: Sequence[str], record: tables.Record) -> tuple[str, ...]:
  """Returns the choices without empty ones at the end."""
  filled = [i for i, text in enumerate(texts, 1) if text.strip()]
  if len(filled) < 2 or filled[-1] != len(filled):
    raise DataError(
      f"{record.where}: a choice is empty; expected at least two texts; only "
      "the last ones may be empty, in a row with fewer choices."
    )
  return tuple(map(encodable, texts[: len(filled)]))


def _context(record: tables.Record, name: str, question: str) -> str:
  """Returns the context; an empty one is reported if there is no question."""
  if tables.get_field(record, name).strip():
    return tables.get_text(record, name)
  if not question.strip():
    tables.count_odd(record, name, "are empty")
  return ""


def write_answers(predictions: Sequence[Mapping[str, Any]]) -> dict[str, str]:
  """Returns answers.csv as in ComVE: id (or line number from 0) and letter."""
  lines = [
    f"{prediction.get('id', i)},{chr(ord('A') + prediction['label'])}\n"
    for i, prediction in enumerate(predictions)
  ]
  return {"answers.csv": "".join(lines)}


# --- Labels ---


def check_labels(labels: Sequence[Label], first_label: str) -> None:
  """Raises DataError if the labels of a file are numbers and letters.

  `first_label` is as for find_index.
  """
  gold = [x for x in labels if x.text not in _NONE and not x.letters]
  number = next((x for x in gold if _NUMBER.fullmatch(x.text)), None)
  letter = next((x for x in gold if _LETTER.fullmatch(x.text)), None)
  if number and letter and first_label not in ("0", "1"):
    raise DataError(
      f"{number.where}: label {number.text!r}, but {letter.text!r} at "
      f"{letter.where}; expected numbers or letters: if 1 is the first choice, "
      "as in ARC, --config.task.first_label=1."
    )


def find_index(label: Label, first_label: str) -> int | None:
  """Returns the index of a label's choice, from 0; None for no gold label.

  `first_label` is that of the first choice, 0, 1 or A; "" for what the format
  says.

  Raises:
    DataError: the label is no choice, or may be two.
  """
  if label.text in _NONE:
    return None
  text, index, base = label.text, None, 0
  number = first_label != "A" and _NUMBER.fullmatch(text)
  if label.letters:
    index = label.letters.index(text) if text in label.letters else -1
  elif number:
    if not (first_label or label.first):
      raise bad_rows.TableError(
        f"{label.where}: label {text!r} may be the first or the second choice, "
        f"as the columns begin with {label.names[0]!r}: set "
        "--config.task.first_label=1 or 0."
      )
    base = int(first_label or label.first)
    index = int(number[1]) - base
  elif _LETTER.fullmatch(text):
    index = ord(text.upper()) - ord("A")
  elif text in label.names:
    index = label.names.index(text)
  same = [i for i, x in enumerate(label.choices) if x == text]
  is_plain = number and not (first_label or label.letters)
  if is_plain and same not in ([], [index]):
    raise bad_rows.TableError(
      f"{label.where}: label {text!r} may be an index or the text of a "
      "choice; expected an index, with --config.task.first_label=0, 1 or A."
    )
  if index is None and len(same) == 1:
    index = same[0]
  count = len(label.choices)
  if index is None or not 0 <= index < count:
    expected = f"{base} to {base + count - 1} or A to {chr(64 + count)}"
    if not base:
      expected += " (from 1: --config.task.first_label=1)"
    if label.letters:
      expected = f"one of {', '.join(filter(None, label.letters))}"
    raise DataError(
      f"{label.where}: label {text!r}; expected the index of the correct "
      f"choice, {expected}."
    )
  return index
