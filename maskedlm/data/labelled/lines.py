"""Reads the lines of text files of labelled data; refuses other files.

The first bytes decide what a file is, not its name: sources/encodings.py.
"""

import bz2
import gzip
import itertools
import lzma
import pathlib
import zlib
from collections.abc import Callable, Iterable, Iterator

import zstandard

from maskedlm.core.errors import DataError
from maskedlm.core.open_file import open_file
from maskedlm.data.sources import encodings, files
from maskedlm.runtime import storage_errors

# Endings of names; whether a file is compressed, its first bytes decide.
COMPRESSED = (".gz", ".gzip", ".zst", ".zstd", ".bz2", ".xz")
_BOM = b"\xef\xbb\xbf"
_HEAD = 4096  # Bytes that show what a file is.
MAX_LINE = 1 << 27  # Bytes; a small compressed file may hold a longer one.


def read_lines(path: pathlib.Path) -> Iterator[str]:
  """Yields the lines of a UTF-8 file, without line ends.

  A compressed file (gzip, zstd, bzip2, xz) is decompressed.

  Raises:
    DataError: the file is missing, empty or not UTF-8 text, or a line has more
      than MAX_LINE bytes.
  """
  is_empty = True
  for _, line in decode_lines(_limited_lines(path), str(path)):
    is_empty = False
    yield line
  if is_empty:
    raise DataError(f"{path}: the file is empty; expected texts or examples.")


def _limited_lines(path: pathlib.Path) -> Iterator[bytes]:
  for number, line in enumerate(raw_lines(path, most=MAX_LINE), 1):
    if len(line) >= MAX_LINE:
      raise DataError(
        f"{path}:{number}: the line has {MAX_LINE / 1e6:.0f} MB or more; "
        "expected an example a line: break it into lines (JSON: jq -c '.[]')."
      )
    yield line


def read_head(path: str | pathlib.Path) -> bytes:
  """Returns the first bytes of a file, decompressed.

  Raises:
    DataError: the file is missing, or can't be read.
  """
  return next(raw_lines(path, most=_HEAD), b"")[:_HEAD]


def is_plain(path: pathlib.Path) -> bool:
  """Returns whether a file is not compressed."""
  with open_file(path) as file:
    return not _compression(file)


def raw_lines(path: str | pathlib.Path, *, most: int) -> Iterator[bytes]:
  """Yields the lines of a file with their ends, decompressed.

  Args:
    path: the file; its first bytes say whether it is compressed.
    most: a longer line is yielded in parts of this many bytes.

  Raises:
    DataError: the file is missing, or can't be read to its end.
    StorageError: it can't be read at present.
  """
  kind = ""
  try:
    with open_file(path) as file:
      kind = _compression(file)
      if kind == "zstd":
        yield from _split_blocks(files.zstd_blocks(file), most)
        return
      openers: dict[str, Callable]
      openers = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
      stream = openers[kind](file) if kind else file
      yield from iter(lambda: stream.readline(most), b"")
  except _UNREADABLE as error:
    if kind:
      raise DataError(
        f"{path} can't be decompressed to its end ({kind}: {error}); fetch it "
        "again."
      ) from None
    storage_errors.raise_if_temporary(path, error)
    raise DataError(
      f"{path}: {getattr(error, 'strerror', '') or error}; expected a file of "
      "text."
    ) from None


_UNREADABLE = (
  *(OSError, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError),
)


def _compression(file) -> str:
  """Returns how an open file is compressed; "" for a plain one."""
  head = file.peek(8)
  kinds = encodings.COMPRESSED.items()
  return next((kind for magic, kind in kinds if head.startswith(magic)), "")


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


def _split_blocks(blocks: Iterable[bytes], most: int) -> Iterator[bytes]:
  """Yields the lines, with their \\n, of text in blocks of bytes.

  A line of `most` bytes or more is yielded as soon as it has them.
  """
  rest = b""
  for block in blocks:
    *whole, rest = (rest + block).split(b"\n")
    yield from (line + b"\n" for line in whole)
    if len(rest) >= most:
      yield rest
      rest = b""
  if rest:
    yield rest
