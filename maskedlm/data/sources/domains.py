"""Parses `corpus.parts`: the domains of a corpus, often one per language."""

import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from maskedlm.core.errors import CorpusError, did_you_mean
from maskedlm.data.sources import reader


class Domain(NamedTuple):
  """A language, or a genre of text in a language, and its source."""

  name: str
  language: str  # ISO 639-1, for sentence splitting.
  source: str  # In the form of corpus.source.

  @property
  def has_sequences(self) -> bool:
    """Whether its documents are sequences, which have no sentences."""
    return self.source.startswith("fasta:")


def parse_domains(options) -> list[Domain]:
  """Returns the domains of config.corpus; without corpus.parts, a nameless one.

  corpus.parts is a comma-separated list of NAME:SOURCE, where text: is the
  default type of a source, and of folders of files NAME.txt (.gz, .zst). A name
  is a language code or begins with one: en, en-books, zh_hant. A path with a
  comma in it must be that of a folder, and the only item.

  Raises:
    CorpusError: an item or file name has another form, a folder has no such
      file, or a name occurs twice.
  """
  if not options.parts:
    return [Domain("", options.language, options.source)]
  is_folder = os.path.isdir(os.path.expanduser(options.parts))
  items = [options.parts] if is_folder else options.parts.split(",")
  domains = [
    domain
    for item in filter(None, map(str.strip, items))
    for domain in _parse_item(item)
  ]
  counts = Counter(domain.name for domain in domains)
  if twice := [name for name, count in counts.items() if count > 1]:
    raise CorpusError(
      f"corpus.parts={options.parts!r} has two parts with the name "
      f"{twice[0]!r}; rename them, for example {twice[0]}-a and {twice[0]}-b."
    )
  return domains


# The language comes before the first _ or -.
_NAME = re.compile(r"([a-z]{2,3})([_-][\w-]+)?")


def _parse_item(item: str) -> Iterator[Domain]:
  """Yields the domain of NAME:SOURCE, or the domains of a folder."""
  name, colon, source = item.partition(":")
  is_address = source.startswith("//")
  if colon and not is_address and (match := _NAME.fullmatch(name)):
    if source.partition(":")[0] not in reader.SOURCE_TYPES:
      source = f"text:{source}"
    yield Domain(name, match[1], source)
    return
  folder = os.path.expanduser(item)
  if not os.path.isdir(folder):
    near = did_you_mean(name, reader.SOURCE_TYPES) if colon else ""
    raise CorpusError(
      f"corpus.parts: {item!r} is neither NAME:SOURCE, where NAME is or begins "
      "with an ISO 639-1 language code (de:/data/de.txt, en-web:jsonl:w.jsonl)"
      f", nor a folder of files such as de.txt{near}."
    )
  named_files = [
    (match[1], file)
    for file in sorted(os.listdir(folder))
    if (match := re.fullmatch(r"([^.].*)\.txt(\.gz|\.zst)?", file))
  ]
  if not named_files:
    raise CorpusError(
      f"corpus.parts: the folder {item!r} has no file such as de.txt, de.txt.gz"
      " or de.txt.zst."
    )
  for name, file in named_files:
    if not (match := _NAME.fullmatch(name)):
      raise CorpusError(
        f"corpus.parts: {os.path.join(item, file)!r}: a file is named after its"
        " part, which is or begins with an ISO 639-1 language code (de.txt, "
        "en-web.txt); rename the file, or move it out of the folder."
      )
    yield Domain(name, match[1], f"text:{os.path.join(folder, file)}")


@contextlib.contextmanager
def errors_of_domain(name: str):
  """Adds the domain's name, if it has one, to a CorpusError raised within."""
  try:
    yield
  except CorpusError as error:
    if not name:
      raise
    message = str(error).removeprefix("corpus.source=")
    raise CorpusError(f"corpus.parts: {name!r}: {message}") from error
