"""Makes the function that an exported program computes, from ids to outputs."""

from collections.abc import Callable

import jax.numpy as jnp

from maskedlm.core.task import Array
from maskedlm.inference.vectors import vectors
from maskedlm.interop import heads
from maskedlm.interop.export_source import ExportSource
from maskedlm.modeling.heads import ROW_POOLS

INPUTS = ("input_ids", "token_type_ids", "attention_mask")


def make_forward(opened: ExportSource) -> Callable[..., dict[str, Array]]:
  """Returns the function: (parameters, *INPUTS) -> outputs in float32.

  The inputs are [B, L] int32; attention_mask is 1 for tokens and 0 for padding,
  which comes last. The outputs are those of heads.compute_outputs and, if the
  model has a pooling of its own, sentence_embedding [B, D] as of `embed`.
  """
  cfg = opened.cfg
  has_pooling = "sentences" in opened.task

  def forward(params, input_ids, token_type_ids, attention_mask):
    batch = {
      "input_ids": input_ids,
      "token_type_ids": token_type_ids,
      "segment_ids": (attention_mask > 0).astype(jnp.int32),
    }
    outputs = heads.compute_outputs(params, cfg, batch)
    if has_pooling:
      outputs["sentence_embedding"] = _sentence_vector(
        opened, outputs["last_hidden_state"], batch["segment_ids"]
      )
    return outputs

  return forward


def _sentence_vector(opened: ExportSource, x, segment_ids):
  """Returns sentence vectors [B, D] of x [B, L, D], pooled as `embed` does."""
  sentences = vectors.sentence_pooling(opened.task, opened.cfg)
  if sentences.pool != "max":
    pooled = ROW_POOLS[sentences.pool](opened.cfg, x, segment_ids)
  else:
    is_token = (segment_ids > 0)[..., None]
    pooled = jnp.max(x, axis=1, where=is_token, initial=-jnp.inf)
  if sentences.normalize:
    norms = jnp.linalg.norm(pooled, axis=-1, keepdims=True)
    pooled = pooled / jnp.maximum(norms, 1e-12)
  return pooled[:, : sentences.truncate_dim or None]
