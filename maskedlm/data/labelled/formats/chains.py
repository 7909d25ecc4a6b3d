"""Coreference chains: CoNLL-2012, whose last column marks them, and OntoNotes.

  bc/cnn/00/cnn_0001 0 0 Ann   NNP * - - - - * (7)
  bc/cnn/00/cnn_0001 0 1 lost  VBD * - - - - * -
  bc/cnn/00/cnn_0001 0 2 her   PRP * - - - - * (12|(7)
  bc/cnn/00/cnn_0001 0 3 keys  NNS * - - - - * 12)

"(7" begins a mention of chain 7 and "7)" ends the chain's latest one that is
open. Of OntoNotes in JSON or Parquet (read.py), words, coref_spans and
part_id are read; each part is a document. So are e2e-coref's .jsonlines, whose
clusters count the words of the whole document:

  {"doc_key": "a", "sentences": [["Ann", "lost"], ["her", "keys"]],
   "clusters": [[[0, 0], [2, 2]]]}
"""

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.data.labelled import bad_rows, columns, fields, read
from maskedlm.data.labelled.formats import conll2012
from maskedlm.runtime import console

Chains = Sequence[Sequence[tuple[int, int]]]
_MARK = re.compile(r"(\()?(\d+)(\))?")


class Example(NamedTuple):
  """A document and its chains: (first word, one after the last) of mentions."""

  words: tuple[str, ...]
  sentence_ends: tuple[int, ...]  # One after the last word of each sentence.
  chains: tuple[tuple[tuple[int, int], ...], ...] | None = None
  text: str | None = None  # None: the words joined by spaces.
  offsets: tuple[tuple[int, int], ...] = ()  # Characters of the words in text.
  id: str = ""  # As in #begin document: (NAME); part 000.
  where: str = ""  # FILE:LINE.


def _span(value: Any) -> tuple[int, int, int]:
  if not isinstance(value, list) or len(value) != 3:
    raise ValueError(f"it has the span {value!r:.40}")
  chain, begin, last = map(fields.whole_number_of, value)
  return chain, begin, last


_SENTENCE = fields.Format(
  {
    "words": fields.texts("words"),
    "spans": fields.items(
      "coref_spans",
      of=_span,
      expected="a list of [chain, first word, last word]",
      optional=True,
    ),
    "part": fields.whole_number("part_id", optional=True),
  },
  such_as='{"words": ["Ann", "slept"], "coref_spans": [[7, 0, 0]]}',
)


_DOCUMENT = fields.Format(
  {
    "id": fields.key("document_id", "doc_key", optional=True),
    "sentences": fields.Field(
      ("sentences",), "a list of objects", fields.list_of
    ),
    "clusters": fields.items(
      "clusters",
      of=lambda x: [_span([0, *fields.list_of(m)]) for m in fields.list_of(x)],
      expected="a list of lists of [first word, last word]",
      optional=True,
    ),
  },
  such_as=f'{{"document_id": "a", "sentences": [{_SENTENCE.such_as}]}}',
  filled="sentences",
)


def read_file(source: str) -> list[Example]:
  """Returns the documents of a file.

  A mention that is marked twice in a chain counts once, and a log line counts
  them. One in two chains is in both, as in the official scorer. In JSON and
  Parquet, a document without words is left out, and counted; without the field
  coref_spans its chains are not known.

  Raises:
    DataError: the file can't be read; the last column is not of brackets, or
      they are not balanced; a span is not within its sentence; see
      conll2012.read_documents.
  """
  if read.has_objects(source):
    return _read_rows(source)
  file = columns.read_columns(source, between="spaces")
  repeated: list[str] = []

  def read_document(document: conll2012.Document) -> Example:
    blocks = [sentence.block for sentence in document.sentences]
    rows = [row for block in blocks for row in block.rows]
    numbers = [number for block in blocks for number in block.numbers]
    ends = itertools.accumulate(len(block.rows) for block in blocks)
    words = tuple(row[conll2012.WORD] for row in rows)
    places: list[str] = []
    chains = _read_marks(source, rows, numbers, places)
    repeated.extend(places)  # Not if the document is left out.
    return Example(
      words, tuple(ends), chains, id=document.id, where=document.where
    )

  documents = conll2012.read_documents(file)
  examples = [*bad_rows.map_rows(read_document, documents)]
  if repeated:
    console.log(
      f"{source}: {counted(len(repeated), 'mention')} marked twice in a chain, "
      f"counted once; such as {repeated[0]}"
    )
  return examples


