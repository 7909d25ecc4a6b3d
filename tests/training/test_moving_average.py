"""The moving average of the weights: by hand, on a mesh, and as a model."""

import jax
import numpy as np
import pytest

from helpers import tiny as tiny_run
from helpers import toy
from helpers.toy_runs import (
  logged_lines,
  make_config,
  run,
)
from maskedlm.core.errors import CheckpointError
from maskedlm.training.checkpoints import load, manifest
from maskedlm.training.checkpoints.arrays import read_arrays


def averages(workdir, step):
  """Returns (weights, moving average) of a checkpoint of the toy."""
  folder = workdir / "checkpoints" / str(step)
  found = read_arrays(folder / "state", ["ema/dense/kernel"])["ema"]
  params = load.load_params(workdir, step=step)[0]
  return params["dense"]["kernel"], found["dense"]["kernel"]


def test_by_hand(tmp_path, mesh):
  config = make_config(ema_decay=0.3, keep_every=1, num_steps=6)
  run(config, toy.make_task(bad_steps=[2]), tmp_path, mesh)
  expected, _ = averages(tmp_path, 0)
  for step in range(6):
    # The decays are 1/10, 2/11, 3/12, 4/13 = 0.308 and more, and then 0.3.
    decay = min(0.3, (1 + step) / (10 + step))
    params, found = averages(tmp_path, step + 1)
    if step != 2:  # A step that is skipped changes neither.
      expected = decay * expected + (1 - decay) * params
    np.testing.assert_allclose(found, expected, rtol=1e-6)
  heldout = [x for x in logged_lines(tmp_path) if "heldout/ema_loss" in x]
  assert [x["step"] for x in heldout] == [4, 6]
  assert heldout[-1]["heldout/ema_loss"] != heldout[-1]["heldout/loss"]


def test_training_is_the_same_with_it(tmp_path, mesh):
  plain = run(make_config(), toy.make_task(), tmp_path / "plain", mesh)
  config = make_config(ema_decay=0.99)
  averaged = run(config, toy.make_task(), tmp_path / "ema", mesh)
  for a, b in zip(
    jax.tree.leaves(plain.params), jax.tree.leaves(averaged.params), strict=True
  ):
    np.testing.assert_array_equal(a, b)
  assert averaged.heldout["loss"] == plain.heldout["loss"]
  assert "ema_loss" in averaged.heldout and "ema_loss" not in plain.heldout
  arrays = manifest.read_record(tmp_path / "plain" / "checkpoints" / "10")
  assert not [name for name in arrays["arrays"] if "ema" in name]


@pytest.mark.slow
def test_a_model_of_it(tiny, tmp_path):
  path, corpus = tiny
  done = tiny_run.run(
    "pretrain",
    f"--config={path}",
    f"--config.corpus.path={corpus}",
    f"--workdir={tmp_path / 'run'}",
    "--config.train.num_steps=6",
    "--config.train.ema_decay=0.9",
    "--config.mesh.fsdp=2",
  )
  assert done.returncode == 0, done.stderr
  assert "ema_mlm_loss" in done.stderr
  made = tiny_run.run(
    "average", "--ema", tmp_path / "run", f"--out={tmp_path / 'ema'}"
  )
  assert made.returncode == 0, made.stderr
  opened = load.open_checkpoint(tmp_path / "ema")
  held = load.open_ema(tmp_path / "run")
  jax.tree.map(np.testing.assert_array_equal, opened.params, held.params)
  trained = load.open_checkpoint(tmp_path / "run").params
  kernel = trained["encoder"]["embeddings"]["norm"]["scale"]
  assert not np.array_equal(
    kernel, opened.params["encoder"]["embeddings"]["norm"]["scale"]
  )
  with pytest.raises(CheckpointError, match="no moving average"):
    load.open_ema(tmp_path / "ema")
