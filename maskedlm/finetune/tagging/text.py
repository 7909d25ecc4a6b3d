"""Output of a tagger: words, tags and entities."""

from collections.abc import Sequence

from maskedlm.data.labelled import bio
from maskedlm.data.labelled.formats.tags import Example
from maskedlm.data.labelled.sentences import sentence_text
from maskedlm.finetune.common.parts import format_entities, part
from maskedlm.finetune.contract import Prediction


def tag_prediction(
  example: Example,
  tags: Sequence[str],
  probabilities: Sequence[float],
  *,
  has_entities: bool,
) -> Prediction:
  """Returns the prediction for a sentence, JSON-able.

  Args:
    tags, probabilities: one per word, as decoded.
    has_entities: whether the tags are entity tags.

  Returns:
    text, tokens, tags, probabilities and perhaps entities, each a part of the
    text (common/parts.py) with its type and score.
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
        "type": label,
        **part(text, offsets, begin, end),
        # An entity is as certain as its least certain word.
        "score": min(prediction["probabilities"][begin:end]),
      }
      for label, begin, end in bio.find_entities(tags)
    ],
  }


def format_prediction(prediction: Prediction) -> str:
  """Returns the text and a line for each entity, or word/tag pairs."""
  if "entities" not in prediction:
    pairs = zip(prediction["tokens"], prediction["tags"], strict=True)
    return " ".join(f"{word}/{tag}" for word, tag in pairs)
  return format_entities(prediction)
