"""Presets against numbers worked by hand from the published code."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maskedlm.config import presets
from maskedlm.training import optimizer as optim


def preset(name):
  return getattr(presets, name)()


# Preset -> steps of the whole run, and {step: rate}.
RATES = {
  # Linear from 10,000 to 125,000.
  "roberta_fairseq": (
    125_000,
    {
      0: 0,
      5_000: 2.5e-4,
      10_000: 5e-4,
      67_500: 2.5e-4,  # Half way.
      124_999: 5e-4 / 115_000,
      125_000: 0,
    },
  ),
  "spanbert": (
    2_400_000,
    {0: 0, 1: 1e-8, 10_000: 1e-4, 1_205_000: 5e-5, 2_400_000: 0},
  ),
  # (1 - step / 1e6) * min(1, step / 1e4), without a drop at 10,000.
  "electra_google": (
    1_000_000,
    {
      0: 0,
      1: 5e-8 * (1 - 1e-6),
      5_000: 2.5e-4 * 0.995,
      9_999: 5e-4 * 0.9999 * 0.990001,
      10_000: 5e-4 * 0.99,
      500_000: 2.5e-4,
      1_000_000: 0,
    },
  ),
  # Linear from 4,200 to 70,000, down to a fiftieth.
  "mosaicbert": (
    70_000,
    {
      0: 0,
      2_100: 2.5e-4,
      4_200: 5e-4,
      37_100: 5e-4 * 0.51,  # Half way.
      70_000: 1e-5,
    },
  ),
  # Flat, then 1 - sqrt over the last 50/1769: 10,596 steps from 364,304 on.
  "modernbert": (
    374_900,
    {
      0: 0,
      318: 4e-4,
      636: 8e-4,
      200_000: 8e-4,
      364_304: 8e-4,
      366_953: 8e-4 * (0.001 + 0.999 * 0.5),  # A quarter of the decay.
      374_900: 8e-7,
    },
  ),
}


@pytest.mark.parametrize("name", RATES)
def test_rates_at_given_steps(name):
  num_steps, expected = RATES[name]
  schedule = optim.make_schedule(preset(name), num_steps)
  rates = [float(schedule(step)) for step in expected]
  np.testing.assert_allclose(rates, list(expected.values()), 3e-6, 1e-12)


def first_update(name, gradient, parameter):
  """Returns the first update of a kernel, without the rate."""
  optimizer = preset(name)
  optimizer.no_decay = ()
  params = {"kernel": jnp.array(parameter, jnp.float32)}
  tx, _ = optim.make_optimizer(optimizer, 1_000_000, params)
  grads = {"kernel": jnp.array(gradient, jnp.float32)}
  update, _ = tx.update(grads, tx.init(params), params)
  return update["kernel"]


@pytest.mark.parametrize(
  ("name", "expected"),
  [
    # Clipped from norm 5 to 1: g = .6, -.8; corrected: g / (|g| + eps).
    ("spanbert", [1 + 0.01 * 2.0, -1 + 0.01 * 3.0]),
    # Not clipped, which shows in a corrected first step only through eps.
    ("roberta_fairseq", [1 + 0.01 * 2.0, -1 + 0.01 * 3.0]),
    ("mosaicbert", [1 + 0.02 * 2.0, -1 + 0.02 * 3.0]),
    # rms(g / sqrt(v)) of a first step is 1, so nothing is clipped.
    ("modernbert", [1 + 0.0125 * 2.0, -1 + 0.0125 * 3.0]),
    # .1 g / (sqrt(.001) |g|) = 3.1622777, both sides of 0.
    ("electra_google", [3.1622777 + 0.01 * 2.0, -3.1622777 + 0.01 * 3.0]),
  ],
)
def test_the_first_update_by_hand(name, expected):
  ours = first_update(name, [3.0, -4.0], [2.0, 3.0])
  # eps is 1e-6 or 1e-8, and the gradient at least 0.6 / 0.02.
  np.testing.assert_allclose(ours, expected, rtol=6e-5)


def test_composers_decay_is_in_units_of_the_peak_rate():
  # Composer subtracts rate / peak * 1e-5 * p, and this rate * weight_decay * p.
  for name in ("mosaicbert", "modernbert"):
    optimizer = preset(name)
    np.testing.assert_allclose(
      optimizer.weight_decay * optimizer.learning_rate, 1e-5, rtol=1e-12
    )


PARAMS = {
  "encoder/embeddings/token/embedding": True,
  "encoder/embeddings/norm/scale": False,
  "encoder/layers/attention/qkv/kernel": True,
  "encoder/layers/attention/qkv/bias": False,
  "encoder/layers/mlp_norm/scale": False,
  "encoder/final_norm/scale": False,
  "mlm_head/transform/kernel": True,
  "mlm_head/norm/bias": False,
  "mlm_head/bias": False,
}


@pytest.mark.parametrize(
  ("name", "everything"),
  [
    ("bert_google", False),
    ("electra_google", False),
    ("modernbert", False),
    ("roberta_fairseq", True),
    ("spanbert", True),
    ("mosaicbert", True),
  ],
)
def test_decay_lists(name, everything):
  params = {path: jnp.zeros(2) for path in PARAMS}
  decayed = optim.decayed(params, preset(name).no_decay)
  assert decayed == {path: everything or d for path, d in PARAMS.items()}


def stable_update(params, gradient, *, second_moment, weight_decay):
  """Returns the update of the only parameter, and its new second moment."""
  optimizer = presets.modernbert()
  optimizer.no_decay, optimizer.weight_decay = (), weight_decay
  tx, _ = optim.make_optimizer(optimizer, 1_000, params)
  state = tx.init(params)
  moments = state[1]._replace(
    count=jnp.array(10_000),  # Bias corrections are 1.
    nu=jax.tree.map(lambda x: jnp.full_like(x, second_moment), params),
  )
  grads = jax.tree.map(lambda x: jnp.array(gradient, jnp.float32), params)
  update, state = tx.update(grads, (state[0], moments, *state[2:]), params)
  return *jax.tree.leaves(update), *jax.tree.leaves(state[1].nu)


@pytest.mark.parametrize("scale", [1.0, 1e-5])  # Of the gradient; above eps.
def test_stable_adam_shrinks_an_array_whose_gradient_jumps(scale):
  # Two layers of an array of 2, with v = 1; then layer 0's gradient is (7, 1),
  # so v = .98 + .02 g^2 = (1.96, 1).
  params = {"encoder": {"layers": {"up": {"kernel": jnp.ones((2, 2))}}}}
  gradient = scale * np.array([[7.0, 1.0], [0.5, -0.5]])
  ours, second_moment = stable_update(
    params, gradient, second_moment=scale**2, weight_decay=0.5
  )
  # (1.96, 1) and (.985, .985), times scale^2.
  v = 0.98 * scale**2 + 0.02 * gradient**2
  plain = 0.1 * gradient / (np.sqrt(v) + 1e-6) + 0.5
  # Layer 0: sqrt((49 / 1.96 + 1 / 1) / 2) = sqrt(13); layer 1: below 1.
  factor = np.array([[1 / np.sqrt(13)], [1.0]])
  np.testing.assert_allclose(ours, factor * plain, rtol=1e-5)
  np.testing.assert_allclose(second_moment, v, rtol=1e-6)


def test_stable_adam_takes_query_key_and_value_as_one_array():
  # As in ModernBERT's Wqkv: the query's gradient jumps, and all are shrunk.
  params = {"layers": {"qkv": {"kernel": jnp.zeros((1, 2, 3, 1, 1))}}}
  gradient = np.zeros((1, 2, 3, 1, 1), np.float32)
  gradient[0, :, 0] = 7.0
  gradient[0, :, 1] = 1.0
  ours, _ = stable_update(params, gradient, second_moment=1.0, weight_decay=0.0)
  # Mean of 25, 1 and 0 is 26 / 3.
  expected = 0.1 * gradient / np.sqrt(0.98 + 0.02 * gradient**2)
  np.testing.assert_allclose(
    ours, expected / np.sqrt(26 / 3), rtol=1e-5, atol=1e-9
  )
