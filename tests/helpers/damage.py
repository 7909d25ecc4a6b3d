"""Damages files and folders, as disks, copies and mistakes do.

Each function is (path, rng=Random(0)) -> None and changes only what is at the
path, or in parent_is_file its folder. ALL has those of a fault campaign, with
their shares.
"""

import os
import pathlib
import pickle
import random
import shutil
from collections.abc import Callable

Damage = Callable[..., None]


def _rng() -> random.Random:
  return random.Random(0)


# The file stays, with other content.


def flip(path: pathlib.Path, rng: random.Random | None = None) -> None:
  """Flips a bit."""
  rng, data = rng or _rng(), bytearray(path.read_bytes())
  if data:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
  path.write_bytes(data)


def cut(path: pathlib.Path, rng: random.Random | None = None) -> None:
  """Cuts the file short, anywhere."""
  size = (rng or _rng()).randrange(path.stat().st_size or 1)
  path.write_bytes(path.read_bytes()[:size])


def empty(path: pathlib.Path, rng: random.Random | None = None) -> None:
  """Makes the file empty."""
  path.write_bytes(b"")


def grow(path: pathlib.Path, rng: random.Random | None = None) -> None:
  """Appends bytes."""
  rng = rng or _rng()
  path.write_bytes(path.read_bytes() + rng.randbytes(rng.randint(1, 99)))


def zeros(path: pathlib.Path, rng: random.Random | None = None) -> None:
  """Replaces the content by zeros, as file systems do after a power cut."""
  path.write_bytes(bytes(path.stat().st_size))


# Something else stands there: path may be a folder.


def remove(path: pathlib.Path, rng: random.Random | None = None) -> None:
  """Removes a file or a folder."""
  if path.is_dir() and not path.is_symlink():
    shutil.rmtree(path)
  else:
    path.unlink()


def folder(path: pathlib.Path, rng: random.Random | None = None) -> None:
  """Puts an empty folder there."""
  remove(path)
  path.mkdir()


def file(path: pathlib.Path, rng: random.Random | None = None) -> None:
  """Puts a text file there."""
  remove(path)
  path.write_text("a file\n")


def loop(path: pathlib.Path, rng: random.Random | None = None) -> None:
  """Puts a symbolic link to itself there."""
  remove(path)
  path.symlink_to(path.name)


def dangling(path: pathlib.Path, rng: random.Random | None = None) -> None:
  """Puts a symbolic link to nothing there."""
  remove(path)
  path.symlink_to("nothing-is-here")


def fifo(path: pathlib.Path, rng: random.Random | None = None) -> None:
  """Puts a named pipe there, on which `open` waits for a writer."""
  remove(path)
  os.mkfifo(path)


def pickled(path: pathlib.Path, rng: random.Random | None = None) -> None:
  """Puts a pickle there, which must not be loaded."""
  remove(path)
  path.write_bytes(pickle.dumps({"a": [1, 2]}))


def not_utf8(path: pathlib.Path, rng: random.Random | None = None) -> None:
  """Puts text there that is not UTF-8."""
  remove(path)
  path.write_bytes(b'{"a": "\xff\xfe"}')


def deep(path: pathlib.Path, rng: random.Random | None = None) -> None:
  """Puts JSON there that is nested too deep to parse."""
  remove(path)
  path.write_text("[" * 100_000)


def other_json(path: pathlib.Path, rng: random.Random | None = None) -> None:
  """Puts JSON of another type there."""
  remove(path)
  path.write_text("[1, 2]\n")


def parent_is_file(
  path: pathlib.Path, rng: random.Random | None = None
) -> None:
  """Puts a file in place of the folder that has the path."""
  parent = path.parent
  shutil.rmtree(parent)
  parent.write_bytes(b"")


CONTENT: tuple[Damage, ...] = (flip, cut, empty, grow, zeros)
REPLACED: tuple[Damage, ...] = (
  *(remove, folder, file, loop, dangling, fifo),
  *(pickled, not_utf8, deep, other_json),
)
ALL = (*[flip] * 3, *CONTENT, *REPLACED, parent_is_file)
