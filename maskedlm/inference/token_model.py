"""Opens pretrained models that predict tokens of texts."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax

from maskedlm.core.errors import ConfigError
from maskedlm.core.task import Params
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune import predict
from maskedlm.inference.batch_tokens import BATCH_TOKENS
from maskedlm.modeling import masked_lm
from maskedlm.modeling.architecture import EncoderConfig, restored
from maskedlm.training.checkpoints import load

MAX_LENGTH = 512  # Of a row, unless the model was trained on longer ones.


class TokenModel(NamedTuple):
  """A pretrained model that predicts tokens of texts."""

  path: str  # Where it is, for errors.
  tokenizer: Tokenizer
  params: Params  # {"encoder": ..., "mlm_head": ..., ...}, on the device.
  cfg: EncoderConfig  # `reads`: what a prediction comes from.
  length: int  # The most tokens in a row.
  batch_tokens: int = BATCH_TOKENS  # About how many positions a batch has.
  sbo_at_edges: bool = False  # See objectives/spanbert.py.


def make_token_model(
  opened: load.LoadedCheckpoint,
  path: str | pathlib.Path,
  *,
  length: int = 0,
  batch_tokens: int = BATCH_TOKENS,
  causal: bool = False,
) -> TokenModel:
  """Returns the TokenModel of a loaded checkpoint (ELECTRA: the generator).

  Rows have at most `length` tokens, or row_length's if it is 0, and a batch
  about batch_tokens positions. With `causal`, one that was trained as both
  (gptbert.py) is read as a causal model.

  Raises:
    ConfigError: the model has no head that predicts tokens, or was not trained
      as both, or the length is out of range.
  """
  params, cfg = token_model(opened.params, opened.meta["task"], path)
  if causal and not cfg.shifted:
    raise ConfigError(
      f"--causal: {path} was not trained as a masked and a causal model "
      "(objective.name=gptbert): leave it out."
    )
  if causal:
    cfg = dataclasses.replace(cfg, causal=True, shifted=False)
  return TokenModel(
    str(path),
    opened.tokenizer,
    jax.device_put(params),
    cfg,
    row_length(opened, cfg, length),
    batch_tokens,
    opened.meta["task"].get("sbo_at_edges", False),
  )


def token_model(params, task, path) -> tuple[Params, EncoderConfig]:
  """Returns (params, config) of the encoder and heads that predict tokens.

  Of an ELECTRA, they are the generator's; two language models have "bilm_head".

  The task is meta["task"] of the checkpoint at `path`.

  Raises:
    ConfigError: there is no head that predicts tokens.
  """
  if "bilm_head" in params:
    return params, restored(task["encoder"])
  if "mlm_head" not in params:
    raise ConfigError(
      f"{path} has no MLM head (it has {', '.join(params)}): it can't fill "
      f"masks until one is trained, by {how_to_train_a_head(path)}."
    )
  if "generator" in params:
    generator = restored(task["generator"])
    return masked_lm.with_generator(params), generator
  names = {"encoder", "mlm_head", "sbo_head"} & params.keys()
  parts = {name: params[name] for name in names}
  return parts, restored(task["encoder"])


def check_reads_masks(path, cfg: EncoderConfig) -> None:
  """Raises ConfigError if a model predicts a token from one side."""
  if cfg.reads != "both":
    raise ConfigError(
      f"{path} predicts a token from one side, and reads no masks: `maskedlm "
      "score` has the probabilities of its tokens."
    )


def how_to_train_a_head(path) -> str:
  """Returns the command that gives the model at `path` an MLM head."""
  return (
    "`maskedlm pretrain --config=configs/continued.py:laptop "
    f"--config.init_from={path}` (on a GPU continued.py:gpu)"
  )


def row_length(
  opened: load.LoadedCheckpoint, cfg: EncoderConfig, length: int
) -> int:
  """Returns the most tokens of a row of a pretrained model.

  Args:
    opened: the checkpoint.
    cfg: the architecture of the encoder that reads the rows.
    length: 0 = as in training, or, of an imported model, its positions but at
      most MAX_LENGTH.

  Raises:
    ConfigError: the length is not 0, or 8 to cfg.max_positions.
  """
  predict.check_length(length, cfg.max_positions)
  config = training_config(opened)
  first = config.get("data", {}).get("length", MAX_LENGTH)
  later = [x.get("data.length", 0) for x in config.get("phases", ())]
  return length or min(max([first, *later]), cfg.max_positions)


def training_config(
  opened: load.LoadedCheckpoint | load.Described,
) -> Mapping[str, Any]:
  """Returns the config of the run that trained a model; {} if imported."""
  config = opened.meta.get("identity", {}).get("config", {})
  return config.get("run", config)
