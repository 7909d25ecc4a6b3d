"""BERT's forward pass in plain numpy, float64: one row, one head at a time.

The reference of the modeling tests. It shares no code with the package and
reads only the names of the parameters.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.modeling import heads
from maskedlm.modeling.encoder import Encoder, EncoderConfig

# Odd and all different, so that no two dimensions can be confused.
B, L, P, V = 5, 13, 4, 131
SIZES = {
  "vocab_size": V,
  "num_layers": 2,
  "width": 24,
  "num_heads": 3,
  "mlp_width": 40,
  "max_positions": 17,
}


def config(**changes) -> EncoderConfig:
  """Returns a tiny EncoderConfig without dropout."""
  fields = {
    **SIZES,
    "activation": "gelu",
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "norm_epsilon": 1e-12,
    "init_stddev": 0.02,
    "dtype": "float32",
    "remat": "none",
    "unroll": False,
  }
  return EncoderConfig(**{**fields, **changes})


def randomise(params, seed=0):
  """Returns the tree with random entries, so that no term is 0 or 1."""
  rng = np.random.default_rng(seed)

  def draw(path, x):
    center = 1.0 if jax.tree_util.keystr(path).endswith("['scale']") else 0.0
    return (center + 0.3 * rng.standard_normal(x.shape)).astype(np.float32)

  return jax.tree_util.tree_map_with_path(draw, params)


def make_params(cfg, seed=0):
  """Returns random parameters of a whole model: encoder, pooler, both heads."""
  key, ids = jax.random.key(0), jnp.zeros((B, L), jnp.int32)
  hidden = jnp.zeros((B, L, cfg.width))
  table = jnp.zeros((cfg.padded_vocab_size, cfg.width))
  shapes = jax.eval_shape(
    lambda: {
      "encoder": Encoder(cfg).init(key, ids, ids, ids, train=False),
      "pooler": heads.Pooler(cfg).init(key, hidden),
      "mlm_head": heads.MlmHead(cfg).init(key, hidden, table),
      "nsp_head": heads.NspHead(cfg).init(key, hidden[:, 0]),
    }
  )
  return randomise({k: v["params"] for k, v in shapes.items()}, seed)


def make_batch(seed=0):
  """Returns rows of 13, 12, 7, 3 and 1 real tokens, two sentences each."""
  rng = np.random.default_rng(seed)
  column = np.arange(L)
  length = np.array([13, 12, 7, 3, 1])[:, None]
  real = column < length
  batch = {
    "input_ids": np.where(real, rng.integers(1, V, (B, L)), 0),
    "token_type_ids": real & (column > length // 2),
    "segment_ids": real,
  }
  return {name: x.astype(np.int32) for name, x in batch.items()}


def encode(params, cfg, ids, types, segments, positions=None):
  """Maps arrays [L] of one row to [L, D]."""
  positions = np.arange(len(ids)) if positions is None else positions
  p = as_float64(params)
  tables = p["embeddings"]
  x = (
    tables["token"]["embedding"][ids]
    + tables["position"]["embedding"][positions]
    + tables["token_type"]["embedding"][types]
  )
  x = norm(x, tables["norm"], cfg)
  for n in range(cfg.num_layers):
    layer = jax.tree.map(lambda a, n=n: a[n], p["layers"])
    y = attention(x, layer["attention"], cfg, segments)
    x = norm(x + y, layer["attention_norm"], cfg)
    up, down = layer["mlp"]["up"], layer["mlp"]["down"]
    y = activate(x @ up["kernel"] + up["bias"], cfg)
    y = y @ down["kernel"] + down["bias"]
    x = norm(x + y, layer["mlp_norm"], cfg)
  return x


def attention(x, p, cfg, segments):
  """Returns one row's self-attention, [L, D] -> [L, D]."""
  out = p["out"]["bias"].copy()
  for h in range(cfg.num_heads):
    query, key, value = (
      x @ p["qkv"]["kernel"][:, i, h] + p["qkv"]["bias"][i, h] for i in range(3)
    )
    scores = query @ key.T / math.sqrt(cfg.width / cfg.num_heads)
    scores[segments[:, None] != segments[None, :]] = -np.inf
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    out = out + weights @ value @ p["out"]["kernel"][h]
  return out


def mlm_logits(params, cfg, hidden, table):
  """Maps hidden [P, D] of one row and table [Vpad, D] to logits [P, V]."""
  p = as_float64(params)
  x = hidden @ p["transform"]["kernel"] + p["transform"]["bias"]
  x = norm(activate(x, cfg), p["norm"], cfg)
  return (x @ np.float64(table).T + p["bias"])[:, : cfg.vocab_size]


def nsp_logits(pooler, head, hidden):
  """Maps hidden [L, D] of one row to logits [2]."""
  pooler, head = as_float64(pooler)["dense"], as_float64(head)["dense"]
  pooled = np.tanh(hidden[0] @ pooler["kernel"] + pooler["bias"])
  return pooled @ head["kernel"] + head["bias"]


def cross_entropy(logits, label):
  """Returns -log softmax(logits)[label]."""
  top = logits.max()
  return top + math.log(np.exp(logits - top).sum()) - logits[label]


def norm(x, p, cfg):
  """Returns layer normalisation over the last dimension."""
  x = x - x.mean(axis=-1, keepdims=True)
  x = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + cfg.norm_epsilon)
  return x * p["scale"] + p["bias"]


def activate(x, cfg):
  """Returns GELU, exact or by tanh, or SiLU."""
  if cfg.activation == "silu":
    return x / (1 + np.exp(-x))
  if cfg.activation == "gelu":
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
  inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
  return 0.5 * x * (1 + np.tanh(inner))


def as_float64(tree):
  return jax.tree.map(np.float64, tree)
