"""A workdir may have any name; a save that can't be read is found at once."""

import os
import shutil

import numpy as np
import pytest

from helpers.checkpoint_states import (
  META,
  assert_same,
  like,
  make_state,
  opened,
  save_steps,
)
from maskedlm.core.errors import CheckpointError, ConfigError
from maskedlm.runtime import buckets
from maskedlm.training.checkpoints import arrays, files
from maskedlm.training.checkpoints.load import load_params


@pytest.mark.parametrize(
  "name",
  [
    "a[1]**{x,y}?[!a]",  # [1] is misread by etils.
    " naïve-模型\nb\t\x01 ",
    "100%25#1'b\"c`d;&|",
    "~",
    "$HOME",
    "x:y",
    "[a]/[b]*/c",
    "n" * 255,
  ],
)
def test_round_trip_under_any_name(tmp_path, name):
  state = make_state(3)
  save_steps(tmp_path / name, 3)
  with opened(tmp_path / name) as checkpoints:
    restored, _ = checkpoints.restore(like(state))
  assert_same(restored, state)
  params, meta = load_params(tmp_path / name)
  assert meta["step"] == 3
  np.testing.assert_array_equal(
    params["encoder"]["kernel"], state.params["encoder"]["kernel"]
  )


@pytest.mark.parametrize("name", ["a\\b", os.fsdecode(b"latin-\xe9")])
def test_names_that_tensorstore_misreads_are_refused(tmp_path, name):
  with (
    pytest.raises(ConfigError, match="can't hold checkpoints"),
    opened(tmp_path / name),
  ):
    pass
  with (
    pytest.raises(ConfigError, match="can't hold checkpoints"),
    buckets.workdir(tmp_path / name),
  ):
    pass


@pytest.mark.parametrize("path", ["run/", "./run", "x/../run", "link", "link/"])
def test_paths_to_the_same_folder(tmp_path, monkeypatch, path):
  monkeypatch.chdir(tmp_path)
  os.mkdir("x")
  save_steps("run", 1)
  os.symlink("run", "link")
  with opened(path) as checkpoints:
    assert checkpoints.steps() == [1]
  assert load_params(path)[1]["step"] == 1


def test_a_save_that_cannot_be_read_is_found_at_once(tmp_path, monkeypatch):
  """What is merged wrongly, as by etils in "a[1]", is no checkpoint."""
  check = arrays.check_readable

  def lose_the_manifest(folder, sample):
    (folder / "params" / "manifest.ocdbt").unlink()
    check(folder, sample)

  monkeypatch.setattr(arrays, "check_readable", lose_the_manifest)
  with (
    pytest.raises(CheckpointError, match=r"can't be read.*--workdir"),
    opened(tmp_path) as checkpoints,
  ):
    checkpoints.save(1, make_state(1), META, metric=None)
    checkpoints.wait()
  assert not files.complete_steps(tmp_path / "checkpoints")


def test_a_save_that_another_run_removed_names_that_run(tmp_path, monkeypatch):
  """As where a file system has no locks, and the other has just begun."""
  check = arrays.check_readable

  def remove(folder, sample):
    (tmp_path / "checkpoints" / ".lock").write_text("elsewhere 7 5eed\n")
    shutil.rmtree(folder)
    check(folder, sample)

  monkeypatch.setattr(arrays, "check_readable", remove)
  with (
    pytest.raises(CheckpointError, match=r"another run \(elsewhere 7\)"),
    opened(tmp_path) as checkpoints,
  ):
    checkpoints.save(1, make_state(1), META, metric=None)
    checkpoints.wait()


@pytest.mark.parametrize("make", ["file", "link"])
def test_a_file_where_a_step_may_be_saved_is_one_line(workdir, make):
  stray = workdir / "checkpoints" / "100"
  stray.symlink_to("nowhere") if make == "link" else stray.write_text("")
  with pytest.raises(CheckpointError, match="100 is a file"), opened(workdir):
    pass
  assert load_params(workdir)[1]["step"] == 3  # Reading it goes on.
  stray.unlink()
  with opened(workdir) as checkpoints:  # Nothing was left locked.
    assert checkpoints.steps() == [1, 2, 3]
