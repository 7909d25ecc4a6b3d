"""How often a run reads its text."""

import types

import pytest

from maskedlm.config import defaults
from maskedlm.training import epochs
from maskedlm.training.phases import split


def make(*rows_per_epoch, phases=()):
  """Returns the phases of 1,000 steps of 32 rows, and tasks of these rows."""
  config = defaults.default()
  config.data.batch_size = 32
  config.train.num_steps = 1_000
  config.phases = phases
  tasks = [types.SimpleNamespace(rows_per_epoch=n) for n in rows_per_epoch]
  return split(config), tasks


def test_epochs_are_those_of_all_phases():
  assert epochs.count_epochs(*make(6_400)) == 5
  phases = ({}, {"share": 0.25, "data.batch_size": 8})
  # 750 steps of 32 of 6,400 rows, and 250 of 8 of 800.
  assert epochs.count_epochs(*make(6_400, 800, phases=phases)) == (
    pytest.approx(3.75 + 2.5)
  )
  assert epochs.count_epochs(*make(0)) == 32_000


def test_many_epochs_are_warned_of_with_numbers_that_help():
  assert not epochs.warnings(*make(320))  # 100 times.
  assert not epochs.warnings(*make(0))
  (line,) = epochs.warnings(*make(19))
  assert "reads its 19 rows 1,684 times" in line
  # 40 times 19 rows are 24 steps of 32.
  assert "--config.train.num_steps=24" in line
