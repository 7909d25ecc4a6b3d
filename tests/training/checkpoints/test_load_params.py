"""Parameters loaded without the rest of a checkpoint."""

import shutil

import jax
import numpy as np
import pytest

from helpers.checkpoint_states import (
  META,
  files_of,
  flip,
  make_state,
  opened,
)
from maskedlm.core.errors import CheckpointError
from maskedlm.training.checkpoints.load import load_params


@pytest.mark.parametrize("tail", ["", "checkpoints", "checkpoints/3"])
def test_params_alone(workdir, tail):
  # The optimizer's files are not needed.
  shutil.rmtree(workdir / "checkpoints" / "3" / "state")
  params, meta = load_params(workdir / tail)
  assert meta == {**META, "step": 3, "metric": None}
  assert set(params) == {"encoder", "head"}
  expected = make_state(3).params["encoder"]
  assert jax.tree.structure(params["encoder"]) == jax.tree.structure(expected)
  for name in expected:
    assert type(params["encoder"][name]) is np.ndarray
    assert params["encoder"][name].dtype == expected[name].dtype
    np.testing.assert_array_equal(params["encoder"][name], expected[name])


def test_params_of_the_newest_good_step(workdir):
  flip(files_of(workdir, 3)[0])  # Not a file of the parameters.
  assert load_params(workdir)[1]["step"] == 3
  file = next(p for p in files_of(workdir, 3) if p.parts[-2:-1] == ("params",))
  flip(file)
  log = []
  assert load_params(workdir, log=log.append)[1]["step"] == 2
  assert file.name in log[0]
  with pytest.raises(CheckpointError, match=file.name):
    load_params(workdir, step=3)
  assert 3 in open_steps(workdir)  # Loading renames nothing.


def open_steps(workdir):
  with opened(workdir) as checkpoints:
    return checkpoints.steps()


def test_params_of_a_chosen_step(tmp_path):
  with opened(tmp_path) as checkpoints:
    for step, loss in [(1, 0.4), (2, 0.2), (3, 0.3)]:
      checkpoints.save(step, make_state(step), META, metric=loss)
  assert load_params(tmp_path, step="best")[1]["step"] == 2
  params, meta = load_params(tmp_path, step=1)
  assert meta["metric"] == 0.4
  np.testing.assert_array_equal(params["head"]["bias"], [1, 2**32 - 1, 7])
  with pytest.raises(CheckpointError, match=r"step=7 .* \[1, 2, 3\]"):
    load_params(tmp_path, step=7)


def test_missing_params(three, tmp_path):
  with pytest.raises(CheckpointError, match="has no checkpoint"):
    load_params(tmp_path)
  with pytest.raises(CheckpointError, match="step='best'"):
    load_params(three, step="best")
