"""Output of span labelling: words and labelled spans."""

from collections.abc import Sequence

from maskedlm.data.labelled.formats.layers import Example
from maskedlm.data.labelled.sentences import sentence_text
from maskedlm.finetune.common.parts import part
from maskedlm.finetune.contract import Prediction
from maskedlm.finetune.spans.decode import Candidate


def span_prediction(example: Example, spans: Sequence[Candidate]) -> Prediction:
  """Returns the prediction for a sentence, JSON-able.

  Returns:
    text (given words are joined by spaces), tokens and entities, each with
    type, text, start and end (characters of "text"), words (the first, and the
    one after the last), score (the probability of the type) and margin (its
    log-odds against NULL).
  """
  sentence, offsets = sentence_text(example)
  entities = [
    {
      "type": label,
      **part(sentence, offsets, begin, end),
      "score": round(float(probability), 4),
      "margin": round(float(margin), 3),
    }
    for margin, (label, begin, end), probability in spans
  ]
  return {
    "text": sentence,
    "tokens": list(example.words),
    "entities": entities,
  }
