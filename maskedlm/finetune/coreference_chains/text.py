"""Input and output of coreference chains: texts in, mentions by chain out."""

import itertools
from collections.abc import Sequence

from maskedlm.data.labelled import fields, sentences, tables
from maskedlm.data.labelled.formats.chains import Chains, Example
from maskedlm.finetune.common.parts import part
from maskedlm.finetune.contract import Prediction

_SENTENCES = fields.Format(
  {
    "sentences": fields.items(
      "sentences",
      of=lambda value: tuple(map(fields.text_of, fields.list_of(value))),
      expected="a list of lists of words",
    )
  },
  such_as='{"sentences": [["a", "word", "each"], ["and", "so", "on"]]}, '
  '{"tokens": ["a", "word", "each"]}, or {"text": "..."}',
)


def parse_line(line: str) -> Example:
  """Parses a document: a line of text, or JSON.

  JSON has "sentences", lists of words, "tokens" or "text". Sentences of the
  others end after words of . ! and ?.

  Raises:
    DataError: the JSON has none of them.
  """
  if tables.is_object(line):
    value = sentences.parse_object(line, _SENTENCES.such_as)
    if "sentences" in value:
      where = f"input {line[:60]!r}"
      lists = fields.values(value, _SENTENCES, where)["sentences"]
      return Example(
        words=tuple(itertools.chain(*lists)),
        sentence_ends=tuple(itertools.accumulate(len(x) for x in lists if x)),
      )
  document = sentences.parse_line(line)
  return Example(
    words=document.words,
    sentence_ends=sentence_ends(document.words),
    text=document.text,
    offsets=document.offsets,
  )


def sentence_ends(words: Sequence[str]) -> tuple[int, ...]:
  """Returns the ends of the sentences of a text: after words of . ! and ?."""
  if not words:
    return ()
  ends = {i + 1 for i, word in enumerate(words) if not word.strip(".!?")}
  ends.add(len(words))
  # "?!" is two words, and one end.
  return tuple(sorted(end for end in ends if end + 1 not in ends))


def chain_prediction(example: Example, chains: Chains) -> Prediction:
  """Returns the prediction for a document, JSON-able.

  Returns:
    id (of the file's document, or ""), text (given words are joined by spaces),
    tokens, sentence_ends (one after the last word of each) and chains, lists of
    mentions, each with text, start and end (characters of "text") and words
    (the first, and the one after the last).
  """
  document, offsets = sentences.sentence_text(example)
  return {
    "id": example.id,
    "text": document,
    "tokens": list(example.words),
    "sentence_ends": list(example.sentence_ends),
    "chains": [
      [part(document, offsets, *m) for m in chain] for chain in chains
    ],
  }


def predicted_chains(
  predictions: Sequence[Prediction],
) -> list[list[list[tuple[int, int]]]]:
  """Returns the chains of each prediction, as those of an Example."""
  return [
    [[tuple(m["words"]) for m in chain] for chain in p["chains"]]
    for p in predictions
  ]


def format_prediction(prediction: Prediction) -> str:
  """Returns the document's name or beginning, and a line for each chain."""
  name = prediction["id"]
  if not name:
    beginning = " ".join(prediction["text"].split())
    name = beginning if len(beginning) <= 70 else f"{beginning[:67]}..."
  lines = [
    f"  {i}: " + " | ".join(f"{m['text']} ({m['start']})" for m in chain)
    for i, chain in enumerate(prediction["chains"], 1)
  ]
  return "\n".join([name, *(lines or ["  (no chains)"])])
