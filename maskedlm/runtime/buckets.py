"""Remote storage: workdirs and files at addresses such as gs://bucket/run.

A run's workdir may be in Google Cloud Storage or Amazon S3. Its checkpoints are
stored only there. Its small files are kept in a temporary folder, the *mirror*,
which is filled from the address at the start, and copied back before a
checkpoint is complete and at the end. Code that only reads a checkpoint uses
the address. Corpora are copied or read in place by data/corpus/.
"""

import atexit
import concurrent.futures
import contextlib
import errno
import functools
import os
import pathlib
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from maskedlm.core.errors import ConfigError
from maskedlm.runtime import s3, storage_errors

_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/+")  # pathlib folds slashes.
_MARK = ".address"  # The file in a mirror that holds the mirrored address.
_NOT_FETCHED = {"checkpoints", "tensorboard"}  # A run only adds to these.
_AT_ONCE = 8  # Files copied at a time.
PAUSES = (1, 2, 4, 8, 16, 32)  # Seconds before a read is tried again.
_SILENCE = 60  # Seconds after which a web server is taken to be gone.

T = TypeVar("T")
# A pathlib.Path, or an epath.Path for an address.
if TYPE_CHECKING:
  from etils import epath

  Path: TypeAlias = pathlib.Path | epath.Path
else:
  Path = os.PathLike


def is_address(path: str | Path) -> bool:
  """Returns whether a path is an address, such as gs://..."""
  return bool(_ADDRESS.match(os.fspath(path)))


def normalize(address: str | Path) -> str:
  """Returns the address with two slashes, and none at the end."""
  normalized = _ADDRESS.sub(r"\1://", os.fspath(address), count=1).rstrip("/")
  return re.sub("^file://", "file:///", normalized)  # Its path is absolute.


def folder(path: str | Path) -> pathlib.Path:
  """Returns the absolute path of a folder; ~ is the user's home.

  Raises:
    ConfigError: the path is an address.
  """
  if is_address(path):
    place = normalize(path)
    copy = {"gs": "gcloud storage rsync --recursive", "s3": "aws s3 sync"}
    command = copy.get(place.partition(":")[0])
    raise ConfigError(
      f"{place}: expected a folder on this machine; copy that there"
      + (f", {command} FOLDER {place}" if command else ".")
    )
  return pathlib.Path(os.path.realpath(_at_home(path)))


def _at_home(path: str | Path) -> pathlib.Path:
  # Shells don't expand --out=~/x.
  return pathlib.Path(os.path.expanduser(path))


def origin(path: str | Path) -> Path:
  """Returns the real location of a path: in a mirror, its address.

  Raises:
    ConfigError: the address or the folder is not one that Orbax can write, or a
      package is missing.
  """
  if is_address(path):
    return _bucket(path)
  path = _checkpoint_folder(path)
  for folder in (path, *path.parents):
    with contextlib.suppress(OSError):
      return _bucket((folder / _MARK).read_text("utf-8")) / path.relative_to(
        folder
      )
  return path


def _checkpoint_folder(path: str | Path) -> pathlib.Path:
  """Returns the path of a folder, as TensorStore reads it; or ConfigError."""
  path = pathlib.Path(os.path.realpath(_at_home(path)))
  text = str(path)
  if "\\" in text or text != text.encode(errors="replace").decode():
    raise ConfigError(
      f"{text!r} can't hold checkpoints: a backslash, or a name that is not "
      "UTF-8, is in its path. Choose or rename the folder."
    )
  return path


def _bucket(address: str | Path):
  address = normalize(address)
  if not address.startswith(("gs://", "s3://")):
    raise ConfigError(
      f"{address}: checkpoints can be in folders, Google Cloud Storage "
      "(gs://BUCKET/PATH) and S3 (s3://BUCKET/PATH). Mount other storage, and "
      "give the folder."
    )
  filesystem(address)
  if address.startswith("s3://"):
    s3.enable()
  from etils import epath

  return epath.Path(address)


@functools.cache
def filesystem(address: str):
  """Returns (the fsspec file system of an address, the path within it).

  Raises:
    ConfigError: the type of address is unknown, or a package is missing.
  """
  import fsspec

  # A cache would hide what TensorStore and other hosts have written.
  for name in ("gs", "gcs", "s3"):
    fsspec.config.conf.setdefault(name, {})["use_listings_cache"] = False
  kind = address.partition(":")[0]
  try:
    options = _http_options() if kind in ("http", "https") else {}
    return fsspec.core.url_to_fs(address, **options)
  except ImportError as error:
    extra = {"gs": "gcs", "s3": "s3", "http": "http", "https": "http"}.get(kind)
    package = f"'maskedlm[{extra}]'" if extra else "PACKAGE"
    raise ConfigError(
      f"{address}: a package is missing ({error}): `pip install {package}`, or "
      "mount the storage and give the folder."
    ) from error
  except ValueError as error:
    raise ConfigError(
      f"{address}: {error}; expected a folder, or an address such as "
      "gs://BUCKET/PATH."
    ) from error
  except Exception as error:  # Each kind of file system raises its own.
    raise storage_errors.as_user_error(
      f"{address} can't be opened ({storage_errors.reason(error)})",
      error,
      if_wrong="mount the storage, and give the folder.",
      if_temporary="then run the same command again; or mount the storage, and "
      "give the folder.",
    ) from error


