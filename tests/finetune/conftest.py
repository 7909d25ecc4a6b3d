"""Fixtures that the tests of several tasks use."""

import pytest

from helpers import finetune_runs


@pytest.fixture(scope="session")
def encoder(tmp_path_factory):
  """Returns the workdir of an untrained encoder."""
  folder = tmp_path_factory.mktemp("encoder") / "run"
  return finetune_runs.make_encoder(folder, init_stddev=0.2)
