"""Finds duplicate documents: equal ones by a hash, similar ones by MinHash.

The similarity of two documents is the Jaccard index J of their sets of
shingles, runs of 5 words (Broder, "On the resemblance and containment of
documents", 1997). The minima of a random hash over the two sets are equal with
probability J. With b bands of r minima each, at least one band is equal with
probability 1 - (1 - J^r)^b, which rises steeply around (1/b)^(1/r) (Leskovec,
Rajaraman & Ullman, Mining of Massive Datasets, sec. 3.4). A document that
shares a band with an earlier one is dropped, as in Lee et al.
(arXiv:2107.06499), so the first of each pair is kept. Pairs are not compared:
the work is linear in the number of documents, and the result depends on the
text alone.

Worker processes run `compute_signatures`; `mark_duplicates` sees the signatures
of all documents. beam/ does the same, with the signatures grouped by hash.
"""

import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.core.errors import CorpusError
from maskedlm.data import hashing, workers
from maskedlm.data.prepare import word_hashes
from maskedlm.data.prepare.documents import Document, make_chunks
from maskedlm.data.sources import domains
from maskedlm.data.sources.sentences import stripped

SHINGLE = 5  # Words.
HASHES = 128  # Maximum over all bands.
KEPT, EQUAL, SIMILAR = range(3)  # Status of a document.
BLOCK = 1 << 12  # Shingles hashed at a time.


class Signatures(NamedTuple):
  """Hashes of n documents, by which duplicates are found."""

  digests: np.ndarray  # [n] uint64, hashes of the text.
  bands: np.ndarray  # [n, b] uint64; b is 0 if only equal ones are sought.
  characters: np.ndarray  # [n] int64


def is_enabled(options) -> bool:
  """Returns whether config.corpus drops any duplicates."""
  return bool(options.deduplicate or options.near_duplicates)


def choose_bands(threshold: float) -> tuple[int, int]:
  """Returns (b, r) of b bands of r hashes, (1/b)^(1/r) nearest the threshold.

  There are as many bands as HASHES allows; none if the threshold is 0.
  """
  if not threshold:
    return 0, 0
  choices = [(HASHES // r, r) for r in range(1, HASHES + 1)]
  return min(choices, key=lambda c: abs(c[0] ** (-1 / c[1]) - threshold))


def compute_signatures(
  documents: Sequence[Document], threshold: float
) -> Signatures:
  """Returns the signatures of documents for a similarity threshold."""
  count, rows = choose_bands(threshold)
  minima = np.empty((len(documents), count * rows), np.uint32)
  if count:
    for i, document in enumerate(documents):
      minima[i] = _minhash(shingles(document), count * rows)
  bands = minima.reshape(len(documents), count, rows)
  state = np.broadcast_to(np.arange(count, dtype=np.uint64), bands.shape[:2])
  for row in range(rows):
    state = hashing.bits(state, bands[:, :, row])
  return Signatures(
    np.array([document.digest for document in documents], np.uint64),
    np.array(state, np.uint64),
    np.array([sum(map(len, stripped(d.lines))) for d in documents], np.int64),
  )


def find_duplicates(
  documents: Iterable[Document], options
) -> tuple[np.ndarray, np.ndarray]:
  """Returns mark_duplicates's result for all documents, hashed by workers.

  Raises:
    CorpusError: a domain would be left without documents.
  """
  sizes: Counter[str] = Counter()  # Documents of each domain, in order.

  def counted():
    for document in documents:
      sizes[document.domain.name] += 1
      yield "", document

  status, characters = mark_duplicates(
    workers.ordered_map(
      _make_signer,
      (options.near_duplicates,),
      ([document for _, document in chunk] for chunk in make_chunks(counted())),
      num_workers=workers.num_workers(options),
    )
  )
  bounds = itertools.pairwise(itertools.accumulate(sizes.values(), initial=0))
  for name, (begin, end) in zip(sizes, bounds, strict=True):
    check_domain(name, status[begin:end])
  return status, characters


def check_domain(name: str, status: np.ndarray) -> None:
  """Raises CorpusError if all documents of a domain are dropped; status [n]."""
  if len(status) and not np.any(status == KEPT):
    with domains.errors_of_domain(name):
      raise CorpusError(
        "every document duplicates an earlier one and would be dropped; leave"
        " the part out, list it before the others, or set"
        " corpus.deduplicate=False and corpus.near_duplicates=0."
      )


def _make_signer(threshold: float):
  return functools.partial(compute_signatures, threshold=threshold)


def mark_duplicates(
  signatures: Iterable[Signatures],
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the status [n] uint8 and characters [n] int64 of all documents.

  Uses 8 bytes of memory per document for each band, and 8 each for the digests,
  the characters and the sorting.
  """
  digests, bands, characters = (
    np.concatenate(column) for column in zip(*signatures, strict=True)
  )
  status = np.full(len(digests), KEPT, np.uint8)
  for band in range(bands.shape[1]):
    status[find_repeated(bands[:, band])] = SIMILAR
  status[find_repeated(digests)] = EQUAL
  return status, characters


def find_repeated(values: np.ndarray) -> np.ndarray:
  """Returns the indices of values [n] seen before: [7, 5, 7, 7] -> [2, 3]."""
  order = np.argsort(values, kind="stable")
  ordered = values[order]
  return order[1:][ordered[1:] == ordered[:-1]]


def count_dropped(status: np.ndarray, characters: np.ndarray) -> dict[str, int]:
  """Returns the report's counts of dropped documents; both arrays are [n]."""
  return {
    "equal documents dropped": int(np.sum(status == EQUAL)),
    "near-duplicate documents dropped": int(np.sum(status == SIMILAR)),
    "characters of dropped documents": int(characters[status != KEPT].sum()),
  }


# Shingles


def shingles(document: Document) -> np.ndarray:
  """Returns the distinct hashes of SHINGLE consecutive words, uint64 [n].

  Case and punctuation are ignored. A document of fewer words is one shingle; a
  document without words has its digest as a shingle.
  """
  words = word_hashes.word_hashes(" ".join(document.lines))
  if not len(words):
    return np.array([document.digest], np.uint64)
  return np.unique(word_hashes.runs_of_words(words, SHINGLE))


def _minhash(values: np.ndarray, count: int) -> np.ndarray:
  """Returns the minima [count] uint32 of a * x + b mod 2^32 over values x."""
  index = np.arange(count)
  a = (hashing.bits("a", index) | np.uint64(1)).astype(np.uint32)
  b = hashing.bits("b", index).astype(np.uint32)
  values = values.astype(np.uint32)
  minima = np.full(count, np.iinfo(np.uint32).max, np.uint32)
  for start in range(0, len(values), BLOCK):
    block = values[start : start + BLOCK]
    hashed = a[:, None] * block + b[:, None]
    np.minimum(minima, hashed.min(axis=1), out=minima)
  return minima
