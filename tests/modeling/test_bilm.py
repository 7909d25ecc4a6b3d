"""ELMo's encoder against torch's LSTMs; its directions never meet."""

import dataclasses

import jax
import numpy as np
import pytest

from helpers import encoder_reference
from maskedlm.modeling import heads, masked_lm

B, L, W, C, N, V = 3, 13, 9, 14, 3, 131
CFG = encoder_reference.config(
  family="bilm",
  width=2 * W,
  embedding_width=W,
  mlp_width=C,
  num_layers=N,
  type_vocab_size=0,
)
# One text; three texts and padding; a text and padding.
SEGMENTS = np.zeros((B, L), np.int32)
SEGMENTS[0] = 1
SEGMENTS[1, :11] = np.repeat([1, 2, 3], (4, 1, 6))
SEGMENTS[2, :5] = 1
TEXTS = [(0, 0, 13), (1, 0, 4), (1, 4, 5), (1, 5, 11), (2, 0, 5)]


def make_batch():
  ids = np.random.default_rng(1).integers(5, V, (B, L))
  ids = np.where(SEGMENTS > 0, ids, 0).astype(np.int32)
  zeros = np.zeros_like(ids)
  return {"input_ids": ids, "token_type_ids": zeros, "segment_ids": SEGMENTS}


def make_params(cfg=CFG):
  shapes = jax.eval_shape(
    lambda key: masked_lm.init_encoder(cfg, key), jax.random.key(0)
  )
  return {"encoder": encoder_reference.randomise(shapes)}


@jax.jit
def layers(params, batch):
  return masked_lm.encode_layers(CFG, params, batch)


def test_equals_torch_text_by_text():
  torch = pytest.importorskip("torch")
  params, batch = make_params(), make_batch()
  ours = np.asarray(layers(params, batch))
  assert ours.shape == (N + 1, B, L, 2 * W)
  p = params["encoder"]["layers"]["lstm"]

  def run(n, direction, x):
    peer = torch.nn.LSTM(W, C, proj_size=W)
    bias = p["bias"][n, direction].copy()
    bias[C : 2 * C] += 1  # Our forget gate's bias is added to 1.
    state = {
      "weight_ih_l0": p["input_kernel"][n, direction].T,
      "weight_hh_l0": p["recurrent_kernel"][n, direction].T,
      "weight_hr_l0": p["projection_kernel"][n, direction].T,
      "bias_ih_l0": bias,
      "bias_hh_l0": np.zeros(4 * C),
    }
    peer.load_state_dict(
      {k: torch.tensor(np.float32(v)) for k, v in state.items()}
    )
    with torch.no_grad():
      return peer(torch.tensor(x.copy()))[0].numpy()

  for b, begin, end in TEXTS:
    # Both directions begin with the embeddings.
    np.testing.assert_array_equal(ours[0, ..., :W], ours[0, ..., W:])
    for direction, half in enumerate((slice(0, W), slice(W, None))):
      order = slice(None, None, -1 if direction else 1)
      x = ours[0, b, begin:end, half][order]
      for n in range(N):
        y = run(n, direction, x)
        x = x + y if n else y  # A residual connection from the second on.
        np.testing.assert_allclose(
          ours[n + 1, b, begin:end, half][order], x, atol=1e-5
        )


def test_the_vector_of_a_row_joins_what_either_half_has_read():
  x = np.arange(2 * 4 * 2 * W, dtype=np.float32).reshape(2, 4, 2 * W)
  segments = np.array([[1, 1, 1, 0], [1, 0, 0, 0]])
  made = heads.sentence_vector(CFG, x, segments)
  np.testing.assert_array_equal(made[0, :W], x[0, 2, :W])
  np.testing.assert_array_equal(made[0, W:], x[0, 0, W:])
  np.testing.assert_array_equal(made[1], x[1, 0])


def test_types_and_biases_are_options():
  cfg = encoder_reference.config(
    family="bilm", width=2 * W, embedding_width=W, num_layers=2, biases=False
  )
  encoder = make_params(cfg)["encoder"]
  assert encoder["embeddings"]["token_type"]["embedding"].shape == (2, W)
  assert "position" not in encoder["embeddings"]
  assert set(encoder["layers"]["lstm"]) == {
    "input_kernel",
    "recurrent_kernel",
    "projection_kernel",
  }


@pytest.mark.parametrize(
  "changes",
  [
    {"remat": "full"},
    pytest.param({"unroll": True}, marks=pytest.mark.slow),
    pytest.param({"remat": "dots"}, marks=pytest.mark.slow),
  ],
)
def test_the_gradient_does_not_depend_on_how_it_is_computed(changes):
  params, batch = make_params(), make_batch()
  weights = np.cos(np.arange(B * L * 2 * W)).reshape(B, L, 2 * W)

  def gradient(cfg):
    def loss(params):
      key = jax.random.key(0)
      hidden = masked_lm.encode(cfg, params, batch, key, True)
      return (hidden * weights).mean()

    return jax.jit(jax.grad(loss))(params)

  other = dataclasses.replace(CFG, **changes)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6),
    gradient(CFG),
    gradient(other),
  )
