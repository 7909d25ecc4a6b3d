"""Workdirs with random parameters, as pretraining leaves them."""

import dataclasses
import pathlib
from typing import Any, NamedTuple

import jax
import numpy as np
from flax import traverse_util

from maskedlm.config import defaults
from maskedlm.interop.heads import param_shapes
from maskedlm.modeling import masked_lm
from maskedlm.modeling.encoder import EncoderConfig
from maskedlm.pretraining.objectives import electra
from maskedlm.training.checkpoints import manager

D, H, F, N, T = 24, 3, 40, 3, 17
MODERN = {
  "type_vocab_size": 0,
  "position": "rope",
  "local_window": 4,
  "global_every": 2,
  "norm_order": "pre",
  "skip_first_norm": True,
  "mlp": "gated",
  "biases": False,
  "norm_epsilon": 1e-5,
}


class State(NamedTuple):
  params: Any
  step: Any


def config(tokenizer, **changes) -> EncoderConfig:
  model = defaults.default().model.to_dict()
  model |= {
    "num_layers": N,
    "width": D,
    "num_heads": H,
    "mlp_width": F,
    "max_positions": T,
  }
  return EncoderConfig(vocab_size=tokenizer.vocab_size, **(model | changes))


def randomise(shapes, seed=0):
  """Returns random parameters; unused ones have the values of training."""
  rng = np.random.default_rng(seed)

  def draw(path, x):
    name = jax.tree_util.keystr(path, simple=True, separator="/")
    drawn = 0.3 * rng.standard_normal(x.shape) + name.endswith("scale")
    return drawn.astype(np.float32)

  return jax.tree_util.tree_map_with_path(draw, shapes)


def clear_unused(params, cfg):
  """Sets padding rows of the vocabulary to 0 and a skipped norm to 1."""
  table = params["encoder"]["embeddings"]["token"]["embedding"]
  table[cfg.vocab_size :] = 0
  for name in {"bias", "embedding"} & params.get("mlm_head", {}).keys():
    params["mlm_head"][name][cfg.vocab_size :] = 0
  if cfg.skip_first_norm:
    params["encoder"]["layers"]["attention_norm"]["scale"][0] = 1
  return params


def make_params(cfg, heads, num_labels=0, seed=0):
  shapes = param_shapes(cfg, heads, num_labels)
  return clear_unused(randomise(shapes, seed), cfg)


def make_electra(cfg, **sizes):
  """Returns (params, task of the metadata) of a whole ELECTRA."""
  small = electra.generator_config(cfg, **sizes)
  shapes = jax.eval_shape(
    lambda key: electra.init(cfg, small, key), jax.random.key(0)
  )
  task = {
    "objective": "electra",
    "encoder": dataclasses.asdict(cfg),
    "generator": dataclasses.asdict(small),
  }
  params = clear_unused(randomise(shapes), cfg)
  assert set(masked_lm.with_generator(params)) == {"encoder", "mlm_head"}
  return params, task


def save(
  path, params, cfg, tokenizer, *, step=12, identity=None, heldout=None, **task
) -> pathlib.Path:
  """Saves a workdir with one checkpoint; returns its path."""
  path = pathlib.Path(path)
  path.mkdir(parents=True)
  tokenizer.save(path / "tokenizer")
  task = {"objective": "mlm_nsp", "encoder": dataclasses.asdict(cfg), **task}
  identity = identity or {"config": {}, "corpus": "", "tokenizer": ""}
  meta = {"task": task, "identity": identity, "heldout": heldout or {}}
  opened = manager.open_checkpoints(path, keep_last=1, keep_best=0, log=print)
  opened.save(step, State(params, np.int32(step)), meta, metric=None)
  opened.close()
  return path


def assert_same_trees(a, b):
  """Checks equality to the bit."""
  a, b = (
    traverse_util.flatten_dict(a, sep="/"),
    traverse_util.flatten_dict(b, sep="/"),
  )
  assert a.keys() == b.keys()
  for path, x in a.items():
    assert x.dtype == b[path].dtype == np.float32
    np.testing.assert_array_equal(x, b[path], err_msg=path)
