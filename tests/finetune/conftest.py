"""Fixtures that the tests of several tasks use."""

import pytest


@pytest.fixture
def file(tmp_path):
  """Writes a file and returns its path: (content, name)."""

  def write(content, name="f.tsv"):
    path = tmp_path / name
    path.write_bytes(content.encode())
    return str(path)

  return write
