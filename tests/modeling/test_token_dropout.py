"""Token dropout: the factors by hand, and packed rows like single ones."""

import jax
import numpy as np
import pytest

from helpers import workdirs
from helpers.english_tokenizer import english_tokenizer
from maskedlm.modeling import masked_lm
from maskedlm.modeling.token_dropout import token_scale

MASK, OTHER = 3, 7


@pytest.mark.parametrize("one_text", [True, False])
def test_factors_by_hand(one_text):
  ids = np.full((2, 6), OTHER)
  ids[0, 1] = ids[1, [0, 1]] = ids[1, 5] = MASK
  segments = np.array([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]])
  if not one_text:
    segments[1] = [1, 1, 2, 2, 2, 2]
  found = token_scale(ids, segments, MASK, one_text=one_text)
  a = 0.88 / (1 - 1 / 4)
  np.testing.assert_allclose(found[0, :4], [a, 0, a, a], rtol=1e-6)
  # Of six tokens, three are [MASK]; alone, one of the last four.
  b = 0.88 / (1 - 3 / 6) if one_text else a
  np.testing.assert_allclose(found[1], [0, 0, b, b, b, 0], rtol=1e-6)


def test_a_packed_row_is_as_its_texts_alone():
  cfg = workdirs.config(
    english_tokenizer("wordpiece"),
    **workdirs.MODERN | {"local_window": 0, "mlp": "plain", "biases": True},
    token_dropout=True,
    mask_id=MASK,
  )
  params = jax.device_put(workdirs.make_params(cfg, ()))
  rng = np.random.default_rng(0)
  texts = [rng.integers(5, 90, size) for size in (4, 7, 5)]
  texts[0][1] = texts[1][[2, 3]] = MASK

  @jax.jit
  def encode(ids, segments, positions=None):
    batch = {"input_ids": ids, "token_type_ids": 0 * ids}
    batch |= {"segment_ids": segments, "positions": positions}
    return masked_lm.encode(cfg, params, batch, None, False)

  ids = np.concatenate([*texts, [0]])[None].astype(np.int32)
  segments = np.repeat([1, 2, 3, 0], [4, 7, 5, 1])[None].astype(np.int32)
  positions = [np.arange(size) for size in (4, 7, 5, 1)]
  packed = encode(ids, segments, np.concatenate(positions)[None])[0]
  alone = [
    encode(x[None].astype(np.int32), np.ones((1, len(x)), np.int32))[0]
    for x in texts
  ]
  np.testing.assert_allclose(packed[:-1], np.concatenate(alone), atol=1e-5)
