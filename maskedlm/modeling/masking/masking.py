"""From an objective's options to one function that hides part of a batch.

`choose` names what is chosen (corruption.py, spans.py) and `corruption` what
is done to it (corruption.py, edits.py); docs/guides/pretrain/masking.md has a table of both
and an example of each.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.core import options as core_options
from maskedlm.core.errors import ConfigError
from maskedlm.core.task import (Batch, Key)
from maskedlm.modeling.masking import (edits, spans)
from maskedlm.modeling.masking.options import CorruptionOptions
from maskedlm.modeling.masking.tokens import (Array, check_shares, choose_tokens, count_predictions, maskable, random_token_table, replace_tokens, count_to_mask)

SPAN_P = 0.2  # SpanBERT's; objectives/spanbert.py has it as an option.
# By corruption: prediction slots in a row of which P tokens are chosen.
PREDICTED = {
  "mask": lambda P: P,
  "substitute": lambda P: P,
  "shuffle": lambda P: P - P % 3,
  "delete": lambda P: 2 * P,
  "insert": lambda P: 2 * P,
}


class Masking(NamedTuple):
  """How a batch is corrupted."""

  # Row length -> prediction slots in a corrupted row.
  num_predictions: Mapping[int, int]
  # As Task.corrupt: the batch with its tokens corrupted, and masked_positions,
  # masked_labels (int32) and masked_weights (float32), [B, num_predictions] each.
  corrupt: Callable[[Batch, Key], Batch]


class _Text(NamedTuple):
  """What may be chosen of a batch, and how much of it."""

  batch: Batch
  candidates: Array  # [B, L] bool.
  num_to_mask: Array  # [B] int32, tokens to choose.
  num_predictions: int  # P, as many at most.


def make_masking(
  tokenizer,
  lengths: Sequence[int],
  options: CorruptionOptions,
  *,
  token_counts: Array,
) -> Masking:
  """Returns the masking that the options describe.

  Args:
    tokenizer: its vocab_size, special, special_ids and, unless choose is
      "tokens", starts_word are read.
    lengths: of the rows, in tokens.
    options: config.objective.
    token_counts: [V], of the corpus.

  Raises:
    ConfigError: an option is wrong, or does not go with another.
  """
  is_special = np.zeros(tokenizer.vocab_size, bool)
  is_special[np.asarray(tokenizer.special_ids)] = True
  check_shares(options.mask_share, options.random_share)
  slots = {
    length: count_predictions(
      options.mask_rate, length, max_predictions=options.max_predictions
    )
    for length in lengths
  }
  _check(options, slots)
  hide = _corrupter(
    options.corruption,
    _chooser(options.choose, tokenizer, is_special, options.max_span_words),
    tokenizer.special,
    random_token_table(options.random_tokens, token_counts, is_special),
    shares=(options.mask_share, options.random_share),
    whole_spans=options.choose in ("ngrams", "spans"),
  )

  def corrupt(batch: Batch, key: Key) -> Batch:
    input_ids, segment_ids = batch["input_ids"], batch["segment_ids"]
    L = input_ids.shape[1]
    num_to_mask = count_to_mask(
      jnp.sum(segment_ids > 0, axis=1),
      rate=options.mask_rate,
      length=L,
      num_predictions=slots[L],
    )
    candidates = maskable(input_ids, segment_ids, is_special)
    text = _Text(batch, candidates, num_to_mask, slots[L])
    hidden, positions, labels, weights = hide(key, text)
    return {
      **hidden,
      "masked_positions": positions,
      "masked_labels": labels,
      # A filler row of the held-out set counts nothing.
      "masked_weights": weights * batch["example_weights"][:, None],
    }

  predicted = PREDICTED[options.corruption]
  return Masking({length: predicted(P) for length, P in slots.items()}, corrupt)


def train_and_heldout(
  tokenizer,
  lengths: Sequence[int],
  options: CorruptionOptions,
  *,
  token_counts: Array,
) -> tuple[Masking, Masking]:
  """Returns the masking of training, and that of the held-out set.

  They differ if options.heldout_mask_rate is set. Arguments and errors are
  those of `make_masking`.
  """
  train = make_masking(tokenizer, lengths, options, token_counts=token_counts)
  if not options.heldout_mask_rate:
    return train, train
  heldout = dataclasses.replace(
    options, mask_rate=options.heldout_mask_rate, max_predictions=0
  )
  return train, make_masking(
    tokenizer, lengths, heldout, token_counts=token_counts
  )


def _chooser(choose, tokenizer, is_special, max_span_words):
  """-> (key, text) -> positions, weights [B, P] of the chosen tokens."""

  def tokens(key, text):
    return choose_tokens(
      key, text.candidates, text.num_to_mask, num_predictions=text.num_predictions
    )

  def by_words(key, text, choose_runs):
    begins_word = spans.word_starts(
      text.batch["input_ids"],
      text.batch["segment_ids"],
      tokenizer.starts_word,
      is_special,
    )
    return choose_runs(
      key,
      text.candidates,
      begins_word,
      text.num_to_mask,
      num_predictions=text.num_predictions,
    )

  if choose == "tokens":
    return tokens
  if choose == "words":
    return functools.partial(by_words, choose_runs=spans.choose_words)
  if choose == "ngrams":
    shares = spans.ngram_shares(max_span_words)
  else:
    shares = spans.geometric_shares(SPAN_P, max_span_words)
  choose_runs = functools.partial(spans.choose_spans, shares=shares)
  return functools.partial(by_words, choose_runs=choose_runs)


def _corrupter(
  corruption, choose_slots, special, table, *, shares, whole_spans
):
  """-> (key, text) -> the batch, and positions, labels, weights [B, P']."""

  def replace(key, text, mask_share, random_share):
    choose_key, replace_key = jax.random.split(key)
    positions, weights = choose_slots(choose_key, text)
    leaders = spans.span_ends(positions, weights)[0] if whole_spans else None
    input_ids, labels = replace_tokens(
      replace_key,
      text.batch["input_ids"],
      positions,
      weights,
      mask_id=special.mask,
      mask_share=mask_share,
      random_share=random_share,
      random_tokens=table,
      leaders=leaders,
    )
    return {**text.batch, "input_ids": input_ids}, positions, labels, weights

  def shuffle(key, text):
    input_ids, *slots = edits.shuffle_trigrams(
      key,
      text.batch["input_ids"],
      text.candidates,
      text.num_to_mask,
      num_predictions=text.num_predictions,
    )
    return {**text.batch, "input_ids": input_ids}, *slots

  def delete(key, text):
    choose_key, intact_key = jax.random.split(key)
    return edits.delete_tokens(
      intact_key,
      text.batch,
      text.candidates,
      *choose_slots(choose_key, text),
      pad_id=special.pad,
    )

  def insert(key, text):
    return edits.insert_tokens(
      key,
      text.batch,
      text.candidates,
      text.num_to_mask,
      num_predictions=text.num_predictions,
      pad_id=special.pad,
      random_tokens=table,
    )

  return {
    "mask": lambda key, text: replace(key, text, *shares),
    "substitute": lambda key, text: replace(key, text, 0.0, 1.0),
    "shuffle": shuffle,
    "delete": delete,
    "insert": insert,
  }[corruption]


def _check(options: CorruptionOptions, slots: Mapping[int, int]) -> None:
  """Raises ConfigError if options don't go together."""
  core_options.check("objective", CorruptionOptions, options)
  corruption, choose = options.corruption, options.choose
  if corruption in ("shuffle", "insert") and choose != "tokens":
    raise ConfigError(
      f"objective.choose={choose!r} does not go with corruption="
      f"{corruption!r}, which has places of its own; set choose=tokens."
    )
  length, P = min(slots.items(), key=lambda item: item[1])
  if corruption == "shuffle" and P < 3:
    raise ConfigError(
      f"objective.corruption='shuffle' moves three tokens at a time, but "
      f"mask_rate and max_predictions leave {P} of a row of {length}: raise "
      f"mask_rate to {(200 // length + 1) / 100} at least, max_predictions "
      "to 3, or data.length."
    )
  if choose in ("ngrams", "spans"):
    spans.check_max_span_words(options.max_span_words, min(slots))
