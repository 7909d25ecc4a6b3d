"""Predicts whether a text follows another, by the pretrained NSP head.

For a model trained with sentence-order prediction (ALBERT) it is whether the
two are in their order.
"""

import functools
from collections.abc import Callable, Iterable, Sequence

import jax
import numpy as np

from maskedlm.core.errors import ConfigError
from maskedlm.data.batches import text_pairs
from maskedlm.finetune.common import cut_texts
from maskedlm.finetune.common.text_pairs import row_maker
from maskedlm.inference import rows, token_model
from maskedlm.inference.batch_tokens import BATCH_TOKENS
from maskedlm.inference.rows import Row
from maskedlm.inference.token_model import TokenModel
from maskedlm.modeling import masked_lm
from maskedlm.modeling.architecture import EncoderConfig, restored
from maskedlm.modeling.heads import nsp_logits
from maskedlm.runtime import console
from maskedlm.training.checkpoints import load


def make_pair_scorer(
  opened: load.LoadedCheckpoint,
  path,
  *,
  length: int = 0,
  batch_tokens: int = BATCH_TOKENS,
) -> TokenModel:
  """Returns a checkpoint's encoder and NSP head; errors name `path`.

  Arguments as for token_model.make_token_model.

  Raises:
    ConfigError: the model has no NSP head, or the length is out of range.
  """
  if not has_nsp_head(opened):
    raise ConfigError(
      f"{path} has no NSP head (it has {', '.join(opened.params)}): it can't "
      "tell whether a text follows another; a model of the objective mlm_nsp "
      "can, and an imported BERT."
    )
  cfg: EncoderConfig = restored(opened.meta["task"]["encoder"])
  needed = {"encoder", "pooler", "nsp_head"} & opened.params.keys()
  params = {name: opened.params[name] for name in needed}
  return TokenModel(
    str(path),
    opened.tokenizer,
    jax.device_put(params),
    cfg,
    token_model.row_length(opened, cfg, length),
    batch_tokens,
  )


@functools.lru_cache(maxsize=8)  # So that a second call compiles nothing.
def make_logits(cfg: EncoderConfig) -> Callable:
  """Returns a jitted (params, batch of rows.pad_rows) -> logits [B, 2].

  The first is that of "B follows A".
  """

  @jax.jit
  def logits(params, batch):
    hidden = masked_lm.encode(cfg, params, batch, None, False)
    return nsp_logits(cfg, params, hidden)

  return logits


def has_nsp_head(opened: load.LoadedCheckpoint) -> bool:
  """Returns whether a checkpoint can score pairs of texts."""
  return "nsp_head" in opened.params


def next_sentence(
  model: TokenModel,
  pairs: Iterable[tuple[str, str]],
  *,
  cut: list[int] | None = None,
) -> np.ndarray:
  """Returns the probability that B follows A for each of n pairs (A, B): [n].

  Args:
    model: see make_pair_scorer.
    pairs: any number, of texts of any length; of a pair longer than a row, the
      longer text loses its last tokens.
    cut: the number of tokens of each pair that was cut is appended to it, for
      log_cut.

  >>> model.next_sentence([("the sea", "is blue"), ("a", "b")]).shape
  (2,)
  """
  pair_rows = [
    pair_row(model, *(model.tokenizer.encode(text).ids for text in pair))
    for pair in pairs
  ]
  if cut is not None:
    cut += text_pairs.cut_sizes([row] for row in pair_rows)
  logits = make_logits(model.cfg)
  probabilities = np.zeros(len(pair_rows), np.float32)
  for i, p in rows.compute_padded(
    lambda batch: jax.nn.softmax(logits(model.params, batch))[:, 0],
    [Row(row.input_ids, types=row.token_type_ids) for row in pair_rows],
    length=model.length,
    batch_tokens=model.batch_tokens,
    pad=model.tokenizer.special.pad,
  ):
    probabilities[i] = p
  return probabilities


def pair_row(model: TokenModel, a_ids, b_ids) -> text_pairs.PairRow:
  """Returns the row of two texts, given their ids without special tokens."""
  return row_maker(model.tokenizer, model.cfg, model.length)(a_ids, b_ids)


def log_cut(model: TokenModel, cut: Sequence[int], *, option: str) -> None:
  """Logs how many pairs next_sentence has cut, if any.

  The option sets the length, such as "--length={}".
  """
  if cut:
    console.log(
      cut_texts.cut_note(
        cut,
        length=model.length,
        positions=model.cfg.max_positions,
        option=option,
      )
    )
