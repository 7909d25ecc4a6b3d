"""FLOPs of a training row, by hand and as published."""

import pytest

from helpers import encoder_reference
from maskedlm.modeling.flops import train_flops

BASE = encoder_reference.config(
  vocab_size=30_522, num_layers=12, width=768, num_heads=12, mlp_width=3072
)
LARGE = encoder_reference.config(
  vocab_size=30_522, num_layers=24, width=1024, num_heads=16, mlp_width=4096
)


@pytest.mark.parametrize(
  ("cfg", "length", "num_predictions", "gigaflops"),
  [
    (BASE, 128, 20, 69.9),
    (BASE, 512, 80, 301),
    (LARGE, 128, 20, 241),
    (LARGE, 512, 80, 1020),
  ],
)
def test_numbers_of_recipes(cfg, length, num_predictions, gigaflops):
  ours = train_flops(cfg, length, num_predictions=num_predictions) / 1e9
  assert ours == pytest.approx(gigaflops, rel=2e-3)


def test_by_hand():
  # Forward, multiply and add: a token has 2 * (4 * 24^2 + 2 * 24 * 40) weights
  # and, in 2 layers, scores and values of 13 positions by 24; a prediction has
  # 24^2 + 24 * 131 weights. The backward pass takes twice that.
  token = 2 * 2 * (4 * 576 + 1920) + 2 * 2 * 2 * 13 * 24
  slot = 2 * (576 + 3144)
  expected = 3 * (13 * token + 4 * slot)
  assert (
    train_flops(encoder_reference.config(), 13, num_predictions=4) == expected
  )


def changed(**options):
  cfg = encoder_reference.config(**options)
  return train_flops(cfg, 13, num_predictions=4) / 6


BASIC = 13 * 2 * (4 * 576 + 2 * 960) + 2 * 2 * 24 * 169 + 4 * (576 + 3144)


@pytest.mark.parametrize(
  ("options", "difference"),
  [
    ({"position": "rope", "norm_order": "pre", "biases": False}, 0),
    # A third matrix of 24 * 40 in 2 layers, for 13 tokens.
    ({"mlp": "gated"}, 13 * 2 * 960),
    ({"mlp": "gated", "activation": "silu"}, 13 * 2 * 960),
    # In 2 layers, 13 queries and 13 keys by 26 distances each.
    ({"position": "disentangled", "type_vocab_size": 0}, 2 * 2 * 24 * 13 * 26),
    # Keys and values of one head of 8, not three: 2 layers, 13 tokens.
    ({"num_kv_heads": 1}, -13 * 2 * 2 * 24 * (24 - 8)),
    # 13 tokens are projected from 10 to 24; 4 predictions back, and then to V.
    ({"embedding_width": 10}, 13 * 240 + 4 * (240 - 576 + 1310 - 3144)),
    # Layer 1 of 2 attends to 2 on each side: 13 * 5 less 2 * (2 + 1), not 169.
    ({"local_window": 4, "global_every": 2}, -2 * 24 * (169 - 59)),
    # 91 pairs (i, j <= i) of 169, in both layers.
    ({"causal": True}, -2 * 2 * 24 * (169 - 91)),
    # 36 pairs of the local layer: 1 + 2 + 11 * 3.
    (
      {"causal": True, "local_window": 4, "global_every": 2},
      -2 * 24 * (169 - 91) - 2 * 24 * (169 - 36),
    ),
    # A window wider than the row excludes nothing.
    ({"local_window": 100, "global_every": 2}, 0),
  ],
)
def test_options_by_hand(options, difference):
  assert changed() == BASIC
  assert changed(**options) == BASIC + difference
