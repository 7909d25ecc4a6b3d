"""Documents on their way from a source to the workers of `prepare`.

Each function takes a stream and gives a stream, and holds little of it: read,
keyed by a hash -> kept if small -> put in a split -> grouped to chunks.
"""

import hashlib
import itertools
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from ml_collections import ConfigDict

from maskedlm.core.errors import CorpusError
from maskedlm.data import workers
from maskedlm.data.sources import languages, reader
from maskedlm.data.sources.languages import Part
from maskedlm.runtime import console

CHUNK_BYTES = 1 << 20  # Text that a worker takes at a time.
KEPT_BYTES = 1 << 25  # Of a source of at most this much text, not read again.


class Document(NamedTuple):
  """A document as it was read."""

  lines: list[str]
  key: float  # In [0, 1): a hash of the text.
  num_bytes: int  # Of text, as UTF-8.
  part: Part = Part("", "", "")  # Of config.corpus.parts.
  digest: int = 0  # Of the text, 64 bits.


def read(config: ConfigDict, report: Counter) -> Iterator[Document]:
  """The documents of the source, or of one part after the other, keyed.

  config.seed has no part in the key: runs of several seeds share one corpus,
  and are compared on the same held-out documents.
  """
  for part in languages.parse(config.corpus):
    counts = Counter()  # Of each one, so that an empty one is seen.
    with languages.naming(part.name):
      for lines in reader.documents(
        part.source,
        text_field=config.corpus.text_field,
        report=counts,
        num_workers=workers.number(config.corpus),
      ):
        yield keyed(lines, part)
    report.update(counts)


def read_piece(
  config: ConfigDict,
  part: Part,
  piece: reader.Piece,
  report: Counter,
) -> Iterator[Document]:
  """The documents of a piece of a part's source, keyed."""
  for lines in reader.read_piece(
    part.source, piece, text_field=config.corpus.text_field, report=report
  ):
    yield keyed(lines, part)


def keyed(lines: list[str], part: Part) -> Document:
  """The document of these lines."""
  hasher = hashlib.blake2b(digest_size=8)
  num_bytes = 0
  for line in lines:
    data = line.encode() + b"\n"
    hasher.update(data)
    num_bytes += len(data)
  digest = int.from_bytes(hasher.digest(), "little")
  return Document(lines, key_of(digest), num_bytes, part, digest)


def key_of(digest: int) -> float:
  """53 bits of a digest, exact in a float: in [0, 1)."""
  return (digest >> 11) * 2.0**-53


def keep(
  documents: Iterable[Document], kept: list[Document]
) -> Iterator[Document]:
  """Passes documents on; `kept` has all of them at the end, or none.

  None if they are over KEPT_BYTES. Small sources can be slow to read: that of
  docstrings parses every installed module.
  """
  num_bytes = 0
  for document in documents:
    num_bytes += document.num_bytes
    if num_bytes <= KEPT_BYTES:
      kept.append(document)
    else:
      kept.clear()
    yield document


def split(
  documents: Iterable[Document], heldout_share: float
) -> Iterator[tuple[str, Document]]:
  """Puts each document in a split; yields (split, document), part by part.

  Raises CorpusError where that leaves a part no document for training.
  """
  for part, group in itertools.groupby(documents, lambda d: d.part):
    yield from _split_part(group, heldout_share, part)


def _split_part(
  documents: Iterable[Document], heldout_share: float, part: Part
) -> Iterator[tuple[str, Document]]:
  """By the document's key alone.

  Held out are the keys below heldout_share and, where these are fewer than
  two, the two smallest keys of all (next sentence prediction needs partners):
  20 documents at 1% have two held out. Equal documents stay together, and the
  order of the documents doesn't matter. With a heldout_share of 0 none is.
  Until two are known, two documents wait, and may come later than they stood.
  """
  below = set()  # At most two of the keys below heldout_share.
  waiting = {}  # Key -> document, copies: the smallest keys of the others.
  training = False
  for document in documents:
    if document.key < heldout_share:
      yield "heldout", document
      if len(below) < 2:
        below.add(document.key)
    else:
      first, copies = waiting.get(document.key, (document, 0))
      waiting[document.key] = first, copies + 1
    while waiting and (len(below) + len(waiting) > 2 or not heldout_share):
      document, copies = waiting.pop(max(waiting))
      yield from [("train", document)] * copies
      training = True
  if (below or waiting) and not training:
    with languages.naming(part.name):
      raise CorpusError(
        f"corpus.heldout_share={heldout_share} of the documents, or two at"
        " least, would leave none for training: give more documents (in text:"
        " a blank line ends one), lower it, or hold nothing out (0)."
      )
  for document, copies in waiting.values():
    yield from [("heldout", document)] * copies


def chunked(
  documents: Iterable[tuple[str, Document]],
) -> Iterator[list[tuple[str, Document]]]:
  """Groups documents to lists of about CHUNK_BYTES of text."""
  chunk, num_bytes = [], 0
  for split, document in documents:
    chunk.append((split, document))
    num_bytes += document.num_bytes
    if num_bytes >= CHUNK_BYTES:
      yield chunk
      chunk, num_bytes = [], 0
  if chunk:
    yield chunk


def watch(items: Iterable, label: str, size: Callable) -> Iterator:
  """Passes items on and tells stderr how far it is.

  size(item) gives its number of documents and its bytes of text.
  """
  replaces = sys.stderr.isatty()
  start = shown = time.monotonic()
  total = np.zeros(2, np.int64)

  def show(end):
    megabytes, seconds = total[1] / 1e6, time.monotonic() - start
    line = (
      f"{label}: {megabytes:,.1f} MB of text, {total[0]:,} documents,"
      f" {megabytes / max(seconds, 1e-9):.2f} MB/s"
    )
    console.clear()
    print(line, end=end, file=sys.stderr, flush=True)

  for item in items:
    yield item
    total += size(item)
    if time.monotonic() - shown > (0.5 if replaces else 5.0):
      shown = time.monotonic()
      show("\r" if replaces else "\n")
  show("\n")
