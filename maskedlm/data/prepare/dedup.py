"""Duplicate documents: equal ones by a hash, similar ones by MinHash.

How alike two documents are is the Jaccard similarity of their sets of
shingles, runs of 5 words (Broder, "On the resemblance and containment of
documents", 1997). The least value of a random hash over a set is that of
another set with just this probability J, so b bands of r such values each are
equal in one band at least with 1 - (1 - J^r)^b, which rises steeply around
(1/b)^(1/r) (Leskovec, Rajaraman & Ullman, Mining of Massive Datasets, sec.
3.4). A document that shares a band with an earlier one is dropped, as Lee et
al. (arXiv:2107.06499) do, so of each pair the first one in the corpus is kept.
No pair is compared: the work is linear, and depends on the text alone.

`signatures` is what a worker does; `fates` sees those of all documents. Both
the local runner (prepare.py) and Beam (stages.py) are made of them.
"""

import functools
import itertools
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.core.errors import CorpusError
from maskedlm.data import hashing, workers
from maskedlm.data.prepare import documents as documents_lib
from maskedlm.data.prepare.documents import Document
from maskedlm.data.sources import languages

SHINGLE = 5  # Words.
HASHES = 128  # Of which bands are made, at most.
KEPT, COPY, SIMILAR = range(3)  # Fates.
_BLOCK = 1 << 12  # Shingles hashed at a time.


def are_dropped(options) -> bool:
  """Whether config.corpus asks for any of this."""
  return bool(options.deduplicate or options.near_duplicates)


class Bands(NamedTuple):
  """How the hashes of a document are cut."""

  count: int  # b
  rows: int  # r


class Signatures(NamedTuple):
  """Of n documents, what tells whether they are alike."""

  digests: np.ndarray  # [n] uint64: of the text.
  bands: np.ndarray  # [n, b] uint64; b is 0 where only copies are sought.
  characters: np.ndarray  # [n] int64


