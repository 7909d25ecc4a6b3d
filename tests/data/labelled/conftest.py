"""Writes the files that the tests of formats read."""

import pytest


@pytest.fixture
def file(tmp_path):
  """Writes a file and returns its path: (text or bytes, name)."""

  def write(content, name="f.txt"):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)

  return write
