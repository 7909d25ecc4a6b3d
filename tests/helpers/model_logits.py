"""A model's logits, straight from its modules."""

from maskedlm.modeling import heads
from maskedlm.modeling.encoder import Encoder


def mlm_logits(params, cfg, batch, positions):
  """Returns the logits of tokens at `positions`, without dropout.

  The parameters are the whole model's, with "encoder" and "mlm_head"; the batch
  has input_ids, token_type_ids and segment_ids, [B, L] each. Logits are
  float32; V is the vocabulary without padding.
  """
  hidden = Encoder(cfg).apply(
    {"params": params["encoder"]},
    batch["input_ids"],
    batch["token_type_ids"],
    batch["segment_ids"],
    train=False,
  )
  logits = heads.MlmHead(cfg).apply(
    {"params": params["mlm_head"]},
    heads.gather_positions(hidden, heads.predicted_at(cfg, positions)),
    params["encoder"]["embeddings"]["token"]["embedding"],
  )
  return logits[..., : cfg.vocab_size]
