"""Pretrains in this process, and makes what a killed run leaves."""

import shutil

import jax
import pytest

from maskedlm import in_python
from maskedlm.training import progress
from maskedlm.training.checkpoints import files


def train(config, folder):
  """Runs a config; returns the state and the metrics of its last save."""
  saved, save = [], progress.Progress.save

  def recording(self, heldout, **options):
    saved.append((jax.device_get(self.state), heldout))
    save(self, heldout, **options)

  with pytest.MonkeyPatch.context() as patched:
    patched.setattr(progress.Progress, "save", recording)
    assert in_python.run_pretraining(config, folder)
  return saved[-1]


def killed_after(step, folder, copy):
  """Copies a run as if it had been killed after a step, which it saved."""
  shutil.copytree(folder, copy)
  steps = files.complete_steps(copy / "checkpoints")
  assert step in steps
  for later in (x for x in steps if x > step):
    shutil.rmtree(copy / "checkpoints" / str(later))
  return copy
