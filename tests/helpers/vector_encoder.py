"""The encoder that the tests of vectors share, and its vectors computed by
hand.
"""

import jax
import numpy as np

from helpers import finetune_runs
from maskedlm.inference.vectors import vectors
from maskedlm.modeling import masked_lm

# Large, so that vectors of the untrained encoder differ.
OPTIONS = {"init_stddev": 0.3}
POSITIONS = finetune_runs.LENGTH  # 48
D, N = 24, 2


def make(folder, **options):
  return finetune_runs.make_encoder(folder, **{**OPTIONS, **options})


def by_hand(model: vectors.TextEncoder, ids):
  """Returns every layer [N + 1, n + 2, D] of a row, for ids [n] of a text."""
  special = model.tokenizer.special
  row = np.full((1, POSITIONS), special.pad, np.int32)
  row[0, : len(ids) + 2] = [special.cls, *ids, special.sep]
  batch = {
    "input_ids": row,
    "token_type_ids": np.zeros_like(row),
    "segment_ids": (np.arange(POSITIONS) < len(ids) + 2)[None].astype(np.int32),
  }
  layers = _layers(model.cfg, model.params, batch)
  return np.asarray(layers)[:, 0, : len(ids) + 2]


# One length only, so that it is compiled once.
_layers = jax.jit(masked_lm.encode_layers, static_argnums=0)
