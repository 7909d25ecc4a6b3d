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

from collections.abc import Iterable, Iterator
from typing import Any


def each_sentence(
  rows: Iterable[tuple[int, dict[str, Any]]],
) -> Iterator[tuple[int, dict[str, Any]]]:
  """Yields (row, fields) of the sentences of documents, and of other rows."""
  for number, fields in rows:
    found = fields.get("sentences")
    is_document = isinstance(found, list) and all(
      isinstance(x, dict) for x in found
    )
    for sentence in found if is_document else [fields]:
      yield number, sentence
