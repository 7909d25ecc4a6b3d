"""Steps without a manifest, swapped and renamed ones, and strange names."""

import os
import shutil
from pathlib import Path

import pytest

from helpers import damage
from helpers.checkpoint_states import (
  META,
  assert_same,
  files_of,
  flip,
  like,
  make_state,
  opened,
  save_steps,
  truncate,
)
from maskedlm.core.errors import CheckpointError
from maskedlm.training.checkpoints import files, manifest
from maskedlm.training.checkpoints.load import load_params


def unverify(workdir, *steps):
  """Removes the manifests of steps, as a copy without them does."""
  for step in steps:
    (workdir / "checkpoints" / str(step) / manifest.MANIFEST).unlink()


def restore(workdir, log, **options):
  """Returns the restored state and the names of all folders afterwards."""
  with opened(workdir, log=log) as checkpoints:
    restored, _ = checkpoints.restore(like(make_state(0)), **options)
  names = {p.name for p in (workdir / "checkpoints").iterdir()} - {".lock"}
  return restored, names


def test_verified_steps_precede_unverified_ones(workdir):
  unverify(workdir, 3)
  log = []
  restored, names = restore(workdir, log, unverified=True)
  assert_same(restored, make_state(2))
  assert names == {"1", "2", "3.damaged"}
  assert "3 is not used: manifest.sha256 is missing" in log[0]


def test_a_step_without_a_manifest_is_refused(workdir):
  unverify(workdir, 1, 2, 3)
  flip(files_of(workdir, 3)[-1])
  with pytest.raises(CheckpointError) as caught:
    restore(workdir, None)
  message = str(caught.value)
  assert "\n" not in message and "manifest.sha256 is missing" in message
  assert "--config.train.resume_unverified=True" in message
  assert {"1", "2", "3"} <= set(os.listdir(workdir / "checkpoints"))
  # The option, or the folder of the step, says that it may be used.
  log = []
  with pytest.raises(CheckpointError, match=r"give .*/checkpoints/3 to use it"):
    load_params(workdir, log=log.append)
  assert not log
  assert load_params(workdir / "checkpoints/2", log=log.append)[1]["step"] == 2
  assert "using checkpoint 2 unverified" in log[0]


def test_unverified_steps_are_used_if_an_option_says_so(workdir):
  unverify(workdir, 1, 2)
  flip(files_of(workdir, 3)[0])
  # The newest unverified step can't be read.
  for file in files_of(workdir, 2):
    truncate(file)
  log = []
  restored, names = restore(workdir, log, unverified=True)
  assert_same(restored, make_state(1))
  assert names == {"1", "2.damaged", "3.damaged"}
  assert "using checkpoint 1 unverified" in log[-1]
  assert "2 is not used: it can't be read" in log[1]
  assert "checkpoint 3 is not used" in log[0]


def test_an_unverified_step_that_cannot_be_read_is_one_line(workdir):
  unverify(workdir, 3)
  for file in files_of(workdir, 3):
    truncate(file)
  with pytest.raises(CheckpointError, match="3: it can't be read") as caught:
    load_params(workdir / "checkpoints/3", log=print)
  assert "\n" not in str(caught.value)


def test_an_interrupted_first_save_is_removed(tmp_path):
  """The run then starts again: the manifest was not written yet."""
  save_steps(tmp_path, 1)
  unverify(tmp_path, 1)
  (tmp_path / "checkpoints/1.unfinished").touch()
  log = []
  with opened(tmp_path, log=log) as checkpoints:
    assert log == ["checkpoint 1 is deleted: its save was interrupted"]
    assert checkpoints.restore(like(make_state(0))) is None
    assert os.listdir(tmp_path / "checkpoints") == [".lock"]
    checkpoints.save(1, make_state(1), META, metric=None)
    checkpoints.wait()
    assert sorted(os.listdir(tmp_path / "checkpoints")) == [".lock", "1"]


