"""ELECTRA's objective: detect the tokens that a small generator replaced.

Paper: Clark et al., arXiv:2003.10555, sections 2 and 3. Read top-down: options
-> corrupt -> sizes -> init -> loss -> sample. The generator, a masked language
model, fills the masks with samples; the discriminator predicts for every token
whether it is the original one. They share their embeddings. The discriminator
is "encoder", which is kept and fine-tuned; generator and mlm_head fill masks.

Differences from google-research/electra: positions are drawn without
replacement, not with; rows are split into two segments at any sentence end,
while theirs are split near the middle, and a tenth of them not at all.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from maskedlm.core.errors import ConfigError
from maskedlm.core.options import changed_default, frozen_option
from maskedlm.core.task import Batch, Key, Metrics, Params, Task
from maskedlm.data.batches import batching, pair_rows
from maskedlm.modeling import flops, losses, masked_lm
from maskedlm.modeling.architecture import check_mlm_head
from maskedlm.modeling.encoder import EncoderConfig
from maskedlm.modeling.layers import ACTIVATIONS, Dense
from maskedlm.modeling.masking import masking, tokens
from maskedlm.modeling.masking.options import MaskOptions, single_tokens
from maskedlm.pretraining import auto_pack, frame
from maskedlm.pretraining.objectives import mlm_nsp

# The paper's; the generator's loss has weight 1.
DISCRIMINATOR_WEIGHT = 50.0


@dataclasses.dataclass(frozen=True)
class Options(MaskOptions):
  """Options of config.objective for electra."""

  mask_share: float = changed_default(MaskOptions, "mask_share", 0.85)
  random_share: float = changed_default(MaskOptions, "random_share", 0.0)
  generator_size: float = frozen_option(
    0.25,
    "The generator's share of the discriminator's width, heads and MLP.",
    above=0,
    high=1,
  )
  generator_layers: float = frozen_option(
    1.0, "The generator's share of the discriminator's layers.", above=0, high=1
  )
  short_share: float = changed_default(mlm_nsp.Options, "short_share", 0.05)
  pack: bool | None = auto_pack.pack_option()


def make_task(config, corpus, shard: tuple[int, int], options: Options) -> Task:
  """Returns the Task of ELECTRA's pretraining; arguments as in __init__.py.

  config.model is the discriminator.
  """
  cfg = discriminator_config(config, corpus)
  small = generator_config(
    cfg, size=options.generator_size, layers=options.generator_layers
  )
  rows = make_batches(config, corpus, shard, options)
  parts = (cfg, small), init, classify, DISCRIMINATOR_WEIGHT
  return task_of("electra", config, corpus, options, rows, *parts)


def discriminator_config(config, corpus) -> EncoderConfig:
  """Returns the EncoderConfig of config.model, the discriminator."""
  cfg = frame.make_encoder_config(config, corpus)
  # Its classifiers read [CLS] through gelu, here and in transformers.
  return dataclasses.replace(cfg, pooler="gelu")


def task_of(name, config, corpus, options, rows, networks, init, head, weight):
  """Returns the Task of a discriminator and a generator, the `networks`."""
  cfg, small = networks
  length = config.data.length
  masks = masking.make_masking(
    corpus.tokenizer,
    length,
    single_tokens(options),
    token_counts=corpus.token_counts,
  )
  classify = functools.partial(head, cfg)
  return frame.make_task(
    name,
    config,
    cfg,
    rows,
    masks._replace(corrupt=functools.partial(corrupt, masks.corrupt)),
    init=functools.partial(init, cfg, small),
    loss=functools.partial(loss, cfg, small, classify, weight),
    packed=getattr(options, "pack", False),
    cost=functools.partial(
      row_flops, cfg, small, length, masks.num_predictions
    ),
    also={"generator": dataclasses.asdict(small)},
  )


def make_batches(config, corpus, shard, options: Options) -> batching.Batches:
  """Returns the batches of the Task; arguments as in __init__.py."""
  return pair_rows.adjacent_batches(
    config, corpus, shard, short_share=options.short_share, pack=options.pack
  )


def corrupt(mask, batch: Batch, key: Key) -> Batch:
  """Returns a batch with masks by Masking.corrupt, and bits for `sample`."""
  mask_key, sample_key = jax.random.split(key)
  batch = mask(batch, mask_key)
  # A key for each row: the samples don't depend on the microbatches.
  shape = (len(batch["input_ids"]), 2)
  bits = jax.random.bits(sample_key, shape, jnp.uint32)
  return {**batch, "sample_bits": bits}


def row_flops(
  cfg: EncoderConfig,
  small: EncoderConfig,
  length: int,
  num_predictions: int,
  attended: float | None,
) -> float:
  """Returns the FLOPs of a row in both networks, as flops.train_flops."""
  # A mask decoder is a layer that is used twice.
  passes = small.num_layers + 2 * small.mask_decoder
  small = dataclasses.replace(small, num_layers=passes)
  generator, encoder = (
    flops.train_flops(c, length, num_predictions=P, attended=attended)
    for c, P in ((small, num_predictions), (cfg, 0))
  )
  return generator + encoder + 6.0 * length * (cfg.width**2 + cfg.width)


def generator_config(
  cfg: EncoderConfig, *, size: float, layers: float
) -> EncoderConfig:
  """Returns the generator's config, with heads of the same size if one fits.

  It has the shares `size` of the discriminator's width, heads and MLP, and
  `layers` of its layers.

  Raises:
    ConfigError: the heads do not divide the width.
  """
  width = max(1, round(size * cfg.width))
  num_heads = max(1, width // cfg.head_size)
  if width % num_heads:
    K = cfg.head_size
    fitting = max(K, round(width / K) * K)
    raise ConfigError(
      f"objective.generator_size={size} of model.width={cfg.width} is {width}, "
      f"which {num_heads} heads do not divide: the shared embedding is "
      f"projected to whole heads of {K}; the nearest is generator_size="
      f"{fitting / cfg.width:.6g}."
    )
  generator = dataclasses.replace(
    cfg,
    num_layers=max(1, round(layers * cfg.num_layers)),
    width=width,
    num_heads=num_heads,
    # Groups are as large as the discriminator's if they fit; 0 without any.
    num_kv_heads=cfg.num_kv_heads
    and math.gcd(
      num_heads, max(1, num_heads * cfg.num_kv_heads // cfg.num_heads)
    ),
    mlp_width=max(1, round(size * cfg.mlp_width)),
    embedding_width=cfg.embedding_size,
  )
  check_mlm_head(generator)
  return generator


class DiscriminatorHead(nn.Module):
  """The head that classifies tokens as original (0) or replaced (1)."""

  cfg: EncoderConfig

  @nn.compact
  def __call__(self, x):
    """Returns float32 logits [B, L] for x [B, L, D]."""
    return classify_tokens(self.cfg, x)


def classify_tokens(cfg: EncoderConfig, x):
  """Returns float32 logits [B, L] for x [B, L, D], by layers of a head."""
  B, L, D = x.shape
  x = x.reshape(B * L, D)
  x = Dense((D,), (D,), cfg.init_stddev, cfg.dtype, name="transform")(x)
  x = ACTIVATIONS[cfg.activation](x)
  x = Dense((D,), (1,), cfg.init_stddev, cfg.dtype, name="dense")(x)
  return x.reshape(B, L).astype(jnp.float32)


def init(cfg: EncoderConfig, small: EncoderConfig, key: Key) -> Params:
  """Returns fresh parameters: encoder, discriminator_head, generator, mlm_head.

  generator is an encoder without embeddings; mlm_head is the generator's.
  """
  encoder_key, head_key, generator_key, mlm_key = jax.random.split(key, 4)
  vectors = jnp.zeros((1, 1, cfg.width))
  head = DiscriminatorHead(cfg).init(head_key, vectors)
  generator = masked_lm.init(small, generator_key, mlm_key)
  del generator["encoder"]["embeddings"]
  return {
    "encoder": masked_lm.init_encoder(cfg, encoder_key),
    "discriminator_head": head["params"],
    "generator": generator["encoder"],
    "mlm_head": generator["mlm_head"],
  }


def classify(cfg: EncoderConfig, params: Params, hidden):
  """Returns the discriminator's float32 logits [B, L] of vectors [B, L, D]."""
  head = params["discriminator_head"]
  return DiscriminatorHead(cfg).apply({"params": head}, hidden)


