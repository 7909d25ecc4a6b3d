"""Learning-rate schedules against numbers worked by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers.toy_optimizers import option
from maskedlm.config import presets
from maskedlm.training import optimizer as optim


def rates(steps, num_steps, preset=presets.adamw, **values):
  schedule = optim.make_schedule(option(preset, **values), num_steps)
  return [float(schedule(step)) for step in steps]


def check(got, want):
  np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-12)


def test_bert_google_drops_where_its_warm_up_ends():
  steps = [0, 1, 9_999, 10_000, 10_001, 500_000, 999_999, 1_000_000, 2_000_000]
  want = [0, 1e-8, 9.999e-5, 9.9e-5, 9.89999e-5, 5e-5, 1e-10, 0, 0]
  check(rates(steps, 1_000_000, presets.bert_google), want)


def test_lamb_follows_nvidia_phase_1():
  steps = [0, 2_000, 2_001, 3_519, 7_038]
  want = [
    0,
    6e-3 * 2_000 / 2_001,
    6e-3 * np.sqrt(1 - 2_001 / 7_038),
    6e-3 * np.sqrt(0.5),
    0,
  ]
  check(rates(steps, 7_038, presets.lamb), want)


STEPS = [0, 1, 19, 20, 40, 60, 100, 140]  # Of 100, with 20 of warm-up.
SCHEDULES = [
  ({"schedule": "linear"}, [0, 0.05, 0.95, 1, 0.75, 0.5, 0, 0]),
  (
    {"schedule": "linear", "end_factor": 0.2},
    [0, 0.05, 0.95, 1, 0.8, 0.6, 0.2, 0.2],
  ),
  (
    {"schedule": "bert"},
    [0, 0.05, 0.95, 0.8, 0.6, 0.4, 0, 0],
  ),
  (  # cos(pi/4) = 0.70710678.
    {"schedule": "cosine"},
    [0, 0.05, 0.95, 1, 0.85355339, 0.5, 0, 0],
  ),
  (
    {"schedule": "cosine", "end_factor": 0.1},
    [0, 0.05, 0.95, 1, 0.1 + 0.9 * 0.85355339, 0.55, 0.1, 0.1],
  ),
  (  # The roots of 0.8, 0.6 and 0.4, counted from step 0.
    {"schedule": "lamb"},
    [0, 0.05, 0.95, 0.8**0.5, 0.6**0.5, 0.4**0.5, 0, 0],
  ),
  (
    {"schedule": "constant"},
    [0, 0.05, 0.95, 1, 1, 1, 1, 1],
  ),
  (  # The last 50 steps decay, to a half at 75.
    {"schedule": "wsd", "decay_share": 0.5},
    [0, 0.05, 0.95, 1, 1, 0.8, 0, 0],
  ),
  (
    {"schedule": "wsd", "decay_share": 0.5, "end_factor": 0.5},
    [0, 0.05, 0.95, 1, 1, 0.9, 0.5, 0.5],
  ),
  (  # At 60, a fifth of the decay is done: 1 - sqrt(.2).
    {"schedule": "wsd_sqrt", "decay_share": 0.5},
    [0, 0.05, 0.95, 1, 1, 1 - 0.2**0.5, 0, 0],
  ),
  (
    {"schedule": "electra"},
    [0, 0.05 * 0.99, 0.95 * 0.81, 0.8, 0.6, 0.4, 0, 0],
  ),
  (
    {"schedule": "linear", "start_factor": 0.6, "end_factor": 0.2},
    [0.6, 0.62, 0.98, 1, 0.8, 0.6, 0.2, 0.2],
  ),
]


@pytest.mark.parametrize("warmup", [20, 0.2])
@pytest.mark.parametrize(("values", "want"), SCHEDULES)
def test_schedules_by_hand(values, want, warmup):
  values = values | {"warmup_steps": warmup, "learning_rate": 0.5}
  check(rates(STEPS, 100, **values), 0.5 * np.array(want))
  schedule = optim.make_schedule(option(presets.adamw, **values), 100)
  traced = jax.jit(jax.vmap(schedule))(jnp.array(STEPS))
  check(traced, 0.5 * np.array(want))


@pytest.mark.parametrize(
  ("values", "num_steps", "steps", "want"),
  [
    # No warm-up starts at the peak.
    ({"warmup_steps": 0}, 10, [0, 1, 10], [1, 0.9, 0]),
    # It may take the whole run.
    ({"warmup_steps": 10}, 10, [0, 5, 9, 10, 11], [0, 0.5, 0.9, 0, 0]),
    (
      {"schedule": "wsd", "decay_share": 0.75, "warmup_steps": 2},
      *(8, [1, 2, 5, 8], [0.5, 1, 0.5, 0]),
    ),
    (  # 2.9 steps of decay, rounded to 3.
      {"schedule": "wsd", "decay_share": 0.29, "warmup_steps": 0},
      *(10, [6, 7, 8, 9, 10], [1, 1, 2 / 3, 1 / 3, 0]),
    ),
  ],
)
def test_the_ends_of_warm_up_and_decay(values, num_steps, steps, want):
  got = rates(steps, num_steps, learning_rate=0.5, **values)
  check(got, 0.5 * np.array(want))


def test_slanted_triangular_rates_are_equation_3_of_ulm_fit():
  """With cut = 100, p = t / 100, then 1 - (t - 100) / 900; (1 + 31 p) / 32."""
  steps = [0, 50, 100, 550, 775, 1_000]
  want = [1 / 32, 16.5 / 32, 1, 16.5 / 32, 8.75 / 32, 1 / 32]
  got = rates(steps, 1_000, presets.ulmfit, warmup_steps=100)
  check(got, 0.01 * np.array(want))
