"""Input and output of the parser: words between spaces in, CoNLL-U out."""

from collections.abc import Sequence

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import columns
from maskedlm.data.labelled.formats import conllu
from maskedlm.data.labelled.sentences import parse_words
from maskedlm.finetune.contract import Prediction


def parse_line(line: str) -> conllu.Example:
  """Parses words between spaces, or {"tokens": [words]}, {"text": ...} in JSON.

  Raises:
    DataError: there are no words, or a line of CoNLL-U; the JSON has neither
      field.
  """
  if line.count("\t") == columns.CONLLU_COLUMNS - 1:
    raise DataError(
      f"input {line[:60]!r} is a line of CoNLL-U; expected words between "
      "spaces; give files of CoNLL-U as --data."
    )
  return conllu.of_words(parse_words(line))


def tree_prediction(
  example: conllu.Example,
  heads: Sequence[int],
  labels: Sequence[str],
  probabilities: Sequence[float],
) -> Prediction:
  """Returns the prediction for a sentence, JSON-able.

  Returns:
    tokens; heads, from 1, 0 for the root; labels of the arcs; probabilities, of
    the head and the label together; and conllu, all of it in CoNLL-U.
  """
  return {
    "tokens": list(example.words),
    "heads": list(heads),
    "labels": list(labels),
    "probabilities": [round(float(p), 4) for p in probabilities],
    "conllu": conllu.format_sentence(example, heads, labels),
  }
