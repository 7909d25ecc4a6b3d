"""Muon against a decomposition, PyTorch's Muon, and itself on 8 devices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ml_collections import ConfigDict

from maskedlm.config import defaults as base
from maskedlm.config import presets
from maskedlm.data.batches import placeholder_corpus
from maskedlm.pretraining import objectives
from maskedlm.training import muon, sharding
from maskedlm.training import optimizer as optim

N, D, H, K, F = 3, 10, 2, 3, 17


def kernels():
  """Returns {path: shape} of the layers' kernels, and of other parameters."""
  return {
    "attention": {
      "qkv": {"kernel": (N, D, 3, H, K), "bias": (N, 3, H, K)},
      "out": {"kernel": (N, H, K, D)},
    },
    "mlp": {
      "gate_up": {"kernel": (N, D, 2, F)},
      "down": {"kernel": (N, F, D)},
    },
    "mlp_norm": {"scale": (N, D)},
  }


def draw(seed):
  rng = np.random.default_rng(seed)
  made = jax.tree.map(
    lambda shape: rng.normal(size=shape).astype("f4"),
    {
      "encoder": {
        "layers": kernels(),
        "embeddings": {"token": {"embedding": (31, D)}},
      },
      "pooler": {"dense": {"kernel": (D, D)}},
    },
    is_leaf=lambda x: isinstance(x, tuple),
  )
  return made


def make(params, **options):
  optimizer = presets.muon()
  optimizer.update({"no_decay": (), "clip_norm": 0.0} | options)
  return optim.make_optimizer(optimizer, 20_000, params)[0]


def by_svd(x):
  """Returns the result of `orthogonal` in float64: the polynomial of S."""
  u, s, v = np.linalg.svd(np.asarray(x, "f8"), full_matrices=False)
  s /= np.sqrt(np.sum(s**2))
  for _ in range(5):
    s = 3.4445 * s - 4.775 * s**3 + 2.0315 * s**5
  return u * s @ v


@pytest.mark.parametrize("shape", [(5, 7), (7, 5), (1, 6), (6, 6)])
def test_singular_values_go_through_the_polynomial(shape):
  x = np.random.default_rng(0).normal(size=(4, *shape)).astype("f4")
  found = muon.orthogonal(jnp.array(x * 1e-9))  # Its norm doesn't matter.
  assert found.shape == x.shape
  for ours, matrix in zip(found, x, strict=True):
    np.testing.assert_allclose(ours, by_svd(matrix), atol=2e-5)
    values = np.linalg.svd(ours, compute_uv=False)
    assert 0.68 < values.min() <= values.max() < 1.16


def test_a_tiny_matrix_stays_tiny():
  assert not np.any(muon.orthogonal(jnp.zeros((2, 3, 5))))
  # Their squares are 0 in float32, or the smallest numbers.
  for size in (1e-30, 1e-21, 1e-19):
    assert np.abs(muon.orthogonal(jnp.full((3, 50, 40), size))).max() < 1e-3


def test_the_first_update_of_a_matrix_of_rank_1_by_hand():
  # a b^T has one singular value: 1 becomes 0.701, and so on, five times.
  value = 1.0
  for _ in range(5):
    value = 3.4445 * value - 4.775 * value**3 + 2.0315 * value**5
  a, b = np.array([3.0, 0.0, 4.0]), np.array([1.0, 0.0])
  params = {"layers": {"mlp": {"up": {"kernel": jnp.ones((1, 3, 2))}}}}
  grads = jax.tree.map(lambda _: jnp.array(np.outer(a, b))[None], params)
  tx = make(params, weight_decay=0.25)
  update, state = tx.update(grads, tx.init(params), params)
  update, momentum = (
    np.asarray(jax.tree.leaves(tree)[0][0])
    for tree in (update, state[1].inner_states["muon"])
  )
  # b1 = .95: m = .05 g.
  np.testing.assert_allclose(momentum, 0.05 * np.outer(a, b), rtol=1e-6)
  want = 0.2 * np.sqrt(3) * value * np.outer([0.6, 0.0, 0.8], [1.0, 0.0])
  np.testing.assert_allclose(update, want + 0.25, rtol=1e-5)


def test_queries_keys_and_values_are_separate_matrices():
  params, grads = draw(0), draw(1)
  tx = make(params, weight_decay=0.0)
  update, _ = jax.jit(tx.update)(grads, tx.init(params), params)
  ours, g = update["encoder"]["layers"], grads["encoder"]["layers"]

  def check(found, gradient, rows):
    gradient = gradient.reshape(rows, -1)
    want = 0.2 * np.sqrt(max(gradient.shape)) * by_svd(gradient)
    np.testing.assert_allclose(found.reshape(rows, -1), want, atol=1e-4)

  for n in range(N):
    for i in range(3):  # All heads' queries are one matrix [D, H K].
      of_layer = (x["attention"]["qkv"]["kernel"][n, :, i] for x in (ours, g))
      check(*of_layer, D)
    for i in range(2):
      check(*(x["mlp"]["gate_up"]["kernel"][n, :, i] for x in (ours, g)), D)
    check(*(x["attention"]["out"]["kernel"][n] for x in (ours, g)), H * K)
    check(*(x["mlp"]["down"]["kernel"][n] for x in (ours, g)), F)


