"""An encoder, a text, and the size of a picture."""

import struct

import pytest

from helpers import finetune_runs


@pytest.fixture(scope="session")
def workdir(tmp_path_factory):
  folder = tmp_path_factory.mktemp("plots") / "tiny_encoder"
  return finetune_runs.make_encoder(folder, init_stddev=0.3)


@pytest.fixture
def size():
  return png_size


def png_size(path):
  """Returns (width, height) in pixels of a complete PNG."""
  data = path.read_bytes()
  assert data[:8] == b"\x89PNG\r\n\x1a\n" and data[-8:-4] == b"IEND"
  return struct.unpack(">II", data[16:24])
