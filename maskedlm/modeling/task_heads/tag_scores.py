"""From the scores of tokens to the loss and the tags of words.

A word's score is that of its first subword or of all its subwords combined, and
a CRF may score the words of a row together. Dimensions: B rows, L tokens of a
row (also the space for its words), T tags. A batch has the arrays of
finetune/tagging/rows.py.
"""

import jax
import jax.numpy as jnp

from maskedlm.core.task import Array, Batch, Metrics
from maskedlm.modeling.losses import UNSEEN, loss_and_accuracy
from maskedlm.modeling.task_heads import crf


def first_subword_scores(logits, word_starts):
  """Returns the logits [B, L, T] of words: those of their first tokens.

  Args:
    logits: [B, L, T], those of tokens.
    word_starts: int32 [B, L], the place of each word's first token.
  """
  return jnp.take_along_axis(logits, word_starts[..., None], axis=1)


def likeliest_tags(scores) -> dict[str, Array]:
  """Returns "tags" and "probabilities" [B, L] of words, given scores [B, L, T].

  Each tag is the likeliest for its word.
  """
  tags = jnp.argmax(scores, axis=-1).astype(jnp.int32)
  return with_probabilities(tags, jax.nn.softmax(scores, axis=-1))


def with_probabilities(tags, probabilities) -> dict[str, Array]:
  """Returns tags [B, L] with their probabilities, out of [B, L, T]."""
  chosen = jnp.take_along_axis(probabilities, tags[..., None], axis=-1)
  return {"tags": tags, "probabilities": chosen[..., 0]}


def combined_subword_scores(logits, batch: Batch):
  """Returns scores [B, L, T] of words: their subwords' mean log-probabilities.

  Their softmax is the product of the subwords' distributions, tempered so that
  it is as confident as one of them: the normalised geometric mean.
  """
  L = logits.shape[1]

  def sums(x, words):  # Segment 0 has the tokens that belong to no word.
    return jax.ops.segment_sum(x, words, num_segments=L + 1)[1:]

  words = batch["token_words"]
  total = jax.vmap(sums)(jax.nn.log_softmax(logits, axis=-1), words)
  count = jax.vmap(sums)(jnp.ones(words.shape), words)
  return total / jnp.maximum(count, 1)[..., None]


def token_loss(logits, batch: Batch) -> tuple[Metrics, Metrics]:
  """Returns the cross-entropy of all subwords, with their words' tags.

  `logits` [B, L, T] are those of tokens.
  """
  place = jnp.maximum(batch["token_words"] - 1, 0)
  labels = jnp.take_along_axis(batch["word_tags"], place, axis=1)
  return _cross_entropy(logits, labels, batch["token_words"] > 0, batch)


def word_loss(logits, batch: Batch) -> tuple[Metrics, Metrics]:
  """Returns the cross-entropy of words, given their logits [B, L, T]."""
  return _cross_entropy(
    logits, batch["word_tags"], batch["word_starts"] > 0, batch
  )


def crf_loss(
  emissions, steps: crf.TransitionScores, batch: Batch
) -> tuple[Metrics, Metrics]:
  """Returns -log p(tags), in nats per word, given emissions [B, L, T] of words.

  A row with an UNSEEN tag is left out, as its loss depends on all of its tags.
  """
  lengths = num_words(batch)
  tags = batch["word_tags"]
  is_known = jnp.all(tags != UNSEEN, axis=1)
  weights = batch["example_weights"] * is_known
  loss = crf.log_partition(emissions, steps, lengths) - crf.path_score(
    emissions, steps, jnp.maximum(tags, 0), lengths
  )
  return {"tags": (loss * weights, lengths * weights)}, {}


def viterbi_tags(
  emissions, steps: crf.TransitionScores, batch: Batch
) -> dict[str, Array]:
  """Returns "tags" and "probabilities" [B, L] of the likeliest sequences."""
  lengths = num_words(batch)
  tags, _ = crf.viterbi(emissions, steps, lengths)
  return with_probabilities(tags, crf.marginals(emissions, steps, lengths))


def num_words(batch: Batch):
  """Returns the number [B] of words that are tagged in each row."""
  return jnp.sum(batch["word_starts"] > 0, axis=1)


def _cross_entropy(logits, labels, mask, batch: Batch):
  """Returns the loss and metrics of labels [B, L] where mask [B, L] is True."""
  weights = mask * batch["example_weights"][:, None]
  loss, accuracy = loss_and_accuracy(logits, labels, weights=weights)
  return {"tags": loss}, {"tag_accuracy": accuracy}
