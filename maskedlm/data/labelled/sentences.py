"""Reads sentences of words from lines of predict's input; joins words to texts.

The examples of tasks that label words have these fields, and their labels. A
line of input is a text, or a JSON object with "tokens" or "text".
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import fields, objects, tables, words

_SUCH_AS = (
  '{"tokens": ["a", "word", "each"]}, or {"text": "..."} for a text that '
  "begins with {"
)


class Sentence(NamedTuple):
  """Words, and where they are from."""

  words: tuple[str, ...]
  text: str | None = None  # None: the words joined by spaces.
  offsets: tuple[tuple[int, int], ...] = ()  # Characters of the words in text.
  lines: tuple[int, ...] = ()  # Line numbers of the words.
  where: str = ""  # FILE:LINE of the first word.


def split_text(text: str) -> Sentence:
  """Returns the words of a text, with punctuation apart (words.py)."""
  text = objects.encodable(text)  # Surrogates could not be printed.
  offsets = tuple(words.split_words(text))
  return Sentence(tuple(text[a:b] for a, b in offsets), text, offsets)


def parse_line(
  line: str, split: Callable[[str], Sentence] = split_text
) -> Sentence:
  """Returns the sentence in a line of input, whose text `split` splits.

  It is a text, or a JSON object with "tokens" or "text".

  Raises:
    DataError: the object has neither; see also `split`.
  """
  if not tables.is_object(line):
    return split(line)
  return of_object(parse_object(line, _SUCH_AS), _where(line), split)


def parse_words(line: str) -> tuple[str, ...]:
  """Returns the words of a line, between spaces, for tasks that parse them.

  Raises:
    DataError: there are none, or one is blank; see also parse_line.
  """
  tokens = parse_line(
    line, lambda text: Sentence(tuple(objects.encodable(text).split()))
  ).words
  if not tokens or not all(map(str.strip, tokens)):
    raise DataError(
      f"{_where(line)} has no words, or a blank one; expected {_SUCH_AS}."
    )
  return tokens


def parse_object(line: str, such_as: str) -> dict[str, Any]:
  """Returns the JSON object in a line of input.

  Raises:
    DataError: it is none; `such_as` shows one.
  """
  return objects.parse_object(line, _where(line), such_as=such_as)


def of_object(
  value: dict[str, Any],
  where: str,
  split: Callable[[str], Sentence] = split_text,
) -> Sentence:
  """Returns the sentence of {"tokens": [...]} or {"text": ...}."""
  tokens, text = fields.words_or_text(value, where, _SUCH_AS)
  return split(text or "") if tokens is None else Sentence(tokens)


def sentence_text(example) -> tuple[str, Sequence[tuple[int, int]]]:
  """Returns the text and the offsets of the words of a Sentence or an example.

  The words of an example without a text are joined by spaces.
  """
  if example.text is not None:
    return example.text, example.offsets
  offsets, begin = [], 0
  for word in example.words:
    offsets.append((begin, begin + len(word)))
    begin += len(word) + 1
  return " ".join(example.words), offsets


def _where(line: str) -> str:
  return f"input {line[:60]!r}"
