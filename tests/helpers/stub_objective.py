"""A tiny config, and a corpus without text, for tests of objectives."""

import types

import jax
import numpy as np

from maskedlm.config import defaults
from maskedlm.data.batches import batching
from maskedlm.training.step import totals

PAD, UNK, CLS, SEP, MASK = range(5)
B, L, V = 8, 13, 131


def make_config(objective, **model):
  """Returns a config of rows of 13 tokens and 10 steps."""
  config = defaults.default(objective)
  config.model.update(
    num_layers=2, width=24, num_heads=3, mlp_width=40, max_positions=17
  )
  config.model.unroll = False  # Half as much to compile.
  config.model.update(model)
  config.data.update(length=L, batch_size=B)
  config.train.num_steps = 10
  return config


def make_corpus():
  """Returns a corpus of a tokenizer and counts; ids up to 99 begin words."""
  return types.SimpleNamespace(
    tokenizer=types.SimpleNamespace(
      vocab_size=V,
      special=types.SimpleNamespace(pad=PAD, cls=CLS, sep=SEP, mask=MASK),
      overlap=1,
      special_ids=np.arange(5),
      starts_word=np.arange(V) < 100,
    ),
    # Special tokens have counts too, and must not become random tokens.
    token_counts=np.arange(V) % 7 + 1,
  )


def stub_batches(
  monkeypatch, module, name, *, batch_at=lambda *args: args, num_heldout=3
):
  """Replaces module.name, which makes batches; returns its later arguments."""
  asked = {}

  def make(config, corpus, shard, **options):
    del corpus
    asked.update(options, config=config, shard=shard)
    return batching.Batches(batch_at, lambda *args: args, num_heldout, (7,))

  monkeypatch.setattr(module, name, make)
  return asked


def single_text_rows(lengths, *, length=L):
  """Returns a batch of rows [CLS] text [SEP] of these lengths, and padding."""
  rng, lengths = np.random.default_rng(0), np.asarray(lengths)[:, None]
  shape, column = (len(lengths), length), np.arange(length)
  ids = np.where(column == 0, CLS, rng.integers(5, V, shape))
  ids = np.where(column == lengths - 1, SEP, ids)
  real = column < lengths
  return {
    "input_ids": np.where(real, ids, PAD).astype(np.int32),
    "token_type_ids": np.zeros(shape, np.int32),
    "segment_ids": real.astype(np.int32),
    "example_weights": np.ones(len(lengths), np.float32),
  }


def random_params(task):
  """Returns parameters so large that every term of a formula matters."""
  rng = np.random.default_rng(4)
  return jax.tree.map(
    lambda x: np.float32(0.3 * rng.standard_normal(x.shape)),
    jax.eval_shape(task.init, jax.random.key(0)),
  )


def shapes(params):
  """Returns {path: shape} of a tree of arrays."""
  return {
    jax.tree_util.keystr(path, simple=True, separator="/"): x.shape
    for path, x in jax.tree_util.tree_leaves_with_path(params)
  }


def compiled(task):
  """Returns the Task whose init and corrupt are compiled as a whole."""
  return task._replace(init=jax.jit(task.init), corrupt=jax.jit(task.corrupt))


def jitted_loss(task):
  """Returns the jitted (params, batch, key, train) -> summed Task.loss."""
  return jax.jit(lambda *args: totals(task.loss(*args)), static_argnums=3)
