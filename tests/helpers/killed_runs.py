"""Pretrains in this process, until it is killed or ends."""

import jax
import pytest

from maskedlm import in_python
from maskedlm.training import progress


def train(config, folder, *, killed_before=-1):
  """Runs a config; returns the state and the metrics of its last save.

  With killed_before, it is killed as it begins that step, counted from 0.
  """
  saved, advance, save = [], progress.Progress.advance, progress.Progress.save

  def stopping(self, rows):
    if self.step == killed_before:
      raise KeyboardInterrupt
    return advance(self, rows)

  def recording(self, heldout, **options):
    saved.append((jax.device_get(self.state), heldout))
    save(self, heldout, **options)

  with pytest.MonkeyPatch.context() as patched:
    patched.setattr(progress.Progress, "advance", stopping)
    patched.setattr(progress.Progress, "save", recording)
    assert in_python.run_pretraining(config, folder)
  return saved[-1]
