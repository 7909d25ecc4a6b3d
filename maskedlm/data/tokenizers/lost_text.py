"""Counts the characters of a text that no token covers, by their causes.

One figure for every verb: the characters in unknown tokens, by their offsets,
and those that the tokenizer's normal form drops or strips of a mark. The
spelling of a special token ([MASK], or one of the file's own) is ordinary text,
and is counted apart.
"""

import functools
import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.core.errors import CorpusError
from maskedlm.data.tokenizers.documents import Encoded, Text
from maskedlm.data.tokenizers.tokenizer import Tokenizer

SPELT = "spellings of special tokens, read as ordinary text"
MIN_SHARE = 0.001  # Share of the characters; more is reported.
_CACHED = 1_000  # Characters of a word, at most, whose counts are kept.
LONG_WORD = 100  # Characters; WordPiece reads a longer word as unknown.


class Cause(NamedTuple):
  """Why characters are lost."""

  what: str  # Continues "3% of the characters ".
  remedy: str

  @property
  def name(self) -> str:
    """The key of its count."""
    return f"characters that {self.what}"


_BPE = "set tokenizer.kind=bpe, or give a byte-level tokenizer, which keeps"
LONG = Cause(
  f"are in words of over {LONG_WORD} characters, each of which is one [UNK]",
  "set tokenizer.kind=bpe or unigram, or raise max_input_chars_per_word in a "
  "given tokenizer.json",
)
LACKS = Cause(
  "are unknown to the vocabulary",
  f"{_BPE} every character (or tokenizer.kind=unigram and byte_fallback=True)",
)
MARKS = Cause(
  "lose an accent, a tone or a vowel sign, so that different words are equal",
  "tokenizer.lowercase=True strips accents, including the tones of Vietnamese "
  "and vowel signs of Hindi; for such languages set "
  "--config.tokenizer.lowercase=False, or give a tokenizer that keeps them",
)
DROPPED = Cause(
  "are dropped or read as spaces: joiners (U+200C, U+200D), other invisible "
  "ones (U+200B, U+00AD) or private ones",
  f"{_BPE} them",
)
INDENTATION = Cause(
  "are indentation, for which the tokenizer has no tokens", f"{_BPE} it"
)
CAUSES = (LONG, LACKS, MARKS, DROPPED, INDENTATION)
GONE = (LONG, LACKS, DROPPED)  # Nothing of the character is left.
_OF_CHARACTERS = (None, MARKS, DROPPED)  # Classes of a character.
_NEW = len(_OF_CHARACTERS)
# For each cause but indentation, a text.
_PROBE = ("\u0915\u0947", "\xad", "\ue000", "e" * (LONG_WORD + 1))


def extra_specials(tokenizer: Tokenizer) -> list[str]:
  """Returns the special tokens of a file beyond the five that are needed.

  [unusedN] and rows without a token are left out.
  """
  tokens = (
    tokenizer.tokens(index)
    for index in tokenizer.special_ids.tolist()
    if index not in tokenizer.special
  )
  return [name for name in tokens if name and not name.startswith("[unused")]


def make_counter(
  tokenizer: Tokenizer,
) -> Callable[[Sequence[str], Iterable[str]], Counter]:
  """Returns a function (texts, unknown) -> counts, by the names of causes.

  `unknown` are the parts of the texts with an unknown token. It counts SPELT,
  too.
  """
  names = [
    *map(tokenizer.tokens, tokenizer.special),
    *extra_specials(tokenizer),
  ]
  longest_first = sorted(names, key=len, reverse=True)
  spelt = re.compile("|".join(map(re.escape, longest_first)))
  # Some special token in a text begins so; a search for it is much faster.
  beginnings = {name[0] for name in names}
  classes = np.full(0x110000, _NEW, np.uint8)

  def classes_of(text: str) -> np.ndarray:
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    for code in np.unique(codes[classes[codes] == _NEW]).tolist():
      classes[code] = _OF_CHARACTERS.index(_loss(tokenizer, chr(code)))
    return classes[codes]

  @functools.lru_cache(1 << 16)
  def lacks(character: str) -> bool:
    return tokenizer.special.unk in tokenizer.encode(character).ids

  def count_word(word: str) -> Counter:
    counts: Counter = Counter()
    encoding = tokenizer.encode(word)
    spans = encoding.offsets[encoding.ids == tokenizer.special.unk]
    for begin, end in np.unique(spans, axis=0).tolist():
      part = word[begin:end]
      is_long = len(tokenizer.normalize(part).strip()) > LONG_WORD
      cause = LACKS if any(map(lacks, part)) or not is_long else LONG
      counts[cause.name] += int((classes_of(part) == 0).sum())
    return counts

  count_cached = functools.lru_cache(1 << 16)(count_word)

  def count_unknown(word: str) -> Counter:
    # Long ones, such as sequences of DNA, don't repeat, and take memory.
    return (count_cached if len(word) <= _CACHED else count_word)(word)

  def count(texts: Sequence[str], unknown: Iterable[str]) -> Counter:
    counts: Counter = Counter()
    text = "\n".join(texts)  # A search in all of them at once is fast.
    if any(char in text for char in beginnings):
      counts[SPELT] += len(spelt.findall(text))
    text_classes = classes_of(text)
    if np.any(text_classes):
      totals = np.bincount(text_classes, minlength=_NEW).tolist()
      pairs = zip(_OF_CHARACTERS, totals, strict=True)
      counts.update({cause.name: n for cause, n in pairs if cause and n})
    for word in itertools.chain.from_iterable(map(str.split, unknown)):
      if word_counts := count_unknown(word):
        counts.update(word_counts)
    return counts

  return count


