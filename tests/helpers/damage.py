"""Damages files and folders, as disks, copies and mistakes do.

Each function changes what is at a path, and nothing else. Those of `CONTENT`
leave a file that can be read; those of `REPLACED` put something else there.
`flip_bit` and `cut` choose a place with a random.Random.
"""

import os
import pathlib
import pickle
import random
import shutil
from collections.abc import Callable


def flip_bit(path: pathlib.Path, rng: random.Random | None = None) -> None:
  """Flips one bit; by default one in the middle of the file."""
  content = bytearray(path.read_bytes())
  place = rng.randrange(len(content)) if rng else len(content) // 2
  content[place] ^= 1 << (rng.randrange(8) if rng else 0)
  path.write_bytes(content)


def cut(path: pathlib.Path, rng: random.Random | None = None) -> None:
  """Shortens a file; by default by half."""
  size = path.stat().st_size
  os.truncate(path, rng.randrange(size) if rng else size // 2)


def empty(path: pathlib.Path) -> None:
  """Makes a file empty."""
  os.truncate(path, 0)


def lengthen(path: pathlib.Path) -> None:
  """Appends a byte."""
  with path.open("ab") as file:
    file.write(b"\0")


def zero(path: pathlib.Path) -> None:
  """Writes zeros of the same size, as a power cut may leave."""
  path.write_bytes(bytes(path.stat().st_size))


def remove(path: pathlib.Path) -> None:
  """Removes a file or a folder."""
  if path.is_dir() and not path.is_symlink():
    shutil.rmtree(path)
  else:
    path.unlink()


def folder(path: pathlib.Path) -> None:
  """Puts an empty folder there."""
  remove(path)
  path.mkdir()


def file(path: pathlib.Path) -> None:
  """Puts a text file there."""
  remove(path)
  path.write_text("a file\n")


def loop(path: pathlib.Path) -> None:
  """Puts a symbolic link to itself there."""
  remove(path)
  path.symlink_to(path.name)


def dangling(path: pathlib.Path) -> None:
  """Puts a symbolic link to nothing there."""
  remove(path)
  path.symlink_to("nothing-is-here")


def fifo(path: pathlib.Path) -> None:
  """Puts a named pipe there, on which `open` waits for a writer."""
  remove(path)
  os.mkfifo(path)


def pickled(path: pathlib.Path) -> None:
  """Puts a pickle there, which must not be loaded."""
  remove(path)
  path.write_bytes(pickle.dumps({"a": 1}))


def not_utf8(path: pathlib.Path) -> None:
  """Puts text there that is not UTF-8."""
  remove(path)
  path.write_bytes(b'{"a": "\xff\xfe"}')


def deep_json(path: pathlib.Path) -> None:
  """Puts JSON there that is nested too deep for Python."""
  remove(path)
  path.write_text("[" * 100_000 + "]" * 100_000)


def other_json(path: pathlib.Path) -> None:
  """Puts JSON of another type there."""
  remove(path)
  path.write_text("[1, 2]\n")


Damage = Callable[[pathlib.Path], None]
CONTENT: tuple[Damage, ...] = (flip_bit, cut, empty, lengthen, zero)
REPLACED: tuple[Damage, ...] = (
  *(remove, folder, file, loop, dangling, fifo),
  *(pickled, not_utf8, deep_json, other_json),
)
