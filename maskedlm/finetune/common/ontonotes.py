"""OntoNotes as the Hugging Face Hub has it: a row is a document of sentences.

  {"document_id": "nw/wsj/23/wsj_2311", "sentences": [{"part_id": 0,
   "words": ["Ann", "slept"], "pos_tags": ["NNP", "VBD"],
   "parse_tree": "(TOP(S(NP*)(VP*)))",
   "named_entities": ["B-PERSON", "O"],
   "srl_frames": [{"verb": "slept", "frames": ["B-ARG0", "B-V"]}],
   "coref_spans": [[7, 0, 0]]}, ...]}

Spans of a chain are [chain, first word, last word], within their sentence
(https://huggingface.co/datasets/ontonotes/conll2012_ontonotesv5).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def sentences_of(fields: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
  """Returns the sentences of a document; None if the row is no document."""
  found = fields.get("sentences")
  if isinstance(found, list) and all(isinstance(x, dict) for x in found):
    return found
  return None


def each_sentence(
  rows: Iterable[tuple[int, dict[str, Any]]],
) -> Iterator[tuple[int, Mapping[str, Any]]]:
  """Yields (row, fields) of the sentences of documents, and of other rows."""
  for number, fields in rows:
    found = sentences_of(fields)
    for sentence in [fields] if found is None else found:
      yield number, sentence
