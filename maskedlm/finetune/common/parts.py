"""Parts of a text in predictions: entities, spans, mentions."""

from collections.abc import Mapping, Sequence
from typing import Any


def part(
  text: str, offsets: Sequence[tuple[int, int]], begin: int, end: int
) -> dict[str, Any]:
  """Returns the words begin to end - 1 of a text, JSON-able.

  Args:
    offsets: the characters of each word (sentences.sentence_text).
    begin, end: the first word, and the one after the last.

  Returns:
    text, start and end (characters of the whole text), and words ([begin,
    end]).
  """
  start, stop = offsets[begin][0], offsets[end - 1][1]
  return {
    "text": text[start:stop],
    "start": start,
    "end": stop,
    "words": [begin, end],
  }


def format_entities(prediction: Mapping[str, Any]) -> str:
  """Returns the text of a prediction, and a line for each of its entities."""
  entities = [
    f"  {e['start']:>4}-{e['end']:<4} {e['type']}: {e['text']} "
    f"({e['score']:.2f})"
    for e in prediction["entities"]
  ]
  return "\n".join([prediction["text"], *(entities or ["  (no entities)"])])