def test_a_kill_after_the_manifest_loses_nothing(workdir):
  (workdir / "checkpoints/3.unfinished").touch()
  restored, names = restore(workdir, None)
  assert_same(restored, make_state(3))
  assert names == {"1", "2", "3"}


def test_what_an_interrupted_clean_up_left_is_removed(workdir):
  unverify(workdir, 1)
  restored, names = restore(workdir, None)
  assert_same(restored, make_state(3))
  assert names == {"2", "3"}


def rename(workdir, old, new):
  (workdir / "checkpoints" / old).rename(workdir / "checkpoints" / new)


def test_swapped_folders_are_found(workdir):
  for old, new in (("3", "x"), ("2", "3"), ("x", "2")):
    rename(workdir, old, new)
  log = []
  restored, names = restore(workdir, log)
  assert_same(restored, make_state(1))
  assert names == {"1", "2.damaged", "3.damaged"}
  assert "checkpoint 3 is not used: it holds step 2" in log[0]
  assert "checkpoint 2 is not used: it holds step 3" in log[1]


def test_a_folder_renamed_to_a_higher_number_is_found(workdir):
  rename(workdir, "2", "60")
  with pytest.raises(CheckpointError, match="60 is damaged: it holds step 2"):
    load_params(workdir / "checkpoints/60")
  # A name that is no number says nothing.
  shutil.copytree(workdir / "checkpoints/60", workdir / "best")
  assert load_params(workdir / "best")[1]["step"] == 2
  log = []
  restored, names = restore(workdir, log)
  assert_same(restored, make_state(3))
  assert names == {"1", "3", "60.damaged"}


@pytest.mark.parametrize("make", [Path.touch, Path.mkdir])
def test_other_names_are_passed_over(workdir, make):
  others = {"²", "٣", "07", "3.damaged", "a", "4.orbax", "2b"}
  for name in others:
    make(workdir / "checkpoints" / name)
  restored, names = restore(workdir, None)
  assert_same(restored, make_state(3))
  assert names == {"1", "2", "3", *others}


@pytest.mark.parametrize("make", [Path.touch, Path.mkdir])
def test_what_is_in_the_way_of_a_damaged_step_is_replaced(workdir, make):
  make(workdir / "checkpoints/3.damaged")
  flip(files_of(workdir, 3)[0])
  restored, names = restore(workdir, [])
  assert_same(restored, make_state(2))
  assert names == {"1", "2", "3.damaged"}
  assert files_of(workdir, "3.damaged")


@pytest.mark.parametrize("replace", damage.REPLACED)
def test_what_stands_in_place_of_a_file_of_a_step(workdir, replace):
  """It is found, and never waited for."""
  for name in ("meta/metadata", manifest.MANIFEST, "params", "meta"):
    copy = shutil.copytree(workdir, workdir.with_name("copy"))
    replace(copy / "checkpoints/3" / name)
    log = []
    assert load_params(copy, log=log.append)[1]["step"] == 2
    assert files.ranked_steps(copy / "checkpoints") == []
    restored, names = restore(copy, log)
    assert_same(restored, make_state(2))
    assert names == {"1", "2", "3.damaged"} and "checkpoint 3 is" in log[-2]
    shutil.rmtree(copy)


def test_the_best_step_is_not_chosen_by_a_damaged_record(tmp_path):
  with opened(tmp_path) as checkpoints:
    for step, metric in ((1, 0.25), (2, 0.75), (3, 0.5)):
      checkpoints.save(step, make_state(step), META, metric=metric)
  directory = tmp_path / "checkpoints"
  assert files.ranked_steps(directory) == [1, 3, 2]
  record = directory / "2/meta/metadata"
  record.write_text(record.read_text().replace("0.75", "0.15"))
  assert files.ranked_steps(directory) == [1, 3]
  record.write_text("[]")
  assert files.ranked_steps(directory) == [1, 3]