def loss(
  cfg: EncoderConfig,
  small: EncoderConfig,
  classify: Callable[[Params, Any], Any],
  weight: float,
  params: Params,
  batch: Batch,
  key: Key,
  train: bool,
) -> tuple[Metrics, Metrics]:
  """Returns (terms, metrics) of a corrupted batch; see Task.loss.

  The terms are "mlm", the generator's mean over the masked tokens, and
  "discriminator", `weight` times the mean over all real tokens, [CLS] and [SEP]
  among them, of the loss of `classify`'s logits.
  """
  generator_key, key = jax.random.split(key) if train else (None, None)
  generator = masked_lm.with_generator(params)
  hidden = masked_lm.encode(small, generator, batch, generator_key, train)
  logits = masked_lm.predict(small, generator, batch, hidden)
  scores = losses.loss_and_correct(logits, batch["masked_labels"])
  terms, metrics = masked_lm.terms_and_metrics(scores, batch)

  replaced, labels = replace(batch, sample(logits, batch))
  hidden = masked_lm.encode(cfg, params, replaced, key, train)
  scored = classify(params, hidden)
  real = (batch["segment_ids"] > 0) * batch["example_weights"][:, None]
  loss = jax.nn.softplus(scored) - labels * scored  # Sigmoid cross-entropy.
  flagged = real * (scored > 0)
  detected, correct = flagged * labels, real * (flagged == labels)
  loss, count, detected, correct, flagged, fakes = map(
    losses.sum_rows,
    (real * loss, real, detected, correct, flagged, real * labels),
  )
  terms = {**terms, "discriminator": (weight * loss, count)}
  metrics = {
    **metrics,
    "discriminator_loss": (loss, count),
    "discriminator_accuracy": (correct, count),
    "discriminator_precision": (detected, flagged),
    "discriminator_recall": (detected, fakes),
    "replaced_share": (fakes, count),
  }
  return terms, metrics


def sample(logits, batch: Batch):
  """Samples a token for each prediction: logits [B, P, V] -> ids [B, P].

  Taking the largest logit after adding Gumbel noise is equivalent to drawing
  from softmax(logits). An argmax has no gradient: none reaches the generator.
  """

  def of_row(bits, logits):
    key = jax.random.wrap_key_data(bits, impl="threefry2x32")
    noise = jax.random.gumbel(key, logits.shape)
    return jnp.argmax(logits + noise, axis=-1)

  return jax.vmap(of_row)(batch["sample_bits"], logits)


def replace(batch: Batch, sampled):
  """Returns the batch with the sampled tokens [B, P] in it, and labels [B, L].

  A label is 1 where a token differs from the original; a sample that equals it
  counts as original.
  """
  predicted = batch["masked_positions"], batch["masked_weights"]
  ids = batch["input_ids"]
  original = tokens.write_at(ids, *predicted, batch["masked_labels"])
  replaced = tokens.write_at(ids, *predicted, sampled)
  labels = (replaced != original).astype(jnp.float32)
  return {**batch, "input_ids": replaced}, labels
