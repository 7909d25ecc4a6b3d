"""A head on the vector that represents a row: [CLS], or a mean."""

import jax
import jax.numpy as jnp
from flax import linen as nn

from maskedlm.core.task import Batch, Key, Params
from maskedlm.finetune.common.head import Head
from maskedlm.modeling import masked_lm
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.heads import Pooler, head_stddevs, row_vector
from maskedlm.modeling.layers import Dense, Dropout


class ClassHead(nn.Module):
  """Dropout and a dense layer: logits of the labels, or one score."""

  cfg: EncoderConfig
  outputs: int

  @nn.compact
  def __call__(self, x, *, train: bool):
    """Maps x [B, D] to float32 [B, outputs]."""
    cfg = self.cfg
    x = Dropout(cfg.dropout)(x, train=train)
    _, stddev = head_stddevs(cfg)
    dense = Dense(
      (cfg.width,), (self.outputs,), stddev, cfg.dtype, name="dense"
    )
    return dense(x).astype(jnp.float32)


def make_row_head(
  cfg: EncoderConfig, outputs: int, *, pooler: bool, name: str = "class_head"
) -> Head:
  """Returns a Head with logits [B, outputs] on the vector of each row."""
  module = ClassHead(cfg, outputs)

  def init(key: Key) -> Params:
    head_key, pooler_key = jax.random.split(key)
    x = jnp.zeros((1, cfg.width))
    params = {name: module.init(head_key, x, train=False)["params"]}
    if pooler:
      params["pooler"] = Pooler(cfg).init(pooler_key, x[:, None])["params"]
    return params

  def logits(params: Params, batch: Batch, key: Key, train: bool):
    hidden = masked_lm.encode(cfg, params, batch, key, train)
    x = row_vector(cfg, hidden, batch["segment_ids"])
    if pooler:
      x = Pooler(cfg).apply({"params": params["pooler"]}, x[:, None])
    rngs = masked_lm.head_rngs(key, train)
    return module.apply({"params": params[name]}, x, train=train, rngs=rngs)

  return Head(init, logits)
