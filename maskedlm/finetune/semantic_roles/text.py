"""Input and output of predict: a line in; predicates and their roles out."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from maskedlm.data.labelled import bio, fields, sentences, tables
from maskedlm.data.labelled.bio import Entity
from maskedlm.data.labelled.formats import roles
from maskedlm.data.labelled.formats.predicates import (
  VERB,
  Example,
  Predicate,
  with_verb,
)
from maskedlm.finetune.contract import Prediction


def parse_line(line: str) -> Example:
  """Parses a line of text, or a JSON object with "text", "tokens" or "words".

  An object with words may have "predicates", [{"index": 1}, ...], whose
  arguments are then labelled; otherwise predicates are found.

  Raises:
    DataError: the object has none of them; see also roles.of_values.
  """
  if tables.is_object(line):
    value = sentences.parse_object(line, roles.SENTENCE.such_as)
    if "text" not in value or "words" in value or "predicates" in value:
      where = f"input {line[:60]!r}"
      return roles.of_values(fields.values(value, roles.SENTENCE, where), where)
  sentence = sentences.parse_line(line)
  return Example(sentence.words, text=sentence.text, offsets=sentence.offsets)


def read_tags(index: int, tags: Sequence[str], first_word: int) -> Predicate:
  """Returns the predicate at a word whose arguments BIO tags give.

  The tags are those of a window, which begins with first_word.
  """
  args = (
    Entity(x.type, x.begin + first_word, x.end + first_word)
    for x in bio.find_entities(tags)
  )
  verb = Entity(VERB, index, index + 1)
  return Predicate(index, tuple(x for x in args if x != verb))


def role_prediction(
  example: Example, found: Sequence[tuple[Predicate, float]]
) -> Prediction:
  """Returns the prediction for a sentence, JSON-able.

  It is a row of the JSONL format with more fields, so it can be read back.

  Args:
    found: in the order of their words, the given predicates and those that were
      found, each with its logit.

  Returns:
    id (if any), text, words and predicates; each predicate has index, word,
    probability and args, lists [first word, last word, label]. Where predicates
    were given, those are listed, with sense (if any) and found, whether the
    model would have found them; "others" are those it found in addition.
  """
  text, _ = sentences.sentence_text(example)
  given = {p.index: p for p in example.predicates or ()}
  is_given = example.predicates is not None
  listed: list[dict[str, Any]] = []
  others: list[dict[str, Any]] = []
  for predicate, logit in found:
    index = predicate.index
    shown: dict[str, Any] = {
      "index": index,
      "word": example.words[index],
      "probability": round(1 / (1 + math.exp(-max(logit, -99.0))), 4),
    }
    if index in given:
      shown["found"] = logit > 0
      if given[index].sense:
        shown["sense"] = given[index].sense
    shown["args"] = [[x.begin, x.end - 1, x.type] for x in predicate.args]
    (others if is_given and index not in given else listed).append(shown)
  return {
    **({"id": example.name} if example.name else {}),
    "text": text,
    "words": list(example.words),
    "predicates": listed,
    **({"others": others} if is_given else {}),
  }


def predicted(fields: Sequence[Mapping[str, Any]]) -> list[Predicate]:
  """Returns the predicates of a prediction's list of them."""
  return [
    Predicate(
      p["index"],
      tuple(Entity(label, a, b + 1) for a, b, label in p["args"]),
      p.get("sense", ""),
    )
    for p in fields
  ]


def format_prediction(prediction: Prediction) -> str:
  """Returns the text and a line for each predicate, its spans in brackets."""
  words = prediction["words"]
  lines = [prediction["text"]]
  for predicate in predicted(prediction["predicates"]):
    parts, done = [], 0
    for label, begin, end in with_verb(predicate):
      parts += words[done:begin]
      parts.append(f"[{label} {' '.join(words[begin:end])}]")
      done = end
    parts += words[done:]
    lines.append(f"  {words[predicate.index]}: {' '.join(parts)}")
  if len(lines) == 1:
    lines.append("  (no predicate)")
  return "\n".join(lines)
