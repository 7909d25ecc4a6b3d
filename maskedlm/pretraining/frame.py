"""The Task of an objective: what all of them have in common."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from maskedlm.core.task import Batch, Key, Metrics, Params, Task
from maskedlm.data.batches import batch_costs
from maskedlm.data.batches.batching import Batches
from maskedlm.modeling import flops
from maskedlm.modeling.architecture import EncoderConfig, encoder_config
from maskedlm.modeling.masking.masking import Masking


def make_encoder_config(config, corpus) -> EncoderConfig:
  """Returns the EncoderConfig of config.model for masked rows of a corpus."""
  tokenizer = corpus.tokenizer
  cfg = encoder_config(config.model, tokenizer.vocab_size, config.data.length)
  if not cfg.token_dropout:
    return cfg
  return dataclasses.replace(cfg, mask_id=tokenizer.special.mask)


def make_task(
  name: str,
  config,
  cfg: EncoderConfig,
  rows: Batches,
  masks: Masking,
  *,
  init: Callable[[Key], Params],
  loss: Callable[[Params, Batch, Key, bool], tuple[Metrics, Metrics]],
  heldout: Masking | None = None,
  packed: bool | None = False,
  cost: Callable[[float | None], float] | None = None,
  also: Mapping[str, Any] | None = None,
) -> Task:
  """Returns the Task of an objective.

  Args:
    name: the objective's, for checkpoints.
    config, cfg: the whole config, and the encoder's.
    rows, masks: the batches of a corpus, and what makes their targets.
    init, loss: as in Task.
    heldout: as `masks`, for held-out batches if it is another.
    packed: whether a row has several texts that don't attend to each other.
    cost: pairs of positions in a row that attend to each other, or None for
      all -> the row's FLOPs; by default of the encoder and its predictions.
    also: what else a checkpoint says about the model.
  """
  length = config.data.length

  def encoder_cost(attended: float | None) -> float:
    return flops.train_flops(
      cfg, length, num_predictions=masks.num_predictions, attended=attended
    )

  return Task(
    **rows._asdict(),
    init=init,
    corrupt=masks.corrupt,
    heldout=((heldout.corrupt, loss),) if heldout else (),
    loss=loss,
    flops=batch_costs.step_cost(
      cost or encoder_cost,
      rows.batch_at,
      config.data.batch_size,
      packed=bool(packed),
    ),
    describe={"objective": name, "encoder": dataclasses.asdict(cfg)}
    | dict(also or {}),
  )
