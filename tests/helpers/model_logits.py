"""A batch of one row, and a model's logits, straight from its modules."""

import functools

import jax
import numpy as np

from maskedlm.modeling import heads, masked_lm


def one_row(ids):
  """Returns the batch of a row of ids [l], without padding."""
  row = np.array([ids], np.int32)
  return {
    "input_ids": row,
    "token_type_ids": 0 * row,
    "segment_ids": 0 * row + 1,
  }


@functools.partial(jax.jit, static_argnums=1)
def mlm_logits(params, cfg, batch, positions):
  """Returns the logits of tokens at `positions`, without dropout.

  The parameters are the whole model's, with "encoder" and "mlm_head"; the batch
  has input_ids, token_type_ids and segment_ids, [B, L] each. Logits are
  float32; V is the vocabulary without padding.
  """
  hidden = masked_lm.encode(cfg, params, batch, None, False)
  logits = heads.MlmHead(cfg).apply(
    {"params": params["mlm_head"]},
    heads.gather_positions(hidden, heads.predicted_at(cfg, positions)),
    params["encoder"]["embeddings"]["token"]["embedding"],
  )
  return logits[..., : cfg.vocab_size]