def _read_marks(
  source: str,
  rows: Sequence[Sequence[str]],
  numbers: Sequence[int],
  repeated: list[str],
) -> tuple[tuple[tuple[int, int], ...], ...]:
  """Returns the chains of a document; appends repeated mentions' FILE:LINE."""
  begun = defaultdict(list)  # Chain -> (first word, FILE:LINE).
  chains: dict[int, set[tuple[int, int]]] = {}
  for place, row in enumerate(rows):
    where, cell = f"{source}:{numbers[place]}", row[conll2012.CHAINS]
    for mark in cell.split("|") if cell not in ("-", "_") else ():
      match = _MARK.fullmatch(mark)
      if not match or not (match[1] or match[3]):
        raise DataError(
          f"{where}: the last column is {cell!r}; expected -, or marks such as "
          "(7, 7) and (7), separated by |, with the number of a chain."
        )
      chain = int(match[2])
      if match[1]:
        begun[chain].append((place, where))
      if not match[3]:
        continue
      if not begun[chain]:
        raise DataError(
          f"{where}: {mark!r} ends a mention of chain {chain}, but none is "
          f"open; expected ({chain} at its first word."
        )
      mention = begun[chain].pop()[0], place + 1
      mentions = chains.setdefault(chain, set())
      repeated += [where] * (mention in mentions)
      mentions.add(mention)
  for chain, open_mentions in begun.items():
    if open_mentions:
      raise DataError(
        f"{open_mentions[-1][1]}: ({chain} begins a mention that does not end "
        f"in its document; expected {chain}) at its last word."
      )
  return tuple(tuple(sorted(chain)) for chain in chains.values())


def _read_rows(source: str) -> list[Example]:
  examples: list[Example] = []
  empty: list[Example] = []

  def parts(row: read.Row) -> list[Example]:
    sentences, clusters = row.values["sentences"], row.values["clusters"]
    name = row.values["id"] or f"row {row.line}"
    forms = [x if isinstance(x, dict) else {"words": x} for x in sentences]
    parsed = [fields.values(x, _SENTENCE, row.where) for x in forms]
    return [
      _parse_part([*group], clusters, f"({name}); part {part:03}", row.where)
      for part, group in itertools.groupby(parsed, lambda x: x["part"] or 0)
    ]

  rows = read.read_objects(source, _DOCUMENT)
  for example in itertools.chain.from_iterable(bad_rows.map_rows(parts, rows)):
    (examples if example.words else empty).append(example)
  if empty:
    console.log(
      f"{source}: {counted(len(empty), 'document')} without words, left out, "
      f"such as {empty[0].id}"
    )
  if not examples:
    raise fields.no_rows(source, _DOCUMENT)
  return examples


def _parse_part(
  sentences: Sequence[Mapping[str, Any]],
  clusters: Sequence[Sequence[tuple[int, int, int]]] | None,
  name: str,
  where: str,
) -> Example:
  words: list[str] = []
  ends: list[int] = []
  chains = defaultdict(set)
  for sentence in sentences:
    count, first = len(sentence["words"]), len(words)
    for chain, begin, last in sentence["spans"] or ():
      if not 0 <= begin <= last < count:
        raise DataError(
          f"{where}: the span {[chain, begin, last]} of coref_spans, but its "
          f"sentence has {counted(count, 'word')}; expected words from 0 to "
          f"{count - 1}, the last one included."
        )
      chains[chain].add((first + begin, first + last + 1))
    words += sentence["words"]
    ends += [len(words)] * (count > 0)
  for number, cluster in enumerate(clusters or ()):
    for _, begin, last in cluster:
      if not 0 <= begin <= last < len(words):
        raise DataError(
          f"{where}: the span {[begin, last]} of clusters; expected words from "
          f"0 to {len(words) - 1}, the last one included."
        )
      chains[number].add((begin, last + 1))
  spans = (sentence["spans"] for sentence in sentences)
  sorted_chains = None
  if any(x is not None for x in (clusters, *spans)):
    sorted_chains = tuple(tuple(sorted(chain)) for chain in chains.values())
  return Example(tuple(words), tuple(ends), sorted_chains, id=name, where=where)


def format_documents(
  documents: Iterable[tuple[str, Sequence[str], Sequence[int], Chains]],
) -> str:
  """Returns documents as CoNLL-2012, with placeholders in unknown columns.

  Args:
    documents: (id, words, ends of the sentences, chains) of each. No two
      mentions of a chain may cross.
  """
  formatted = []
  for name, words, ends, chains in documents:
    cells = _cells(chains)
    marks = ["|".join(cells.get(i, ["-"])) for i in range(len(words))]
    columns_of = [
      conll2012.sentence_columns(words[a:b], chains=marks[a:b])
      for a, b in itertools.pairwise([0, *ends])
    ]
    formatted.append((name, columns_of))
  return conll2012.format_documents(formatted)


def _cells(chains: Chains) -> dict[int, list[str]]:
  """Returns the marks of each word, outer mentions around inner ones."""
  cells = defaultdict(list)
  mentions = [(b, e, i) for i, chain in enumerate(chains) for b, e in chain]
  for begin, end, chain in sorted(mentions, key=lambda m: (m[0], -m[1])):
    if end - begin > 1:
      cells[begin].append(f"({chain}")
  for begin, end, chain in sorted(mentions):
    if end - begin == 1:
      cells[begin].append(f"({chain})")
  for begin, end, chain in sorted(mentions, key=lambda m: (m[1], -m[0])):
    if end - begin > 1:
      cells[end - 1].append(f"{chain})")
  return cells