def bands(threshold: float) -> Bands:
  """b bands of r hashes with (1/b)^(1/r) nearest to the threshold.

  As many bands as HASHES have room for; 0 = none at all.
  """
  if not threshold:
    return Bands(0, 0)
  choices = [Bands(HASHES // rows, rows) for rows in range(1, HASHES + 1)]
  return min(choices, key=lambda c: abs(c.count ** (-1 / c.rows) - threshold))


def signatures(documents: Sequence[Document], threshold: float) -> Signatures:
  """The signatures of some documents, for this threshold."""
  count, rows = bands(threshold)
  least = np.empty((len(documents), count * rows), np.uint32)
  if count:
    for i, document in enumerate(documents):
      least[i] = _minhash(shingles(document), count * rows)
  least = least.reshape(len(documents), count, rows)
  state = np.broadcast_to(np.arange(count, dtype=np.uint64), least.shape[:2])
  for row in range(rows):
    state = hashing.bits(state, least[:, :, row])
  return Signatures(
    np.array([document.digest for document in documents], np.uint64),
    np.array(state, np.uint64),
    np.array([sum(map(len, d.lines)) for d in documents], np.int64),
  )


def find(
  documents: Iterable[Document], options
) -> tuple[np.ndarray, np.ndarray]:
  """`fates` of a stream, by worker processes; options is config.corpus.

  Raises CorpusError where a part is left without any.
  """
  sizes = Counter()  # Of the parts, in their order.

  def counted():
    for document in documents:
      sizes[document.part.name] += 1
      yield "", document

  fate, characters = fates(
    workers.ordered_map(
      _make_signer,
      (options.near_duplicates,),
      (
        [document for _, document in chunk]
        for chunk in documents_lib.chunked(counted())
      ),
      num_workers=workers.number(options),
    )
  )
  bounds = itertools.pairwise(itertools.accumulate(sizes.values(), initial=0))
  for name, (begin, end) in zip(sizes, bounds, strict=True):
    check_part(name, fate[begin:end])
  return fate, characters


def check_part(name: str, fate: np.ndarray) -> None:
  """Raises CorpusError where a part's documents are all dropped."""
  if len(fate) and not np.any(fate == KEPT):
    with languages.naming(name):
      raise CorpusError(
        "every document of it equals an earlier one, or is like one, and would"
        " be dropped: leave the part out, name it before the others, or set"
        " corpus.deduplicate=False and corpus.near_duplicates=0."
      )


def _make_signer(threshold: float):
  return functools.partial(signatures, threshold=threshold)


def fates(found: Iterable[Signatures]) -> tuple[np.ndarray, np.ndarray]:
  """(fate [n] uint8, characters [n]) of all documents, in their order.

  Takes 8 bytes a document for each band, and as many for the digests, the
  characters, and for sorting.
  """
  digests, bands, characters = (
    np.concatenate(column) for column in zip(*found, strict=True)
  )
  fate = np.full(len(digests), KEPT, np.uint8)
  for band in range(bands.shape[1]):
    fate[repeated(bands[:, band])] = SIMILAR
  fate[repeated(digests)] = COPY
  return fate, characters


def repeated(values: np.ndarray) -> np.ndarray:
  """Indices of the values that stand earlier as well: [7, 5, 7, 7] -> 2, 3."""
  order = np.argsort(values, kind="stable")
  ordered = values[order]
  return order[1:][ordered[1:] == ordered[:-1]]


def dropped(fate: np.ndarray, characters: np.ndarray) -> dict[str, int]:
  """What the report says of them."""
  return {
    "equal documents dropped": int(np.count_nonzero(fate == COPY)),
    "near-duplicate documents dropped": int(np.count_nonzero(fate == SIMILAR)),
    "characters of dropped documents": int(characters[fate != KEPT].sum()),
  }


# Shingles


def shingles(document: Document) -> np.ndarray:
  """The set of hashes of 5 words in a row, uint64.

  Case and punctuation don't count. A shorter document is one shingle; one
  without words is its digest.
  """
  words = word_hashes(" ".join(document.lines))
  if not len(words):
    return np.array([document.digest], np.uint64)
  size = max(len(words) - SHINGLE + 1, 1)
  runs = [words[i : i + size] for i in range(min(SHINGLE, len(words)))]
  return np.unique(functools.reduce(hashing.bits, runs))


def word_hashes(text: str) -> np.ndarray:
  """A hash of each word [n], lowercased: uint64.

  A word is a run of letters, digits and their marks, or a character of a
  script that has no spaces between words.
  """
  # One character as one number; there are no lone surrogates (sources.py).
  points = np.frombuffer(text.lower().encode("utf-32-le"), "<u4")
  kind = _kinds()[np.minimum(points, _MAX_POINT)]
  begins = (kind == _ALONE) | (
    (kind == _LETTER) & (np.append(_SPACE, kind[:-1]) != _LETTER)
  )
  inside = kind != _SPACE
  points, starts = points[inside], np.flatnonzero(begins[inside])
  if not len(starts):
    return np.empty(0, np.uint64)
  lengths = np.diff(np.append(starts, len(points)))
  place = np.arange(len(points)) - np.repeat(starts, lengths)
  with np.errstate(over="ignore"):
    terms = hashing.bits("letter", points) * _powers(int(lengths.max()))[place]
    return hashing.bits("word", np.add.reduceat(terms, starts))


_SPACE, _LETTER, _ALONE = range(3)
_MAX_POINT = 0x20000  # Beyond are ideographs.
# Thai and Lao, Burmese, Khmer, kana, ideographs.
_WITHOUT_SPACES = (
  (0x0E00, 0x0F00),
  (0x1000, 0x10A0),
  (0x1780, 0x1800),
  (0x3040, 0x3100),
  (0x3400, 0xA000),
  (0xF900, 0xFB00),
)


@functools.cache
def _kinds() -> np.ndarray:
  """The kind of each code point, all from _MAX_POINT on being of one."""
  kinds = np.full(_MAX_POINT + 1, _SPACE, np.uint8)
  for point in range(_MAX_POINT):
    if unicodedata.category(chr(point))[0] in "LNM":
      kinds[point] = _LETTER
  for first, end in _WITHOUT_SPACES:
    kinds[first:end][kinds[first:end] == _LETTER] = _ALONE
  kinds[_MAX_POINT] = _ALONE
  return kinds


def _powers(count: int) -> np.ndarray:
  """[count] uint64: powers of an odd number, by which letters have places."""
  size = 1 << max(count - 1, 0).bit_length()  # Few sizes, so that they stay.
  return _all_powers(size)


@functools.lru_cache(maxsize=8)
def _all_powers(size: int) -> np.ndarray:
  factors = np.full(size, 0x9E3779B97F4A7C15, np.uint64)
  factors[0] = 1
  with np.errstate(over="ignore"):
    return np.cumprod(factors, dtype=np.uint64)


def _minhash(values: np.ndarray, count: int) -> np.ndarray:
  """[count] uint32: the least of a * x + b mod 2^32 over the values x."""
  index = np.arange(count)
  a = (hashing.bits("a", index) | np.uint64(1)).astype(np.uint32)
  b = hashing.bits("b", index).astype(np.uint32)
  values = values.astype(np.uint32)
  least = np.full(count, np.iinfo(np.uint32).max, np.uint32)
  for start in range(0, len(values), _BLOCK):
    block = values[start : start + _BLOCK]
    hashed = a[:, None] * block + b[:, None]
    np.minimum(least, hashed.min(axis=1), out=least)
  return least
