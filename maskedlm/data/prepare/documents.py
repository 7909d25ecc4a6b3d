"""Streams documents from a source to the workers of `prepare`.

Each function takes and returns a stream and holds little of it. Documents are
read and hashed, cached if they are small, assigned to a split and grouped into
chunks.
"""

import hashlib
import itertools
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from maskedlm.core.counts import counted
from maskedlm.core.errors import CorpusError
from maskedlm.data import workers
from maskedlm.data.options import TextConfig
from maskedlm.data.prepare import filters
from maskedlm.data.sources import domains, fasta, reader
from maskedlm.data.sources.domains import Domain
from maskedlm.data.sources.sentences import stripped
from maskedlm.runtime import console

CHUNK_BYTES = 1 << 20  # Text that a worker processes at a time.
CACHE_BYTES = 1 << 25  # Sources with at most this much text are read once.
FEW = 200  # Documents of which 1% is 2, the fewest that are held out.
WINDOW_BYTES = 1 << 12  # Of fewer documents, such windows are held out.


class Document(NamedTuple):
  """A document as it was read."""

  lines: list[str]  # With their indentation, and blank ones between them.
  key: float  # In [0, 1): a hash of the text.
  num_bytes: int  # Size of the text in UTF-8.
  domain: Domain = Domain("", "", "")
  digest: int = 0  # 64-bit hash of the text, without its indentation.


def read_documents(config: TextConfig, report: Counter) -> Iterator[Document]:
  """Yields the documents of corpus.source, or of each of corpus.parts in turn.

  The keys do not depend on config.seed: runs with different seeds share one
  corpus and are compared on the same held-out documents.
  """
  seen: set[bytes] = set()  # Lines, of all domains.
  for domain in domains.parse_domains(config.corpus):
    counts: Counter = Counter()  # Of this domain: an empty one is noticed.
    with domains.errors_of_domain(domain.name):
      number = workers.num_workers(config.corpus)
      kept = _read_kept(config, domain, counts, num_workers=number)
      if config.corpus.unique_lines:
        kept = filters.unique_lines(kept, seen, counts)
      lines = None
      for lines in kept:
        yield make_document(lines, domain)
      if lines is None:
        reasons = [f"{x}: {n:,}" for x, n in counts.items() if "left out" in x]
        raise CorpusError(
          f"no document is left of {domain.source}: {', '.join(reasons)}."
        )
    report.update(counts)


def read_piece(
  config: TextConfig, domain: Domain, piece: reader.Piece, report: Counter
) -> Iterator[Document]:
  """Yields the documents of a piece of a domain's source."""
  for lines in _read_kept(config, domain, report, piece=piece):
    yield make_document(lines, domain)


def _read_kept(
  config: TextConfig, domain: Domain, report: Counter, **options
) -> Iterator[list[str]]:
  """Yields the documents of a domain's source that config.corpus keeps."""
  read = reader.read_documents(
    domain.source,
    text_field=config.corpus.text_field,
    report=report,
    letters=_letters(config),
    **options,
  )
  return filters.keep(read, config.corpus, domain.language, report)


def _letters(config: TextConfig) -> fasta.Letters:
  """Returns how sequences are read; k-mers are of bases."""
  read, is_kmers = config.corpus.letters, config.tokenizer.kind == "kmers"
  least = config.tokenizer.k if is_kmers else 1
  return fasta.Letters(read, bases=is_kmers or read == "drop", least=least)


def make_document(lines: list[str], domain: Domain) -> Document:
  """Returns the document of these lines, with its key and digest."""
  hasher = hashlib.blake2b(digest_size=8)
  num_bytes = 0
  for line in stripped(lines):  # Indentation doesn't change the split.
    data = line.encode() + b"\n"
    hasher.update(data)
    num_bytes += len(data)
  digest = int.from_bytes(hasher.digest(), "little")
  return Document(lines, split_key(digest), num_bytes, domain, digest)


def split_key(digest: int) -> float:
  """Returns 53 bits of a digest as a number in [0, 1), exact in a float."""
  return (digest >> 11) * 2.0**-53


def cache_small(
  documents: Iterable[Document], cache: list[Document]
) -> Iterator[Document]:
  """Yields the documents and caches them unless they exceed CACHE_BYTES.

  At the end, `cache` holds all documents or none. Small sources can be slow to
  read: the source `docstrings:` parses every installed module.
  """
  num_bytes = 0
  for document in documents:
    num_bytes += document.num_bytes
    if num_bytes <= CACHE_BYTES:
      cache.append(document)
    else:
      cache.clear()
    yield document


