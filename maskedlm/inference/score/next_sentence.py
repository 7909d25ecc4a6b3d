"""Predicts whether a text follows another, by the pretrained NSP head.

For a model trained with sentence-order prediction (ALBERT) it is whether the
two are in their order.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import jax
import numpy as np

from maskedlm.core.errors import ConfigError
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.common import batching, cut_texts, text_pairs
from maskedlm.finetune.contract import Rows
from maskedlm.inference.batch_tokens import BATCH_TOKENS
from maskedlm.inference.pretrained import evaluate
from maskedlm.inference.vectors.rows import bucket_lengths, plan_batches
from maskedlm.modeling.architecture import EncoderConfig, restored
from maskedlm.runtime import console
from maskedlm.training.checkpoints import load


class PairScorer(NamedTuple):
  """A pretrained checkpoint that is ready to score pairs of texts."""

  tokenizer: Tokenizer
  cfg: EncoderConfig
  length: int  # The most tokens in a row.
  # Batch of input_ids, token_type_ids, segment_ids [B, L] -> P(follows), [B].
  probabilities: Callable


def make_pair_scorer(
  opened: load.LoadedCheckpoint, path, *, length: int = 0
) -> PairScorer:
  """Returns the PairScorer of a loaded checkpoint; errors name `path`.

  Args:
    opened: the checkpoint.
    path: where it is.
    length: the most tokens in a row; 0 = see evaluate.row_length.

  Raises:
    ConfigError: the model has no NSP head, or the length is out of range.
  """
  logits = evaluate.make_pair_logits(opened)
  if logits is None:
    raise ConfigError(
      f"{path} has no NSP head (it has {', '.join(opened.params)}): it can't "
      "tell whether a text follows another; a model of the objective mlm_nsp "
      "can, and an imported BERT."
    )
  cfg = restored(opened.meta["task"]["encoder"])
  return PairScorer(
    tokenizer=opened.tokenizer,
    cfg=cfg,
    length=evaluate.row_length(opened, cfg, length),
    # Label 0: B follows A.
    probabilities=lambda batch: jax.nn.softmax(logits(batch))[:, 0],
  )


def next_sentence(
  model: PairScorer,
  pairs: Iterable[tuple[str, str]],
  *,
  batch_tokens: int = BATCH_TOKENS,
  cut: list[int] | None = None,
) -> np.ndarray:
  """Returns the probability that B follows A for each pair (A, B).

  Args:
    model: see make_pair_scorer.
    pairs: any number, of texts of any length; of a pair longer than a row, the
      longer text loses its last tokens.
    batch_tokens: about how many positions a batch has.
    cut: the number of tokens of each pair that was cut is appended to it, for
      log_cut.

  Returns:
    [n] float32.
  """
  rows = [
    text_pairs.pair_row(
      model.tokenizer,
      *(model.tokenizer.encode(text).ids for text in pair),
      model.length,
      separators=model.cfg.pair_separators,
      num_types=model.cfg.num_types,
    )
    for pair in pairs
  ]
  if cut is not None:
    cut += text_pairs.cut_sizes([row] for row in rows)
  arrays = Rows(
    tokens={
      name: [getattr(row, name) for row in rows]
      for name in ("input_ids", "token_type_ids")
    },
    values={},
    example=np.arange(len(rows)),
  )
  found = np.zeros(len(rows), np.float32)
  lengths = [len(row.input_ids) for row in rows]
  buckets = bucket_lengths(model.length)
  for which, L in plan_batches(lengths, buckets, batch_tokens=batch_tokens):
    pad = model.tokenizer.special.pad
    batch = batching.gather_rows(arrays, which, L, pad)
    made = jax.device_get(model.probabilities(batch))
    found[which[which >= 0]] = made[which >= 0]
  return found


def log_cut(model: PairScorer, cut: Sequence[int], *, option: str) -> None:
  """Logs how many pairs were cut, if any.

  Args:
    model: the scorer.
    cut: filled by next_sentence.
    option: the option that sets the length, such as "--length={}".
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
