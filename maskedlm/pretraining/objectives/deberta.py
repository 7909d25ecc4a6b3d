"""DeBERTa-v3's objective: detect replaced tokens, with embeddings apart.

Paper: He et al., arXiv:2111.09543, section 3; the code is microsoft/DeBERTa's
rtd_task.py. Read top-down: options -> task -> generator -> init -> head. The
loss is ELECTRA's (electra.py), but for its head and weight. The generator has
as wide layers as the discriminator, half as many, and a table of tokens of its
own. The discriminator's table is the generator's plus a difference, which alone
learns from detection (Task.follows): "gradient-disentangled embedding sharing".
Both networks are updated in one step, and their gradients clipped apart; in the
authors' code the discriminator's follows the generator's.
"""

import dataclasses

import jax
import jax.numpy as jnp
from flax import linen as nn

from maskedlm.core.options import changed_default
from maskedlm.core.task import Key, Params, Task
from maskedlm.data.batches import text_rows
from maskedlm.modeling import masked_lm
from maskedlm.modeling.encoder import EncoderConfig, make_norm
from maskedlm.modeling.masking.options import MaskOptions
from maskedlm.pretraining.objectives import electra

# rtd_task.py's rtd_lambda; the generator's loss has weight 1.
DISCRIMINATOR_WEIGHT = 10.0


@dataclasses.dataclass(frozen=True)
class Options(MaskOptions):
  """Options of config.objective for deberta."""

  mask_share: float = changed_default(MaskOptions, "mask_share", 1.0)
  random_share: float = changed_default(MaskOptions, "random_share", 0.0)
  generator_layers: float = changed_default(
    electra.Options, "generator_layers", 0.5
  )


def make_task(config, corpus, shard: tuple[int, int], options: Options) -> Task:
  """Returns the Task of DeBERTa-v3's pretraining; arguments as in __init__.py.

  config.model is the discriminator. Rows are running text.
  """
  cfg = electra.discriminator_config(config, corpus)
  rows = text_rows.full_sentence_batches(
    config, corpus, shard, isolate_documents=False
  )
  small = generator_config(cfg, options.generator_layers)
  parts = (cfg, small), init, classify, DISCRIMINATOR_WEIGHT
  task = electra.task_of("deberta", config, corpus, options, rows, *parts)
  table = "embeddings/token/embedding"
  return task._replace(
    networks=(("generator", "mlm_head"), ("encoder", "rtd_head")),
    follows={f"encoder/{table}": f"generator/{table}"},
  )


def generator_config(cfg: EncoderConfig, layers: float) -> EncoderConfig:
  """Returns the config of a generator with a share of the layers.

  In DeBERTa's architecture, its last layer is the mask decoder. Other encoders
  know absolute positions, or have norms before the layers, which it lacks.
  """
  count = max(1, round(layers * cfg.num_layers))
  decodes = cfg.position == "disentangled" and cfg.norm_order == "post"
  return dataclasses.replace(
    cfg, num_layers=count - decodes, mask_decoder=decodes
  )


def init(cfg: EncoderConfig, small: EncoderConfig, key: Key) -> Params:
  """Returns fresh parameters: encoder, rtd_head, generator, mlm_head."""
  encoder_key, head_key, generator_key, mlm_key = jax.random.split(key, 4)
  generator = masked_lm.init(small, generator_key, mlm_key)
  encoder = masked_lm.init_encoder(cfg, encoder_key)
  # The difference of the tables is 0.
  table = masked_lm.token_embedding(generator["encoder"])
  embeddings = {**encoder["embeddings"], "token": {"embedding": table}}
  head = RtdHead(cfg).init(head_key, jnp.zeros((1, 1, cfg.width)))
  return {
    "encoder": {**encoder, "embeddings": embeddings},
    "rtd_head": head["params"],
    "generator": generator["encoder"],
    "mlm_head": generator["mlm_head"],
  }


def classify(cfg: EncoderConfig, params: Params, hidden):
  """Returns the discriminator's float32 logits [B, L] of vectors [B, L, D]."""
  return RtdHead(cfg).apply({"params": params["rtd_head"]}, hidden)


class RtdHead(nn.Module):
  """The head that classifies tokens as original (0) or replaced (1).

  It reads the sum of a token's vector and that of [CLS], normalised.
  """

  cfg: EncoderConfig

  @nn.compact
  def __call__(self, x):
    """Returns float32 logits [B, L] for x [B, L, D]."""
    x = make_norm(self.cfg, "norm")(x + x[:, :1])
    return electra.classify_tokens(self.cfg, x)
