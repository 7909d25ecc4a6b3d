"""An encoder, a text and what reads a picture, for all pictures."""

import struct

import pytest

from helpers import finetune_runs as runs


@pytest.fixture(scope="session")
def workdir(tmp_path_factory):
  folder = tmp_path_factory.mktemp("plots") / "tiny_encoder"
  return runs.make_encoder(folder, init_stddev=0.3)


@pytest.fixture
def text(tmp_path):
  """12 lines with 9 times "house", and 21 times "the"."""
  path = tmp_path / "en.txt"
  path.write_text("\n".join(runs.TEXTS))
  return path


@pytest.fixture
def size():
  return png_size


def png_size(path):
  """(width, height) in pixels, of a PNG that is whole."""
  data = path.read_bytes()
  assert data[:8] == b"\x89PNG\r\n\x1a\n" and data[-8:-4] == b"IEND"
  return struct.unpack(">II", data[16:24])
