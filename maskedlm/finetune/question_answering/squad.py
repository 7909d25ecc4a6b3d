"""SQuAD: checked questions on paragraphs, and the official predictions.

answer_files.py reads the files. Rajpurkar et al. 2016 (arXiv:1606.05250) for
1.1, where each question has an answer in its paragraph, and 2018
(arXiv:1806.03822) for 2.0, where it may have none. Offsets count characters
(code points), as in the official files.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.core.measured import to_json
from maskedlm.data.labelled import objects, tables
from maskedlm.finetune.common.gold_labels import gold_labels
from maskedlm.finetune.contract import Prediction
from maskedlm.finetune.question_answering import answer_files, triviaqa
from maskedlm.finetune.question_answering.questions import (
  ABSENT,
  Example,
  GoldAnswer,
)
from maskedlm.runtime.console import log


def read_questions(
  source: str,
  *,
  allow_impossible: bool,
  fix_offsets: bool,
  evidence: str = "",
  evidence_words: int = 0,
) -> list[Example]:
  """Reads the questions of a file, or of "tfds:squad/v1.1:train".

  Args:
    source: see answer_files.py and triviaqa.py. If no question has answers,
      they are unknown, and the file is only good for prediction.
    allow_impossible: whether a question may have no answer (2.0).
    fix_offsets: whether to move answers that are not at their offset to the
      nearest place that has them; see _placed. Their number is logged.
    evidence, evidence_words: see triviaqa.read_file.

  Raises:
    DataError: the file is missing, empty or not JSON; a field is missing or has
      the wrong type; an answer is not at its offset; a question has no answer,
      but allow_impossible is False.
  """
  seen: Counter = Counter()
  if triviaqa.is_file(source):
    questions = triviaqa.read_file(
      source, evidence=evidence, words=evidence_words, seen=seen
    )
    found = ((example, False) for example in questions)
  else:
    found = answer_files.read_file(source, seen)
  examples: list[Example] = []
  moved = placed = 0
  for example, impossible in found:
    if example.answers is not None:
      _check_impossible(example, impossible, allow_impossible)
      answers = tuple(
        _placed(answer, example, fix_offsets) for answer in example.answers
      )
      is_given = all(answer.start is not None for answer in example.answers)
      moved += is_given and answers != example.answers
      placed += not is_given
      example = example._replace(answers=answers)
    examples.append(example)
  for what, count in seen.items():
    if count:
      log(f"{source}: {what}: {count:,}")
  if not examples:
    raise DataError(f"{source}: no questions; expected at least one.")
  _check_labelled(examples)
  if placed:
    log(
      f"{source}: answers of {counted(placed, 'question')} without "
      "answer_start were "
      "placed where the context has them"
    )
  if moved:
    log(
      f"{source}: answers of {counted(moved, 'question')} were not at their "
      "offsets and "
      "were moved to the nearest place that has them"
    )
  return examples


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
    fields = objects.parse_object(line, "input", such_as=such_as)
    for name in ("question", "context"):
      if not isinstance(fields.get(name), str):
        raise DataError(
          f"input {line[:40]!r} has no {name!r}; expected {such_as}."
        )
    question, context = fields["question"], fields["context"]
    key = answer_files.id_text(fields, f"input {line[:40]!r}")
  else:
    question, tab, context = line.partition("\t")
    key = ""
    if not tab:
      raise DataError(f"input {line[:40]!r} is one text; expected {such_as}.")
  return Example(objects.encodable(question), objects.encodable(context), key)


def gold_answers(examples: Sequence[Example]) -> dict[str, list[str]]:
  """Returns {id: gold answers}, for metrics.py.

  Raises:
    DataError: the answers of a question are unknown.
  """
  answers = gold_labels(
    examples, "answers", '[{"text": ..., "answer_start": ...}]'
  )
  return {
    example.id: [answer.text for answer in gold]
    for example, gold in zip(examples, answers, strict=True)
  }


def format_predictions(predictions: Sequence[Prediction]) -> dict[str, str]:
  """Returns {file name: JSON}, as run_squad.py writes and evaluate-v*.py reads.

  predictions.json has the answers; for SQuAD 2.0, null_odds.json is the input
  of evaluate-v2.0.py's --na-prob-file.
  """
  files = {"predictions.json": {p["id"]: p["answer"] for p in predictions}}
  if predictions and "null_odds" in predictions[0]:
    files["null_odds.json"] = {p["id"]: p["null_odds"] for p in predictions}
  return {name: _json(table) for name, table in files.items()}


def format_n_best(predictions: Sequence[Prediction]) -> dict[str, str]:
  """Returns {"nbest_predictions.json": JSON}, larger than the other files."""
  table = {
    p["id"]: [
      {"text": found["answer"], "probability": found["score"]}
      for found in p["nbest"]
    ]
    for p in predictions
  }
  return {"nbest_predictions.json": _json(table)}


def _json(table: Mapping[str, Any]) -> str:
  # ASCII, as the scripts open files in the locale's encoding.
  return to_json(table, indent=2, ascii=True) + "\n"


# --- Checks ---


def _check_impossible(
  example: Example, impossible: bool, allow_impossible: bool
) -> None:
  if impossible and example.answers:
    raise DataError(
      f"{example.where}: is_impossible is true, but there is the answer "
      f"{example.answers[0].text!r}; expected one or the other."
    )
  if example.answers or (impossible and allow_impossible):
    return
  if impossible and not allow_impossible:
    raise DataError(
      f"{example.where}: no answer; expected at least one (SQuAD 1.1). For "
      "SQuAD 2.0, use configs/squad.py:v2 or set "
      "--config.task.allow_impossible=True."
    )
  raise DataError(
    f"{example.where}: no answer, but is_impossible is false; expected one or "
    "the other."
  )


def _check_labelled(examples: Sequence[Example]) -> None:
  unknown = [e for e in examples if e.answers is None]
  if unknown and len(unknown) < len(examples):
    raise DataError(
      f"{unknown[0].where}: no 'answers', but other questions have them; "
      "expected a list in every question, or in none."
    )


def _placed(
  answer: GoldAnswer, example: Example, fix_offsets: bool
) -> GoldAnswer:
  """Returns the answer at its place in the context.

  One that is ABSENT has none. An answer without an offset is at the only place
  that has its text. With fix_offsets, it is at the nearest place (the first,
  without an offset), which may differ in whitespace and Unicode form.

  Raises:
    DataError: the answer isn't at its offset, or may be at several places.
  """
  text, start = answer
  if start == ABSENT:
    return answer
  context = example.context
  if start is not None and start >= 0 and context.startswith(text, start):
    return answer
  places = [GoldAnswer(text, place) for place in _places(text, context)]
  if start is None and len(places) == 1:
    return places[0]
  alike = places or list(_alike(text, context))
  if fix_offsets and alike:
    return min(alike, key=lambda found: abs(found.start - (start or 0)))
  if not alike:
    remedy = (
      "the context doesn't contain it: correct the answer; does it differ in "
      "case?"
    )
  else:
    starts = [*dict.fromkeys(found.start for found in alike)]
    at = ", ".join(map(str, starts[:5])) + ", ..." * bool(starts[5:])
    other = "" if places else " in other whitespace or another Unicode form"
    which = "first" if start is None else "nearest"
    remedy = (
      f"it is at {at}{other}: correct answer_start (characters, not bytes), or "
      f"set --config.task.fix_offsets=True to take the {which}."
    )
  if start is None:
    raise DataError(
      f"{example.where}: the answer {text!r} has no answer_start; {remedy}"
    )
  found = context[max(start, 0) : max(start, 0) + len(text)]
  raise DataError(
    f"{example.where}: the answer {text!r} is not at its answer_start={start}, "
    f"where the context has {found!r}; {remedy}"
  )


def _places(text: str, context: str) -> Iterator[int]:
  place = context.find(text)
  while place >= 0:
    yield place
    place = context.find(text, place + 1)


def _alike(text: str, context: str) -> Iterator[GoldAnswer]:
  """Yields parts of the context that differ in whitespace or Unicode form."""
  for form in ("NFC", "NFD"):
    words = unicodedata.normalize(form, text).split()
    for match in re.finditer(r"\s+".join(map(re.escape, words)), context):
      yield GoldAnswer(match[0], match.start())
