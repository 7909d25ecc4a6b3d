"""Scores of tags for tokens -> loss and tags of words, on the device.

Between the two stands what a word's score is: that of its first subword, or
all of its subwords' together, and whether a CRF looks at the words in a row.
B rows, L tokens of a row (and places for its words), T tags; a batch has the
arrays of tag_rows.
"""

import jax
import jax.numpy as jnp
from flax import linen as nn

from maskedlm.core.task import (Array, Batch, Metrics)
from maskedlm.finetune.common import unseen_labels
from maskedlm.finetune.tagging import crf
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.heads import (head_input, head_stddevs)
from maskedlm.modeling.layers import (Dense, Dropout)


class TagHead(nn.Module):
  """Dropout, then W: a score of each tag for each token."""

  cfg: EncoderConfig
  num_tags: int

  @nn.compact
  def __call__(self, x, *, train: bool):
    """x [B, L, D] -> float32 logits [B, L, T]."""
    cfg = self.cfg
    B, L, D = x.shape
    x = head_input(cfg, x.reshape(B * L, D))
    x = Dropout(cfg.dropout)(x, train=train)
    T = self.num_tags
    _, stddev = head_stddevs(cfg)
    x = Dense((D,), (T,), stddev, cfg.dtype, name="dense")(x)
    return x.reshape(B, L, T).astype(jnp.float32)


def at_first(logits, batch: Batch):
  """logits [B, L, T] of tokens -> those [B, L, T] of words, at the first."""
  return jnp.take_along_axis(logits, batch["word_starts"][..., None], axis=1)


def combined(logits, batch: Batch):
  """logits [B, L, T] of tokens -> log-probabilities [B, L, T] of words.

  The mean of those of a word's subwords: the product of their distributions,
  as sure as one of them.
  """
  L = logits.shape[1]

  def sums(x, words):  # Segment 0 is of tokens that belong to no word.
    return jax.ops.segment_sum(x, words, num_segments=L + 1)[1:]

  words = batch["token_words"]
  total = jax.vmap(sums)(jax.nn.log_softmax(logits, axis=-1), words)
  count = jax.vmap(sums)(jnp.ones(words.shape), words)
  return total / jnp.maximum(count, 1)[..., None]


def token_loss(logits, batch: Batch) -> tuple[Metrics, Metrics]:
  """Cross-entropy of every subword, with the tag of its word."""
  place = jnp.maximum(batch["token_words"] - 1, 0)
  labels = jnp.take_along_axis(batch["word_tags"], place, axis=1)
  return _cross_entropy(logits, labels, batch["token_words"] > 0, batch)


def word_loss(logits, batch: Batch) -> tuple[Metrics, Metrics]:
  """Cross-entropy of words, given their logits [B, L, T]."""
  return _cross_entropy(
    logits, batch["word_tags"], batch["word_starts"] > 0, batch
  )


def crf_loss(
  emissions, steps: crf.Steps, batch: Batch
) -> tuple[Metrics, Metrics]:
  """-log p(tags), in nats a word, given the words' emissions [B, L, T].

  A row has no part in it if one of its tags is UNKNOWN: it is of all together.
  """
  lengths = num_words(batch)
  tags = batch["word_tags"]
  is_known = jnp.all(tags != unseen_labels.UNSEEN, axis=1)
  weights = batch["example_weights"] * is_known
  nats = crf.log_partition(emissions, steps, lengths) - crf.path_score(
    emissions, steps, jnp.maximum(tags, 0), lengths
  )
  return {"tags": (nats * weights, lengths * weights)}, {}


def choose(scores) -> dict[str, Array]:
  """The likeliest tag of each word, and its probability: [B, L] each."""
  tags = jnp.argmax(scores, axis=-1).astype(jnp.int32)
  return _with_probabilities(tags, jax.nn.softmax(scores, axis=-1))


def choose_path(emissions, steps: crf.Steps, batch: Batch) -> dict[str, Array]:
  """The likeliest sequence's tags, and the probability of each: [B, L]."""
  lengths = num_words(batch)
  tags, _ = crf.viterbi(emissions, steps, lengths)
  return _with_probabilities(tags, crf.marginals(emissions, steps, lengths))


def num_words(batch: Batch):
  """[B]: the words that are read off in each row."""
  return jnp.sum(batch["word_starts"] > 0, axis=1)


def _cross_entropy(logits, labels, mask, batch: Batch):
  weights = mask * batch["example_weights"][:, None]
  term, hits = unseen_labels.loss_and_accuracy(logits, labels, weights=weights)
  return {"tags": term}, {"tag_accuracy": hits}


def _with_probabilities(tags, probabilities) -> dict[str, Array]:
  chosen = jnp.take_along_axis(probabilities, tags[..., None], axis=-1)
  return {"tags": tags, "probabilities": chosen[..., 0]}
