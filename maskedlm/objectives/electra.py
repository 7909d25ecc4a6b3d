"""ELECTRA's objective: find the tokens that a small generator put in.

Paper: Clark et al., arXiv:2003.10555, sections 2 and 3. Read top-down: options
-> sizes -> init -> corrupt -> sample -> loss. The generator, a masked language
model, fills the masks with samples; the discriminator tells for every token
whether it is the original one. They share their embeddings. The discriminator
is "encoder", which is kept and fine-tuned; generator and mlm_head fill masks.

Differences from google-research/electra: positions are drawn without
replacement, where theirs may repeat; rows are cut in two segments at any end of
a sentence, where theirs are cut about in half, and a tenth not at all.
"""

import dataclasses

import jax
import jax.numpy as jnp
from flax import linen as nn

from maskedlm.core.errors import ConfigError
from maskedlm.core.options import check, option
from maskedlm.core.task import Batch, Key, Metrics, Params, Task
from maskedlm.data.batches import batch_costs, batching, pair_rows
from maskedlm.modeling import flops, losses, masked_lm
from maskedlm.modeling.architecture import encoder_config
from maskedlm.modeling.encoder import Encoder, EncoderConfig
from maskedlm.modeling.layers import ACTIVATIONS, Dense
from maskedlm.modeling.masking import masking, tokens
from maskedlm.modeling.masking.options import MaskOptions, single_tokens


@dataclasses.dataclass(frozen=True)
class Options(MaskOptions):
  """config.objective of electra."""

  mask_share: float = option(
    0.85, "Share of the chosen tokens that [MASK] replaces.", frozen=True
  )
  random_share: float = option(
    0.0,
    "Share that a random token replaces; the rest is kept as it is.",
    frozen=True,
  )
  generator_size: float = option(
    0.25,
    "The generator's share of the discriminator's width, heads and MLP.",
    frozen=True,
  )
  generator_layers: float = option(
    1.0, "The generator's share of the discriminator's layers.", frozen=True
  )
  temperature: float = option(
    1.0,
    "The generator's logits are divided by it before a token is sampled.",
    above=0,
    frozen=True,
  )
  discriminator_weight: float = option(
    50.0,
    "Weight of the discriminator's loss beside the generator's.",
    low=0,
    frozen=True,
  )
  short_share: float = option(
    0.05,
    "Share of the rows that are cut to a random shorter length.",
    low=0,
    high=1,
    frozen=True,
  )
  pack: bool | None = option(
    None,
    "Put several short rows in one row, each attending only to itself; None: "
    "where that saves a tenth of the rows (auto_pack.py).",
    frozen=True,
  )


def make_task(config, corpus, shard: tuple[int, int], options: Options) -> Task:
  """Returns the Task of pretraining as in ELECTRA (arguments: __init__.py).

  config.model is the discriminator.
  """
  check("objective", Options, options)
  lengths = batching.row_lengths(config.data)
  cfg = encoder_config(config.model, corpus.tokenizer.vocab_size, max(lengths))
  # How its classifiers read [CLS], here and in transformers.
  cfg = dataclasses.replace(cfg, pooler="gelu")
  small = generator_config(
    cfg, size=options.generator_size, layers=options.generator_layers
  )
  hidden = masking.make_masking(
    corpus.tokenizer,
    lengths,
    single_tokens(options),
    token_counts=corpus.token_counts,
  )
  rows = pair_rows.adjacent_batches(
    config, corpus, shard, short_share=options.short_share, pack=options.pack
  )

  def corrupt(batch: Batch, key: Key) -> Batch:
    hide_key, sample_key = jax.random.split(key)
    batch = hidden.corrupt(batch, hide_key)
    # A key for each row: what is sampled doesn't depend on the microbatches.
    shape = (len(batch["input_ids"]), 2)
    bits = jax.random.bits(sample_key, shape, jnp.uint32)
    return {**batch, "sample_bits": bits}

  def row_flops(length: int, attended: float | None) -> float:
    P = hidden.num_predictions[length]
    generator = flops.train_flops(
      small, length, num_predictions=P, attended=attended
    )
    encoder = flops.train_flops(
      cfg, length, num_predictions=0, attended=attended
    )
    head = 6.0 * length * (cfg.width**2 + cfg.width)
    return generator + encoder + head

  return Task(
    **rows._asdict(),
    init=lambda key: init(cfg, small, key),
    corrupt=corrupt,
    loss=lambda *args: loss(
      cfg,
      small,
      options.temperature,
      options.discriminator_weight,
      *args,
    ),
    flops=batch_costs.step_cost(
      row_flops, rows.batch_at, config, packed=options.pack
    ),
    describe={
      "objective": "electra",
      "encoder": dataclasses.asdict(cfg),
      "generator": dataclasses.asdict(small),
    },
  )


