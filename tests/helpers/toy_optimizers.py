"""Parameters and presets for tests of the optimizer."""

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.config import presets

N, D, H, K, F, V, T = 2, 24, 3, 8, 40, 128, 17


def shapes():
  """Returns {path: shape} of the parameters of an MLM+NSP encoder."""
  return {
    "encoder/embeddings/token/embedding": (V, D),
    "encoder/embeddings/position/embedding": (T, D),
    "encoder/embeddings/token_type/embedding": (2, D),
    "encoder/embeddings/norm/scale": (D,),
    "encoder/embeddings/norm/bias": (D,),
    "encoder/layers/attention/qkv/kernel": (N, D, 3, H, K),
    "encoder/layers/attention/qkv/bias": (N, 3, H, K),
    "encoder/layers/attention/out/kernel": (N, H, K, D),
    "encoder/layers/attention/out/bias": (N, D),
    "encoder/layers/attention_norm/scale": (N, D),
    "encoder/layers/attention_norm/bias": (N, D),
    "encoder/layers/mlp/up/kernel": (N, D, F),
    "encoder/layers/mlp/up/bias": (N, F),
    "encoder/layers/mlp/down/kernel": (N, F, D),
    "encoder/layers/mlp/down/bias": (N, D),
    "encoder/layers/mlp_norm/scale": (N, D),
    "encoder/layers/mlp_norm/bias": (N, D),
    "pooler/dense/kernel": (D, D),
    "pooler/dense/bias": (D,),
    "mlm_head/transform/kernel": (D, D),
    "mlm_head/transform/bias": (D,),
    "mlm_head/norm/scale": (D,),
    "mlm_head/norm/bias": (D,),
    "mlm_head/bias": (V,),
    "nsp_head/dense/kernel": (D, 2),
    "nsp_head/dense/bias": (2,),
  }


DECAYED = {
  "encoder/embeddings/token/embedding",
  "encoder/embeddings/position/embedding",
  "encoder/embeddings/token_type/embedding",
  "encoder/layers/attention/qkv/kernel",
  "encoder/layers/attention/out/kernel",
  "encoder/layers/mlp/up/kernel",
  "encoder/layers/mlp/down/kernel",
  "pooler/dense/kernel",
  "mlm_head/transform/kernel",
  "nsp_head/dense/kernel",
}


def nest(flat):
  """Converts {"a/b": x} to {"a": {"b": x}}."""
  tree = {}
  for path, value in flat.items():
    *parents, name = path.split("/")
    node = tree
    for parent in parents:
      node = node.setdefault(parent, {})
    node[name] = value
  return tree


def flat(tree):
  """Returns the inverse of nest, with numpy arrays."""
  leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
  return {"/".join(k.key for k in path): np.asarray(x) for path, x in leaves}


def draw(seed):
  """Returns random parameters, or gradients, of all shapes."""
  rng = np.random.default_rng(seed)
  return nest({p: rng.normal(size=s).astype("f4") for p, s in shapes().items()})


def structs():
  return nest(
    {p: jax.ShapeDtypeStruct(s, jnp.float32) for p, s in shapes().items()}
  )


def option(preset, **values):
  """Returns a preset with other values."""
  optimizer = preset()
  optimizer.update(values)
  return optimizer


def plain(preset=presets.adamw, **values):
  """Returns a preset for `toy` parameters: all decay, and no warm-up."""
  return option(preset, **{"no_decay": (), "warmup_steps": 0} | values)


def toy(values):
  return {"kernel": jnp.array(values, jnp.float32)}
