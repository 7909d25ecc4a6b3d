"""The answers of a question in MRQA's format, of which TriviaQA is a part.

Fisch et al. 2019, https://aclanthology.org/D19-5801:

  {"qid", "question", "answers": [TEXT, ...],
   "detected_answers": [{"text", "char_spans": [[FIRST, LAST], ...]}, ...]}

"answers" are the gold texts; some may not be in the context. FIRST and LAST are
characters of the context, the last one included. In the Hub's rows the lists of
objects are objects of lists.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import objects
from maskedlm.finetune.question_answering.questions import (
  ABSENT,
  GoldAnswer,
  get_field,
)


def is_question(entry: Mapping[str, Any]) -> bool:
  """Returns whether a question has MRQA's fields."""
  return entry.get("detected_answers") is not None


def gold_answers(
  entry: Mapping[str, Any], context: str, where: str
) -> tuple[GoldAnswer, ...]:
  """Returns the answers in their order, then those that are ABSENT.

  Each is at the first of its places that the file has.

  Raises:
    DataError: a field is missing or of the wrong type; a span is not within the
      context, or ends a character too late.
  """
  found: dict[str, int] = {}
  for text, span in _spans(entry["detected_answers"], where):
    part = _part(context, span, text, where)
    found.setdefault(part, span[0])
  answers = [GoldAnswer(part, start) for part, start in found.items()]
  gold = get_field(entry, "answers", list, where)
  for text in gold:
    if not isinstance(text, str):
      raise DataError(
        f"{where}: the answer {str(text)[:40]!r}; expected a list of texts."
      )
  gold = [x for x in map(objects.encodable, gold) if x.strip()]
  if not gold and not answers:
    raise DataError(f"{where}: no answer; expected at least one.")
  absent = [x for x in dict.fromkeys(gold) if x not in found]
  return (*answers, *(GoldAnswer(x, ABSENT) for x in absent))


def _spans(value: Any, where: str) -> Iterator[tuple[str, tuple[int, int]]]:
  """Yields (text, (first, last)) of each detected place."""
  for answer in _as_list(value, ("text", "char_spans"), where):
    text = get_field(answer, "text", str, where)
    spans = answer.get("char_spans")
    if isinstance(spans, Mapping):
      spans = [
        [x["start"], x["end"]] for x in _as_list(spans, ("start", "end"), where)
      ]
    for span in get_field({"char_spans": spans}, "char_spans", list, where):
      if not (
        isinstance(span, list)
        and len(span) == 2
        and all(type(x) is int for x in span)
      ):
        raise DataError(
          f"{where}: char_spans has {str(span)[:40]}; expected [FIRST, LAST], "
          "two whole numbers."
        )
      yield objects.encodable(text), (span[0], span[1])


def _as_list(value: Any, names: tuple[str, ...], where: str) -> list:
  """Returns objects with these names from a list of them or lists of values."""
  if isinstance(value, Mapping):
    columns = [get_field(value, name, list, where) for name in names]
    if len({len(column) for column in columns}) > 1:
      raise DataError(
        f"{where}: {' and '.join(names)} have {[*map(len, columns)]} values; "
        "expected as many of each."
      )
    return [
      dict(zip(names, x, strict=True)) for x in zip(*columns, strict=True)
    ]
  return get_field({"detected_answers": value}, "detected_answers", list, where)


def _part(context: str, span: tuple[int, int], text: str, where: str) -> str:
  first, last = span
  if not 0 <= first <= last < len(context):
    raise DataError(
      f"{where}: the answer {text[:40]!r} has char_spans [{first}, {last}]; "
      f"expected 0 <= FIRST <= LAST < {len(context)}, the context's characters."
    )
  part = context[first : last + 1]
  if part != text and part[:-1] == text:
    raise DataError(
      f"{where}: the answer {text[:40]!r} has char_spans [{first}, {last}], "
      f"where the context has {part[:41]!r}; expected {last - 1}, as LAST is "
      "included."
    )
  if not part.strip():
    raise DataError(
      f"{where}: the answer {text[:40]!r} has char_spans [{first}, {last}], "
      "where the context has whitespace only."
    )
  return part
