"""Saving and restoring: exact states, parameters alone, retention, refusals."""

import contextlib
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from helpers.checkpoint_states import (
  META,
  assert_same,
  files_of,
  flip,
  like,
  make_state,
  opened,
)
from helpers.compilations import compiled_programs
from maskedlm.core.errors import CheckpointError
from maskedlm.training.checkpoints import files, manifest
from maskedlm.training.checkpoints.load import load_params


def test_round_trip_is_exact(tmp_path):
  state = make_state(5)
  with opened(tmp_path) as checkpoints:
    assert checkpoints.restore(like(state)) is None
    checkpoints.save(5, state, META, metric=0.25)
    checkpoints.wait()
    assert checkpoints.steps() == [5]
    restored, meta = checkpoints.restore(like(state))
  assert_same(restored, state)
  assert isinstance(restored.opt_state[0], optax.ScaleByAdamState)
  assert meta == {**META, "step": 5, "metric": 0.25}


@pytest.mark.parametrize("devices", [2, 1])
def test_restores_on_fewer_devices(workdir, devices):
  expected = make_state(3, devices)
  with opened(workdir) as checkpoints:
    restored, _ = checkpoints.restore(like(expected))
  assert_same(restored, expected)


def test_state_may_be_donated_while_it_is_saved(tmp_path):
  state = make_state(5)
  like_state = like(state)
  overwrite = jax.jit(
    lambda s: jax.tree.map(lambda x: x * 0 + 1, s), donate_argnums=0
  )
  with opened(tmp_path) as checkpoints:
    checkpoints.save(5, state, META, metric=None)
    for _ in range(3):
      state = overwrite(state)
    restored, _ = checkpoints.restore(like_state)
  assert_same(restored, make_state(5))


def test_small_arrays_are_written_without_compiling(tmp_path):
  mesh = jax.make_mesh((8,), ("data",))
  everywhere = NamedSharding(mesh, PartitionSpec())
  state = jax.device_put(make_state(5), everywhere)
  with opened(tmp_path) as checkpoints, compiled_programs() as names:
    checkpoints.save(5, state, META, metric=None)
    checkpoints.wait()
    assert "slice" not in names


def test_newest_and_best_are_kept(tmp_path):
  with opened(tmp_path, keep_last=1, keep_best=1) as checkpoints:
    for step, loss in enumerate([0.1, 0.5, 0.3, 0.9], 1):
      checkpoints.save(step, make_state(step), META, metric=loss)
    checkpoints.wait()
    assert checkpoints.steps() == [1, 4]
  # Metrics are stored, so a resumed run knows its best step.
  with opened(tmp_path, keep_last=1, keep_best=1) as checkpoints:
    checkpoints.save(5, make_state(5), META, metric=0.05)
    checkpoints.save(6, make_state(6), META, metric=0.7)
    checkpoints.wait()
    assert checkpoints.steps() == [5, 6]


def test_a_step_evaluated_later_can_be_best(tmp_path):
  with opened(tmp_path, keep_last=1, keep_best=1) as checkpoints:
    checkpoints.save(1, make_state(1), META, metric=0.5)
    checkpoints.save(2, make_state(2), META, metric=None)  # Interrupted.
    checkpoints.wait()
    checkpoints.update_metadata(2, {**META, "heldout": 0.25}, metric=0.25)
    checkpoints.update_metadata(9, META, metric=0.1)  # No such step.
    checkpoints.save(3, make_state(3), META, metric=1.0)
    checkpoints.wait()
    assert checkpoints.steps() == [2, 3]
  assert manifest.find_damage(tmp_path / "checkpoints" / "2") is None
  params, meta = load_params(tmp_path, step="best")
  assert meta["step"] == 2 and meta["heldout"] == meta["metric"] == 0.25
  assert all(
    np.array_equal(x, y)
    for x, y in zip(
      jax.tree.leaves(params),
      jax.tree.leaves(make_state(2).params),
      strict=True,
    )
  )