def split_documents(
  documents: Iterable[Document], heldout_share: float
) -> Iterator[tuple[str, Document]]:
  """Yields (split, document), domain by domain.

  Of a domain with fewer than FEW documents, windows are held out instead of
  documents: two books of three would be too much, and unlike the third.

  Raises:
    CorpusError: a domain would be left without documents for training.
  """
  for domain, group in itertools.groupby(documents, lambda d: d.domain):
    first = list(itertools.islice(group, FEW))
    if len(first) < FEW:
      yield from _split_windows(first, heldout_share, domain)
    else:
      group = itertools.chain(first, group)
      yield from _split_domain(group, heldout_share, domain)


def _split_windows(
  documents: list[Document], heldout_share: float, domain: Domain
) -> Iterator[tuple[str, Document]]:
  """Yields (split, document), joining adjacent windows of the same split."""
  windows = [_windows(document) for document in documents]
  stream = itertools.chain.from_iterable(windows)
  split_of = {
    window.key: split
    for split, window in _split_domain(stream, heldout_share, domain)
  }
  for group in windows:
    for split, run in itertools.groupby(group, lambda w: split_of[w.key]):
      first, *rest = run
      lines = list(itertools.chain(first.lines, *(w.lines for w in rest)))
      yield split, make_document(lines, domain) if rest else first


def _windows(document: Document) -> list[Document]:
  """Returns a document in pieces of whole lines, of WINDOW_BYTES or more."""
  if document.num_bytes <= WINDOW_BYTES:
    return [document]
  windows: list[list[str]] = [[]]
  num_bytes = 0
  for line in document.lines:
    if num_bytes >= WINDOW_BYTES:
      windows.append([])
      num_bytes = 0
    windows[-1].append(line)
    num_bytes += len(line.encode())
  return [make_document(lines, document.domain) for lines in windows]


def _split_domain(
  documents: Iterable[Document], heldout_share: float, domain: Domain
) -> Iterator[tuple[str, Document]]:
  """Yields (split, document) of one domain, split by the document's key alone.

  Documents with keys below heldout_share are held out. If these are fewer than
  two, those with the two smallest keys are, since next-sentence prediction
  needs another document: of 20 documents at 1%, two are held out. Equal
  documents stay together, and the order of the documents doesn't matter. A
  heldout_share of 0 holds out none. Until two held-out documents are known, two
  documents are delayed and may come later than in the source.
  """
  below: set[float] = set()  # At most two of the keys below heldout_share.
  # Key -> (document, copies) of the smallest keys above it.
  waiting: dict[float, tuple[Document, int]] = {}
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
    with domains.errors_of_domain(domain.name):
      raise CorpusError(
        f"corpus.heldout_share={heldout_share}, with at least two documents"
        " held out, leaves none for training; give more documents (in text"
        " files, blank lines separate them), lower it, or hold out none (0)."
      )
  for document, copies in waiting.values():
    yield from [("heldout", document)] * copies


def make_chunks(
  documents: Iterable[tuple[str, Document]],
) -> Iterator[list[tuple[str, Document]]]:
  """Yields lists of (split, document) with about CHUNK_BYTES of text."""
  chunk, num_bytes = [], 0
  for split, document in documents:
    chunk.append((split, document))
    num_bytes += document.num_bytes
    if num_bytes >= CHUNK_BYTES:
      yield chunk
      chunk, num_bytes = [], 0
  if chunk:
    yield chunk


def show_progress(items: Iterable, label: str, size: Callable) -> Iterator:
  """Yields the items and shows the progress on stderr, after a label.

  `size` returns an item's number of documents and bytes of text.
  """
  replaces = console.is_terminal(sys.stderr)
  start = shown = time.monotonic()
  total = np.zeros(2, np.int64)

  def show(end):
    megabytes, seconds = total[1] / 1e6, time.monotonic() - start
    line = (
      f"{label}: {megabytes:,.1f} MB of text, {counted(total[0], 'document')},"
      f" {megabytes / max(seconds, 1e-9):.2f} MB/s"
    )
    console.warn(line, end=end)

  for item in items:
    yield item
    total += size(item)
    if time.monotonic() - shown > (0.5 if replaces else 5.0):
      shown = time.monotonic()
      show("\r" if replaces else "\n")
  show("\n")
