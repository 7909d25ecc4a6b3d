"""`corpus.parts`: the domains of a corpus (often languages) and their texts."""

import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from maskedlm.core.errors import CorpusError, did_you_mean
from maskedlm.data.sources import reader


class Domain(NamedTuple):
  """A language, or a kind of text in one, and the source of its text."""

  name: str
  language: str  # ISO 639-1, for sentence splitting.
  source: str  # As corpus.source.


def parse_domains(options) -> list[Domain]:
  """Returns the domains of config.corpus; a nameless one for corpus.source.

  corpus.parts has comma-separated items: NAME:SOURCE, where a source without a
  type is text:, or a folder of files NAME.txt (.gz, .zst). A name is a
  language's code, or begins with one: en, en-books, zh_hant. A path with a
  comma in it must be that of a folder, and the only item.

  Raises:
    CorpusError: an item is neither, or a name occurs twice.
  """
  if not options.parts:
    return [Domain("", options.language, options.source)]
  is_folder = os.path.isdir(os.path.expanduser(options.parts))
  items = [options.parts] if is_folder else options.parts.split(",")
  parts = [
    part
    for item in filter(None, map(str.strip, items))
    for part in _of_item(item)
  ]
  names = [part.name for part in parts]
  if twice := [name for name, n in Counter(names).items() if n > 1]:
    raise CorpusError(
      f"corpus.parts={options.parts!r} has two parts with the name "
      f"{twice[0]!r}; call them {twice[0]}-a and {twice[0]}-b, say."
    )
  return parts


# What comes before the first _ or - is the language.
_NAME = re.compile(r"([a-z]{2,3})([_-][\w-]+)?")


def _of_item(item: str) -> Iterator[Domain]:
  """Yields the domain NAME:SOURCE, or those of a folder."""
  name, colon, source = item.partition(":")
  if colon and (match := _NAME.fullmatch(name)):
    if source.partition(":")[0] not in reader.SOURCE_TYPES:
      source = f"text:{source}"
    yield Domain(name, match[1], source)
    return
  folder = os.path.expanduser(item)
  if not os.path.isdir(folder):
    near = did_you_mean(name, reader.SOURCE_TYPES) if colon else ""
    raise CorpusError(
      f"corpus.parts: {item!r} is neither NAME:SOURCE, where NAME is or begins "
      "with a language's ISO 639-1 code (de:/data/de.txt, en-web:jsonl:w.jsonl)"
      f", nor a folder of files such as de.txt{near}."
    )
  found = [
    (match[1], file)
    for file in sorted(os.listdir(folder))
    if (match := re.fullmatch(r"([^.].*)\.txt(\.gz|\.zst)?", file))
  ]
  if not found:
    raise CorpusError(
      f"corpus.parts: the folder {item!r} has no file such as de.txt, de.txt.gz"
      " or de.txt.zst."
    )
  for name, file in found:
    if not (match := _NAME.fullmatch(name)):
      raise CorpusError(
        f"corpus.parts: {os.path.join(item, file)!r}: a file's name is its "
        "part's, and that is or begins with a language's ISO 639-1 code "
        "(de.txt, en-web.txt): rename it, or take it out of the folder."
      )
    yield Domain(name, match[1], f"text:{os.path.join(folder, file)}")


@contextlib.contextmanager
def errors_of_domain(name: str):
  """Adds the domain's name, unless it is "", to a CorpusError within."""
  try:
    yield
  except CorpusError as error:
    if not name:
      raise
    message = str(error).removeprefix("corpus.source=")
    raise CorpusError(f"corpus.parts: {name!r}: {message}") from error
