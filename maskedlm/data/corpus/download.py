"""Copies a corpus from an address (gs://..., https://...) to this host's disk.

Rows are drawn from all over a corpus, so it is mapped from a disk rather than
read over a network; streamed.py copies all but the tokens, and reads these in
place. Any address that fsspec can read is accepted.
"""

import functools
import hashlib
import operator
import pathlib
import shutil
import threading
from collections.abc import Callable, Mapping
from typing import Any

from maskedlm.core.counts import sized
from maskedlm.core.errors import ConfigError
from maskedlm.core.parse_json import parse_json
from maskedlm.data.corpus import integrity
from maskedlm.runtime import buckets, output_files, storage_errors

Log = Callable[[str], None]


def place(address: str, text: bytes) -> pathlib.Path:
  """Returns the folder of the copy of a corpus, whose meta.json is `text`.

  It is in the user's cache directory, under a name derived from its content.
  """
  name = f"{address.rpartition('/')[2]}-{hashlib.sha256(text).hexdigest()[:12]}"
  return output_files.cache_dir("corpora") / name


def copy(
  address: str,
  text: bytes,
  files: Mapping[str, Mapping],
  folder: pathlib.Path,
  *,
  log: Log,
) -> None:
  """Copies files of a corpus to a folder, once.

  The folder gets its name when every file matches its SHA-256. An interrupted
  copy is continued, and one that has lost a file, or the end of one, mended.

  Args:
    address, text: the corpus's, and its meta.json, which is written too.
    files: name -> {"bytes", "sha256"} of the files to copy, from files_of.
    folder: where they go, from `place`.

  Raises:
    ConfigError: the corpus is damaged or may not be read, or the disk is too
      small for it.
    StorageError: the address can't be reached or copied at present.
  """
  try:
    folder.parent.mkdir(parents=True, exist_ok=True)
    # One of this machine's processes copies it; the others wait.
    lock = folder.with_name(f"{folder.name}.lock")
    with output_files.lock(lock, on_wait=lambda: None):
      if _is_whole(folder, files, text):
        return
      work = folder.with_name(f"{folder.name}.part")
      if folder.exists():
        log(f"corpus: {folder} has lost files: mending it")
        buckets.remove(work)
        folder.rename(work)
      work.mkdir(exist_ok=True)
      log(f"corpus: copying {address} to {folder}")
      _copy(address, files, work, log=log)
      buckets.remove(work / "meta.json")  # A pipe would be written to.
      output_files.write_bytes(work / "meta.json", text)
      work.rename(folder)
  except OSError as error:
    raise storage_errors.as_user_error(
      f"{address} can't be copied to {folder} ({error})",
      error,
      if_wrong=f"is all of it there? {_MORE_ROOM}",
      if_temporary="then run the same command again, which continues; or set "
      "XDG_CACHE_HOME to another folder.",
    ) from error


_MORE_ROOM = "Make room there, or set XDG_CACHE_HOME to a folder that has it."


def read_meta(address: str) -> bytes:
  """Returns the meta.json of a corpus at an address.

  Raises:
    ConfigError: the address has no corpus or may not be read.
    StorageError: it can't be reached at present.
  """
  fs, root = buckets.filesystem(address)
  try:
    return fs.cat_file(f"{root}/meta.json")
  except FileNotFoundError as error:
    raise ConfigError(
      f"{address}: no finished corpus is there. Make one, `maskedlm prepare "
      "--config=... --out=FOLDER`, and copy that folder to the address."
    ) from error
  except Exception as error:  # Each file system raises its own.
    raise storage_errors.unreachable(address, error) from error


def files_of(address: str, text: bytes) -> dict[str, dict]:
  """Returns name -> {"bytes", "sha256"} from meta.json, which isn't trusted.

  Raises:
    ConfigError: it is not that of a corpus.
  """
  try:
    files: dict[str, dict[str, Any]] = {
      name: {"bytes": operator.index(x["bytes"]), "sha256": str(x["sha256"])}
      for name, x in parse_json(text)["files"].items()
    }
  except (ValueError, TypeError, KeyError, AttributeError) as error:
    raise ConfigError(
      f"{address}/meta.json is not that of a corpus."
    ) from error
  outside = [n for n in files if n.startswith("/") or ".." in n.split("/")]
  if outside or any(x["bytes"] < 0 for x in files.values()):
    raise ConfigError(f"{address}/meta.json names files outside of the corpus.")
  return files


def _copy(
  address: str, files: Mapping[str, Mapping], work: pathlib.Path, *, log: Log
) -> None:
  """Copies the missing files to the folder `work` and checks every file."""
  total = sum(file["bytes"] for file in files.values())
  problem = functools.partial(integrity.find_problem, str(work), whole=True)
  missing = [name for name, file in files.items() if problem(name, file)]
  done = total - sum(files[name]["bytes"] for name in missing)
  counting = threading.Lock()
  free = shutil.disk_usage(work).free
  if total - done > free:
    raise ConfigError(
      f"{address} needs {sized(total - done)} in {work.parent}, where "
      f"{sized(free)} are free. {_MORE_ROOM}"
    )

  def check(name: str) -> None:
    nonlocal done
    if problem(name, files[name]):
      (work / name).unlink()
      raise ConfigError(
        f"{address}/{name} differs from its SHA-256 in meta.json: it is "
        "damaged, or was changed meanwhile. Copy the corpus there again."
      )
    with counting:
      before, done = done, done + files[name]["bytes"]
      if 10 * done // max(total, 1) > 10 * before // max(total, 1):
        log(f"corpus: copied {sized(done)} of {sized(total)}")

  try:
    buckets.download(address, missing, work, then=check)
  except (ConfigError, OSError):
    raise
  except Exception as error:  # Each file system raises its own.
    raise storage_errors.unreachable(address, error) from error


def _is_whole(folder: pathlib.Path, files, text: bytes) -> bool:
  """Returns whether a copy has all files, of the right sizes."""
  meta = folder / "meta.json"
  return (meta.is_file() and meta.read_bytes() == text) and not any(
    integrity.find_problem(str(folder), name, file, whole=False)
    for name, file in files.items()
  )
