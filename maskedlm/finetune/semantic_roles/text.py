"""Input and output of predict: a line in; predicates and their roles out."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from maskedlm.data.labelled import fields, objects, sentences, tables
from maskedlm.data.labelled.bio import Entity
from maskedlm.data.labelled.formats import roles
from maskedlm.data.labelled.formats.predicates import (
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
  where = f"input {line[:60]!r}"
  if not tables.is_object(line):
    sentence = sentences.split_text(line)
  else:
    value = objects.parse_object(line, where, such_as=roles.SENTENCE.such_as)
    if "text" not in value or "words" in value or "predicates" in value:
      found = fields.values(value, roles.SENTENCE, where)
      return roles.of_values(found, where)
    sentence = sentences.of_object(value, where)
  return Example(sentence.words, text=sentence.text, offsets=sentence.offsets)


def role_prediction(
  example: Example, found: Sequence[tuple[Predicate, float]]
) -> Prediction:
  """Returns the prediction for a sentence, JSON-able.

  It is a row of the JSONL format with more fields, so it can be read back.

  Args:
    example: the sentence.
    found: in the order of their words, the given predicates and those that were
      found, each with its logit.

  Returns:
    id (if any), text, words and predicates; each predicate has index, word,
    probability and args, lists [first word, last word, label]. Where predicates
    were given, those are listed, with sense (if any) and found, whether the
    model would have found them; "others" are those it found in addition.
  """
  words = list(example.words)
  text, _ = sentences.sentence_text(example)
  given = {p.index: p.sense for p in example.predicates or ()}
  is_given = example.predicates is not None

  def shown(predicate: Predicate, logit: float) -> dict[str, Any]:
    sense = given.get(predicate.index)
    return {
      "index": predicate.index,
      "word": words[predicate.index],
      "probability": round(1 / (1 + math.exp(-max(logit, -99.0))), 4),
      **({"found": logit > 0} if predicate.index in given else {}),
      **({"sense": sense} if sense else {}),
      "args": [[x.begin, x.end - 1, x.type] for x in predicate.args],
    }

  listed = [x for x in found if not is_given or x[0].index in given]
  others = [x for x in found if is_given and x[0].index not in given]
  return {
    **({"id": example.name} if example.name else {}),
    "text": text,
    "words": words,
    "predicates": [shown(*x) for x in listed],
    **({"others": [shown(*x) for x in others]} if is_given else {}),
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
