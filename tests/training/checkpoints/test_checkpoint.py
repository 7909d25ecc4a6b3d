"""Nothing is lost: every way a checkpoint can break, and what is left then."""

import contextlib
import gc
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import types
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from helpers.checkpoint_states import (
  META,
  assert_same,
  like,
  make_state,
  opened,
  save_steps,
)
from helpers.repository import ROOT
from maskedlm.core.errors import ConfigError, StorageError
from maskedlm.training.checkpoints import files, quiet_orbax
from maskedlm.training.checkpoints.load import load_params
from maskedlm.training.checkpoints.manager import (
  CheckpointError,
  open_checkpoints,
)


@pytest.fixture(scope="module")
def three(tmp_path_factory):
  """A workdir with steps 1, 2, 3; copied by those who damage it."""
  path = tmp_path_factory.mktemp("three")
  save_steps(path, 1, 2, 3)
  return path


@pytest.fixture
def workdir(three, tmp_path):
  shutil.copytree(three, tmp_path / "run")
  return tmp_path / "run"


def files_of(workdir, step):
  path = workdir / "checkpoints" / str(step)
  return sorted(p for p in path.rglob("*") if p.is_file())


# Round trips.


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


def test_relative_workdir(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  save_steps("run", 1)
  assert (tmp_path / "run" / "checkpoints" / "1" / "params").is_dir()
  assert load_params("run")[1]["step"] == 1


# Damage.


def flip(path):
  data = bytearray(path.read_bytes())
  data[len(data) // 2] ^= 1
  path.write_bytes(data)


def truncate(path):
  path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path):
  path.write_bytes(b"")


KINDS = [flip, truncate, empty, Path.unlink]


@pytest.mark.parametrize("damage", KINDS)
def test_every_damaged_file_is_found(workdir, damage):
  path = workdir / "checkpoints" / "3"
  assert files.find_damage(path) is None
  present = files_of(workdir, 3)
  assert len(present) > 10
  for file in present:
    whole = file.read_bytes()
    damage(file)
    assert file.name in files.find_damage(path)
    file.write_bytes(whole)
  assert files.find_damage(path) is None


@pytest.mark.parametrize("seed, damage", list(enumerate(KINDS)))
def test_damaged_newest_step_falls_back(workdir, seed, damage, capfd):
  file = random.Random(seed).choice(files_of(workdir, 3))
  damage(file)
  log = []
  with opened(workdir, log=log) as checkpoints:
    restored, meta = checkpoints.restore(like(make_state(0)))
    assert_same(restored, make_state(2))
    assert meta["step"] == 2
    assert "checkpoint 3 is not used" in log[0] and file.name in log[0]
    assert log[1:] == ["falling back to checkpoint 2"]
    # The run goes on, and saves the step anew.
    checkpoints.save(3, make_state(3), META, metric=None)
    checkpoints.wait()
    assert checkpoints.steps() == [1, 2, 3]
    assert_same(checkpoints.restore(like(make_state(0)))[0], make_state(3))
  assert (workdir / "checkpoints" / "3.damaged").is_dir()
  gc.collect()
  assert capfd.readouterr() == ("", "")


def test_falls_back_twice(workdir):
  flip(files_of(workdir, 3)[-1])
  flip(files_of(workdir, 2)[4])
  log = []
  with opened(workdir, log=log) as checkpoints:
    restored, _ = checkpoints.restore(like(make_state(0)))
    assert checkpoints.steps() == [1]
  assert_same(restored, make_state(1))
  assert [line[:12] for line in log] == [
    "checkpoint 3", "checkpoint 2", "falling back"
  ]  # fmt: skip


def test_nothing_usable_names_what_was_found(workdir):
  for step in 1, 2, 3:
    file = files_of(workdir, step)[step]
    truncate(file)
  with (
    opened(workdir) as checkpoints,
    pytest.raises(CheckpointError) as caught,
  ):
    checkpoints.restore(like(make_state(0)))
  message = str(caught.value)
  assert "no usable checkpoint" in message and str(workdir) in message
  assert "3: " in message and "2: " in message and "1: " in message
  assert "\n" not in message
  assert checkpoints.steps() == [1, 2, 3]  # Nothing is moved.


def unverify(workdir, step):
  """Puts a step into the state of a kill between writing and hashing."""
  (workdir / "checkpoints" / str(step) / files.MANIFEST).unlink()


def test_unverified_step_is_not_used_while_there_is_a_verified_one(workdir):
  unverify(workdir, 3)
  log = []
  with opened(workdir, log=log) as checkpoints:
    restored, _ = checkpoints.restore(like(make_state(0)))
    assert_same(restored, make_state(2))
    assert checkpoints.steps() == [1, 2]
    assert "3 is not used: not verified" in log[0]
    assert not (workdir / "checkpoints" / "3").exists()  # Its room is free.
    checkpoints.save(3, make_state(3), META, metric=None)
    checkpoints.wait()
    assert checkpoints.steps() == [1, 2, 3]
  assert not list((workdir / "checkpoints").glob("3.*"))


def test_unverified_step_is_the_last_resort(workdir, capfd):
  unverify(workdir, 1)
  unverify(workdir, 2)
  flip(files_of(workdir, 3)[0])
  # The newest unverified one can't even be read.
  for file in files_of(workdir, 2):
    truncate(file)
  log = []
  with opened(workdir, log=log) as checkpoints:
    restored, _ = checkpoints.restore(like(make_state(0)))
    assert_same(restored, make_state(1))
    assert checkpoints.steps() == []
  assert "using checkpoint 1 unverified" in log[-1]
  assert "2 is not used: it can't be read" in log[1]
  assert "checkpoint 3 is not used" in log[0]
  gc.collect()
  assert capfd.readouterr() == ("", "")


def test_sha256sum_reads_the_manifest(three):
  if not shutil.which("sha256sum"):
    pytest.skip("no sha256sum on this machine")
  subprocess.run(
    ["sha256sum", "--check", "--strict", "--quiet", files.MANIFEST],
    cwd=three / "checkpoints" / "2",
    check=True,
  )


# Kill and crash.

SAVE_FOREVER = """
  import itertools, sys
  sys.path.insert(0, {tests!r})
  import conftest  # 8 devices.
  from helpers.checkpoint_states import META, make_state, open_checkpoints
  checkpoints = open_checkpoints(
    {workdir!r}, keep_last=2, keep_best=1, log=print
  )
  for step in itertools.count(1):
    checkpoints.save(step, make_state(step), META, metric=1 / step)
    print(step, flush=True)
"""


def test_sigkill_while_saving_leaves_a_usable_step(tmp_path):
  code = textwrap.dedent(SAVE_FOREVER).format(
    tests=str(ROOT / "tests"), workdir=str(tmp_path)
  )
  process = subprocess.Popen(
    [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
  )
  seen = 0
  while seen < 7:  # The one after it has begun: step 6 is complete.
    seen = int(process.stdout.readline())
  time.sleep(random.Random().uniform(0, 0.2))
  process.send_signal(signal.SIGKILL)
  started = [int(line) for line in process.stdout.read().split()]
  assert process.wait() == -signal.SIGKILL
  last = max([seen, *started])
  log = []
  with opened(tmp_path, log=log) as checkpoints:
    restored, meta = checkpoints.restore(like(make_state(0)))
    assert last - 1 <= meta["step"] <= last + 1
    assert_same(restored, make_state(meta["step"]))
    checkpoints.save(last + 2, make_state(last + 2), META, metric=None)
  names = {p.name for p in (tmp_path / "checkpoints").iterdir()} - {".lock"}
  assert all(name.isdigit() for name in names), names


@pytest.fixture
def small_disk(tmp_path):
  path = tmp_path / "disk"
  path.mkdir()
  mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(path)]
  if not shutil.which("mount") or subprocess.run(mount, check=False).returncode:
    pytest.skip("mounting a tmpfs needs root")
  yield path
  subprocess.run(["umount", "--lazy", str(path)], check=True)


def surface_by_saving(checkpoints):
  checkpoints.save(3, make_state(3), META, metric=None)


@pytest.mark.parametrize(
  "surface",
  [lambda c: c.wait(), lambda c: c.close(), surface_by_saving],
  ids=["wait", "close", "save"],
)
def test_full_disk(small_disk, capfd, caplog, surface):
  save_steps(small_disk, 1)
  noise = np.random.default_rng(0).integers(0, 2**32, 1 << 18, np.uint32)
  state = make_state(2)
  big = state._replace(params={"head": {"bias": jnp.asarray(noise)}})
  checkpoints = open_checkpoints(
    small_disk, keep_last=9, keep_best=0, log=print
  )
  checkpoints.save(2, big, META, metric=None)
  with pytest.raises(StorageError) as caught:
    surface(checkpoints)
  message = str(caught.value)
  assert "saving step 2" in message and "No space left on device" in message
  assert "Steps [1] are intact" in message and "\n" not in message
  assert caught.value.exit_code == 74  # Launchers start it again.
  # Not even a caller that swallows it exits as if all were saved.
  with pytest.raises(StorageError, match="saving step 2"):
    checkpoints.close()
  # The run can be resumed where it was, and there is room again.
  with opened(small_disk) as checkpoints:
    restored, _ = checkpoints.restore(like(state))
    assert_same(restored, make_state(1))
    checkpoints.save(3, make_state(3), META, metric=None)
    checkpoints.wait()
    assert checkpoints.steps() == [1, 3]
  gc.collect()
  assert capfd.readouterr() == ("", "")
  assert not caplog.records


def test_a_disk_without_room_is_an_error_at_the_start(workdir, monkeypatch):
  state = make_state(1)
  arrays = [np.asarray(x) for x in jax.tree.leaves(state)]
  free = types.SimpleNamespace(free=sum(x.nbytes for x in arrays))
  monkeypatch.setattr(shutil, "disk_usage", lambda path: free)
  with opened(workdir) as checkpoints:
    checkpoints.check_room(state)
    free.free -= 1
    with pytest.raises(StorageError, match="a checkpoint takes"):
      checkpoints.check_room(state)


def test_an_unreachable_bucket_is_reported_without_listing_it(
  workdir, monkeypatch
):
  def gone(*_):
    raise ValueError("UNAVAILABLE: Error writing gs://...\na page")

  checkpoints = open_checkpoints(workdir, keep_last=9, keep_best=0, log=print)
  checkpoints.save(4, make_state(4), META, metric=None)
  with monkeypatch.context() as patch:
    for name in ("commit", "complete_steps", "clear_unfinished"):
      patch.setattr(files, name, gone)
    with pytest.raises(StorageError) as caught:
      checkpoints.wait()
  message = str(caught.value)
  assert message.startswith("saving step 4 in ") and "\n" not in message
  assert "UNAVAILABLE: Error writing" in message
  assert "Earlier steps are intact" in message
  with pytest.raises(StorageError):
    checkpoints.close()
  with opened(workdir) as checkpoints:
    assert checkpoints.steps() == [1, 2, 3]


def test_only_errors_that_orbax_leaves_behind_are_silenced():
  reported = []
  for message in "Event loop is closed", "a bug":
    unraisable = types.SimpleNamespace(exc_value=RuntimeError(message))
    quiet_orbax._not_closed_loop(unraisable, report=reported.append)
  assert [str(u.exc_value) for u in reported] == ["a bug"]


def test_leftovers_of_a_kill_are_cleared(workdir):
  directory = workdir / "checkpoints"
  (directory / "4.orbax-checkpoint-tmp" / "params").mkdir(parents=True)
  with opened(workdir):
    left = {p.name for p in directory.iterdir()}
  assert left == {".lock", "1", "2", "3"}


def test_second_writer_is_refused(workdir):
  with opened(workdir):
    live = workdir / "checkpoints" / "4.orbax-checkpoint-tmp"
    live.mkdir()
    with pytest.raises(CheckpointError, match="another run"):
      open_checkpoints(workdir, keep_last=1, keep_best=0, log=print)
    assert live.exists()
    assert load_params(workdir)[1]["step"] == 3  # Reading needs no lock.
  with opened(workdir):
    assert not live.exists()


def test_folder_that_cannot_be_made(tmp_path):
  (tmp_path / "run").write_text("a file")
  with pytest.raises(ConfigError, match="Not a directory"):
    open_checkpoints(tmp_path / "run", keep_last=1, keep_best=0, log=print)


# Retention.


def test_newest_and_best_are_kept(tmp_path):
  with opened(tmp_path, keep_last=1, keep_best=1) as checkpoints:
    for step, loss in enumerate([0.1, 0.5, 0.3, 0.9], 1):
      checkpoints.save(step, make_state(step), META, metric=loss)
    checkpoints.wait()
    assert checkpoints.steps() == [1, 4]
  # Metrics are on disk: a resumed run knows its best.
  with opened(tmp_path, keep_last=1, keep_best=1) as checkpoints:
    checkpoints.save(5, make_state(5), META, metric=0.05)
    checkpoints.save(6, make_state(6), META, metric=0.7)
    checkpoints.wait()
    assert checkpoints.steps() == [5, 6]


def test_a_step_that_was_measured_later_can_be_best(tmp_path):
  with opened(tmp_path, keep_last=1, keep_best=1) as checkpoints:
    checkpoints.save(1, make_state(1), META, metric=0.5)
    checkpoints.save(2, make_state(2), META, metric=None)  # Cut short.
    checkpoints.wait()
    checkpoints.update_metadata(2, {**META, "heldout": 0.25}, metric=0.25)
    checkpoints.update_metadata(9, META, metric=0.1)  # There is none.
    checkpoints.save(3, make_state(3), META, metric=1.0)
    checkpoints.wait()
    assert checkpoints.steps() == [2, 3]
  assert files.find_damage(tmp_path / "checkpoints" / "2") is None
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
def test_a_kill_while_a_step_is_amended_costs_nothing(
  tmp_path, monkeypatch, writes
):
  """It may be the only step that there is; three files are written."""
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
    checkpoints.update_metadata(
      1, META, metric=0.25
    )  # As the next start does it.
  step = tmp_path / "checkpoints" / "1"
  listed = (step / files.MANIFEST).read_text().splitlines()[1:]
  names = files.buckets.list_files(step)
  assert sorted(x.split("  ")[1] for x in listed) == sorted(
    set(names) - {files.MANIFEST}
  )
  assert files.read_record(step)["metric"] == 0.25


def test_without_a_metric_a_step_is_never_best(tmp_path):
  with opened(tmp_path, keep_last=1, keep_best=2) as checkpoints:
    for step, loss in enumerate([None, 0.5, float("nan"), 0.9, None], 1):
      checkpoints.save(step, make_state(step), META, metric=loss)
    checkpoints.wait()
    assert checkpoints.steps() == [2, 4, 5]


# Refusals.


@pytest.mark.parametrize("where", ["params/encoder/scale", "opt_state/0/nu"])
def test_non_finite_state_is_never_saved(tmp_path, where):
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


def test_step_that_exists_is_refused(workdir):
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


# Parameters alone.


@pytest.mark.parametrize("tail", ["", "checkpoints", "checkpoints/3"])
def test_params_alone(workdir, tail):
  # Not even the files of the optimizer's moments are needed.
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
  flip(files_of(workdir, 3)[0])  # Not of the parameters.
  assert load_params(workdir)[1]["step"] == 3
  file = next(p for p in files_of(workdir, 3) if p.parts[-2:-1] == ("params",))
  flip(file)
  log = []
  assert load_params(workdir, log=log.append)[1]["step"] == 2
  assert file.name in log[0]
  with pytest.raises(CheckpointError, match=file.name):
    load_params(workdir, step=3)
  assert 3 in open_steps(workdir)  # A reader moves nothing.


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


def test_params_that_are_not_there(three, tmp_path):
  with pytest.raises(CheckpointError, match="has no checkpoint"):
    load_params(tmp_path)
  with pytest.raises(CheckpointError, match="step='best'"):
    load_params(three, step="best")
