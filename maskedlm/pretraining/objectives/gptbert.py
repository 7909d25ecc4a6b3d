"""GPT-BERT's objective: some rows are masked, the others causal; one head.

Paper: Charpentier and Samuel, arXiv:2410.24159. Read top-down: options ->
rows -> targets -> loss. A masked token is predicted at the position before it
("masked next-token prediction"), where a causal row predicts it too. So one
model is masked or causal, as it is asked. The loss is masked_share x the mean
over masked tokens + (1 - masked_share) x that over the next tokens of causal
rows.
"""

import dataclasses
import functools
from collections.abc import Mapping

import jax
import jax.numpy as jnp

from maskedlm.core.errors import ConfigError
from maskedlm.core.options import copy_option, frozen_option
from maskedlm.core.task import Batch, Key, Metrics, Params, Task
from maskedlm.data.batches import text_rows
from maskedlm.modeling import flops, masked_lm
from maskedlm.modeling.architecture import attention_case
from maskedlm.modeling.attention import dispatch
from maskedlm.modeling.encoder import EncoderConfig
from maskedlm.modeling.masking import masking, tokens
from maskedlm.modeling.masking.options import CorruptionOptions
from maskedlm.pretraining import frame
from maskedlm.pretraining.objectives import causal, roberta


@dataclasses.dataclass(frozen=True)
class Options(CorruptionOptions):
  """Options of config.objective for gptbert."""

  masked_share: float = frozen_option(
    15 / 16,
    "Share of the rows that are masked, and read both sides; the others are "
    "causal. It is also the weight of the loss of masked tokens.",
    low=0,
    high=1,
  )
  isolate_documents: bool = copy_option(causal.Options, "isolate_documents")


def make_task(config, corpus, shard: tuple[int, int], options: Options) -> Task:
  """Returns the Task of both objectives; arguments as in __init__.py."""
  if options.corruption not in ("mask", "substitute"):
    raise ConfigError(
      f"objective.corruption={options.corruption!r} moves tokens, and gptbert "
      "predicts them at the position before them: set 'mask' or 'substitute'."
    )
  length, share = config.data.length, options.masked_share
  cfg = frame.make_encoder_config(config, corpus)
  cfg = dataclasses.replace(cfg, shifted=True)
  case = attention_case(cfg, length, platform="")._replace(mixed=True)
  dispatch.check_supported(cfg.attention, case)
  masks, heldout = masking.train_and_heldout(
    corpus.tokenizer, length, options, token_counts=corpus.token_counts
  )
  isolated = options.isolate_documents
  kinds = {"mlm": share, "lm": 1 - share}
  one_way = dataclasses.replace(cfg, causal=True)

  def row_flops(attended: float | None) -> float:
    costs = (
      flops.train_flops(c, length, num_predictions=length, attended=attended)
      for c in (cfg, one_way)
    )
    return sum(x * y for x, y in zip(costs, kinds.values(), strict=True))

  return frame.make_task(
    "gptbert",
    config,
    cfg,
    text_rows.full_sentence_batches(
      config, corpus, shard, isolate_documents=isolated
    ),
    masks._replace(corrupt=functools.partial(corrupt, masks.corrupt, share)),
    init=functools.partial(roberta.init, cfg),
    loss=functools.partial(loss, cfg, kinds),
    packed=isolated,
    cost=row_flops,
  )._replace(
    heldout=tuple(
      (
        functools.partial(corrupt, heldout.corrupt, whole),
        functools.partial(loss, cfg, {name: kinds[name]}),
      )
      for name, whole in (("mlm", 1.0), ("lm", 0.0))  # Each row in both ways.
    )
  )


def masked_rows(key: Key, count: int, share: float):
  """Returns which of `count` rows are masked, [count] bool.

  They are spread evenly, and as many as the share says, rounded up or down at
  random: over the steps, each row is masked with that probability.

  >>> [masked_rows(jax.random.key(k), 8, 0.75).sum().item() for k in range(3)]
  [6, 6, 6]
  """
  bounds = jnp.arange(count + 1) * share + jax.random.uniform(key)
  return jnp.diff(jnp.floor(bounds)) > 0


def corrupt(mask, share: float, batch: Batch, key: Key) -> Batch:
  """Returns a batch of which a share is masked, the rest causal, with targets.

  `mask` is Masking.corrupt; the key decides which rows, and which tokens.
  """
  rows_key, mask_key = jax.random.split(key)
  is_masked = masked_rows(rows_key, len(batch["input_ids"]), share)
  return targets(batch, mask(batch, mask_key), is_masked)


def targets(batch: Batch, masked: Batch, is_masked) -> Batch:
  """Returns the batch with some of its rows masked, and with all rows' labels.

  `masked` is the batch with every row masked; is_masked [B] are the rows that
  are taken from it.

  Returns:
    The batch with causal_rows [B] and next_labels and next_weights [B, L] as
    causal.targets makes them; in a masked row, only masked tokens count.
  """
  labelled = causal.targets(batch, "left_to_right")
  hidden = tokens.write_at(
    jnp.zeros(batch["input_ids"].shape),
    masked["masked_positions"],
    masked["masked_weights"],
    masked["masked_weights"],
  )
  chosen, counts = is_masked[:, None], causal.NEXT["left_to_right"](hidden)
  return {
    **labelled,
    "input_ids": jnp.where(chosen, masked["input_ids"], batch["input_ids"]),
    "next_weights": labelled["next_weights"] * jnp.where(chosen, counts, 1.0),
    "causal_rows": ~is_masked,
  }


def loss(
  cfg: EncoderConfig,
  kinds: Mapping[str, float],
  params: Params,
  batch: Batch,
  key: Key,
  train: bool,
) -> tuple[Metrics, Metrics]:
  """Returns (terms, metrics) of a batch with its targets; see Task.loss.

  `kinds` are the weights of the losses of masked rows, "mlm", and of causal
  ones, "lm", or of one of them.
  """
  hidden = masked_lm.encode(cfg, params, batch, key, train)
  sums = causal.row_sums(cfg, params, batch, hidden)
  terms, metrics = {}, {}
  for name, weight in kinds.items():
    rows = batch["causal_rows"] == (name == "lm")
    loss, correct, count = (x * rows for x in sums)
    terms[name] = weight * loss, count
    metrics[f"{name}_loss"] = loss, count
    metrics[f"{name}_accuracy"] = correct, count
  return terms, metrics
