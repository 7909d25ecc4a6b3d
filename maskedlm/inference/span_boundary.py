"""Predicts hidden tokens from their span's neighbours, as SpanBERT does."""

import jax
import numpy as np

from maskedlm.core.task import Batch
from maskedlm.inference.token_model import TokenModel
from maskedlm.modeling import masked_lm
from maskedlm.modeling.heads import SboHead
from maskedlm.modeling.masking import spans
from maskedlm.pretraining.objectives import spanbert


def boundary_losses(model: TokenModel, batch: Batch) -> list[float | None]:
  """Returns -log P of a row's masked_labels [1, P] (objectives/spanbert.py).

  It is None if the model has no such head, and for a token without this loss:
  its span touches [CLS] or [SEP] (unless model.sbo_at_edges), or is too long.
  """
  cfg, params, special = model.cfg, model.params, model.tokenizer.special
  positions = batch["masked_positions"]
  if "sbo_head" not in params:
    return [None] * positions.shape[1]
  sizes = params["sbo_head"]["place"]["embedding"].shape
  edges = () if model.sbo_at_edges else (special.cls, special.sep)
  weights = np.ones(positions.shape, np.float32)
  targets = spanbert.boundaries(
    np.isin(batch["input_ids"], edges),
    positions,
    weights,
    *spans.span_ends(positions, weights),
    max_span_targets=sizes[0],
  )

  @jax.jit
  def losses(params, batch):
    hidden = masked_lm.encode(cfg, params, batch, None, False)
    head = SboHead(cfg, *sizes)
    return spanbert.boundary_scores(cfg, head, params, batch, hidden)[0]

  values = np.asarray(losses(params, {**batch, **targets}))[0]
  used = np.asarray(targets["sbo_weights"])[0] > 0
  return [float(x) if y else None for x, y in zip(values, used, strict=True)]
