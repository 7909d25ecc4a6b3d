"""RoPE, ALiBi and DeBERTa's distances by hand."""

import math

import numpy as np
import pytest

from maskedlm.modeling import positions


@pytest.mark.parametrize(
  ("num_heads", "exponents"),
  [
    (8, [1, 2, 3, 4, 5, 6, 7, 8]),
    # BERT-base: the slopes of 8 heads, then every other one of 16.
    (12, [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5]),
    (1, [8]),
    (3, [4, 8, 2]),
  ],
)
def test_alibi_slopes_by_hand(num_heads, exponents):
  ours = positions.alibi_slopes(num_heads)
  np.testing.assert_allclose(ours, [2.0**-e for e in exponents])


def test_alibi_by_hand():
  bias = positions.alibi(3, num_heads=2)
  assert bias.shape == (1, 2, 3, 3)
  expected = -np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]])
  np.testing.assert_allclose(bias[0, 0], expected / 16)
  np.testing.assert_allclose(bias[0, 1], expected / 256)


def test_rotation_by_hand():
  # K = 4, theta = 100: wavelengths 1 and 10. At position 2 the pair (1, 3)
  # is rotated by 2, the pair (2, 4) by 0.2.
  places = np.array([[0, 2]])
  cos, sin = positions.rotation(places, head_size=4, theta=100.0)
  x = np.float32([[[[1, 2, 3, 4]], [[1, 2, 3, 4]]]])
  ours = positions.rotate(x, cos, sin)
  np.testing.assert_allclose(ours[0, 0, 0], [1, 2, 3, 4])
  c, s, d, t = math.cos(2), math.sin(2), math.cos(0.2), math.sin(0.2)
  expected = [c - 3 * s, 2 * d - 4 * t, 3 * c + s, 4 * d + 2 * t]
  np.testing.assert_allclose(ours[0, 1, 0], expected, rtol=1e-5)


def test_a_looked_up_rotation_is_the_same():
  places = np.array([[0, 2, 1], [1, 0, 3]])
  options = {"head_size": 6, "theta": 50.0}
  ours = positions.looked_up_rotation(places, **options)
  for found, wanted in zip(
    ours, positions.rotation(places, **options), strict=True
  ):
    assert found.shape == wanted.shape == (2, 3, 1, 3)
    assert np.isnan(found[1, 2]).all()  # A row of 3 has no position 3.
    found = found.at[1, 2].set(wanted[1, 2])
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_rows_of_distances_are_those_of_torch():
  torch = pytest.importorskip("torch")
  from transformers.models.deberta_v2 import modeling_deberta_v2 as theirs

  distances = np.arange(-700, 701)  # All 1,023 of 512 tokens, and farther ones.
  buckets = theirs.make_log_bucket_position(torch.tensor(distances), 256, 512)
  expected = np.clip(buckets.numpy() + 256, 0, 511).astype(int)
  rows = positions.distance_rows(distances)
  np.testing.assert_array_equal(rows, expected)
  assert set(rows.tolist()) == set(range(512))
