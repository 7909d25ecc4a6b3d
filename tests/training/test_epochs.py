"""How often a run reads its text."""

from maskedlm.config import defaults
from maskedlm.training import epochs


def make(**options):
  config = defaults.default()
  config.data.batch_size = 32
  config.train.num_steps = 1_000
  config.data.update(options)
  return config


def test_epochs_are_those_of_the_first_phase():
  assert epochs.count_epochs(make(), (6_400,)) == 5
  # A quarter of the steps reads longer rows.
  assert epochs.count_epochs(make(long_share=0.25), (6_400, 99)) == 3.75
  assert epochs.count_epochs(make(), (0,)) == 32_000


def test_many_epochs_are_warned_of_with_numbers_that_help():
  assert not epochs.warnings(make(), (320,))  # 100 times.
  assert not epochs.warnings(make(), ())
  (line,) = epochs.warnings(make(), (19,))
  assert "reads its 19 rows 1,684 times" in line
  # 40 times 19 rows are 24 steps of 32.
  assert "--config.train.num_steps=24" in line
