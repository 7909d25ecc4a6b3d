"""One process that tests fork verbs from."""

import shutil

import pytest

from helpers import faulty_storage, forked_verbs, tiny


@pytest.fixture(scope="session")
def forked():
  """Returns forked_verbs' run, of commands that have two devices.

  Where there is a C compiler, calls to the file system may be made to fail.
  """
  env = tiny.environment(2)
  if shutil.which("cc"):
    env |= faulty_storage.environment(None)
  with forked_verbs.server(env) as run:
    yield run