def generator_config(
  cfg: EncoderConfig, *, size: float, layers: float
) -> EncoderConfig:
  """Returns the generator: smaller, with heads of the same size where one fits.

  Raises:
    ConfigError: a share that is not positive, or a width that its heads do
      not divide.
  """
  for name, share in (("generator_size", size), ("generator_layers", layers)):
    if not 0 < share <= 1:
      raise ConfigError(
        f"objective.{name}={share} must be above 0 and at most 1: the "
        "generator's share of the discriminator's."
      )
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
  return dataclasses.replace(
    cfg,
    num_layers=max(1, round(layers * cfg.num_layers)),
    width=width,
    num_heads=num_heads,
    mlp_width=max(1, round(size * cfg.mlp_width)),
    embedding_width=cfg.embedding_size,
  )


class DiscriminatorHead(nn.Module):
  """The head that tells original tokens (0) from the generator's (1)."""

  cfg: EncoderConfig

  @nn.compact
  def __call__(self, x):
    """Maps x [B, L, D] to float32 logits [B, L]."""
    cfg = self.cfg
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
  ids, vectors = jnp.zeros((1, 1), jnp.int32), jnp.zeros((1, 1, cfg.width))
  encoder = Encoder(cfg).init(encoder_key, ids, ids, ids, train=False)
  head = DiscriminatorHead(cfg).init(head_key, vectors)
  made = masked_lm.init(small, generator_key, mlm_key)
  del made["encoder"]["embeddings"]
  return {
    "encoder": encoder["params"],
    "discriminator_head": head["params"],
    "generator": made["encoder"],
    "mlm_head": made["mlm_head"],
  }


def loss(
  cfg: EncoderConfig,
  small: EncoderConfig,
  temperature: float,
  discriminator_weight: float,
  params: Params,
  batch: Batch,
  key: Key,
  train: bool,
) -> tuple[Metrics, Metrics]:
  """Returns (terms, metrics) of a corrupted batch; see Task.loss.

  The terms are "mlm", the generator's mean over the masked tokens, and
  "discriminator", the weighted mean over all real tokens, [CLS] and [SEP]
  among them.
  """
  generator_key, key = jax.random.split(key) if train else (None, None)
  generator = masked_lm.with_generator(params)
  hidden = masked_lm.encode(small, generator, batch, generator_key, train)
  logits = masked_lm.predict(small, generator, batch, hidden)
  scores = losses.loss_and_correct(logits, batch["masked_labels"])
  terms, metrics = masked_lm.terms_and_metrics(scores, batch)

  replaced, labels = replace(batch, sample(logits, batch, temperature))
  hidden = masked_lm.encode(cfg, params, replaced, key, train)
  scores = DiscriminatorHead(cfg).apply(
    {"params": params["discriminator_head"]}, hidden
  )
  real = (batch["segment_ids"] > 0) * batch["example_weights"][:, None]
  nats = jax.nn.softplus(scores) - labels * scores  # Of a sigmoid.
  found = real * (scores > 0)
  right, hits = found * labels, real * (found == labels)
  total, count, right, hits, found, fakes = map(
    losses.sum_rows, (real * nats, real, right, hits, found, real * labels)
  )
  terms["discriminator"] = discriminator_weight * total, count
  metrics |= {
    "discriminator_loss": (total, count),
    "discriminator_accuracy": (hits, count),
    "discriminator_precision": (right, found),
    "discriminator_recall": (right, fakes),
    "replaced_share": (fakes, count),
  }
  return terms, metrics


def sample(logits, batch: Batch, temperature: float):
  """Samples a token for each slot: logits [B, P, V] -> ids [B, P].

  By adding Gumbel noise and taking the largest, as exact as drawing from
  softmax(logits / temperature). An argmax passes no gradient on.
  """

  def of_row(bits, logits):
    key = jax.random.wrap_key_data(bits, impl="threefry2x32")
    noise = jax.random.gumbel(key, logits.shape)
    return jnp.argmax(logits / temperature + noise, axis=-1)

  return jax.vmap(of_row)(batch["sample_bits"], logits)


def replace(batch: Batch, sampled):
  """Returns the batch with the sampled tokens [B, P] in it, and labels [B, L].

  A label is 1 where a token is another than the original one: samples that
  are right count as original.
  """
  slots = batch["masked_positions"], batch["masked_weights"]
  ids = batch["input_ids"]
  original = tokens.write_at(ids, *slots, batch["masked_labels"])
  replaced = tokens.write_at(ids, *slots, sampled)
  labels = (replaced != original).astype(jnp.float32)
  return {**batch, "input_ids": replaced}, labels
