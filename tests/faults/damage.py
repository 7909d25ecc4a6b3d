"""Ways to damage a file: each is (path, rng) -> None."""

import os
import pathlib
import pickle
import random
import shutil


def flip(path: pathlib.Path, rng: random.Random) -> None:
  """Flips a bit."""
  data = bytearray(path.read_bytes())
  if data:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
  path.write_bytes(data)


def cut(path: pathlib.Path, rng: random.Random) -> None:
  """Cuts the file short, anywhere."""
  path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size or 1)])


def empty(path: pathlib.Path, rng: random.Random) -> None:
  path.write_bytes(b"")


def remove(path: pathlib.Path, rng: random.Random) -> None:
  path.unlink()


def grow(path: pathlib.Path, rng: random.Random) -> None:
  """Appends bytes."""
  path.write_bytes(path.read_bytes() + rng.randbytes(rng.randint(1, 99)))


def zeros(path: pathlib.Path, rng: random.Random) -> None:
  """Replaces the content by zeros, as file systems do after a power cut."""
  path.write_bytes(bytes(path.stat().st_size))


def folder(path: pathlib.Path, rng: random.Random) -> None:
  path.unlink()
  path.mkdir()


def pickled(path: pathlib.Path, rng: random.Random) -> None:
  path.write_bytes(pickle.dumps({"a": [1, 2]}))


def loop(path: pathlib.Path, rng: random.Random) -> None:
  """A symbolic link to itself."""
  path.unlink()
  path.symlink_to(path.name)


def fifo(path: pathlib.Path, rng: random.Random) -> None:
  """A named pipe that nobody writes to."""
  path.unlink()
  os.mkfifo(path)


def deep(path: pathlib.Path, rng: random.Random) -> None:
  """JSON nested too deep to parse."""
  path.write_text("[" * 100_000)


def parent_is_file(path: pathlib.Path, rng: random.Random) -> None:
  parent = path.parent
  shutil.rmtree(parent)
  parent.write_bytes(b"")


ALL = (
  flip, flip, flip, flip, cut, empty, remove, grow, zeros, folder, pickled,
  loop, fifo, deep, parent_is_file,
)  # fmt: skip
