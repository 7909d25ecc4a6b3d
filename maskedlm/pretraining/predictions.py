"""Checks, before the first step, that a run has something to predict.

Text in a script that the tokenizer doesn't know is [UNK] throughout, and words
longer than the masking's budget are never chosen. Without a prediction the loss
is 0 and nothing is learnt, and no step fails.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from maskedlm.core.errors import ConfigError, CorpusError
from maskedlm.core.task import Task
from maskedlm.data.corpus.store import Corpus
from maskedlm.runtime import multihost

TOKENS = 1 << 16  # Of a split, enough to measure a share of 0.1%.
BATCHES = 8  # At most.
FEW = 0.1  # Of the share that the options ask for: a warning.


class Counts(NamedTuple):
  """Tokens and predictions of some rows."""

  tokens: int  # Not padding.
  predicted: int  # Special tokens are none, even if they are labels.


def check_corpus(corpus: Corpus) -> None:
  """Raises CorpusError if the train split holds special tokens only."""
  counts, tokenizer = corpus.token_counts, corpus.tokenizer
  if not np.delete(counts, tokenizer.special_ids).any():
    raise CorpusError(
      f"{corpus.path}: there is nothing to predict, as all of its "
      f"{counts.sum():,} tokens for training are special ones, most of them "
      f"{tokenizer.tokens(int(counts.argmax()))}. {_TOKENIZER}"
    )


def mask_rate(objective: Any) -> float:
  """Returns the share of tokens that an objective predicts, 1 without masks."""
  return getattr(objective, "mask_rate", 1.0)


def check_rows(
  objective: Any,
  task: Task,
  corpus: Corpus,
  *,
  seed: int,
  log: Callable[[str], None],
) -> None:
  """Measures the share of tokens that is predicted in the first rows.

  It logs a line for a split in which much less is predicted than the options,
  config.objective, ask for. The seed is that of the masks.

  Raises:
    ConfigError: nothing is predicted in training.
  """
  rate = mask_rate(objective)
  heldout = task.measured[0][0], task.num_heldout_batches
  for split, (corrupt, num_batches), wanted in (
    ("train", (task.corrupt, BATCHES), rate),
    ("heldout", heldout, getattr(objective, "heldout_mask_rate", 0) or rate),
  ):
    if not num_batches:
      continue
    counts = count_predictions(
      task,
      corpus,
      split,
      jax.jit(corrupt),
      num_batches=min(num_batches, BATCHES),
      seed=seed,
    )
    line = (
      f"{split}: {counts.predicted:,} of {counts.tokens:,} tokens are "
      f"predicted, and {wanted:.3g} of them should be"
    )
    if not counts.predicted and split == "train":
      raise ConfigError(f"{line}: nothing can be learnt. {_advice(objective)}")
    if counts.predicted < FEW * wanted * counts.tokens:
      log(f"warning: {line}. {_advice(objective)}")


def count_predictions(
  task: Task,
  corpus: Corpus,
  split: str,
  corrupt: Callable,
  *,
  num_batches: int,
  seed: int,
) -> Counts:
  """Returns the Counts of the first batches of a split, of all hosts' rows.

  `corrupt` is Task.corrupt of the split, jitted. It reads fewer than
  `num_batches` if they have TOKENS tokens.
  """
  special = corpus.tokenizer.special_ids
  total = Counts(0, 0)
  for i in range(num_batches):
    batch = task.batch_at(split, i)
    masked = jax.device_get(corrupt(batch, jax.random.key(seed + i)))
    name = "masked" if "masked_weights" in masked else "next"
    weights, labels = masked[f"{name}_weights"], masked[f"{name}_labels"]
    mine = (
      np.sum(batch["segment_ids"] > 0),
      np.sum((weights > 0) & ~np.isin(labels, special)),
    )
    added = np.sum(multihost.exchange([int(n) for n in mine]), axis=0)
    total = Counts(*(int(n) for n in np.add(total, added)))
    if total.tokens >= TOKENS:
      break
  return total


_TOKENIZER = (
  "The tokenizer may not know the text: leave out tokenizer.path to train one "
  "on it, or give another."
)


def _advice(objective: Any) -> str:
  """Returns why few tokens are predicted, and what to change."""
  choose = getattr(objective, "choose", "")
  if objective.name != "spanbert" and choose in ("", "tokens"):
    return _TOKENIZER
  remedy = "Set objective.choose=tokens" if choose else "Raise mask_rate"
  return (
    "Words with more tokens than mask_rate allows in a row are never chosen, "
    f"nor are unknown tokens. {remedy}, or use a tokenizer that knows the text."
  )
