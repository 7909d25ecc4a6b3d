"""The vectors of every layer; test_peer.py compares them with transformers'."""

import jax
import numpy as np
import pytest

from helpers import encoder_reference
from maskedlm.modeling import masked_lm

BATCH = encoder_reference.make_batch()
REAL = BATCH["segment_ids"] > 0


@pytest.mark.parametrize(
  "options",
  [
    {"norm_order": "pre", "position": "rope", "num_layers": 3},
    {"embedding_width": 16, "remat": "full"},
    {"dtype": "bfloat16", "remat": "dots"},
  ],
  ids=["pre", "project", "bfloat16"],
)
def test_the_last_equals_encode(options):
  cfg = encoder_reference.config(**options)
  params = masked_lm.init(cfg, *jax.random.split(jax.random.key(1)))
  params = encoder_reference.randomise(params)
  ours = masked_lm.encode_layers(cfg, params, BATCH)
  last = masked_lm.encode(cfg, params, BATCH, None, False)
  assert ours.dtype == last.dtype
  np.testing.assert_array_equal(ours[-1], last)
  # All layers differ.
  moved = np.abs(np.diff(np.float32(ours), axis=0)).max(axis=(1, 2, 3))
  assert moved.shape == (cfg.num_layers,) and moved.min() > 0.1


def test_only_the_last_is_normalised_with_norm_order_pre():
  cfg = encoder_reference.config(norm_order="pre", init_stddev=0.5)
  params = masked_lm.init(cfg, *jax.random.split(jax.random.key(1)))
  # With a scale of 1 and no bias, the result of a norm has a variance of 1.
  ours = np.float32(masked_lm.encode_layers(cfg, params, BATCH))[:, REAL]
  np.testing.assert_allclose(ours[-1].var(axis=-1), 1, atol=1e-3)
  assert ours[1].var(axis=-1).mean() > 2
