"""The BiLSTM against torch's on packed sequences, and by hand."""

import functools

import jax
import numpy as np
import pytest

from maskedlm.modeling.lstm import BiLstm

torch = pytest.importorskip("torch")

B, L, D, W, N = 5, 13, 7, 11, 2
LENGTHS = np.array([13, 12, 7, 3, 1])
REAL = np.arange(L) < LENGTHS[:, None]
SEGMENT_IDS = REAL.astype(np.int32)


@pytest.fixture(scope="module")
def made():
  """Returns (x, params), random and without zeros."""
  rng = np.random.default_rng(0)
  x = rng.standard_normal((B, L, D)).astype(np.float32)
  shapes = jax.eval_shape(
    lambda: module().init(jax.random.key(0), x, SEGMENT_IDS, train=False)
  )
  params = jax.tree.map(
    lambda s: 0.4 * rng.standard_normal(s.shape).astype(np.float32), shapes
  )
  return x, params


def module(**changes):
  return BiLstm(
    **{
      "width": W,
      "num_layers": N,
      "dropout": 0.0,
      "dtype": "float32",
      **changes,
    }
  )


@functools.partial(jax.jit, static_argnames=("dtype", "dropout"))
def apply(params, x, segment_ids=SEGMENT_IDS, key=None, **changes):
  """Returns the outputs, those of training if there is a key."""
  rngs = {} if key is None else {"dropout": key}
  train = key is not None
  return module(**changes).apply(params, x, segment_ids, train=train, rngs=rngs)


def make_peer(params):
  """Returns torch's LSTM with the same weights and order of gates."""
  peer = torch.nn.LSTM(D, W, N, batch_first=True, bidirectional=True)
  state = {}
  for n in range(N):
    p = params["params"][f"bilstm_{n}"]
    for direction, suffix in enumerate(("", "_reverse")):
      at = f"l{n}{suffix}"
      bias = p["input_dense"]["bias"][direction].copy()
      bias[W : 2 * W] += 1  # Our forget gate's bias is added to 1.
      state[f"weight_ih_{at}"] = p["input_dense"]["kernel"][:, direction].T
      state[f"weight_hh_{at}"] = p["recurrent_kernel"][direction].T
      state[f"bias_ih_{at}"], state[f"bias_hh_{at}"] = bias, np.zeros(4 * W)
  peer.load_state_dict(
    {k: torch.tensor(np.ascontiguousarray(v)) for k, v in state.items()}
  )
  return peer


def by_peer(params, x):
  packed = torch.nn.utils.rnn.pack_padded_sequence(
    x, torch.tensor(LENGTHS), batch_first=True
  )
  y, _ = torch.nn.utils.rnn.pad_packed_sequence(
    make_peer(params)(packed)[0], batch_first=True
  )
  return y


def test_equals_torch_on_packed_sequences(made):
  x, params = made
  ours = apply(params, x)
  theirs = by_peer(params, torch.tensor(x)).detach().numpy()
  assert ours.shape == (B, L, 2 * W)
  np.testing.assert_allclose(ours, theirs, atol=1e-5)  # Zeros in the padding.


def test_the_gradient_equals_torch(made):
  x, params = made
  weights = np.cos(np.arange(B * L * 2 * W)).reshape(B, L, 2 * W)
  weights = weights.astype(np.float32)
  ours = jax.grad(lambda x: (apply(params, x) * weights).sum())(x)
  there = torch.tensor(x, requires_grad=True)
  (by_peer(params, there) * torch.tensor(weights)).sum().backward()
  np.testing.assert_allclose(ours, there.grad.numpy(), atol=1e-4)


def test_padding_changes_nothing(made):
  x, params = made
  other = np.where(REAL[..., None], x, 1e3)
  np.testing.assert_array_equal(apply(params, x), apply(params, other))


def test_packed_rows_are_read_as_if_alone(made):
  # The five rows of 13, 12, 7, 3 and 1 in two rows of 20: 13 + 7, and 12 + 3,
  # a place of padding, 1, and padding to the end.
  x, params = made
  alone = apply(params, x)
  places = {0: (0, 0), 2: (0, 13), 1: (1, 0), 3: (1, 12), 4: (1, 16)}
  packed = np.full((2, 20, D), 1e3, np.float32)
  segment_ids = np.zeros((2, 20), np.int32)
  for i, (row, begin) in places.items():
    at = row, slice(begin, begin + LENGTHS[i])
    packed[at], segment_ids[at] = x[i, : LENGTHS[i]], i + 1
  y = apply(params, packed, segment_ids)
  for i, (row, begin) in places.items():
    found = y[row, begin : begin + LENGTHS[i]]
    np.testing.assert_allclose(found, alone[i, : LENGTHS[i]], atol=1e-6)
  assert not np.any(np.asarray(y)[segment_ids == 0])


def test_bfloat16_is_near(made):
  x, params = made
  ours = apply(params, x, dtype="bfloat16")
  assert ours.dtype == "bfloat16"
  assert np.abs(np.float32(ours) - apply(params, x)).mean() < 0.02


def test_dropout_only_in_training(made):
  x, params = made
  np.testing.assert_array_equal(apply(params, x, dropout=0.5), apply(params, x))
  dropped = apply(params, x, key=jax.random.key(1), dropout=0.5)
  assert np.abs(dropped - apply(params, x)).max() > 0.01
