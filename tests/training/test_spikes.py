"""Loss spikes: against NumPy, in a step, in a run, across a resume."""

import contextlib
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import toy
from helpers.toy_runs import (
  assert_same_end,
  killed_at,
  logged_lines,
  make_config,
  run,
)
from maskedlm.training import nonfinite_rows, spikes
from maskedlm.training import step as steps
from maskedlm.training.checkpoints import files, manager, manifest

ADD = jax.jit(spikes.add)


def spikes_of(values, sigma, is_loss=None):
  """Returns the indices of values that are spikes."""
  losses, found = spikes.init(), []
  for i, value in enumerate(values):
    there = True if is_loss is None else bool(is_loss[i])
    losses = ADD(losses, jnp.float32(value), jnp.bool(there), sigma=sigma)
    if int(losses.spiked):
      found.append(i)
  return found


@pytest.mark.parametrize("sigma", [1.5, 2.25])
def test_spikes_are_those_of_numpy(sigma):
  rng = np.random.default_rng(3)
  values = rng.normal(5, 1, 307).astype(np.float32)
  expected = []
  for i in range(64, 307):
    before = values[max(i - 128, 0) : i].astype(np.float64)
    if values[i] > before.mean() + sigma * before.std(ddof=1):
      expected.append(i)
  assert spikes_of(values, sigma) == expected
  assert expected and spikes_of(values, 0.0) == []


def test_a_loss_that_stays_high_is_soon_no_spike():
  values = [2.0, 2.1] * 70 + [50.0] * 20
  # (128 - k) / sqrt(128 k) is 11, 7.9, 6.4, 5.5 for k = 1, 2, 3, 4.
  assert spikes_of(values, 6.0) == [140, 141, 142, 143]
  assert spikes_of([*values[:140], -50.0], 6.0) == []  # Far below is none.


def test_what_is_no_loss_is_neither_added_nor_a_spike():
  values = np.array([2.0, 2.1] * 70 + [np.inf, np.nan, 0.0, 2.0, 9.0])
  is_loss = np.isfinite(values) & (values > 0)
  assert spikes_of(values, 6.0, is_loss) == [144]


def with_spikes(steps):
  """Returns the toy task, with targets of 90 in some steps."""
  task = toy.make_task()

  def batch_at(split, step):
    batch = task.batch_at(split, step)
    if split == "train" and step in steps:
      batch["y"] = batch["y"] + np.float32(90)
    return batch

  return task._replace(batch_at=batch_at)


def long_config(**options):
  more = {"num_steps": 75, "log_every": 5, "eval_every": 75}
  c = make_config(spike_sigma=6.0, checkpoint_every=35, **more, **options)
  c.optimizer.warmup_steps = 2
  return c


def trees_equal(a, b):
  return jax.tree.all(jax.tree.map(np.array_equal, a, b))


def test_a_spike_is_skipped_and_a_resumed_run_skips_it_too(
  tmp_path, mesh, capsys
):
  task = with_spikes((5, 71))  # Step 5 is too early to tell.
  c = long_config()
  whole = run(c, task, tmp_path / "whole", mesh)
  lines = logged_lines(tmp_path / "whole")
  counts = {x["step"]: x["spikes"] for x in lines if "loss" in x}
  assert {s: x for s, x in counts.items() if x} == {75: pytest.approx(1 / 5)}
  line = next(x for x in lines if x["step"] == 75)
  assert line["skipped"] == line["spikes"] and line["loss"] > 1000
  assert "1 of the last 5 steps were skipped, as the loss was a spike" in (
    capsys.readouterr().err
  )
  # Killed after the spike, which is after the checkpoint of step 70.
  with pytest.raises(KeyboardInterrupt):
    run(c, killed_at(task, 72), tmp_path / "half", mesh)
  assert_same_end(run(c, task, tmp_path / "half", mesh), whole)
  # Without the option, the step is applied.
  c = long_config()
  c.train.spike_sigma = 0.0
  other = run(c, task, tmp_path / "other", mesh)
  assert not trees_equal(other.params, whole.params)


def test_a_spike_can_stop_the_run(tmp_path, mesh):
  task = with_spikes((71,))
  with pytest.raises(nonfinite_rows.SpikeError) as caught:
    run(long_config(on_spike="stop"), task, tmp_path, mesh)
  for words in ("step 72:", "train.spike_sigma=6.0", "train.on_spike=skip"):
    assert words in str(caught.value)
  assert caught.value.exit_code == 3
  dump = json.loads((tmp_path / "spike-72.json").read_text())
  assert dump == {"row_ids": {"72": list(range(71 * 12, 72 * 12))}}
  assert files.complete_steps(tmp_path / "checkpoints")[-1] == 70
  assert run(long_config(), task, tmp_path, mesh).step == 75


def test_a_checkpoint_without_losses_begins_with_none(tmp_path, mesh):
  """As older versions wrote them."""
  program = steps.over_mesh(make_config(), toy.make_task(), mesh)
  state = program.init()
  state = state._replace(step=state.step + 7)
  checkpoints = manager.open_checkpoints(
    tmp_path, keep_last=1, keep_best=0, log=print
  )
  with contextlib.closing(checkpoints):
    checkpoints.save(7, state._replace(losses=()), {}, metric=None)
    found, _ = checkpoints.restore(program.state)
  record = manifest.read_record(tmp_path / "checkpoints" / "7")
  assert not [name for name in record["arrays"] if "losses" in name]
  assert jax.tree.structure(found) == jax.tree.structure(state)
  assert trees_equal(found, state) and int(found.step) == 7
  assert found.losses.values.sharding == program.state.losses.values.sharding
