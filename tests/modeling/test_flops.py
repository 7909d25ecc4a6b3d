import pytest
import reference

from maskedlm.modeling.flops import train_flops

BASE = reference.config(
  vocab_size=30_522, num_layers=12, width=768, num_heads=12, mlp_width=3072
)
LARGE = reference.config(
  vocab_size=30_522, num_layers=24, width=1024, num_heads=16, mlp_width=4096
)


@pytest.mark.parametrize(
  ("cfg", "length", "num_slots", "gigaflops"),
  [
    (BASE, 128, 20, 69.9),
    (BASE, 512, 80, 301),
    (LARGE, 128, 20, 241),
    (LARGE, 512, 80, 1020),
  ],
)
def test_numbers_of_recipes(cfg, length, num_slots, gigaflops):
  ours = train_flops(cfg, length, num_slots=num_slots) / 1e9
  assert ours == pytest.approx(gigaflops, rel=2e-3)


def test_by_hand():
  # Forward, multiply and add: a token meets 2 * (4 * 24^2 + 2 * 24 * 40)
  # weights and, in 2 layers, scores and values of 13 positions by 24; a slot
  # meets 24^2 + 24 * 131 weights. Backward is twice that.
  token = 2 * 2 * (4 * 576 + 1920) + 2 * 2 * 2 * 13 * 24
  slot = 2 * (576 + 3144)
  expected = 3 * (13 * token + 4 * slot)
  assert train_flops(reference.config(), 13, num_slots=4) == expected
