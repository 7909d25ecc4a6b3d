"""A run that is refused leaves no folder that it has made itself."""

import pytest

from maskedlm.core.errors import ConfigError
from maskedlm.finetune import config as finetuning
from maskedlm.finetune import start
from maskedlm.runtime import multihost


def refused(config, workdir):
  config.init_from = ""  # Looked at when the folder has been made.
  with pytest.raises(ConfigError, match="init_from is empty"):
    start.finetune(config, workdir)


def test_a_refused_run_or_sweep_leaves_no_folder(tmp_path):
  config = finetuning.default("classification")
  refused(config, tmp_path / "run")
  config.sweep.seeds = (3, 5)
  refused(config, tmp_path / "sweep")
  assert not [*tmp_path.iterdir()]


def test_other_folders_stay(tmp_path):
  workdir = tmp_path / "run"
  with multihost.workdir(workdir):
    workdir.mkdir()
    (workdir / "config.json").write_text("{}")
  assert workdir.is_dir()
  old = tmp_path / "made before"
  old.mkdir()
  refused(finetuning.default("classification"), old)
  assert old.is_dir()
