"""Finds sentences in a document with sentencex, or takes each line as one.

The lines come from reader.py.
"""

import functools
import re
import sys
from collections import Counter
from collections.abc import Iterable

import sentencex

from maskedlm.core.errors import CorpusError

MAX_SENTENCE = 4_000  # Characters; a longer sentence becomes several.


def stripped(lines: Iterable[str]) -> list[str]:
  """Returns the lines that are not blank, without the whitespace around."""
  return [line for line in map(str.strip, lines) if line]


def find_sentences(
  lines: Iterable[str], *, mode: str, language: str, report: Counter
) -> list[tuple[int, int]]:
  """Returns where the sentences of a document begin and end in its text.

  They are stripped of whitespace, and none is empty. All text between them is
  whitespace.

  Args:
    lines: the lines of a document. Its text is the lines, joined by one
      character.
    mode: "split" (lines are split into sentences), "lines" (a line is one) or
      "whole" (the same, whatever its length).
    language: ISO 639-1 code; its abbreviations do not end a sentence.
    report: counts the cuts in sentences over MAX_SENTENCE characters.

  Raises:
    CorpusError: the language is not a code.
  """
  limits = {"lines": MAX_SENTENCE, "whole": sys.maxsize}
  if mode in limits:
    cut = functools.partial(cut_text, limit=limits[mode], what="sentences")
    split = functools.partial(cut, report=report)
  elif not re.fullmatch("[a-z]{2,3}", language):
    raise CorpusError(
      f"corpus.language={language!r}; expected an ISO 639-1 code, such as en."
    )
  else:
    split = functools.partial(_segments, language=language, report=report)
  spans, start = [], 0
  for line in lines:
    body = line.strip()
    end = start + len(line) + 1  # With the separator.
    start += len(line) - len(line.lstrip())
    for piece in split(body):
      begin, start = start, start + len(piece)
      text = piece.strip()
      if text:
        if piece[0] != text[0]:
          begin += len(piece) - len(piece.lstrip())
        spans.append((begin, begin + len(text)))
    start = end
  return spans


_WIDE_SPACE = re.compile(r"[^\S ]")


def _segments(line: str, language: str, report: Counter) -> list[str]:
  """Returns a line's sentences, found in windows of MAX_SENTENCE characters.

  sentencex takes quadratic time in Chinese (100,000 characters: 1.6 s, a
  million: 156 s), so its input is limited to a window. The last sentence of a
  window may continue beyond it, so the next window starts with it.
  """
  # sentencex 1.0.32 panics on a capital before a wide space and a full stop.
  # No wide space is printable, and this test is faster.
  spaced = line if line.isprintable() else _WIDE_SPACE.sub(" ", line)
  sentences, start = [], 0
  while start < len(line):
    window = spaced[start : start + MAX_SENTENCE]
    pieces = _sentencex(window, language, report)
    if "".join(pieces) == line:
      return pieces
    # Never none, so that the loop goes on and ends.
    sizes = [len(piece) for piece in pieces if piece] or [len(window)]
    if start + len(window) < len(line):
      if len(sizes) > 1:
        sizes.pop()
      else:
        longer = spaced[start : start + MAX_SENTENCE + 1]
        pieces = cut_text(longer, MAX_SENTENCE, what="sentences", report=report)
        sizes = [len(pieces[0])]
    for size in sizes:
      sentences.append(line[start : start + size])
      start += size
  return sentences


def _sentencex(window: str, language: str, report: Counter) -> list[str]:
  try:
    return sentencex.segment(language, window)
  except BaseException as error:  # A Rust panic is not an Exception.
    if type(error).__name__ != "PanicException":
      raise
    report["stretches of text that sentencex failed to split"] += 1
    return [window]


def cut_text(text: str, limit: int, *, what: str, report: Counter) -> list[str]:
  """Cuts text into pieces of at most `limit` characters, at spaces if possible.

  Each cut is counted in `report`, under a name that contains `what`.
  """
  pieces, start = [], 0
  while len(text) - start > limit:
    end = text.rfind(" ", start, start + limit) + 1 or start + limit
    pieces.append(text[start:end])
    start = end
    report[f"cuts in {what} over {limit:,} characters"] += 1
  return [*pieces, text[start:]]
