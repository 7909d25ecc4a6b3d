"""Expands globs to sorted paths and reads text files in chunks.

reader.py turns the chunks into documents. Reading is streaming; files whose
names end in .gz or .zst are decompressed.
"""

import codecs
import glob
import gzip
import io
import os
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import IO

import zstandard

from maskedlm.core.errors import CorpusError
from maskedlm.core.open_file import open_file
from maskedlm.data.sources import encodings
from maskedlm.runtime import buckets, storage_errors

BLOCK = 1 << 20  # Bytes read at a time.
MAX_WARNINGS = 20
WARNING = "warning: "  # Begins names in a report that are shown as warnings.
_MAX_WINDOW = 1 << 31  # Bytes; that of zstd --long=31, the largest possible.
_REMEDIES = {
  "gzip": "name it .gz",
  "zstd": "name it .zst",
  "Parquet": "it is a source of its own, parquet:GLOB",
}


def expand_globs(
  source: str,
  spec: str,
  *,
  endings: tuple[str, ...],
  instead: tuple[str, ...] = (),
) -> list[str]:
  """Returns the files that globs and folders match, sorted and unique.

  A file with several names, through links for example, is returned under the
  first of them.

  Args:
    source: corpus.source as the user gave it, for error messages.
    spec: comma-separated globs, of paths or of addresses such as
      hf://datasets/NAME/*.parquet; or a path with commas in it.
    endings: the endings of the files for which a folder stands.
    instead: their endings if the folder has none of these.

  Raises:
    CorpusError: nothing matches, something that is not a file (a pipe) does, or
      a folder can't be read.
  """
  matched = set()
  is_one = "," not in spec or _matches(spec)
  patterns = [spec] if is_one else spec.split(",")
  for pattern in filter(None, map(str.strip, patterns)):
    if buckets.is_address(pattern):
      paths, files = [], _at_address(pattern, endings, instead)
    else:
      paths = _matches(pattern)
      files = {path for path in paths if not os.path.isdir(path)}
    for folder in set(paths) - files:
      files.update(_walk(folder, endings) or _walk(folder, instead))
    if not files:
      remedy = f"relative paths start in {os.getcwd()}"
      for folder in filter(os.path.isdir, paths):
        if any(_walk(folder, (".arrow",))):
          remedy = encodings.ARROW_REMEDY
      raise CorpusError(
        f"corpus.source={source!r}: {pattern!r} matches no file; expected a "
        f"path, a glob or a folder with {' or '.join(endings)} files; {remedy}."
      )
    for path in files:
      if os.path.exists(path) and not os.path.isfile(path):
        raise CorpusError(
          f"corpus.source={source!r}: {path} is not a regular file (a pipe, "
          "which can't be read twice); write its content to a file first."
        )
    matched |= files
  if not matched:
    raise CorpusError(
      f"corpus.source={source!r} names no file; write a path, a glob or a "
      "folder after the colon."
    )
  first: dict[str, str] = {}
  for path in sorted(matched):
    first.setdefault(os.path.realpath(path), path)
  return list(first.values())


def _matches(pattern: str) -> list[str]:
  path = os.path.expanduser(pattern)
  if os.path.exists(path):  # Its name may contain [ or *.
    return [path]
  return glob.glob(path, recursive=True)


def _at_address(
  pattern: str, endings: tuple[str, ...], instead: tuple[str, ...]
) -> set[str]:
  """Returns the addresses of the files that a glob or a folder stands for."""
  fs, root = buckets.filesystem(buckets.normalize(pattern))
  with storage_errors.bucket_errors(pattern):
    paths = {*fs.glob(root)}
    for folder in [path for path in paths if fs.isdir(path)]:
      # Not hidden ones, as in _walk.
      below = [x for x in fs.find(folder) if "/." not in x[len(folder) :]]
      chosen = [x for x in below if x.lower().endswith(endings)]
      paths |= {*(chosen or [x for x in below if x.lower().endswith(instead)])}
      paths.remove(folder)
    return {fs.unstrip_protocol(path) for path in paths}


def open_source(path: str) -> IO[bytes]:
  """Opens a file of a source, which may be an address.

  Raises (as does reading it):
    ConfigError, StorageError: an address can't be read.
    OSError: a file can't be read.
  """
  if not buckets.is_address(path):
    return open_file(path)
  fs, root = buckets.filesystem(path)
  with storage_errors.bucket_errors(path):
    file = fs.open(root, "rb")
  read = file.read

  def read_or_explain(size: int = -1) -> bytes:
    with storage_errors.bucket_errors(path):
      return read(size)

  file.read = read_or_explain
  return file


def size(path: str) -> int:
  """Returns the number of bytes of a file of a source."""
  if not buckets.is_address(path):
    return os.path.getsize(path)
  fs, root = buckets.filesystem(path)
  with storage_errors.bucket_errors(path):
    return fs.size(root)


