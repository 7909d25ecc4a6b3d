"""Questions on texts: SQuAD's files, the Hub's rows, MRQA's, and predictions.

Rajpurkar et al. 2016 (arXiv:1606.05250) for 1.1, where each question has an
answer in its paragraph, and 2018 (arXiv:1806.03822) for 2.0, where it may have
none. Offsets count characters (code points), as in the official files.

  {"data": [{"paragraphs": [{"context", "qas"}]}]}   SQuAD's own; also a list of
                                                     such articles or paragraphs
  {"context", "qas"} in lines                        MRQA's, with TriviaQA's
  {"id", "question", "context", "answers"}           the Hub's rows: in lines, a
                                                     list, Parquet, or TFDS

and in them

  id             a text or a whole number, as text; none: FILE:N, counted
  answers        a list of {text, answer_start}, or {text: [...],
                 answer_start: [...]}; null or absent: unknown
  text           empty: no answer, counted
  answer_start   a whole number: the answer is there
  is_impossible  true or false; null or absent: no answers

In MRQA's (Fisch et al. 2019, https://aclanthology.org/D19-5801) the answers are

  {"answers": [TEXT, ...],
   "detected_answers": [{"text", "char_spans": [[FIRST, LAST], ...]}, ...]}

"answers" are the gold texts; some may not be in the context. FIRST and LAST are
characters of the context, the last one included. In the Hub's rows the lists of
objects are objects of lists.

Other fields, such as version, title and plausible_answers, are ignored.
"""

import pathlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from maskedlm.core.errors import DataError
from maskedlm.core.measured import to_json
from maskedlm.data.labelled import bad_rows, fields, objects, tables, tfds_rows
from maskedlm.runtime.console import log

ABSENT = -1


class GoldAnswer(NamedTuple):
  """An answer: context[start : start + len(text)] == text."""

  text: str
  start: int  # ABSENT: it isn't in the text, and counts for the metrics only.


class Example(NamedTuple):
  """A question on a text; examples of one paragraph share its string."""

  question: str
  context: str
  id: str = ""
  # The annotators' answers; () = the question has none, None = unknown. Those
  # that are ABSENT are the last.
  answers: tuple[GoldAnswer, ...] | None = None
  where: str = ""  # FILE: question ID, or FILE:LINE.


NO_ID = "questions without an id, which are numbered"
EMPTY = "empty answers, which are none"
_SUCH_AS = (
  '{"id": "1", "question": "...", "context": "...", "answers": [{"text": '
  '"...", "answer_start": 0}]}'
)


def _places(value: Any) -> tuple[tuple[str, int, int], ...]:
  """Returns (text, first, last) of each detected place."""
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


def _answers(value: Any) -> tuple[GoldAnswer, ...]:
  answers = []
  for row in fields.rows_of(value, "text", "answer_start"):
    text, start = row["text"], row["answer_start"]
    is_empty = isinstance(text, str) and not text.strip()
    if not isinstance(text, str) or not (is_empty or type(start) is int):
      raise ValueError(f"it has {str(row)[:60]}")
    answers.append(GoldAnswer(text, start))
  return tuple(answers)


