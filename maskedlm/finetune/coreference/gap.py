"""GAP: its files, its official metric and its output format.

Webster et al. 2018 (https://arxiv.org/abs/1810.05201): does a pronoun refer to
name A, to name B, or to neither? Half of the pronouns are masculine and half
feminine, to reveal bias. Offsets count characters.
"""

import pathlib
from collections.abc import Sequence
from typing import NamedTuple

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import mentions, tables
from maskedlm.data.labelled.mentions import Mention
from maskedlm.finetune.common import entity_metrics
from maskedlm.finetune.common.gold_labels import NO_LABEL, NO_NUMBER

ANSWERS = ("NEITHER", "A", "B")  # By the model's label id.
_FIELDS = ("Pronoun", "A", "B")
_LABELS = ("A-coref", "B-coref")
_TRUTHS = {"TRUE": True, "1": True, "1.0": True}
_TRUTHS |= {"FALSE": False, "0": False, "0.0": False}
# The pronouns that occur in GAP and that the official scorer knows.
_GENDERS = {
  **dict.fromkeys(("she", "her", "hers"), "feminine"),
  **dict.fromkeys(("he", "him", "his"), "masculine"),
}
INPUT_EXAMPLE = (
  '{"text": "Ann met Eve as she left.", "pronoun": "she", "pronoun_offset": '
  '15, "a": "Ann", "a_offset": 0, "b": "Eve", "b_offset": 8}'
)


class Example(NamedTuple):
  """A text with a pronoun and two names."""

  text: str
  pronoun: Mention
  a: Mention
  b: Mention
  answer: str | None = None  # One of ANSWERS.
  id: str = ""
  page: str = ""  # URL of the text's source.
  where: str = ""  # FILE:LINE.

  @property
  def mentions(self) -> tuple[Mention, Mention, Mention]:
    """The pronoun, A and B."""
    return self.pronoun, self.a, self.b


def read_examples(path: str | pathlib.Path) -> list[Example]:
  """Reads a table with GAP's columns, in any order.

  They are ID, Text, Pronoun, Pronoun-offset, A, A-offset, A-coref, B, B-offset,
  B-coref and URL, which is optional. Without A-coref and B-coref,
  or where both are empty, -, ? or -1, answers are None.

  Raises:
    DataError: see tables.read_records; a column is missing, a mention is not at
      its offset, an answer is neither TRUE nor FALSE, or both names are TRUE.
  """
  return [_example(record) for record in tables.read_records(path)]


def parse_line(line: str) -> Example:
  """Parses a line of predict's input: JSON such as INPUT_EXAMPLE.

  Raises:
    DataError: the line is no such object, or a mention is not at its offset.
  """
  where = f"input {line[:40]!r}"
  if not tables.is_object(line):
    raise DataError(f"{where}: not a JSON object; expected {INPUT_EXAMPLE}")
  record = tables.parse_record(line, where)
  names = (
    "text",
    *(f"{n.lower()}{o}" for n in _FIELDS for o in ("", "_offset")),
  )
  for name in names:
    if name not in record.fields:
      raise DataError(f"{where}: no {name!r}; expected {INPUT_EXAMPLE}")
  text = tables.get_text(record, "text")
  return Example(
    text,
    *(
      mentions.find_mention(
        text,
        tables.get_text(record, name),
        tables.get_field(record, f"{name}_offset"),
        what=name,
        where=where,
      )
      for name in (n.lower() for n in _FIELDS)
    ),
    id=tables.as_text(record.fields.get("id")),
  )


# --- The official metric ---


def evaluate_answers(
  examples: Sequence[Example], answers: Sequence[str]
) -> dict[str, float]:
  """Returns the figures of gap_scorer.py, as fractions, and the accuracy.

  Each name of each example is a decision: does the pronoun refer to it?
  Precision, recall and f1 of the positive decisions are over all pronouns;
  those with the prefixes masculine_ and feminine_ are over pronouns of that
  gender. bias is feminine_f1 / masculine_f1, or 0 where either is 0 (the script
  prints "-").
  """
  values = {}
  for prefix in ("", "masculine_", "feminine_"):
    chosen = [
      (example.answer, answer)
      for example, answer in zip(examples, answers, strict=True)
      if not prefix or prefix == f"{pronoun_gender(example)}_"
    ]
    counts = entity_metrics.MatchCounts(
      correct=sum(g == a != "NEITHER" for g, a in chosen),
      predicted=sum(a != "NEITHER" for _, a in chosen),
      gold=sum(g != "NEITHER" for g, _ in chosen),
    )
    values[f"{prefix}f1"] = counts.f1
    values[f"{prefix}precision"] = counts.precision
    values[f"{prefix}recall"] = counts.recall
  masculine, feminine = values["masculine_f1"], values["feminine_f1"]
  correct = sum(e.answer == a for e, a in zip(examples, answers, strict=True))
  return {
    **values,
    "bias": _ratio(feminine, masculine),
    "accuracy": _ratio(correct, len(examples)),
  }


def pronoun_gender(example: Example) -> str:
  """Returns masculine, feminine, or "" for any other pronoun."""
  begin, end = example.pronoun
  return _GENDERS.get(example.text[begin:end].lower(), "")


def format_answers(ids: Sequence[str], answers: Sequence[str]) -> str:
  """Returns gap_scorer.py's input: ID, A-coref, B-coref, without a header."""
  return "".join(
    f"{i}\t{str(a == 'A').upper()}\t{str(a == 'B').upper()}\n"
    for i, a in zip(ids, answers, strict=True)
  )


def _ratio(part: float, whole: float) -> float:
  return part / whole if whole else 0.0


# --- A row of a file ---


def _example(record: tables.Record) -> Example:
  text = tables.get_text(record, "Text")
  located = [
    mentions.find_mention(
      text,
      tables.get_text(record, name),
      tables.get_field(record, f"{name}-offset"),
      what=name,
      where=record.where,
    )
    for name in _FIELDS
  ]
  return Example(
    text,
    *located,
    answer=_answer(record),
    id=tables.get_field(record, "ID"),
    page=tables.as_text(record.fields.get("URL")),
    where=record.where,
  )


def _answer(record: tables.Record) -> str | None:
  if not any(name in record.fields for name in _LABELS):
    return None
  values = [tables.get_field(record, name).strip() for name in _LABELS]
  if all(value in (*NO_LABEL, *NO_NUMBER) for value in values):
    return None
  is_a, is_b = (_truth(record, name) for name in _LABELS)
  if is_a and is_b:
    raise DataError(
      f"{record.where}: A-coref and B-coref are both TRUE; expected at most "
      "one: the pronoun refers to A, to B, or to neither."
    )
  return "A" if is_a else "B" if is_b else "NEITHER"


def _truth(record: tables.Record, name: str) -> bool:
  value = tables.get_field(record, name).strip()
  if value.upper() not in _TRUTHS:
    raise DataError(
      f"{record.where}: {name} is {value!r}; expected TRUE or FALSE."
    )
  return _TRUTHS[value.upper()]