def _walk(folder: str, endings: tuple[str, ...]) -> list[str]:
  """Returns files with these endings, not hidden ones (._a.txt of macOS)."""

  def refuse(error):
    raise CorpusError(
      f"{error.filename} can't be read: {error.strerror}; make it readable, or "
      "list only the other folders in corpus.source."
    ) from error

  paths = []
  seen = set()  # Links may form a cycle.
  for parent, folders, names in os.walk(
    folder, followlinks=True, onerror=refuse
  ):
    here = os.path.realpath(parent)
    if here in seen:
      folders.clear()
      continue
    seen.add(here)
    folders[:] = sorted(name for name in folders if not name.startswith("."))
    for name in names:
      if name.lower().endswith(endings) and not name.startswith("."):
        paths.append(os.path.join(parent, name))
  return paths


def read_text(path: str, report: Counter) -> Iterator[str]:
  """Yields a file's text in chunks, with "\\n" as line ending.

  Invalid bytes become lone surrogates, which reader.py repairs and counts.

  Raises:
    CorpusError: the file is not UTF-8 text, or can't be read to its end.
  """
  decoder = io.IncrementalNewlineDecoder(
    codecs.getincrementaldecoder("utf-8")("surrogateescape"), translate=True
  )
  report["files read"] += 1

  def decoded():
    for index, block in enumerate(read_blocks(path)):
      if index == 0 and (name := encodings.name_of_binary(block)):
        remedy = _REMEDIES.get(name) or encodings.remedy_for_binary(name)
        raise CorpusError(
          f"{path} is {name}; expected UTF-8 text, plain, .gz or .zst; "
          f"{remedy}, or leave it out of corpus.source."
        )
      report["bytes read"] += len(block)
      yield decoder.decode(block)
    yield decoder.decode(b"", final=True)

  yield from check_encoding(decoded(), path, report)
  if decoder.newlines not in (None, "\n"):
    report["files with CRLF or CR line ends"] += 1


def check_encoding(
  texts: Iterable[str], path: str, report: Counter
) -> Iterator[str]:
  """Yields the texts of a file, and reports it if it is not UTF-8.

  Args:
    texts: the parts of the file `path`; invalid bytes are surrogates.
    report: gets a warning if over encodings.WARN_SHARE of the characters are
      invalid. It names at most MAX_WARNINGS files.

  Raises:
    CorpusError: over encodings.MAX_SHARE of the characters are invalid.
  """
  first, invalid, characters = "", 0, 0

  def problem():
    remedy = encodings.remedy_for_invalid()
    if path.lower().endswith(".parquet"):
      remedy = "decode its texts from their own encoding, and write UTF-8"
    return (
      f"{path} is not UTF-8: {invalid / characters:.1%} of its characters are "
      f"invalid, the first is {first}; {remedy}"
    )

  def check(at_least):
    if invalid > encodings.MAX_SHARE * max(characters, at_least):
      raise CorpusError(problem())

  for text in texts:
    if count := encodings.count_invalid(text):
      first = first or encodings.first_invalid(text, characters)
    invalid += count
    characters += len(text)
    check(at_least=BLOCK)
    yield text
  check(at_least=1)
  if invalid > encodings.WARN_SHARE * characters:
    known = sum(name.startswith(WARNING) for name in report)
    other = "other files with over 1% of invalid characters"
    name = problem() if known < MAX_WARNINGS else other
    report[WARNING + name] += invalid


def read_blocks(path: str) -> Iterator[bytes]:
  """Yields a file's bytes, decompressed by ending, about BLOCK at a time.

  Raises:
    CorpusError: the file can't be read to its end.
  """
  try:
    with open_source(path) as file:
      if path.lower().endswith(".zst"):
        yield from zstd_blocks(file)
      else:
        is_gzip = path.lower().endswith((".gz", ".tgz"))
        stream = gzip.GzipFile(fileobj=file) if is_gzip else file
        while block := stream.read(BLOCK):
          yield block
  except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
    storage_errors.raise_if_temporary(path, error)
    raise CorpusError(
      f"{path} can't be read to its end: {error}; fetch it again, rename it if "
      "it is not compressed, or leave it out of corpus.source."
    ) from error


def zstd_blocks(file) -> Iterator[bytes]:
  """Yields the content of all frames of a zstd file.

  Used since zstandard's stream_reader treats a truncated file as complete. 1 kB
  is decompressed at a time, since it may become 32 MB.

  Raises:
    EOFError: the last frame is truncated.
  """
  block, frame = bytearray(), None
  while data := file.read(1 << 10):
    while data:
      if frame is None or frame.eof:
        frame = zstandard.ZstdDecompressor(
          max_window_size=_MAX_WINDOW
        ).decompressobj()
      block += frame.decompress(data)
      data = frame.unused_data
    while len(block) >= BLOCK:
      yield bytes(block[:BLOCK])
      del block[:BLOCK]
  if block:
    yield bytes(block)
  if frame and not frame.eof:
    raise EOFError("the zstd file is truncated")
