"""SQuAD's files: questions on paragraphs, and the official predictions.

Rajpurkar et al. 2016 (arXiv:1606.05250) for 1.1, where each question has an
answer in its paragraph, and 2018 (arXiv:1806.03822) for 2.0, where it may have
none. Offsets count characters (code points), as in the official files.
"""

import json
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import tables, tfds_tables
from maskedlm.finetune.common.gold_labels import gold_labels
from maskedlm.finetune.contract import Prediction
from maskedlm.runtime.console import log


class GoldAnswer(NamedTuple):
  """An answer: context[start : start + len(text)] == text."""

  text: str
  start: int


class Example(NamedTuple):
  """A question on a text; examples of one paragraph share its string."""

  question: str
  context: str
  id: str = ""
  # The annotators' answers; () = the question has none, None = unknown.
  answers: tuple[GoldAnswer, ...] | None = None
  where: str = ""  # FILE: question ID.


def read_questions(
  source: str, *, allow_impossible: bool, fix_offsets: bool
) -> list[Example]:
  """Reads the questions of a SQuAD file, or of "tfds:squad/v1.1:train".

  Args:
    source: the file. If no question has "answers", they are unknown, and the
      file is only good for prediction.
    allow_impossible: whether a question may have no answer (2.0).
    fix_offsets: whether to move answers that are not at their offset to the
      nearest place that has them; their number is logged.

  Raises:
    DataError: the file is missing, empty or not JSON; a field is missing or has
      the wrong type; an answer is not at its offset; a question has no answer,
      but allow_impossible is False.
  """
  if source.startswith(tfds_tables.PREFIX):
    found = _from_tfds(source)
  else:
    found = _from_file(source)
  examples: list[Example] = []
  moved = 0
  for example, impossible in found:
    if example.answers is not None:
      _check_impossible(example, impossible, allow_impossible)
      answers = tuple(
        _placed(answer, example, fix_offsets) for answer in example.answers
      )
      moved += answers != example.answers
      example = example._replace(answers=answers)
    examples.append(example)
  if not examples:
    raise DataError(f"{source}: no questions; expected at least one.")
  _check_labelled(examples)
  if moved:
    log(
      f"{source}: answers of {moved:,} questions were not at their offsets and "
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
  if line.startswith("{"):
    fields = tables.parse_json_object(line, "input", such_as=such_as)
    for name in ("question", "context"):
      if not isinstance(fields.get(name), str):
        raise DataError(
          f"input {line[:40]!r} has no {name!r}; expected {such_as}."
        )
    question, context = fields["question"], fields["context"]
    key = str(fields.get("id", ""))
  else:
    question, tab, context = line.partition("\t")
    key = ""
    if not tab:
      raise DataError(f"input {line[:40]!r} is one text; expected {such_as}.")
  return Example(tables.encodable(question), tables.encodable(context), key)


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
  return json.dumps(table, indent=2) + "\n"


# --- Files ---


def _from_file(path: str) -> Iterator[tuple[Example, bool]]:
  """Yields pairs (example, whether it is marked impossible), unchecked."""
  for i, article in enumerate(_field(_load(path), "data", list, path)):
    place = f"{path}: data[{i}]"
    for j, paragraph in enumerate(_field(article, "paragraphs", list, place)):
      inner = f"{place}.paragraphs[{j}]"
      context = tables.encodable(_field(paragraph, "context", str, inner))
      for k, entry in enumerate(_field(paragraph, "qas", list, inner)):
        key = _field(entry, "id", str, f"{inner}.qas[{k}]")
        yield _example(entry, key, context, f"{path}: question {key}")


def _from_tfds(source: str) -> Iterator[tuple[Example, bool]]:
  contexts: dict[str, str] = {}  # Equal ones become one string.
  for entry in tfds_tables.read_examples(
    tfds_tables.open_data_source(source), source
  ):
    entry = {name: _plain(value) for name, value in entry.items()}
    where = f"{source}: question {entry.get('id')}"
    key = _field(entry, "id", str, where)
    context = tables.encodable(_field(entry, "context", str, where))
    if answers := entry.get("answers"):  # A dict of lists.
      entry["answers"] = [
        {"text": _plain(text), "answer_start": int(start)}
        for text, start in zip(
          answers["text"], answers["answer_start"], strict=True
        )
      ]
    yield _example(entry, key, contexts.setdefault(context, context), where)


def _load(path: str) -> Any:
  try:
    text = pathlib.Path(path).read_text(encoding="utf-8-sig")
  except OSError as error:
    raise DataError(
      f"{path}: {error.strerror}; expected a SQuAD file (JSON)."
    ) from None
  except UnicodeDecodeError as error:
    raise DataError(f"{path}: not UTF-8 ({error}); convert it.") from None
  if not text.strip():
    raise DataError(f"{path}: the file is empty; expected a SQuAD file (JSON).")
  try:
    return json.loads(text)
  except json.JSONDecodeError as error:
    raise DataError(
      f"{path}:{error.lineno}: not JSON ({error.msg} at column {error.colno}); "
      "expected a SQuAD file: is it complete?"
    ) from None


def _example(
  entry: Mapping[str, Any], key: str, context: str, where: str
) -> tuple[Example, bool]:
  question = tables.encodable(_field(entry, "question", str, where))
  answers = None
  if "answers" in entry:
    found = _field(entry, "answers", list, where)
    answers = tuple(
      GoldAnswer(
        tables.encodable(_field(answer, "text", str, where)),
        _field(answer, "answer_start", int, where),
      )
      for answer in found
    )
  impossible = bool(entry.get("is_impossible", answers == ()))
  return Example(question, context, key, answers, where), impossible


def _field(value: Any, name: str, kind: type, where: str) -> Any:
  """Returns value[name]; raises DataError unless it is of type `kind`."""
  names = {str: "a string", int: "a whole number", list: "a list"}
  if not isinstance(value, Mapping):
    raise DataError(
      f"{where}: a JSON {type(value).__name__}; expected an object with "
      f"{name!r} (docs/guides/finetune/question-answering.md)."
    )
  if name not in value:
    raise DataError(
      f"{where}: no {name!r}; expected {names[kind]} in addition to "
      f"{', '.join(map(repr, value)) or 'nothing'}."
    )
  if type(value[name]) is not kind:  # Not isinstance: True is an int.
    raise DataError(
      f"{where}: {name!r} is {str(value[name])[:40]!r}; expected {names[kind]}."
    )
  return value[name]


def _plain(value: Any) -> Any:
  return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


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
  """Returns the answer, moved to its text's nearest place if fix_offsets.

  Raises:
    DataError: the answer is empty or not at its offset.
  """
  text, start = answer
  if not text:
    raise DataError(
      f"{example.where}: the answer is empty; expected a part of the context."
    )
  if start >= 0 and example.context.startswith(text, start):
    return answer
  places = list(_places(text, example.context))
  if fix_offsets and places:
    return GoldAnswer(text, min(places, key=lambda place: abs(place - start)))
  found = example.context[max(start, 0) : max(start, 0) + len(text)]
  if not places:
    remedy = (
      "the context doesn't contain it: correct the answer; does it differ in "
      "case, or in Unicode form (NFC, NFD)?"
    )
  else:
    at = ", ".join(map(str, places[:5])) + (", ..." if places[5:] else "")
    remedy = (
      f"it is at {at}: correct answer_start (characters, not bytes), or set "
      "--config.task.fix_offsets=True to take the nearest."
    )
  raise DataError(
    f"{example.where}: the answer {text!r} is not at its answer_start={start}, "
    f"where the context has {found!r}; {remedy}"
  )


def _places(text: str, context: str) -> Iterator[int]:
  place = context.find(text)
  while place >= 0:
    yield place
    place = context.find(text, place + 1)
