"""Workdirs with checkpoints."""

import shutil

import pytest

from helpers.checkpoint_states import save_steps


@pytest.fixture(scope="module")
def three(tmp_path_factory):
  """Returns a workdir with steps 1, 2 and 3, which tests must not change."""
  path = tmp_path_factory.mktemp("three")
  save_steps(path, 1, 2, 3)
  return path


@pytest.fixture
def workdir(three, tmp_path):
  """Returns a copy of `three`."""
  shutil.copytree(three, tmp_path / "run")
  return tmp_path / "run"
