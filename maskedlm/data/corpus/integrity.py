"""Compares the files of a corpus with its meta.json.

store.py calls `check_files` when it opens a corpus, and `find_problem` for each
file when it verifies one.
"""

import contextlib
import errno
import os
import pathlib
import stat
from collections.abc import Collection, Iterator, Mapping

from maskedlm.core.errors import CorpusError
from maskedlm.core.open_file import open_file
from maskedlm.core.parse_json import parse_json
from maskedlm.data.corpus import manifest, shards
from maskedlm.runtime import output_files, storage_errors

# errno if something else stands where a file or its folder was.
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)


def is_complete(path: str | os.PathLike) -> bool:
  """Returns whether a corpus is at `path`, complete but perhaps damaged."""
  return os.path.lexists(os.path.join(path, "meta.json"))


def read_meta(path: str) -> dict:
  """Returns meta.json, checked against its own checksum.

  Raises:
    CorpusError: it is missing or damaged.
    ConfigError, StorageError, PermissionError: see `reading`.
  """
  if not os.path.isdir(path):
    if os.path.lexists(path):
      raise CorpusError(
        f"{path} is not a folder, as a corpus is: give the path of one, or move"
        " it away and make a corpus there with `maskedlm prepare`."
      )
    raise CorpusError(
      f"{path}: no such corpus; make one with `maskedlm prepare`."
    )
  if path.endswith(".tmp") or not is_complete(path):
    raise CorpusError(
      f"{path}: not a finished corpus; run `maskedlm prepare` again, or give"
      " the path of a finished one."
    )
  name = os.path.join(path, "meta.json")
  with reading(path), open_file(name) as file:
    content = file.read()
  try:
    meta = parse_json(content.decode("utf-8"))
  except ValueError as error:
    raise CorpusError(f"{name}: damaged ({error}); {shards.REMEDY}") from error
  if not isinstance(meta, dict) or meta.get("format") != manifest.FORMAT:
    raise CorpusError(
      f'{name}: "format" is not "{manifest.FORMAT}"; {shards.REMEDY}'
    )
  if meta.get("version") not in manifest.READABLE:
    raise CorpusError(
      f"{path}: corpus format version {meta.get('version')}, but this maskedlm"
      f" reads versions {' and '.join(map(str, manifest.READABLE))}; remove the"
      " corpus and run `maskedlm prepare` again."
    )
  if meta.get("checksum") != manifest.checksum(meta):
    raise CorpusError(
      f"{name}: damaged (its checksum differs); {shards.REMEDY}"
    )
  return meta


def check_files(
  path: str, meta: Mapping, *, under: str = "", elsewhere: Collection[str] = ()
) -> None:
  """Checks the size of every file, and the content of all but the shards.

  Files whose names don't begin with `under`, or are `elsewhere`, are passed
  over.

  Raises:
    CorpusError: a file is missing or damaged.
    ConfigError, StorageError, PermissionError: see `reading`.
  """
  for name, file in meta["files"].items():
    if name.startswith(under) and name not in elsewhere:
      is_shard = name.split("-")[0] in shards.SPLITS
      _check_file(path, name, file, whole=not is_shard)


def check_starts(path: str, meta: Mapping) -> None:
  """Checks the content of the files of sentences' and documents' starts.

  They are a small part of a corpus, and decide where rows begin. A placeholder
  corpus has no files.
  """
  for name, file in meta.get("files", {}).items():
    if name.endswith((".sentences.npy", ".documents.npy")):
      _check_file(path, name, file, whole=True)


def _check_file(path: str, name: str, file: Mapping, *, whole: bool) -> None:
  with reading(path):
    if problem := find_problem(path, name, file, whole=whole):
      raise CorpusError(problem)


@contextlib.contextmanager
def reading_rows(path: str, meta: Mapping) -> Iterator[None]:
  """Reports damaged starts as such if the rows within the block can't be read.

  Raises:
    CorpusError: an IndexError or a ValueError was raised, and starts are
      damaged.
  """
  try:
    yield
  except (IndexError, ValueError) as error:
    if not hasattr(error, "exit_code"):
      check_starts(path, meta)
    raise


def find_problem(path: str, name: str, file: Mapping, *, whole: bool) -> str:
  """Returns one line if a file is not as in meta.json, else ''.

  `file` has its "bytes" and "sha256" there; without `whole`, only the size is
  compared.

  Raises:
    OSError: the file can't be read now, or by this user.
  """
  full = pathlib.Path(path, name)
  try:
    status = full.stat()
  except OSError as error:
    if error.errno not in _NOT_THERE:
      raise
    missing = error.errno == errno.ENOENT
    problem = "is missing" if missing else f"can't be read ({error.strerror})"
    return f"{path}: {name} {problem}; {shards.REMEDY}"
  if not stat.S_ISREG(status.st_mode):
    return f"{path}: {name} is not a regular file; {shards.REMEDY}"
  if status.st_size != file["bytes"]:
    return (
      f"{path}: {name} has {status.st_size} bytes, expected {file['bytes']}; "
      f"{shards.REMEDY}"
    )
  if whole and output_files.sha256(full) != file["sha256"]:
    return f"{path}: {name} is damaged: its SHA-256 differs; {shards.REMEDY}"
  return ""


@contextlib.contextmanager
def reading(path: str) -> Iterator[None]:
  """Raises an OSError within the block as ConfigError or StorageError.

  They name the file, or else the corpus's folder `path`. PermissionError is
  left: cli/main.py says what helps.
  """
  try:
    yield
  except PermissionError:
    raise
  except OSError as error:
    raise storage_errors.as_user_error(
      f"{error.filename or path} can't be read ({error.strerror or error})",
      error,
      if_wrong=shards.REMEDY,
    ) from error
