"""Lines become sentences: by sentencex, or each line is one.

Beside sources.py, whose lines these are; all who encode text call it.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator

import sentencex

from maskedlm.core.errors import CorpusError, did_you_mean

MAX_SENTENCE = 4_000  # Characters; a longer sentence becomes several.


def split_sentences(
  lines: Iterable[str], *, mode: str, language: str, report: Counter
) -> list[str]:
  """The sentences of a document's lines: stripped, none empty.

  Args:
    lines: lines of a document, as `documents` gives them.
    mode: "split" (each line is cut into sentences) or "lines" (is one).
    language: ISO 639-1, whose abbreviations do not end a sentence.
    report: counts what was cut over MAX_SENTENCE characters.

  Raises CorpusError for an unknown mode or what can't be a language.
  """
  if mode == "lines":
    found = (
      cut(line, MAX_SENTENCE, what="sentences", report=report) for line in lines
    )
  elif mode != "split":
    raise CorpusError(
      f"corpus.sentences={mode!r}{did_you_mean(mode, ('split', 'lines'))}; "
      "expected split or lines."
    )
  elif not re.fullmatch("[a-z]{2,3}", language):
    raise CorpusError(
      f"corpus.language={language!r}; expected an ISO 639-1 code, such as en."
    )
  else:
    found = (_segments(line, language, report) for line in lines)
  stripped = map(str.strip, itertools.chain.from_iterable(found))
  return [sentence for sentence in stripped if sentence]


_WIDE_SPACE = re.compile(r"[^\S ]")


def _segments(line: str, language: str, report: Counter) -> Iterator[str]:
  """A line's sentences, found in windows of MAX_SENTENCE characters.

  sentencex takes quadratic time in Chinese (100,000 characters: 1.6 s, a
  million: 156 s), so it never sees more. The last sentence of a window may go
  on beyond it: the next window starts with it.
  """
  # sentencex 1.0.32 panics on a capital before a wide space and a full stop.
  spaced = _WIDE_SPACE.sub(" ", line)
  start = 0
  while start < len(line):
    window = spaced[start : start + MAX_SENTENCE]
    sizes = [len(part) for part in _sentencex(window, language, report)]
    if start + len(window) < len(line):
      if len(sizes) > 1:
        sizes.pop()
      else:
        longer = spaced[start : start + MAX_SENTENCE + 1]
        pieces = cut(longer, MAX_SENTENCE, what="sentences", report=report)
        sizes = [len(pieces[0])]
    for size in sizes:
      yield line[start : start + size]
      start += size


def _sentencex(window: str, language: str, report: Counter) -> list[str]:
  try:
    return sentencex.segment(language, window)
  except BaseException as error:  # A panic of Rust is no Exception.
    if type(error).__name__ != "PanicException":
      raise
    report["stretches of text that sentencex failed to split"] += 1
    return [window]


def cut(text: str, limit: int, *, what: str, report: Counter) -> list[str]:
  """The text in pieces of at most `limit`, after a space if one is there."""
  pieces, start = [], 0
  while len(text) - start > limit:
    end = text.rfind(" ", start, start + limit) + 1 or start + limit
    pieces.append(text[start:end])
    start = end
    report[f"cuts in {what} over {limit:,} characters"] += 1
  return [*pieces, text[start:]]