_OF_MRQA = fields.Format(
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
_QUESTION = fields.Format(
  {
    "id": fields.key("qid", "id", optional=True),
    "question": fields.text("question"),
    "context": fields.text("context"),
  },
  such_as=_SUCH_AS,
)
_ANSWERS = fields.Format(
  {
    "answers": fields.Field(
      ("answers",), "a list of such objects", _answers, optional=True
    ),
    "is_impossible": fields.truth("is_impossible", optional=True),
  },
  such_as=_SUCH_AS,
)


def read_questions(source: str, *, allow_impossible: bool) -> list[Example]:
  """Reads the questions of a file, or of "tfds:squad/v1.1:train".

  Args:
    source: see above. If no question has answers, they are unknown, and the
      file is only good for prediction.
    allow_impossible: whether a question may have no answer (2.0).

  Raises:
    DataError: the file is missing, empty or not JSON; a field is missing or has
      the wrong type; an answer is not at its offset; a question has no answer,
      but allow_impossible is False.
  """
  seen: Counter = Counter()
  contexts: dict[str, str] = {}  # Equal ones become one string.

  def read(item: tuple[int, tuple[Mapping[str, Any], bool, str]]) -> Example:
    number, (entry, is_flat, where) = item
    key, question, context = fields.values(entry, _QUESTION, where).values()
    if not key:
      seen[NO_ID] += 1
      key = f"{pathlib.Path(source).name}:{number}"
    elif not is_flat or where == source:
      where = f"{source}: question {key}"
    if not question.strip():
      raise DataError(f"{where}: the question is empty; expected a text.")
    context = contexts.setdefault(context, context)
    if entry.get("detected_answers") is None:
      answers = _gold_answers(entry, context, where, allow_impossible, seen)
    else:
      answers = _mrqa_answers(entry, context, where)
    return Example(question, context, key, answers, where)

  examples = [*bad_rows.map_rows(read, enumerate(_entries(source), 1))]
  for description, number in (+seen).items():
    log(f"{source}: {description}: {number:,}")
  if not examples:
    raise DataError(f"{source}: no questions; expected {_SUCH_AS}.")
  has_answers = any(e.answers is not None for e in examples)

  def checked(example: Example) -> Example:
    if has_answers and example.answers is None:
      raise DataError(
        f"{example.where}: no 'answers', but other questions have them; "
        "expected a list in every question, or in none."
      )
    return example

  return [*bad_rows.map_rows(checked, examples)]


def _entries(source: str) -> Iterator[tuple[Mapping[str, Any], bool, str]]:
  """Yields (question with its context, whether they are one object, place)."""
  is_tfds = tfds_rows.is_source(source)  # It shuffles: a number says nothing.
  for number, value in objects.read_objects(source, such_as=_SUCH_AS):
    where = source if is_tfds else f"{source}:{number}"
    if value.keys() == {"header"}:
      continue  # MRQA's first line.
    if "Data" in value:
      raise DataError(
        f"{where}: TriviaQA's own files are not read; expected its copy in "
        "MRQA's format (docs/guides/finetune/question-answering.md)."
      )
    for paragraph in _inner(value, "paragraphs", where):
      for entry in _inner(paragraph, "qas", where):
        is_flat = entry is paragraph
        if "context" in paragraph:
          entry = {**entry, "context": paragraph["context"]}
        yield entry, is_flat, where


def _inner(
  value: Mapping[str, Any], name: str, where: str
) -> Sequence[Mapping[str, Any]]:
  """Returns the objects in a field; the object itself without the field."""
  if name not in value:
    return [value]
  return fields.value_of(value, fields.objects(name), _SUCH_AS, where)


def _gold_answers(
  entry: Mapping[str, Any],
  context: str,
  where: str,
  allow_impossible: bool,
  seen: Counter,
) -> tuple[GoldAnswer, ...] | None:
  answers, impossible = fields.values(entry, _ANSWERS, where).values()
  if answers is None:
    if not impossible:
      return None
    answers = ()
  kept = tuple(answer for answer in answers if answer.text.strip())
  seen[EMPTY] += len(answers) - len(kept)
  if impossible is bool(kept):
    actual = f"there is the answer {kept[0].text!r}" if kept else "no answer"
    raise DataError(
      f"{where}: is_impossible is {str(impossible).lower()}, but {actual}; "
      "expected one or the other."
    )
  if not kept and not allow_impossible:
    raise DataError(
      f"{where}: no answer; expected at least one (SQuAD 1.1). For SQuAD 2.0, "
      "use configs/squad.py:v2 or set --config.task.allow_impossible=True."
    )
  for answer in kept:
    _check_place(answer, context, where)
  return kept


def _check_place(answer: GoldAnswer, context: str, where: str) -> None:
  """Raises DataError if an answer is not at its offset."""
  text, start = answer
  if start >= 0 and context.startswith(text, start):
    return
  places = [str(i) for i in range(len(context)) if context.startswith(text, i)]
  remedy = (
    "the context doesn't contain it: correct the answer; does it differ in "
    "case, in whitespace or in the form of a character?"
  )
  if places:
    remedy = (
      f"it is at {', '.join(places[:5])}{', ...' * bool(places[5:])}: correct "
      "answer_start (characters, not bytes)."
    )
  actual = context[max(start, 0) : max(start, 0) + len(text)]
  raise DataError(
    f"{where}: the answer {text!r} is not at its answer_start={start}, where "
    f"the context has {actual!r}; {remedy}"
  )


def _mrqa_answers(
  entry: Mapping[str, Any], context: str, where: str
) -> tuple[GoldAnswer, ...]:
  """Returns the answers of MRQA in their order, then those that are ABSENT.

  Each is at the first of its places that the file has.

  Raises:
    DataError: a field is missing or of the wrong type; a span is not within the
      context, or ends a character too late.
  """
  values = fields.values(entry, _OF_MRQA, where)
  starts: dict[str, int] = {}
  for text, first, last in values["places"]:
    starts.setdefault(_answer_at(context, first, last, text, where), first)
  texts = filter(str.strip, dict.fromkeys(values["texts"]))
  absent = [x for x in texts if x not in starts]
  if not absent and not starts:
    raise DataError(f"{where}: no answer; expected at least one.")
  return (
    *(GoldAnswer(part, start) for part, start in starts.items()),
    *(GoldAnswer(text, ABSENT) for text in absent),
  )


def _answer_at(
  context: str, first: int, last: int, text: str, where: str
) -> str:
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


def parse_question(line: str) -> Example:
  """Parses a line of predict's input.

  It is JSON with "question", "context" and optionally "id", or the question, a
  tab and the context.

  Raises:
    DataError: the line has neither form.
  """
  such_as = (
    '{"question": "...", "context": "..."}, or both in a line with a tab '
    "between them"
  )
  if tables.is_object(line):
    form = _QUESTION._replace(such_as=such_as)
    entry = objects.parse_object(line, "input", such_as=such_as)
    where = f"input {line[:40]!r}"
    key, question, context = fields.values(entry, form, where).values()
    return Example(question, context, key or "")
  question, tab, context = line.partition("\t")
  if not tab:
    raise DataError(f"input {line[:40]!r} is one text; expected {such_as}.")
  return Example(objects.encodable(question), objects.encodable(context))


# --- Files of predictions ---


def write_predictions(
  predictions: Sequence[Mapping[str, Any]],
) -> dict[str, str]:
  """Returns {file name: JSON}, as run_squad.py writes and evaluate-v*.py reads.

  predictions.json has the answers; for SQuAD 2.0, null_odds.json is the input
  of evaluate-v2.0.py's --na-prob-file.
  """
  files = {"predictions.json": {p["id"]: p["answer"] for p in predictions}}
  if predictions and "null_odds" in predictions[0]:
    files["null_odds.json"] = {p["id"]: p["null_odds"] for p in predictions}
  return {name: _json(table) for name, table in files.items()}


def write_n_best(predictions: Sequence[Mapping[str, Any]]) -> dict[str, str]:
  """Returns {"nbest_predictions.json": JSON}, larger than the other files."""
  table = {
    p["id"]: [
      {"text": best["answer"], "probability": best["score"]}
      for best in p["nbest"]
    ]
    for p in predictions
  }
  return {"nbest_predictions.json": _json(table)}


def _json(table: Mapping[str, Any]) -> str:
  # ASCII, as the scripts open files in the locale's encoding.
  return to_json(table, indent=2, ascii=True) + "\n"
