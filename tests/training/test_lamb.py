"""LAMB against its algorithm on separate matrices, and against optax."""

import jax
import numpy as np
import optax

from helpers.toy_optimizers import (
  DECAYED,
  D,
  H,
  K,
  N,
  draw,
  flat,
  option,
  shapes,
  structs,
)
from maskedlm.config import presets
from maskedlm.training import optimizer as optim


def unstacked(path, leaf):
  """Returns the matrices that an array holds, as LAMB was published for."""
  layers = list(leaf) if "layers/" in path else [leaf]
  if "qkv/kernel" in path:
    return [layer[:, i] for layer in layers for i in range(3)]
  if "qkv/bias" in path:
    return [layer[i] for layer in layers for i in range(3)]
  return layers


def test_lamb_by_hand_on_unstacked_matrices():
  params, grads = draw(3), draw(4)
  # Layer 1's values are zero, so their ratio is 1.
  params["encoder"]["layers"]["attention"]["qkv"]["kernel"][1, :, 2] = 0.0
  tx, _ = optim.make_optimizer(
    option(presets.lamb, weight_decay=0.5), 7_038, structs()
  )
  update, _ = jax.jit(tx.update)(grads, tx.init(params), params)

  flat_p, flat_g, got = flat(params), flat(grads), flat(update)
  norm = np.sqrt(sum(np.sum(g.astype("f8") ** 2) for g in flat_g.values()))
  assert norm > 1
  matrices = 0
  for path in shapes():
    for p, g, u in zip(
      *(unstacked(path, tree[path]) for tree in (flat_p, flat_g, got)),
      strict=True,
    ):
      g = g.astype("f8") / norm
      want = g / (np.abs(g) + 1e-6)  # Step 1: both moments are corrected.
      if path in DECAYED:
        matrices += 1
        want += 0.5 * p
        ratio = np.linalg.norm(p) / np.linalg.norm(want)
        want *= ratio or 1.0
      np.testing.assert_allclose(u, want, rtol=1e-4, atol=2e-5, err_msg=path)
  # 3 embeddings, 2 layers of (q, k, v, out, up, down), 3 heads.
  assert matrices == 3 + N * 6 + 3


def test_trust_ratio_is_per_layer_and_per_query_key_value():
  # |p| of q, k, v is 3, 6, 0 in layer 0 and 30, 60, 90 in layer 1; |u| is 1.
  size = np.array([[3.0, 6.0, 0.0], [30.0, 60.0, 90.0]])
  unit = 1 / np.sqrt(D * H * K)
  param = size[:, None, :, None, None] * unit * np.ones((N, D, 3, H, K))
  update = unit * np.ones((N, D, 3, H, K))
  update[1, :, 2] = 0.0
  tree = {"encoder": {"layers": {"attention": {"qkv": {"kernel": update}}}}}
  params = jax.tree.map(lambda _: param, tree)
  tx = optim.scale_by_trust_ratio()
  out, _ = tx.update(tree, tx.init(params), params)
  kernel = out["encoder"]["layers"]["attention"]["qkv"]["kernel"]
  np.testing.assert_allclose(
    np.asarray(kernel)[:, 5, :, 1, 2] / unit,
    [[3.0, 6.0, 1.0], [30.0, 60.0, 0.0]],
    rtol=1e-5,
  )


def test_trust_ratio_equals_optax_s_if_an_array_is_one_matrix():
  params, grads = draw(5)["pooler"], draw(6)["pooler"]
  ours, theirs = optim.scale_by_trust_ratio(), optax.scale_by_trust_ratio()
  a, _ = ours.update(grads, ours.init(params), params)
  b, _ = theirs.update(grads, theirs.init(params), params)
  jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, 1e-5), a, b)
