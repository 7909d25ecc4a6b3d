"""Reads and writes files of word vectors: word2vec's, GloVe's, fastText's .vec.

Text has a word and its D numbers on each line; word2vec and fastText put a line
with the number of words and D before them. The binary form of word2vec has the
same line, then for each word its UTF-8 bytes, a space and D little-endian
float32 (https://code.google.com/archive/p/word2vec, distance.c).
"""

import itertools
import pathlib
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError, CorpusError, DataError
from maskedlm.data.labelled import text_lines
from maskedlm.data.sources import files
from maskedlm.runtime import output_files, output_options

_HEADER = re.compile(rb"[ \t]*(\d{1,9})[ \t]+(\d{1,6})[ \t]*\r?\n")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_EXPECTED = "expected a word and its numbers on each line, or word2vec's binary"

Entry = tuple[str, np.ndarray]  # A word and its vector, [D] float32.


class WordVectors(NamedTuple):
  """The vectors of V different words."""

  words: tuple[str, ...]  # [V].
  values: np.ndarray  # [V, D] float32.


def read_word_vectors(
  path: str, *, most: int = 0, log: Callable[[str], None]
) -> WordVectors:
  """Reads a file; of a word that is repeated, the first vector counts.

  Args:
    path: text or binary, distinguished by the content; may end in .gz or .zst.
    most: read only the first words of the file, which are usually the most
      frequent ones; 0 = all.

  Raises:
    ConfigError: there is no such file.
    DataError: the file is empty or damaged, has other contents, or not as many
      words as its first line says.
  """
  if not pathlib.Path(path).is_file():
    raise ConfigError(f"{path}: no such file; {_EXPECTED}.")
  entries, expected = _open_entries(path)
  values: dict[str, np.ndarray] = {}
  repeated: list[str] = []
  for word, value in itertools.islice(entries, most) if most else entries:
    if word in values:
      repeated.append(word)
    else:
      values[word] = value
  count = len(values) + len(repeated)
  if expected and count != min(expected, most or expected):
    raise DataError(
      f"{path}: its first line says {expected:,} words, but it has "
      f"{count:,}: fetch it again, or correct that line."
    )
  if repeated:
    log(
      f"{path}: {counted(len(repeated), 'line')} with a word that the file has "
      f"before, such as {repeated[0]!r}: the first vector of each is taken"
    )
  return WordVectors(tuple(values), np.stack(list(values.values())))


def write_word_vectors(path: str | pathlib.Path, vectors: WordVectors) -> None:
  """Writes word2vec's text; the file gets its name when it is complete.

  Raises:
    ConfigError, StorageError: the file can't be written.
  """
  V, D = vectors.values.shape
  form = " ".join(["%.9g"] * D)  # A float32 has 9 digits.
  with (
    output_options.named_errors(path, option="--out"),
    output_files.whole_file(pathlib.Path(path)) as file,
  ):
    file.write(f"{V} {D}\n".encode())
    for word, value in zip(vectors.words, vectors.values.tolist(), strict=True):
      file.write(f"{word} {form % tuple(value)}\n".encode())


def _open_entries(path: str) -> tuple[Iterator[Entry], int]:
  """Returns the entries, and how many the first line states, or 0."""
  head = next(_read_blocks(path), b"")
  if not head.strip():
    raise DataError(f"{path}: the file is empty; {_EXPECTED}.")
  if header := _HEADER.match(head):
    count, width = map(int, header.groups())
    if not (count and width):
      raise DataError(
        f"{path}: its first line says {count} words of {width} numbers; "
        "expected at least one of either."
      )
    if _CONTROL.search(head) and not _is_line(head[header.end() :], width):
      return _read_binary(path, width), count
    return _read_text(path, width, skip=1), count
  if _CONTROL.search(head):
    raise DataError(f"{path} is neither text nor word2vec's; {_EXPECTED}.")
  first = head.partition(b"\n")[0].rstrip()
  width = len(first.split(b" ")) - 1
  if width < 1:
    raise DataError(f"{path}:1: {first[:40]!r} has no number; {_EXPECTED}.")
  return _read_text(path, width), 0


def _read_blocks(path: str) -> Iterator[bytes]:
  try:
    yield from files.read_blocks(path)
  except CorpusError as error:
    raise DataError(f"{path}: {error.__cause__}; fetch it again.") from None


def _is_line(data: bytes, width: int) -> bool:
  """Returns whether data begin with a line that ends in `width` numbers."""
  _, *numbers = data.partition(b"\n")[0].rstrip().rsplit(b" ", width)
  try:
    return len(list(map(float, numbers))) == width
  except ValueError:
    return False


def _read_text(path: str, width: int, *, skip: int = 0) -> Iterator[Entry]:
  lines = text_lines.read_lines(path)
  for number, line in itertools.islice(lines, skip, None):
    if not line.strip():
      continue
    # From the right, since words of GloVe may have spaces.
    word, *numbers = line.rstrip(" \r").rsplit(" ", width)
    try:
      value = np.array(numbers, np.float32)
    except ValueError:
      value = np.zeros(0, np.float32)
    is_whole = word and len(value) == width
    if not (is_whole and np.isfinite(value).all()):
      raise DataError(
        f"{path}:{number}: {line!r:.40} is not a word and {width} "
        "numbers, as the file's beginning has; correct or remove the line."
      )
    yield word, value


def _read_binary(path: str, width: int) -> Iterator[Entry]:
  left, count = b"", 0
  for i, block in enumerate(_read_blocks(path)):
    left += block
    begin = left.index(b"\n") + 1 if i == 0 else 0
    while (space := left.find(b" ", begin)) >= 0:
      end = space + 1 + 4 * width
      if end > len(left):
        break
      count += 1
      word = left[begin:space].lstrip(b"\n")  # Some write a newline before it.
      value = np.frombuffer(left, "<f4", width, space + 1)
      if not (word and np.isfinite(value).all()):
        raise DataError(
          f"{path}: word {count:,}, {word!r:.40}, is empty or has a number "
          "that is not finite: the file is damaged; fetch it again."
        )
      try:
        form = word.decode()
      except UnicodeDecodeError:
        raise DataError(
          f"{path}: word {count:,} is not UTF-8: {word[:40]!r}; expected it; "
          "is the number of dimensions in its first line correct?"
        ) from None
      yield form, value.astype(np.float32)
      begin = end
    left = left[begin:]
  if left.strip(b"\n"):
    raise DataError(
      f"{path}: {len(left):,} bytes follow word {count:,} and are no whole "
      f"vector of {width} numbers: the file is damaged; fetch it again."
    )