@pytest.mark.parametrize("writes", range(4))
def test_a_kill_during_update_metadata_loses_nothing(
  tmp_path, monkeypatch, writes
):
  """Three files are written, of what may be the only step."""
  with opened(tmp_path, keep_last=1, keep_best=0) as checkpoints:
    checkpoints.save(1, make_state(1), META, metric=None)
    checkpoints.wait()
    written, write = [], files.output_files.write_text

    def killed(path, text):
      if len(written) == writes:
        raise KeyboardInterrupt
      write(path, text)
      written.append(path)

    with monkeypatch.context() as patch:
      patch.setattr(files.output_files, "write_text", killed)
      with contextlib.suppress(KeyboardInterrupt):
        checkpoints.update_metadata(1, META, metric=0.5)
    assert len(written) == writes
    assert checkpoints.restore(like(make_state(0)))[1]["metric"] == (
      None if writes < 2 else 0.5
    )
    checkpoints.update_metadata(1, META, metric=0.25)  # As on the next start.
  step = tmp_path / "checkpoints" / "1"
  listed = (step / manifest.MANIFEST).read_text().splitlines()[1:]
  names = files.buckets.list_files(step)
  assert sorted(x.split("  ")[1] for x in listed) == sorted(
    set(names) - {manifest.MANIFEST}
  )
  assert manifest.read_record(step)["metric"] == 0.25


def test_a_step_without_a_metric_is_never_best(tmp_path):
  with opened(tmp_path, keep_last=1, keep_best=2) as checkpoints:
    for step, loss in enumerate([None, 0.5, float("nan"), 0.9, None], 1):
      checkpoints.save(step, make_state(step), META, metric=loss)
    checkpoints.wait()
    assert checkpoints.steps() == [2, 4, 5]


@pytest.mark.parametrize("where", ["params/encoder/scale", "opt_state/0/nu"])
def test_a_nonfinite_state_is_never_saved(tmp_path, where):
  state = make_state(4)

  def poison(path, x):
    name = jax.tree_util.keystr(path, simple=True, separator="/")
    return jnp.full_like(x, jnp.nan) if name.startswith(where) else x

  bad = jax.tree_util.tree_map_with_path(poison, state)
  with opened(tmp_path) as checkpoints:
    with pytest.raises(CheckpointError, match=f"step 4 .*{where}"):
      checkpoints.save(4, bad, META, metric=None)
    checkpoints.wait()
    assert checkpoints.steps() == []
    checkpoints.save(4, state, META, metric=None)


def test_an_existing_step_is_refused(workdir):
  with opened(workdir) as checkpoints:
    for step in 2, 3:
      with pytest.raises(CheckpointError, match=f"step {step} .* has step 3"):
        checkpoints.save(step, make_state(step), META, metric=None)


def test_meta_that_is_not_json_fails_at_once(tmp_path):
  with opened(tmp_path) as checkpoints, pytest.raises(TypeError):
    checkpoints.save(1, make_state(1), {"x": np.ones(3)}, metric=None)


def replaced(tree, *, head):
  return tree._replace(params={**tree.params, "head": head})


@pytest.mark.parametrize(
  "head, expected",
  [
    ({"bias": np.zeros(5, np.uint32)}, r"bias is uint32\[3\] .*uint32\[5\]"),
    ({"bias": np.zeros(3, np.int32)}, r"bias is uint32\[3\] .*int32\[3\]"),
    ({"gain": np.zeros(3, np.uint32)}, "head/gain is absent there"),
    ({}, "head/bias is .* absent here"),
  ],
)
def test_other_arrays_are_refused_by_path(workdir, head, expected):
  other = replaced(like(make_state(0)), head=head)
  with (
    opened(workdir) as checkpoints,
    pytest.raises(CheckpointError, match=f"params/head.*{expected}|{expected}"),
  ):
    checkpoints.restore(other)


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
