"""Reads documents and their chains from JSON and Parquet.

They are OntoNotes' as the Hub has it (common/ontonotes.py); of a sentence,
words, coref_spans and part_id are read.
"""

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.data.labelled import objects
from maskedlm.finetune.common import ontonotes
from maskedlm.finetune.coreference_chains.rows import Example
from maskedlm.runtime import console

_SUCH_AS = (
  '{"document_id": "a", "sentences": [{"words": ["Ann", "slept"], '
  '"coref_spans": [[7, 0, 0]]}]}'
)


def read_documents(source: str) -> list[Example]:
  """Returns the documents of a file; each part of one is its own.

  A document without words is left out, and counted. Without the field
  coref_spans its chains are not known.

  Raises:
    DataError: a row is no document; a span is not within its sentence.
  """
  documents, empty = [], []
  for number, fields in objects.read_objects(source, such_as=_SUCH_AS):
    where = f"{source}:{number}"
    sentences = ontonotes.sentences_of(fields)
    if sentences is None:
      raise DataError(
        f"{where}: no list of 'sentences'; there are "
        f"{', '.join(map(repr, fields)) or 'no fields'}; expected {_SUCH_AS}."
      )
    name = objects.as_text(fields.get("document_id")) or f"row {number}"
    for part, group in itertools.groupby(
      sentences, lambda sentence: sentence.get("part_id") or 0
    ):
      made = _document(list(group), f"({name}); part {part:03}", where)
      (documents if made.words else empty).append(made)
  if empty:
    console.log(
      f"{source}: {counted(len(empty), 'document')} without words, left out, "
      f"such as {empty[0].id}"
    )
  if not documents:
    raise DataError(f"{source}: has no document; expected {_SUCH_AS}.")
  return documents


def _document(
  sentences: Sequence[Mapping[str, Any]], name: str, where: str
) -> Example:
  words: list[str] = []
  ends: list[int] = []
  chains = defaultdict(set)
  for sentence in sentences:
    found, spans = sentence.get("words"), sentence.get("coref_spans") or ()
    if not isinstance(found, list) or not all(
      isinstance(word, str) and word for word in found
    ):
      raise DataError(
        f"{where}: 'words' is {str(found)[:40]}; expected {_SUCH_AS}."
      )
    for span in spans:
      is_span = isinstance(span, list) and len(span) == 3
      if not is_span or not all(isinstance(x, int) for x in span):
        raise DataError(
          f"{where}: the span {str(span)[:40]} of coref_spans; expected "
          "[chain, first word, last word]."
        )
      chain, begin, last = span
      if not 0 <= begin <= last < len(found):
        raise DataError(
          f"{where}: the span {span} of coref_spans, but its sentence has "
          f"{counted(len(found), 'word')}; expected words from 0 to "
          f"{len(found) - 1}, the last one included."
        )
      chains[chain].add((len(words) + begin, len(words) + last + 1))
    words += found
    if found:
      ends.append(len(words))
  is_known = any("coref_spans" in sentence for sentence in sentences)
  made = tuple(tuple(sorted(chain)) for chain in chains.values())
  return Example(
    words=tuple(words),
    sentence_ends=tuple(ends),
    chains=made if is_known else None,
    id=name,
    where=where,
  )
