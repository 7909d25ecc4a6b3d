"""The instances of a word in texts, with the vector of each.

An instance is a run of characters: the word wherever it stands whole, or, in
data with senses, wherever it has one. Its vector is the mean of its tokens'.
"""

import heapq
import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.core.errors import ConfigError
from maskedlm.data import hashing
from maskedlm.data.labelled.text_lines import Text, of_words
from maskedlm.inference.vectors import vectors
from maskedlm.inference.word_senses.data import Sentence

_JOINERS = "\u200c\u200d"  # They stand within words.
# Scripts that set no spaces between words: any place may be a border.
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")


class Instance(NamedTuple):
  """A word in a text."""

  text: Text
  begin: int  # text.text[begin:end].
  end: int
  word: str  # As it was asked for.
  label: str = ""  # Its sense, or what else the caller puts here.


def distinct(words: Sequence[str]) -> list[str]:
  """The words, each once, whatever its case; stripped.

  Raises:
    ConfigError: a word without a letter or digit.
  """
  made: dict[str, str] = {}
  for word in map(str.strip, words):
    if not any(c.isalnum() for c in word):
      raise ConfigError(
        f"--word={word!r}: expected a word, with a letter or digit in it."
      )
    made.setdefault(word.casefold(), word)
  return list(made.values())


def find(texts: Iterable[Text], words: Sequence[str]) -> Iterator[Instance]:
  """Wherever one of the words stands whole, in whatever case.

  Whole is what no letter, digit, accent or _ goes on with; in scripts without
  spaces between words, such as Chinese, every occurrence is.

  Raises:
    ConfigError: see `distinct`.
  """
  # Of two that begin alike, the longer one that is whole.
  ordered = sorted(distinct(words), key=len, reverse=True)
  patterns = [re.compile(re.escape(w), re.IGNORECASE) for w in ordered]
  any_of = re.compile("|".join(p.pattern for p in patterns), re.IGNORECASE)
  for text in texts:
    place = 0
    while match := any_of.search(text.text, place):
      begin = match.start()
      place = begin + 1
      for word, pattern in zip(ordered, patterns, strict=True):
        found = pattern.match(text.text, begin)
        if found and all(_is_border(text.text, x) for x in found.span()):
          yield Instance(text, *found.span(), word)
          place = found.end()
          break


def of_senses(
  sentences: Iterable[Sentence], words: Sequence[str]
) -> Iterator[Instance]:
  """Where a word, or a form of it, has a sense; its label is the sense.

  words are compared with the lemma and with what is in the text, in whatever
  case.

  Raises:
    ConfigError: see `distinct`.
  """
  wanted = {word.casefold(): word for word in distinct(words)}
  for sentence in sentences:
    text = None
    for target in sentence.targets:
      forms = (sentence.words[target.word], target.lemma)
      found = [wanted[f.casefold()] for f in forms if f.casefold() in wanted]
      if not found or not target.senses:
        continue
      text = text or of_words(
        sentence.words, file=sentence.file, line=sentence.line
      )
      begin = sum(len(word) + 1 for word in sentence.words[: target.word])
      end = begin + len(sentence.words[target.word])
      sense = f"{target.pos.lower()} {target.senses[0]}".strip()
      yield Instance(text, begin, end, found[0], sense)


def draw(
  found: Iterable[Instance], limit: int, *, seed: int = 0
) -> tuple[list[Instance], Counter]:
  """`limit` of the instances, each as likely, in their order.

  Returns them, and how many there were of each word.
  """
  counts: Counter = Counter()

  def keyed():
    for i, instance in enumerate(found):
      counts[instance.word] += 1
      yield float(hashing.uniform(seed, "instance", i)), i, instance

  kept = heapq.nsmallest(limit, keyed(), key=lambda item: item[:2])
  kept.sort(key=lambda item: item[1])
  return [instance for _, _, instance in kept], counts


def embed(
  model: vectors.Model,
  found: Sequence[Instance],
  options: vectors.Options = vectors.Options(),  # noqa: B008 - constant.
  *,
  batch_tokens: int = vectors.BATCH_TOKENS,
) -> tuple[list[Instance], np.ndarray]:
  """(those with a token, which are hardly ever not all; their vectors [n, C]).

  Args:
    model: from vectors.open_model.
    found: instances; those of a text have the same Text.
    options: layers and combine; the others are set here.
    batch_tokens: see vectors.embed.
  """
  texts = {id(instance.text): instance.text for instance in found}
  of_text: dict[int, list[int]] = {key: [] for key in texts}
  for i, instance in enumerate(found):
    of_text[id(instance.text)].append(i)
  sums: list = [0.0] * len(found)
  counts = np.zeros(len(found), np.int64)
  options = options._replace(unit="token", pool="mean")
  for made in vectors.embed(
    model, texts.values(), options, batch_tokens=batch_tokens
  ):
    # A text's tokens may come in two parts, if it is long.
    starts = np.flatnonzero(np.diff(made.texts, prepend=-1))
    for start, stop in itertools.pairwise([*starts, len(made.texts)]):
      begins, ends = made.offsets[start:stop].T
      for i in of_text[id(made.sources[start])]:
        inside = (begins < found[i].end) & (ends > found[i].begin)
        sums[i] = sums[i] + made.values[start:stop][inside].sum(axis=0)
        counts[i] += inside.sum()
  kept = np.flatnonzero(counts)
  if not len(kept):
    return [], np.zeros((0, model.cfg.width), np.float32)
  values = np.stack([sums[i] / counts[i] for i in kept])
  return [found[i] for i in kept], np.float32(values)


def _is_border(text: str, place: int) -> bool:
  """Whether a word may begin or end between text[place - 1] and the next."""
  if place in (0, len(text)):
    return True
  sides = text[place - 1], text[place]
  return not all(map(_in_word, sides)) or any(map(_is_unspaced, sides))


def _in_word(character: str) -> bool:
  kind = unicodedata.category(character)[0]
  return kind in "LNM" or character == "_" or character in _JOINERS


def _is_unspaced(character: str) -> bool:
  return unicodedata.name(character, "").startswith(_UNSPACED)
