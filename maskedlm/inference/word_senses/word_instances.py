"""Finds the instances of a word in texts and computes their vectors.

An instance is a run of characters: a whole-word occurrence or, in data with
senses, an occurrence with a sense. Its vector is the mean of its tokens'.
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
from maskedlm.data.labelled.text_lines import Text, text_of_words
from maskedlm.inference.vectors import vectors
from maskedlm.inference.word_senses.data import Sentence

_JOINERS = "\u200c\u200d"  # They occur inside words.
# Scripts without spaces between words: a word may begin or end anywhere.
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")


class Instance(NamedTuple):
  """An occurrence of a word in a text."""

  text: Text
  begin: int  # It is text.text[begin:end].
  end: int
  word: str  # As given by the user.
  label: str = ""  # Its sense, or whatever the caller sets.


def distinct_words(words: Sequence[str]) -> list[str]:
  """Returns the stripped words, each once, ignoring case.

  Raises:
    ConfigError: a word has no letter or digit.
  """
  distinct: dict[str, str] = {}
  for word in map(str.strip, words):
    if not any(c.isalnum() for c in word):
      raise ConfigError(
        f"--word={word!r}: expected a word with a letter or digit."
      )
    distinct.setdefault(word.casefold(), word)
  return list(distinct.values())


def find_instances(
  texts: Iterable[Text], words: Sequence[str]
) -> Iterator[Instance]:
  """Yields whole-word occurrences of the words, ignoring case.

  A whole word isn't adjacent to a letter, digit, accent or _. In scripts
  without spaces between words, such as Chinese, every occurrence counts.
  """
  # If several words match at a position, the longest whole word is used.
  ordered = sorted(distinct_words(words), key=len, reverse=True)
  patterns = [re.compile(re.escape(w), re.IGNORECASE) for w in ordered]
  any_of = re.compile("|".join(p.pattern for p in patterns), re.IGNORECASE)
  for text in texts:
    place = 0
    while match := any_of.search(text.text, place):
      begin = match.start()
      place = begin + 1
      for word, pattern in zip(ordered, patterns, strict=True):
        whole = pattern.match(text.text, begin)
        if whole and all(_is_border(text.text, x) for x in whole.span()):
          yield Instance(text, *whole.span(), word)
          place = whole.end()
          break


def find_labelled_instances(
  sentences: Iterable[Sentence], words: Sequence[str]
) -> Iterator[Instance]:
  """Yields occurrences of the words that have a sense, which becomes the label.

  `words` are compared with the lemma and the form in the text, ignoring case.
  """
  wanted = {word.casefold(): word for word in distinct_words(words)}
  for sentence in sentences:
    text = None
    for target in sentence.targets:
      forms = (sentence.words[target.word], target.lemma)
      matches = [wanted[f.casefold()] for f in forms if f.casefold() in wanted]
      if not matches or not target.senses:
        continue
      text = text or text_of_words(
        sentence.words, file=sentence.file, line=sentence.line
      )
      begin = sum(len(word) + 1 for word in sentence.words[: target.word])
      end = begin + len(sentence.words[target.word])
      sense = f"{target.pos.lower()} {target.senses[0]}".strip()
      yield Instance(text, begin, end, matches[0], sense)


def sample_instances(
  instances: Iterable[Instance], limit: int
) -> tuple[list[Instance], Counter]:
  """Returns up to `limit` random instances, in order, and counts by word.

  If there are more, each label gets an equal share of the limit; what a label
  has too few for goes to the others.
  """
  counts: Counter = Counter()
  # Those with the smallest random keys, negative so that the largest is first.
  heaps: dict[str, list[tuple[float, int, Instance]]] = {}
  for i, instance in enumerate(instances):
    counts[instance.word] += 1
    key = -float(hashing.uniform(0, "instance", i))
    heap = heaps.setdefault(instance.label, [])
    add = heapq.heappush if len(heap) < limit else heapq.heappushpop
    add(heap, (key, i, instance))
  drawn, remaining = [], limit
  by_size = sorted(heaps.values(), key=len)
  for place, heap in enumerate(by_size):
    share = heapq.nlargest(remaining // (len(by_size) - place), heap)
    remaining -= len(share)
    drawn += share
  drawn.sort(key=lambda item: item[1])
  return [instance for _, _, instance in drawn], counts


def embed_instances(
  model: vectors.TextEncoder,
  instances: Sequence[Instance],
  options: vectors.VectorOptions,
) -> tuple[list[Instance], np.ndarray]:
  """Returns the n instances that have a token, with vectors float32 [n, C].

  Args:
    instances: those in the same text must share a Text object.
    options: layers and combine; `unit` and `pool` are ignored.
  """
  texts = {id(instance.text): instance.text for instance in instances}
  of_text: dict[int, list[int]] = {key: [] for key in texts}
  for i, instance in enumerate(instances):
    of_text[id(instance.text)].append(i)
  sums: list = [0.0] * len(instances)
  counts = np.zeros(len(instances), np.int64)
  options = options._replace(unit="token", pool="mean")
  for part in vectors.embed(model, texts.values(), options):
    # The tokens of a long text may come in two parts.
    starts = np.flatnonzero(np.diff(part.texts, prepend=-1))
    for start, stop in itertools.pairwise([*starts, len(part.texts)]):
      begins, ends = part.offsets[start:stop].T
      for i in of_text[id(part.sources[start])]:
        inside = (begins < instances[i].end) & (ends > instances[i].begin)
        sums[i] = sums[i] + part.values[start:stop][inside].sum(axis=0)
        counts[i] += inside.sum()
  embedded = np.flatnonzero(counts).tolist()
  if not embedded:
    return [], np.zeros((0, model.cfg.width), np.float32)
  values = np.stack([sums[i] / counts[i] for i in embedded])
  return [instances[i] for i in embedded], values.astype(np.float32)


def embed_texts(
  model: vectors.TextEncoder,
  instances: Sequence[Instance],
  options: vectors.VectorOptions,
) -> tuple[list[Instance], np.ndarray]:
  """Returns the n whole texts that have a token, with vectors [n, C].

  Each instance has a Text of its own; the options are those of sentences.
  """
  texts = (instance.text for instance in instances)
  embedded = vectors.collect(vectors.embed(model, texts, options))
  by_text = {id(instance.text): instance for instance in instances}
  return [by_text[id(source)] for source in embedded.sources], embedded.values


def _is_border(text: str, place: int) -> bool:
  """Returns whether a word may begin or end before text[place]."""
  if place in (0, len(text)):
    return True
  sides = text[place - 1], text[place]
  return not all(map(_in_word, sides)) or any(map(_is_unspaced, sides))


def _in_word(character: str) -> bool:
  kind = unicodedata.category(character)[0]
  return kind in "LNM" or character == "_" or character in _JOINERS


def _is_unspaced(character: str) -> bool:
  return unicodedata.name(character, "").startswith(_UNSPACED)