def _http_options() -> dict:
  """Returns options of fsspec's file system of HTTP."""
  import aiohttp

  # By default, a file must be there within 5 minutes, and a proxy is ignored.
  timeout = aiohttp.ClientTimeout(total=None, sock_read=_SILENCE)
  return {"client_kwargs": {"timeout": timeout, "trust_env": True}}


# Files, in folders and in buckets


def retried(address: str | Path, read: Callable[[], T]) -> T:
  """Returns read(), which is tried again if it fails in a way that may pass.

  Args:
    read: reads it; a full disk of its own is not waited for.

  Raises:
    Exception: the last one, after a minute or so.
  """
  # gcsfs waits half a minute by itself; HTTP's file system tries once.
  for pause in () if normalize(address).startswith("gs:") else PAUSES:
    try:
      return read()
    except Exception as error:  # Each file system raises its own.
      is_full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
      wrong = is_full or not storage_errors.may_pass(error)
      if wrong or hasattr(error, "exit_code"):
        raise
    time.sleep(pause)
  return read()


def list_files(path: str | Path) -> list[str]:
  """Lists the files below a folder, sorted, relative to it."""
  if not is_address(path):
    folder = pathlib.Path(path)
    files = (p.relative_to(folder) for p in folder.rglob("*") if p.is_file())
    return sorted(map(str, files))
  fs, root = filesystem(os.fspath(path))
  return sorted(name.removeprefix(f"{root}/") for name in fs.find(root))


def remove(path: Path) -> None:
  """Deletes a folder and its contents, or a file; ignores errors."""
  if is_address(path):
    with contextlib.suppress(Exception):  # gcsfs raises many kinds.
      _bucket(path).rmtree(missing_ok=True)
  else:
    with contextlib.suppress(OSError):  # Closing a folder may fail, too.
      if path.is_dir():  # rmtree opens what it is given, and waits at a pipe.
        shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(OSError):
      path.unlink()


def download(
  address: str | Path,
  names: Iterable[str],
  folder: pathlib.Path,
  *,
  then: Callable[[str], None] = lambda name: None,
) -> None:
  """Copies the named files of an address to a folder, several at a time.

  Calls then(name) after each, in a worker thread. Errors of the file system are
  raised as they are.
  """
  fs, root = filesystem(os.fspath(address))

  def fetch_one(name: str) -> None:
    place = folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.is_file():  # Opening a pipe to write would wait for a reader.
      remove(place)
    copy = functools.partial(fs.get_file, f"{root}/{name}", str(place))
    retried(address, copy)
    then(name)

  with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
    try:
      for _ in pool.map(fetch_one, names):
        pass
    finally:
      pool.shutdown(cancel_futures=True)


def local_copy(path: str | Path, *, beside: Iterable[str] = ()) -> pathlib.Path:
  """Returns a local path; an address is copied, and the copy deleted at exit.

  Args:
    path: a folder, a file, or the address of one; ~ is the user's home.
    beside: names of files in the same folder that are copied with a file, if
      they exist.

  Raises:
    ConfigError: nothing is at the address.
    StorageError: the address can't be read now.
  """
  if not is_address(path):
    return _at_home(path)
  address = normalize(path)
  fs, root = filesystem(address)  # Outside the block: its errors say more.
  folder = pathlib.Path(tempfile.mkdtemp(prefix="maskedlm-"))
  atexit.register(shutil.rmtree, folder, ignore_errors=True)
  with storage_errors.bucket_errors(address):
    if fs.isfile(root):
      address, _, name = address.rpartition("/")
      existing = [n for n in beside if fs.exists(f"{root[: -len(name)]}{n}")]
      download(address, [name, *existing], folder)
      return folder / name
    names = list_files(address)
    download(address, names, folder)
  if not names:
    raise ConfigError(
      f"{address}: nothing is there; expected a folder or a file."
    )
  return folder


# A run's workdir


@contextlib.contextmanager
def workdir(path: str | Path) -> Iterator[pathlib.Path]:
  """Yields the folder of a run; for an address, its mirror.

  Raises:
    ConfigError: the path is wrong, or Orbax can't write it.
    StorageError: it can't be read now, or can't be written at the end.
  """
  if not is_address(path):
    yield _checkpoint_folder(path)
    return
  address = _bucket(path)
  with tempfile.TemporaryDirectory(prefix="maskedlm-") as temporary:
    folder = pathlib.Path(temporary, address.name)
    folder.mkdir()
    with storage_errors.bucket_errors(address):
      names = list_files(address)
      names = [n for n in names if not _NOT_FETCHED.intersection(n.split("/"))]
      download(address, names, folder)
    (folder / _MARK).write_text(str(address), "utf-8")
    before = _stamps(folder)
    try:
      yield folder
    finally:
      if _stamps(folder) != before:  # Only host 0 writes.
        with storage_errors.bucket_errors(address):
          upload(folder)


def _stamps(folder: pathlib.Path) -> dict[str, tuple[int, int]]:
  stats = {name: (folder / name).stat() for name in list_files(folder)}
  return {name: (s.st_size, s.st_mtime_ns) for name, s in stats.items()}


def upload(path: str | Path) -> None:
  """Copies a mirror's files to its address; does nothing for other paths."""
  address = origin(path)
  if is_address(path) or not is_address(address):
    return
  folder = pathlib.Path(path)
  fs, root = filesystem(os.fspath(address))
  for name in list_files(folder):
    if name != _MARK:
      fs.pipe_file(f"{root}/{name}", (folder / name).read_bytes())