def test_other_parameters_use_adam():
  params = draw(0)
  tx, adam = make(params), make(params, rule="adam")
  state, adams = tx.init(params), adam.init(params)
  ours, theirs = jax.jit(tx.update), jax.jit(adam.update)
  for seed in (1, 2):
    update, state = ours(draw(seed), state, params)
    wanted, adams = theirs(draw(seed), adams, params)
  for path, found in jax.tree_util.tree_leaves_with_path(update):
    path = sharding.path_of(path)
    want = wanted
    for name in path.split("/"):
      want = want[name]
    is_matrix = "layers/" in path and path.endswith("kernel")
    assert np.array_equal(found, want) == (not is_matrix), path


@pytest.mark.parametrize(
  ("options", "kernels"),
  [({"mlp": "gated"}, 4), ({"num_kv_heads": 2}, 5)],
)
def test_every_kernel_of_the_layers_uses_muon(options, kernels):
  config = base.default("electra")
  config.model.update(num_layers=2, width=64, num_heads=4, mlp_width=40)
  config.model.update(options)
  task = objectives.make_task(
    config, placeholder_corpus.make_corpus(config.tokenizer)
  )
  params = jax.eval_shape(task.init, jax.random.key(0))
  paths = [
    sharding.path_of(path)
    for path, _ in jax.tree_util.tree_leaves_with_path(params)
  ]
  inner = [p for p in paths if "layers/" in p and p.endswith("kernel")]
  # The generator of one head has no groups.
  assert len(inner) == kernels + 4
  state = jax.eval_shape(make(params).init, params)
  momentum = jax.tree_util.tree_leaves_with_path(
    state[1].inner_states["muon"].inner_state
  )
  assert [sharding.path_of(path) for path, _ in momentum] == inner


def test_two_updates_equal_pytorch_s():
  torch = pytest.importorskip("torch", reason="wants the extra `peer`")
  shape = (2, 24, 40)  # Two layers' up.
  rng = np.random.default_rng(0)
  weights, *grads = rng.normal(size=(3, *shape)).astype("f4")
  params = {"layers": {"mlp": {"up": {"kernel": jnp.array(weights)}}}}
  tx = make(params, weight_decay=0.1)
  state, rate, step = tx.init(params), 0.03, jax.jit(tx.update)
  # PyTorch's linear layers are [outputs, inputs].
  theirs = [torch.nn.Parameter(torch.tensor(w.T.copy())) for w in weights]
  peer = torch.optim.Muon(
    theirs, lr=rate, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"
  )
  for grad in grads:
    given = jax.tree.map(lambda _, g=grad: jnp.array(g), params)
    update, state = step(given, state, params)
    params = jax.tree.map(lambda p, u: p - rate * u, params, update)
    for p, g in zip(theirs, grad, strict=True):
      p.grad = torch.tensor(g.T.copy())
    peer.step()
  ours = jax.tree.leaves(params)[0]
  for n in range(2):
    moved = theirs[n].detach().numpy().T - weights[n]
    # PyTorch computes in bfloat16, to a few hundredths of the update.
    difference = np.linalg.norm(ours[n] - weights[n] - moved)
    assert difference < 0.02 * np.linalg.norm(moved)


def test_a_step_is_the_same_on_any_mesh(axes=(2, 2, 2)):
  """Eight devices take two of nine matrices each; seven are zeros."""
  drawn = np.random.default_rng(0).normal(size=(2, 9, 24, 16)).astype("f4")
  params, grads = (
    {"layers": {"mlp": {"down": {"kernel": jnp.array(x)}}}} for x in drawn
  )
  tx = make(params)
  arguments = grads, tx.init(params), params
  compiled = jax.jit(tx.update).lower(*arguments).compile()
  alone, _ = compiled(*arguments)
  flops = compiled.cost_analysis()["flops"]
  mesh = sharding.make_mesh(
    ConfigDict(dict(zip(sharding.AXES, axes, strict=True)))
  )
  with jax.set_mesh(mesh):
    shardings = sharding.tree_shardings(params, mesh)
    state = jax.eval_shape(tx.init, params)
    state = jax.jit(
      lambda: tx.init(params),
      out_shardings=sharding.tree_shardings(state, mesh),
    )()
    given, there = (jax.device_put(x, shardings) for x in (grads, params))
    compiled = jax.jit(tx.update).lower(given, state, there).compile()
    together, after = compiled(given, state, there)
  assert compiled.cost_analysis()["flops"] < 0.25 * flops
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), together, alone
  )
  # The momentum is sharded as its parameter.
  (momentum,) = jax.tree.leaves(after[1].inner_states["muon"])
  (wanted,) = jax.tree.leaves(shardings)
  assert momentum.sharding.is_equivalent_to(wanted, momentum.ndim)