def _loss(tokenizer: Tokenizer, character: str) -> Cause | None:
  """Returns why the normal form lacks a character, or a mark of it."""
  # No mark is composed with q.
  normal = tokenizer.normalize(f"q{character}q").replace("▁", " ").strip()
  middle = normal[1:-1]
  if character in "\u200c\u200d":
    return None if middle == character else DROPPED
  if character.isspace() or middle.isspace():
    return None
  if _marks(middle) < _marks(character):
    return MARKS
  return None if middle else DROPPED


def _marks(text: str) -> int:
  """Returns the marks of letters, but not the selectors of emoji's forms."""
  parts = unicodedata.normalize("NFD", text)
  marks = (char for char in parts if unicodedata.category(char) == "Mn")
  return sum(not "\ufe00" <= char <= "\ufe0f" for char in marks)


def unknown_sentences(
  texts: Iterable[Text], encoded: Iterable[Encoded], unk: int
) -> Iterator[str]:
  """Yields the sentences of encoded documents that have an unknown token."""
  for text, (ids, counts) in zip(texts, encoded, strict=True):
    places = np.flatnonzero(ids == unk)
    sentences = np.searchsorted(np.cumsum(counts), places, side="right")
    yield from (text.text[slice(*text.spans[i])] for i in np.unique(sentences))


def count_texts(tokenizer: Tokenizer, texts: Sequence[str]) -> Counter:
  """Returns the counts of texts; see `make_counter`."""
  batch = zip(texts, tokenizer.encode_batch(list(texts)), strict=True)
  unknown = [text for text, ids in batch if tokenizer.special.unk in ids]
  return make_counter(tokenizer)(texts, unknown)


def total(counts: Mapping[str, int]) -> int:
  """Returns how many characters are lost, of all causes."""
  return sum(counts.get(cause.name, 0) for cause in CAUSES)


def shares(
  counts: Mapping[str, int], characters: int
) -> Iterator[tuple[Cause, float]]:
  """Yields the causes of over MIN_SHARE of the texts' characters."""
  for cause in CAUSES:
    share = counts.get(cause.name, 0) / max(characters, 1)
    if share > MIN_SHARE:
      yield cause, share


def describe(
  counts: Mapping[str, int], characters: int, prefix: str = ""
) -> Iterator[str]:
  """Yields a line with a remedy for each of `shares`."""
  for cause, share in shares(counts, characters):
    yield (
      f"warning: {prefix}{share:.1%} of the characters {cause.what}: "
      f"{cause.remedy}."
    )


def kept_characters(report: Mapping[str, int]) -> int:
  """Returns the characters of a corpus, without those of dropped documents."""
  return report["characters"] - report.get("characters of dropped documents", 0)


def refuse(report: Mapping[str, int], options) -> None:
  """Raises CorpusError if more than corpus.max_lost of a corpus is gone."""
  gone = {cause: report.get(cause.name, 0) for cause in GONE}
  share = sum(gone.values()) / max(kept_characters(report), 1)
  if share > options.max_lost:
    worst = max(gone, key=gone.__getitem__)
    raise CorpusError(
      f"{options.parts or options.source}: {share:.1%} of the characters "
      f"{worst.what}: {worst.remedy}. That is more than corpus.max_lost="
      f"{options.max_lost}; raise it to prepare the text regardless."
    )


def describe_tokenizer(tokenizer: Tokenizer) -> str:
  """Returns the causes by which a tokenizer may lose text, as clauses."""
  counts = count_texts(tokenizer, _PROBE)
  return "; ".join(cause.name for cause in CAUSES if counts[cause.name])
