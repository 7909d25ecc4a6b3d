"""Words in context whose sense is asked for: marked text, or JSON, a line each.

Text marks its words by asterisks, with lemma and part of speech if they are
known: `The *banks|bank|NOUN* of the river.` JSON gives a sentence's words
and the place of one, or a text with marks.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import text_lines
from maskedlm.data.labelled import words as words_lib
from maskedlm.inference.word_senses.data import Sentence, Target

_MARK = re.compile(r"(?<!\\)\*")  # \* is an asterisk of the text.
_HOW = "expected as in: The *bank* rose, or The *banks|bank|NOUN* rose"


def read(
  paths: Sequence[str], *, form: str = "", field: str = "text"
) -> Iterator[Sentence]:
  """The sentences of files, in bounded memory.

  Args:
    paths: of UTF-8 files; "-" is stdin. Blank lines are left out.
    form: text or jsonl; "": jsonl where a file is named so, else text.
    field: of a JSON object, what holds the marked text.

  Raises:
    DataError: not a single line; with its file and line, one that is not as
      it should be.
  """
  for file, line, entry in text_lines.entries(paths, form):
    if isinstance(entry, str):
      yield of_marked(entry, file=file, line=line)
    else:
      yield of_json(entry, field=field, file=file, line=line)


def of_marked(text: str, *, file: str = "", line: int = 0) -> Sentence:
  """The sentence of a marked text; of a target all is one word.

  Raises:
    DataError: no mark, one that is not closed, an empty one.
  """
  where = f"{file}:{line}: " if file else ""
  parts = _MARK.split(text)
  if len(parts) == 1:
    raise DataError(f"{where}no word is marked; {_HOW}.")
  if len(parts) % 2 == 0:
    raise DataError(
      f"{where}{len(parts) - 1} asterisks, so one is not closed; {_HOW}; an "
      r"asterisk that is no mark is written \*."
    )
  words: list[str] = []
  targets: list[Target] = []
  for i, part in enumerate(parts):
    part = part.replace(r"\*", "*")
    if i % 2 == 0:
      words += (part[begin:end] for begin, end in words_lib.split(part))
      continue
    form, *known = (" ".join(field.split()) for field in part.split("|"))
    if not form or len(known) > 2:
      raise DataError(f"{where}*{part}* is no marked word; {_HOW}.")
    lemma, pos = (*known, "", "")[:2]
    targets.append(_target(targets, len(words), lemma, pos))
    words.append(form)
  return Sentence(tuple(words), tuple(targets), "", file, line)


def of_json(
  value: dict[str, Any], *, field: str, file: str, line: int
) -> Sentence:
  """The Sentence of an object.

  It has "tokens" and a "target", the place of one from 0; or a marked text in
  `field`. "lemma" and "pos" may be there with tokens.

  Raises:
    DataError: another object.
  """
  where = f"{file}:{line}"
  text = text_lines.of_object(value, field, file=file, line=line)
  if text.words is None:
    return of_marked(text.text, file=file, line=line)
  place = value.get("target")
  if type(place) is not int or not 0 <= place < len(text.words):
    raise DataError(
      f"{where}: target={place!r}; expected the place of one of the "
      f"{len(text.words)} tokens, from 0."
    )
  known = [value.get(name, "") for name in ("lemma", "pos")]
  if not all(isinstance(x, str) for x in known):
    raise DataError(f"{where}: lemma or pos is no string.")
  target = _target([], place, *known)
  return Sentence(text.words, (target,), "", file, line)


def _target(targets: list[Target], word: int, lemma: str, pos: str) -> Target:
  return Target(f"t{len(targets):03d}", word, lemma, pos, ())
