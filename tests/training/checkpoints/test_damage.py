"""Damaged and unfinished checkpoints, kills, full disks, second writers."""

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
import pytest

from helpers.checkpoint_states import (
  META,
  assert_same,
  empty,
  files_of,
  flip,
  like,
  make_state,
  opened,
  save_steps,
  truncate,
)
from helpers.repository import ROOT
from maskedlm.core.errors import CheckpointError, ConfigError, StorageError
from maskedlm.training.checkpoints import files, manifest
from maskedlm.training.checkpoints.load import load_params
from maskedlm.training.checkpoints.manager import open_checkpoints


@pytest.fixture
def young_only():
  """Lets gc.collect pass over the objects that there are before a test."""
  gc.freeze()


@pytest.mark.parametrize("damage", [flip, truncate, empty, Path.unlink])
def test_every_damaged_file_is_found(workdir, damage):
  path = workdir / "checkpoints" / "3"
  assert manifest.find_damage(path) is None
  present = files_of(workdir, 3)
  assert len(present) > 10
  for file in present:
    whole = file.read_bytes()
    damage(file)
    assert file.name in manifest.find_damage(path)
    file.write_bytes(whole)
  assert manifest.find_damage(path) is None


def test_damaged_newest_step_falls_back(workdir, young_only, capfd):
  file = random.Random(0).choice(files_of(workdir, 3))
  flip(file)
  log = []
  with opened(workdir, log=log) as checkpoints:
    restored, meta = checkpoints.restore(like(make_state(0)))
    assert_same(restored, make_state(2))
    assert meta["step"] == 2
    assert "checkpoint 3 is not used" in log[0] and file.name in log[0]
    assert log[1:] == ["falling back to checkpoint 2"]
    # The run continues, and saves the step again.
    checkpoints.save(3, make_state(3), META, metric=None)
    checkpoints.wait()
    assert checkpoints.steps() == [1, 2, 3]
    assert_same(checkpoints.restore(like(make_state(0)))[0], make_state(3))
  assert (workdir / "checkpoints" / "3.damaged").is_dir()
  gc.collect()
  assert capfd.readouterr() == ("", "")


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
  assert checkpoints.steps() == [1, 2, 3]  # None was renamed.


def test_sha256sum_reads_the_manifest(three):
  if not shutil.which("sha256sum"):
    pytest.skip("no sha256sum on this machine")
  subprocess.run(
    ["sha256sum", "--check", "--strict", "--quiet", manifest.MANIFEST],
    cwd=three / "checkpoints" / "2",
    check=True,
  )


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
  while seen < 7:  # When step 7 begins, step 6 is complete.
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


def test_a_mark_whose_writing_was_killed_goes(workdir):
  half = workdir / "checkpoints" / f".4.unfinished.{'0' * 32}"
  half.touch()
  with opened(workdir) as checkpoints:
    assert checkpoints.steps() == [1, 2, 3]
  assert not half.exists()


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
  [lambda c: c.close(), surface_by_saving],
  ids=["close", "save"],
)
def test_full_disk(small_disk, young_only, capfd, caplog, surface):
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
  assert caught.value.exit_code == 74  # Launchers restart it.
  # A caller that ignores it gets the error again.
  with pytest.raises(StorageError, match="saving step 2"):
    checkpoints.close()
  # The run can be resumed, and there is room again.
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
  needed = sum(x.nbytes for x in arrays)
  free = types.SimpleNamespace(free=needed, total=needed)
  monkeypatch.setattr(shutil, "disk_usage", lambda path: free)
  with opened(workdir) as checkpoints:
    checkpoints.check_room(state)
    free.free -= 1
    with pytest.raises(StorageError, match="a checkpoint takes"):
      checkpoints.check_room(state)
    free.total -= 1  # It never fits: a retry can't help.
    with pytest.raises(ConfigError, match="a checkpoint takes"):
      checkpoints.check_room(state)


def test_an_unreachable_bucket_is_reported_without_listing_it(
  workdir, monkeypatch
):
  def gone(*_):
    raise ValueError("UNAVAILABLE: Error writing gs://...\na page")

  checkpoints = open_checkpoints(workdir, keep_last=9, keep_best=0, log=print)
  checkpoints.save(4, make_state(4), META, metric=None)
  with monkeypatch.context() as patch:
    for name in ("end", "complete_steps", "clear_unfinished"):
      patch.setattr(files, name, gone)
    with pytest.raises(StorageError) as caught:
      checkpoints.wait()
  message = str(caught.value)
  assert message.startswith("saving step 4 in ") and "\n" not in message
  assert "UNAVAILABLE: Error writing" in message
  assert "Earlier steps are intact" in message
  with pytest.raises(StorageError):
    checkpoints.close()
  log = []
  with opened(workdir, log=log) as checkpoints:
    assert checkpoints.steps() == [1, 2, 3]
  assert log == ["checkpoint 4 is deleted: its save was interrupted"]


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
