"""Texts whose words are letters, a tokenizer of them, and batches to test."""

import re
import types

import jax
import jax.numpy as jnp
import numpy as np

from helpers import encoder_reference as reference
from maskedlm.finetune.common import batching
from maskedlm.modeling.encoder import Encoder

IDS = {word: 10 + i for i, word in enumerate("abcdefghijklmnopqrstuvwxyz")}
PAD, CLS, SEP, UNK = 0, 1, 2, 9


def encode(text):
  """Encodes as Tokenizer.encode: a token for each letter; "a" is 10."""
  found = list(re.finditer(r"\S+", text))
  return types.SimpleNamespace(
    meta={},
    ids=np.array([IDS[m.group()] for m in found], np.int32),
    offsets=np.array([m.span() for m in found], np.int32).reshape(-1, 2),
  )


TOKENIZER = types.SimpleNamespace(
  special=types.SimpleNamespace(pad=PAD, cls=CLS, sep=SEP, unk=UNK),
  encode=encode,
  encode_batch=lambda texts: [encode(text).ids for text in texts],
  follows_space=np.ones(99, bool),
)


def make_params(app, cfg=None, seed=3):
  """Returns random parameters of the encoder and the Application's heads."""
  cfg, key = cfg or reference.config(), jax.random.key(0)
  ids = jnp.zeros((1, 1), jnp.int32)
  shapes = jax.eval_shape(
    lambda: {
      "encoder": Encoder(cfg).init(key, ids, ids, ids, train=False)["params"],
      **app.init(key),
    }
  )
  return reference.randomise(shapes, seed)


def compiled(app):
  """Returns an Application whose functions are compiled as a whole."""
  return app._replace(
    loss=jax.jit(app.loss, static_argnums=3), outputs=jax.jit(app.outputs)
  )


def make_batch(app, *, examples, length, fillers=0):
  """Returns all rows of the examples and `fillers` filler rows as one batch."""
  rows = app.make_rows(examples)
  which = np.append(np.arange(len(rows.example)), np.full(fillers, -1))
  return batching.gather_rows(rows, which, length, PAD)
