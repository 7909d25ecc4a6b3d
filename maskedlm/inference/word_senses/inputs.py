"""Parses words in context to disambiguate: a text or JSON, one per line.

Asterisks mark words in a text, with lemma and part of speech if known: `The
*banks|bank|NOUN* of the river.` A JSON object has the words of a sentence and
the index of one, or a text.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import text_lines
from maskedlm.data.labelled.words import split_words
from maskedlm.inference.word_senses.data import Sentence, TargetWord

_MARK = re.compile(r"(?<!\\)\*")  # \* is an asterisk in the text.
_HOW = "expected: The *bank* rose, or The *banks|bank|NOUN* rose"


def read_marked_words(
  paths: Sequence[str], *, form: str = "", field: str = "text"
) -> Iterator[Sentence]:
  """Yields the sentences of files, in bounded memory.

  Args:
    paths: UTF-8 files; "-" is stdin. Blank lines are skipped.
    form: text, jsonl or "": the file decides (text_lines.has_fields).
    field: the field of a JSON object that has the marked text.

  Raises:
    DataError: there is no line, or a line is malformed.
  """
  for file, line, entry in text_lines.read_entries(paths, form):
    if isinstance(entry, str):
      yield parse_marked_text(entry, file=file, line=line)
    else:
      yield parse_json(entry, field=field, file=file, line=line)


def split_marks(text: str, where: str, *, how: str) -> list[str]:
  r"""Returns the parts of a marked text; every second one is marked.

  Args:
    text: one or more parts stand between asterisks; \* is an asterisk.
    where: how an error begins, such as "file:3: ", or "".
    how: the end of an error, an example.

  Raises:
    DataError: there is no mark, or one is not closed.
  """
  parts = _MARK.split(text)
  if len(parts) == 1:
    raise DataError(f"{where}no word is marked; {how}.")
  if len(parts) % 2 == 0:
    raise DataError(
      f"{where}{len(parts) - 1} asterisks: one is not closed; {how}; an "
      r"asterisk that is not a mark is written \*."
    )
  return [part.replace(r"\*", "*") for part in parts]


def parse_marked_text(text: str, *, file: str = "", line: int = 0) -> Sentence:
  """Parses a text; everything between two marks is one word.

  Raises:
    DataError: a mark is unclosed, or a marked word is empty.
  """
  where = f"{file}:{line}: " if file else ""
  parts = [text.replace(r"\*", "*")]
  if _MARK.search(text):
    parts = split_marks(text, where, how=_HOW)
  words: list[str] = []
  targets: list[TargetWord] = []
  for i, part in enumerate(parts):
    if i % 2 == 0:
      words += (part[begin:end] for begin, end in split_words(part))
      continue
    form, *known = (" ".join(field.split()) for field in part.split("|"))
    if not form or len(known) > 2:
      raise DataError(f"{where}*{part}* is not a marked word; {_HOW}.")
    lemma, pos = (*known, "", "")[:2]
    targets.append(_make_target(targets, len(words), lemma, pos))
    words.append(form)
  return Sentence(tuple(words), tuple(targets), "", file, line)


def parse_json(
  value: dict[str, Any], *, field: str, file: str, line: int
) -> Sentence:
  """Parses an object with "tokens" and "target", the index of a token from 0.

  "lemma" and "pos" are optional; without "target", no word is marked. The
  object may instead have a text in `field`.

  Raises:
    DataError: the object has neither form.
  """
  where = f"{file}:{line}"
  text = text_lines.text_of_object(value, field, file=file, line=line)
  if text.words is None:
    return parse_marked_text(text.text, file=file, line=line)
  if "target" not in value:
    return Sentence(text.words, (), "", file, line)
  place = value["target"]
  if type(place) is not int or not 0 <= place < len(text.words):
    raise DataError(
      f"{where}: target={place!r}; expected the index of one of the "
      f"{len(text.words)} tokens, from 0."
    )
  known = [value.get(name, "") for name in ("lemma", "pos")]
  if not all(isinstance(x, str) for x in known):
    raise DataError(f"{where}: lemma or pos is not a string.")
  target = _make_target([], place, *known)
  return Sentence(text.words, (target,), "", file, line)


def _make_target(
  targets: list[TargetWord], word: int, lemma: str, pos: str
) -> TargetWord:
  return TargetWord(f"t{len(targets):03d}", word, lemma, pos, ())
