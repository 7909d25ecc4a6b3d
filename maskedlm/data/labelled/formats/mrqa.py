"""The answers of a question in MRQA's format, of which TriviaQA is a part.

Fisch et al. 2019, https://aclanthology.org/D19-5801:

  {"qid", "question", "answers": [TEXT, ...],
   "detected_answers": [{"text", "char_spans": [[FIRST, LAST], ...]}, ...]}

"answers" are the gold texts; some may not be in the context. FIRST and LAST are
characters of the context, the last one included. In the Hub's rows the lists of
objects are objects of lists.
"""

from collections.abc import Mapping
from typing import Any

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import fields
from maskedlm.data.labelled.formats.questions import ABSENT, GoldAnswer

# (text, first, last) of each detected place.
Places = tuple[tuple[str, int, int], ...]


def _places(value: Any) -> Places:
  places = []
  for answer in fields.rows_of(value, "text", "char_spans"):
    spans = answer["char_spans"]
    if isinstance(spans, Mapping):
      spans = [
        [x["start"], x["end"]] for x in fields.rows_of(spans, "start", "end")
      ]
    text = fields.text_of(answer["text"])
    for span in fields.list_of(spans):
      is_pair = isinstance(span, list) and len(span) == 2
      if not is_pair or any(type(x) is not int for x in span):
        raise ValueError(f"it has {str(span)[:40]}, not [FIRST, LAST]")
      places.append((text, *span))
  return tuple(places)


ANSWERS = fields.Format(
  {
    "texts": fields.items(
      "answers", of=fields.text_of, expected="a list of texts"
    ),
    "places": fields.Field(
      ("detected_answers",), "a list of such objects", _places
    ),
  },
  such_as='{"answers": ["..."], "detected_answers": [{"text": "...", '
  '"char_spans": [[0, 9]]}]}',
)


def gold_answers(
  entry: Mapping[str, Any], context: str, where: str
) -> tuple[GoldAnswer, ...]:
  """Returns the answers in their order, then those that are ABSENT.

  Each is at the first of its places that the file has.

  Raises:
    DataError: a field is missing or of the wrong type; a span is not within the
      context, or ends a character too late.
  """
  values = fields.values(entry, ANSWERS, where)
  starts: dict[str, int] = {}
  for text, first, last in values["places"]:
    starts.setdefault(_part(context, first, last, text, where), first)
  texts = filter(str.strip, dict.fromkeys(values["texts"]))
  absent = [x for x in texts if x not in starts]
  if not absent and not starts:
    raise DataError(f"{where}: no answer; expected at least one.")
  return (
    *(GoldAnswer(part, start) for part, start in starts.items()),
    *(GoldAnswer(text, ABSENT) for text in absent),
  )


def _part(context: str, first: int, last: int, text: str, where: str) -> str:
  problem, part = "", context[max(first, 0) : last + 1]
  if not 0 <= first <= last < len(context):
    problem = f"; expected 0 <= FIRST <= LAST < {len(context)}, in characters"
  elif part != text and part[:-1] == text:
    problem = f", {part[:41]!r}; expected {last - 1}, as LAST is included"
  elif not part.strip():
    problem = ", which is whitespace only"
  if problem:
    raise DataError(
      f"{where}: the answer {text[:40]!r} has char_spans [{first}, {last}]"
      f"{problem}."
    )
  return part
