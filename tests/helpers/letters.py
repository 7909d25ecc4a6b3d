"""Texts whose words are letters, and parameters for any kind of task."""

import re
import types

import jax
import jax.numpy as jnp
import numpy as np

from helpers import encoder_reference as reference
from maskedlm.modeling.encoder import Encoder

IDS = {word: 10 + i for i, word in enumerate("abcdefghijklmnopqrstuvwxyz")}


def encode(text):
  """As Tokenizer.encode: a token for each letter, a is 10."""
  found = list(re.finditer(r"\S+", text))
  return types.SimpleNamespace(
    ids=np.array([IDS[m.group()] for m in found], np.int32),
    offsets=np.array([m.span() for m in found], np.int32).reshape(-1, 2),
  )


def encode_batch(texts):
  return [encode(text).ids for text in texts]


def make_params(app, cfg=None, seed=3):
  """Random ones: the encoder's, and those of the Application's heads."""
  cfg, key = cfg or reference.config(), jax.random.key(0)
  ids = jnp.zeros((1, 1), jnp.int32)
  shapes = jax.eval_shape(
    lambda: {
      "encoder": Encoder(cfg).init(key, ids, ids, ids, train=False)["params"],
      **app.init(key),
    }
  )
  return reference.randomise(shapes, seed)
