"""Files of arrays (.npz): written whole or not at all, and read with care."""

import contextlib
import pathlib
import zipfile
from collections.abc import Iterator, Mapping

import numpy as np

from maskedlm import storage
from maskedlm.config import ConfigError


def save(path: str | pathlib.Path, **arrays: np.ndarray) -> None:
  """Writes all of them, or nothing.

  Raises:
    ConfigError, StorageError: it can't be written (storage.told).
  """
  path = pathlib.Path(path)
  made = path.with_name(f".{path.name}.partial")
  try:
    with made.open("wb") as file:
      np.savez(file, **arrays)
    made.replace(path)
  except OSError as error:
    raise storage.unwritable(path, error) from error
  finally:
    made.unlink(missing_ok=True)


@contextlib.contextmanager
def opened(
  path: str | pathlib.Path, *, made_by: str
) -> Iterator[Mapping[str, np.ndarray]]:
  """Within: the arrays. That something is odd in them is told as made_by's.

  Raises:
    ConfigError: no such file, or another kind of file.
  """
  try:
    with np.load(path, allow_pickle=False) as file:
      yield file
  except OSError as error:
    raise ConfigError(f"{path}: {error.strerror or error}.") from None
  except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as e:
    raise ConfigError(
      f"{path} is no file of `{made_by}`, or a damaged one ({e}): make one."
    ) from None
