"""Input and output of span labelling: text lines in, labelled spans out."""

from collections.abc import Sequence

from maskedlm.finetune.contract import Prediction
from maskedlm.finetune.spans.decode import Candidate
from maskedlm.finetune.spans.rows import Example
from maskedlm.finetune.tagging import text


def parse_line(line: str) -> Example:
  """Parses a line of text, or JSON with "text" or "tokens", as taggers do.

  Raises:
    DataError: the JSON has neither.
  """
  sentence = text.parse_line(line)
  return Example(sentence.words, text=sentence.text, offsets=sentence.offsets)


def span_prediction(example: Example, spans: Sequence[Candidate]) -> Prediction:
  """Returns the prediction for a sentence, JSON-able.

  Returns:
    text (given words are joined by spaces), tokens and entities, each with
    type, text, start and end (characters of "text"), words (the first, and the
    one after the last), score (the probability of the type) and margin (its
    log-odds against NULL).
  """
  sentence, offsets = text.sentence_text(example)
  entities = []
  for margin, (label, begin, end), probability in spans:
    start, stop = offsets[begin][0], offsets[end - 1][1]
    entities.append(
      {
        "type": label,
        "text": sentence[start:stop],
        "start": start,
        "end": stop,
        "words": [begin, end],
        "score": round(float(probability), 4),
        "margin": round(float(margin), 3),
      }
    )
  return {
    "text": sentence,
    "tokens": list(example.words),
    "entities": entities,
  }
