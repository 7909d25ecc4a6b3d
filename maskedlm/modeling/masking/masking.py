"""Builds one function that masks a batch from an objective's options.

The option `choose` selects which tokens are chosen (tokens.py, spans.py), and
`corruption` how they are changed (tokens.py, edits.py), as the tables and
examples in docs/guides/pretrain/masking.md show.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.core.errors import ConfigError
from maskedlm.core.options import check_options
from maskedlm.core.task import Batch, Key
from maskedlm.modeling.masking import edits, spans
from maskedlm.modeling.masking.options import CorruptionOptions
from maskedlm.modeling.masking.tokens import (
  Array,
  TokenTable,
  bert_budget,
  choose_tokens,
  count_predictions,
  count_to_mask,
  maskable,
  replace_tokens,
  token_table,
)

_SPAN_P = 0.2  # SpanBERT's: a span ends after each word with this probability.
# Corruption -> (P, the tokens chosen in a row -> predictions in that row).
_PREDICTIONS = {
  "mask": lambda P: P,
  "substitute": lambda P: P,
  "shuffle": lambda P: P - P % 3,
  "delete": lambda P: 2 * P,
  "insert": lambda P: 2 * P,
}


class Masking(NamedTuple):
  """A function that masks batches, and the number of its predictions."""

  num_predictions: int  # In a masked row, P.
  # Task.corrupt: returns the batch with its tokens corrupted, and with
  # masked_positions and masked_labels (int32) and masked_weights (float32),
  # [B, num_predictions] each. A third argument [V] weighs the types of tokens
  # (adaptive.py).
  corrupt: Callable[..., Batch]


class _Text(NamedTuple):
  """A batch, which of its tokens may be chosen, and how many to choose."""

  batch: Batch
  candidates: Array  # [B, L] bool.
  num_to_mask: Array  # [B] int32.
  num_predictions: int  # P, the maximum of num_to_mask.
  weights: Array | None  # [B, L], with which single tokens are drawn.


def make_masking(
  tokenizer,
  length: int,
  options: CorruptionOptions,
  *,
  token_counts: Array,
  budget: Callable[[float, int], int] = bert_budget,
) -> Masking:
  """Returns the masking that the options describe.

  Args:
    tokenizer: only its vocab_size, special, special_ids, overlap and, unless
      options.choose is "tokens", starts_word are read.
    length: tokens in a row, L.
    options: the masking options of config.objective.
    token_counts: [V], of the corpus.
    budget: bert_budget, or span_budget, which counts no special tokens.

  Raises:
    ConfigError: an option is wrong, or conflicts with another.

  A row of 10 tokens, all of a vocabulary of 20 that has two special ones. Of 8
  candidates 30% of 10 are chosen, and all of them become [MASK]:

  >>> from types import SimpleNamespace
  >>> special = SimpleNamespace(cls=0, mask=1)
  >>> tokenizer = SimpleNamespace(
  ...   vocab_size=20, special_ids=[0, 1], special=special, overlap=1
  ... )
  >>> options = CorruptionOptions(0.3, mask_share=1.0, random_share=0.0)
  >>> masking = make_masking(tokenizer, 10, options, token_counts=np.ones(20))
  >>> row = {
  ...   "input_ids": jnp.array([[0, *range(11, 19), 0]]),
  ...   "segment_ids": jnp.ones([1, 10], jnp.int32),
  ...   "example_weights": jnp.ones(1),
  ... }
  >>> masked = masking.corrupt(row, jax.random.key(0))
  >>> masking.num_predictions, int(jnp.sum(masked["input_ids"] == 1))
  (3, 3)
  """
  check_options("objective", CorruptionOptions, options)
  num_chosen, count = _counting(options, length, tokenizer.overlap, budget)
  _check_combination(options, length, num_chosen)
  is_special = np.zeros(tokenizer.vocab_size, bool)
  is_special[np.asarray(tokenizer.special_ids)] = True
  counts = np.asarray(token_counts)
  if options.random_tokens == "uniform":
    counts = np.ones_like(counts)
  mask_text = _corruption_function(
    options,
    _choosing_function(options, tokenizer, is_special),
    tokenizer,
    token_table(counts * ~is_special),
  )

  def corrupt(batch: Batch, key: Key, type_weights=None) -> Batch:
    input_ids, segment_ids = batch["input_ids"], batch["segment_ids"]
    candidates = maskable(input_ids, segment_ids, is_special)
    num_to_mask = count(segment_ids, candidates)
    weights = None if type_weights is None else type_weights[input_ids]
    text = _Text(batch, candidates, num_to_mask, num_chosen, weights)
    masked, positions, labels, weights = mask_text(key, text)
    return {
      **masked,
      "masked_positions": positions,
      "masked_labels": labels,
      # Filler rows of the held-out set have weight 0.
      "masked_weights": weights * batch["example_weights"][:, None],
    }

  predictions = _PREDICTIONS[options.corruption]
  return Masking(predictions(num_chosen), corrupt)


def _counting(options: CorruptionOptions, length: int, overlap: int, budget):
  """Returns (P, a function of [B, L] arrays that returns num_to_mask [B])."""
  counts_special = budget is bert_budget
  least = min(overlap, length) if counts_special else 0
  num_chosen = count_predictions(
    options.mask_rate,
    length if counts_special else length - 2,
    max_predictions=options.max_predictions,
    budget=budget,
  )
  num_chosen = max(num_chosen, least)

  def count(segment_ids: Array, candidates: Array) -> Array:
    counted = segment_ids > 0 if counts_special else candidates
    num_to_mask = count_to_mask(
      jnp.sum(counted, axis=1),
      rate=options.mask_rate,
      length=length,
      num_predictions=num_chosen,
      budget=budget,
    )
    return jnp.maximum(num_to_mask, least)

  return num_chosen, count


def train_and_heldout(
  tokenizer, length: int, options: CorruptionOptions, *, token_counts: Array
) -> tuple[Masking, Masking]:
  """Returns the Masking for training, and the one for the held-out set.

  They differ if options.heldout_mask_rate is set. Arguments and errors are as
  in `make_masking`.
  """
  train = make_masking(tokenizer, length, options, token_counts=token_counts)
  if not options.heldout_mask_rate:
    return train, train
  heldout = dataclasses.replace(
    options, mask_rate=options.heldout_mask_rate, max_predictions=0
  )
  return train, make_masking(
    tokenizer, length, heldout, token_counts=token_counts
  )


def _choosing_function(options: CorruptionOptions, tokenizer, is_special):
  """Returns (key, text) -> positions, weights [B, P] of the chosen tokens."""

  if options.choose == "tokens" and tokenizer.overlap == 1:
    return lambda key, text: choose_tokens(
      key,
      text.candidates,
      text.num_to_mask,
      num_predictions=text.num_predictions,
      weights=text.weights,
    )
  choose: Callable = spans.choose_words
  if options.choose in ("ngrams", "spans"):
    shares = spans.geometric_shares(_SPAN_P, options.max_span_words)
    if options.choose == "ngrams":
      shares = spans.ngram_shares(options.max_span_words)
    choose = functools.partial(spans.choose_spans, shares=shares)

  def choose_units(key, text: _Text):
    rows = text.batch["input_ids"], text.batch["segment_ids"]
    return choose(
      key,
      text.candidates,
      spans.unit_starts(key, *rows, tokenizer, is_special),
      text.num_to_mask,
      num_predictions=text.num_predictions,
    )

  return choose_units


def _corruption_function(
  options: CorruptionOptions, choose, tokenizer, random_tokens: TokenTable
):
  """Returns (key, text) -> the batch, positions, labels, weights [B, P']."""
  special = tokenizer.special
  whole_spans = options.choose in ("ngrams", "spans") or tokenizer.overlap > 1

  def replace(key, text: _Text, mask_share: float, random_share: float):
    choose_key, replace_key = jax.random.split(key)
    positions, weights = choose(choose_key, text)
    leaders = spans.span_ends(positions, weights)[0] if whole_spans else None
    input_ids, labels = replace_tokens(
      replace_key,
      text.batch["input_ids"],
      positions,
      weights,
      mask_id=special.mask,
      mask_share=mask_share,
      random_share=random_share,
      random_tokens=random_tokens,
      leaders=leaders,
    )
    return {**text.batch, "input_ids": input_ids}, positions, labels, weights

  def shuffle(key, text: _Text):
    input_ids, *predictions = edits.shuffle_trigrams(
      key,
      text.batch["input_ids"],
      text.candidates,
      text.num_to_mask,
      num_predictions=text.num_predictions,
    )
    return {**text.batch, "input_ids": input_ids}, *predictions

  def delete(key, text: _Text):
    choose_key, intact_key = jax.random.split(key)
    return edits.delete_tokens(
      intact_key,
      text.batch,
      text.candidates,
      *choose(choose_key, text),
      pad_id=special.pad,
    )

  def insert(key, text: _Text):
    return edits.insert_tokens(
      key,
      text.batch,
      text.candidates,
      text.num_to_mask,
      num_predictions=text.num_predictions,
      pad_id=special.pad,
      random_tokens=random_tokens,
    )

  shares = options.mask_share, options.random_share
  return {
    "mask": lambda key, text: replace(key, text, *shares),
    "substitute": lambda key, text: replace(key, text, 0.0, 1.0),
    "shuffle": shuffle,
    "delete": delete,
    "insert": insert,
  }[options.corruption]


def _check_combination(options: CorruptionOptions, length: int, P: int) -> None:
  """Raises ConfigError if options conflict with each other or the rows."""
  corruption, choose = options.corruption, options.choose
  if options.mask_share + options.random_share > 1 + 1e-9:
    raise ConfigError(
      f"objective.mask_share={options.mask_share} and random_share="
      f"{options.random_share} must add up to at most 1; other tokens are kept "
      "(0.8 and 0.1 in BERT)."
    )
  if corruption in ("shuffle", "insert") and choose != "tokens":
    raise ConfigError(
      f"objective.choose={choose!r} does not go with corruption="
      f"{corruption!r}, which chooses places itself; set choose=tokens."
    )
  if corruption == "shuffle" and P < 3:
    raise ConfigError(
      f"objective.corruption='shuffle' moves three tokens at a time, but "
      f"mask_rate and max_predictions leave {P} of a row of {length}: raise "
      f"mask_rate to {(200 // length + 1) / 100} or more, max_predictions to "
      "3, or data.length."
    )
  longest = options.max_span_words
  if choose in ("ngrams", "spans") and longest > length - 2:
    raise ConfigError(
      f"objective.max_span_words={longest} must be at most {length - 2}: "
      f"rows of {length} tokens have no room for longer spans."
    )
