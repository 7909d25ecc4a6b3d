"""Reads the lines of text files of labelled data, and says what else they are.

The first bytes decide what a file is, not its name: sources/encodings.py.
"""

import bz2
import contextlib
import gzip
import itertools
import lzma
import pathlib
import zlib
from collections.abc import Iterable, Iterator

import zstandard

from maskedlm.core.errors import DataError
from maskedlm.core.open_file import open_file
from maskedlm.data.sources import encodings, files
from maskedlm.runtime import storage_errors

_BOM = b"\xef\xbb\xbf"
_HEAD = 4096  # Bytes that show what a file is.


def read_lines(path: pathlib.Path) -> Iterator[str]:
  """Yields the lines of a UTF-8 file, without line ends.

  A compressed file (gzip, zstd, bzip2, xz) is decompressed.

  Raises:
    DataError: the file is missing, empty or not UTF-8 text.
  """
  is_empty = True
  with _opened(path) as file:
    for _, line in decode_lines(_decompressed(file, path), str(path)):
      is_empty = False
      yield line
  if is_empty:
    raise DataError(f"{path}: the file is empty; expected labelled examples.")


def read_head(path: pathlib.Path) -> bytes:
  """Returns the first bytes of a file, decompressed.

  Raises:
    DataError: the file is missing, or can't be read.
  """
  with _opened(path) as file:
    return next(iter(_decompressed(file, path)), b"")[:_HEAD]


def is_plain(path: pathlib.Path) -> bool:
  """Returns whether a file is not compressed."""
  with open_file(path) as file:
    return not file.read(8).startswith(tuple(encodings.COMPRESSED))


@contextlib.contextmanager
def _opened(path: pathlib.Path) -> Iterator:
  """Opens a file; an OSError becomes a DataError, or is tried again."""
  try:
    with open_file(path) as file:
      yield file
  except OSError as error:
    storage_errors.raise_if_temporary(path, error)
    raise DataError(
      f"{path}: {error.strerror or error}; expected a file of labelled "
      "examples."
    ) from None


def decode_lines(
  lines: Iterable[bytes], name: str
) -> Iterator[tuple[int, str]]:
  """Yields (number from 1, text) of lines of bytes, without line ends.

  A line ends with \\n or \\r\\n; in a file without any \\n, with \\r.

  Raises:
    DataError: a line is not UTF-8, or the file is not text; the message names
      the file `name`.
  """
  lines = iter(lines)
  first = next(lines, b"")
  if binary := encodings.name_of_binary(first[:_HEAD]):
    raise DataError(
      f"{name} is {binary}; expected UTF-8 text; "
      f"{encodings.remedy_for_binary(binary)}."
    )
  if encodings.is_html(first[:_HEAD]):
    raise DataError(
      f"{name} is an HTML page, not the data; fetch the file that the page "
      "offers."
    )
  first = first.removeprefix(_BOM)
  begin = [first] if first else []
  if not first.endswith(b"\n") and b"\r" in first.rstrip(b"\r"):
    begin = first.rstrip(b"\r").split(b"\r")
  is_utf8 = False
  for number, line in enumerate(itertools.chain(begin, lines), 1):
    try:
      text = line.decode("utf-8")
    except UnicodeDecodeError as error:
      raise DataError(
        f"{name}:{number}: not UTF-8 (byte 0x{line[error.start]:02x} at "
        f"{error.start + 1} of the line); expected UTF-8; "
        f"{encodings.remedy_for_invalid(is_utf8=is_utf8)}."
      ) from None
    is_utf8 = is_utf8 or not text.isascii()
    yield number, text.removesuffix("\n").removesuffix("\r")


def _decompressed(file, path: pathlib.Path) -> Iterable[bytes]:
  """Returns the lines of an open file, decompressed if it is compressed.

  Raises:
    DataError: it can't be decompressed to its end.
  """
  head = file.peek(8)
  for magic, name in encodings.COMPRESSED.items():
    if head.startswith(magic):
      return _expanded(file, path, name)
  return file


def _expanded(file, path: pathlib.Path, name: str) -> Iterator[bytes]:
  openers = {
    "gzip": lambda: gzip.GzipFile(fileobj=file),
    "bzip2": lambda: bz2.BZ2File(file),
    "xz": lambda: lzma.LZMAFile(file),  # noqa: SIM115 - `file` is closed.
    "zstd": lambda: split_blocks(files.zstd_blocks(file)),
  }
  errors = (OSError, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError)
  try:
    yield from openers[name]()
  except errors as error:
    raise DataError(
      f"{path} can't be decompressed to its end ({name}: {error}); fetch it "
      "again."
    ) from None


def split_blocks(
  blocks: Iterable[bytes], *, most: int | None = None
) -> Iterator[bytes]:
  """Yields the lines, with their \\n, of text in blocks of bytes.

  If given, a line of more than `most` bytes is yielded as soon as it has them.
  """
  rest = b""
  for block in blocks:
    *whole, rest = (rest + block).split(b"\n")
    yield from (line + b"\n" for line in whole)
    if most is not None and len(rest) > most:
      yield rest
      rest = b""
  if rest:
    yield rest
