"""One process that tests fork verbs from; and `inspect` without compiling."""

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


@pytest.fixture
def uncompiled(monkeypatch):
  """Makes up what a step takes of memory: planning/inspect tests that."""
  from maskedlm.training import step_memory

  made = step_memory.StepMemory(70_000_000, None)
  monkeypatch.setattr(step_memory, "measure_memory", lambda *args: made)
