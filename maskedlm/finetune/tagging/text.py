"""Input and output of a tagger: lines of text in; words, tags, entities out."""

from collections.abc import Sequence

import numpy as np

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import objects, tables, words
from maskedlm.data.tokenizers.training import replace_surrogates
from maskedlm.finetune.common import bio
from maskedlm.finetune.contract import Prediction
from maskedlm.finetune.tagging.rows import Example


def parse_line(line: str) -> Example:
  """Parses a line of text, or {"text": ...} or {"tokens": [words]} in JSON.

  Raises:
    DataError: the JSON has neither.
  """
  if not tables.is_object(line):
    return _split_text(line)
  such_as = (
    '{"tokens": ["a", "word", "each"]}, or {"text": "..."} for a text that '
    "begins with {"
  )
  fields = objects.parse_object(line, f"input {line[:60]!r}", such_as=such_as)
  tokens, text = fields.get("tokens"), fields.get("text")
  if isinstance(tokens, list) and all(isinstance(t, str) for t in tokens):
    return Example(words=tuple(map(replace_surrogates, tokens)))
  if tokens is None and isinstance(text, str):
    return _split_text(text)
  raise DataError(f"input {line[:60]!r} has no words; expected {such_as}.")


def _split_text(text: str) -> Example:
  text = replace_surrogates(text)  # Surrogates could not be printed.
  offsets = tuple(words.split_words(text))
  return Example(
    words=tuple(text[begin:end] for begin, end in offsets),
    text=text,
    offsets=offsets,
  )


def sentence_text(example) -> tuple[str, Sequence[tuple[int, int]]]:
  """Returns the text and the offsets of the words of an Example (or a span's).

  The words of an example without a text are joined by spaces.
  """
  if example.text is not None:
    return example.text, example.offsets
  ends = np.cumsum([len(word) + 1 for word in example.words], dtype=int) - 1
  return " ".join(example.words), [
    (int(end) - len(word), int(end))
    for word, end in zip(example.words, ends, strict=True)
  ]


def tag_prediction(
  example: Example,
  tags: Sequence[str],
  probabilities: Sequence[float],
  *,
  has_entities: bool,
) -> Prediction:
  """Returns the prediction for a sentence, JSON-able.

  Args:
    example: the sentence.
    tags, probabilities: one per word, as decoded.
    has_entities: whether the tags are entity tags.

  Returns:
    text, tokens, tags, probabilities and perhaps entities, each with type,
    text, start and end (characters of "text"), words (the first, and the one
    after the last) and score.
  """
  text, offsets = sentence_text(example)
  prediction = {
    "text": text,
    "tokens": list(example.words),
    "tags": list(tags),
    "probabilities": [round(float(p), 4) for p in probabilities],
  }
  if not has_entities:
    return prediction
  return {
    **prediction,
    "entities": [
      {
        "type": entity.type,
        "text": text[offsets[entity.begin][0] : offsets[entity.end - 1][1]],
        "start": offsets[entity.begin][0],
        "end": offsets[entity.end - 1][1],
        "words": [entity.begin, entity.end],
        # An entity is as certain as its least certain word.
        "score": min(prediction["probabilities"][entity.begin : entity.end]),
      }
      for entity in bio.find_entities(tags)
    ],
  }


def format_prediction(prediction: Prediction) -> str:
  """Returns the text and a line for each entity, or word/tag pairs."""
  if "entities" not in prediction:
    pairs = zip(prediction["tokens"], prediction["tags"], strict=True)
    return " ".join(f"{word}/{tag}" for word, tag in pairs)
  entities = [
    f"  {e['start']:>4}-{e['end']:<4} {e['type']}: {e['text']} "
    f"({e['score']:.2f})"
    for e in prediction["entities"]
  ]
  return "\n".join([prediction["text"], *entities])
