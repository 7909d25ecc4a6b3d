"""Scores of mentions and of links between them, on the device.

Lee et al. 2017 (arXiv:1707.07045): every span of a few words within a sentence
gets a vector h, a layer over its ends, a summary of its tokens
(span_vectors.py) and its width, and a mention score s_m(h). Of a row of T words
the best lambda * T spans are kept. A link from the span i to an earlier one j
scores

  s(i, j) = s_m(i) + s_m(j) + q(h_i) . k(h_j) / sqrt(E) + d(i, j),

and to none, 0. The product is the bilinear score that Lee et al. 2018
(arXiv:1804.05392) prune with; it is the only one here, so decoding can link
spans of any two rows from their vectors q and k. d depends on the distance in
words alone.

Dimensions: B rows of C sequences of L tokens, W widths, P kept spans.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from maskedlm.core.task import Array, Batch, Params
from maskedlm.modeling import losses
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.task_heads import ensemble
from maskedlm.modeling.task_heads.span_labels import with_odds
from maskedlm.modeling.task_heads.span_vectors import (
  SpanComponents,
  SpanEnds,
  SpanHead,
  SpanScorer,
  first_ends,
  last_ends,
  score_all_spans,
)

LINK = 64  # E, the width of q and k.
_WIDTHS = 8  # Kinds of widths: 1, 2, 3 to 4, 5 to 8, ... tokens.
# The distances, in words, at which another kind of distance begins.
DISTANCES = 2 ** np.arange(1, 11) - 1
_NEVER = -1e9  # The score of a link that can't be.
_SHARE = 0.02  # The initial probability that a span is a mention.
TOP_RATIO = 0.4  # Lambda of the paper: spans that are kept, per word.


class ChainHead(nn.Module):
  """Scores of spans: [s_m; q; k], each linear in h and in the width's kind."""

  cfg: EncoderConfig
  representation: str
  num_labels: int = 1 + 2 * LINK  # For score_all_spans.

  def setup(self):
    """Makes the parameters."""
    T = self.num_labels
    self.spans = SpanHead(self.cfg, self.representation, T)
    zeros = nn.initializers.zeros
    self.widths = self.param("widths", zeros, (_WIDTHS, T), jnp.float32)
    self.steps = self.param("distances", zeros, (len(DISTANCES) + 1,))

  def project(self, x, *, train: bool) -> SpanComponents:
    """Returns SpanHead.project."""
    return self.spans.project(x, train=train)

  def classify(
    self, components: SpanComponents, first: SpanEnds, last: SpanEnds
  ):
    """Returns float32 [B, P, 1 + 2E] of spans."""
    edges = 2 ** jnp.arange(_WIDTHS - 1)
    width = last.tokens - first.tokens
    kind = jnp.sum(width[..., None] >= edges, axis=-1)
    of_width = jnp.take(self.widths, kind, axis=0)
    return self.spans.classify(components, first, last) + of_width

  def distance_scores(self):
    """Returns d of each kind of distance, float32 [len(DISTANCES) + 1].

    They are sums of steps, so a distance that training didn't see scores as the
    longest that it saw.
    """
    return jnp.cumsum(self.steps)

  def __call__(self, x, begins, ends, *, train: bool):
    """Maps x [B, L, D] to classify's result for spans begins..ends [B, P]."""
    components = self.project(x, train=train)
    return self.classify(
      components, first_ends(components, begins), last_ends(components, ends)
    )


class Kept(NamedTuple):
  """The spans of each row that are kept, in the order of the text."""

  valid: Array  # bool [B, P].
  segments: Array  # int32 [B, P]: the sequence.
  words: Array  # int32 [B, P]: the first word, in the sequence.
  widths: Array  # int32 [B, P]: words - 1.
  places: Array  # int32 [B, P]: the first word, in the row.
  scores: Array  # float32 [B, P]: s_m.
  queries: Array  # float32 [B, P, E].
  keys: Array  # float32 [B, P, E].


def with_few_mentions(params: Params) -> Params:
  """Returns fresh parameters of ChainHead with a bias against mentions."""
  spans = with_odds(params["spans"], 0, _SHARE / (1 - _SHARE))
  return {**params, "spans": spans}


def keep_spans(
  head: SpanScorer,
  hidden,
  batch: Batch,
  *,
  max_words: int,
  every: Callable[[Array], Array] = ensemble.alone,
) -> tuple[Kept, Array]:
  """Returns the best spans, and s_m of all spans, float32 [B, C * L * W].

  Args:
    head: a ChainHead and its parameters.
    hidden: [B * C, L, D], the encoder's vectors.
    batch: of coreference_chains/rows.py.
    max_words: W.
    every: of an ensemble (ensemble.py), whose scores are the means of its
      members'.

  Returns:
    The second result is -inf where no span is; [c, l, w] is the span of w + 1
    words from the word l of the sequence c on.
  """
  B, C, L = batch["input_ids"].shape
  W = max_words
  names = ("word_begins", "word_ends", "word_room")
  begins, ends, room = (batch[name].reshape(B * C, L) for name in names)

  def step(carry, width, logits, scored):
    inside = scored & (width < room)
    score = ensemble.mean(every(logits[..., 0]))
    return carry, jnp.where(inside, score, -jnp.inf)

  _, scores = score_all_spans(
    head,
    hidden,
    {"word_begins": begins, "word_ends": ends, "word_kept": room},
    step,
    (),
    max_words=W,
    per_width=jnp.arange(W),
  )
  scores = jnp.moveaxis(scores, 0, 2).reshape(B, C * L * W)
  counts = jnp.sum(batch["word_room"] > 0, axis=2)  # [B, C]
  valid, chosen = _best_spans(
    scores, counts.sum(axis=1, keepdims=True), math.ceil(TOP_RATIO * C * L)
  )
  where, widths = chosen // W, chosen % W
  segments, words = where // L, where % L

  def token(of_words, words):
    flat = of_words.reshape(B, C * L)
    return segments * L + jnp.take_along_axis(flat, words, axis=1)

  # The tokens of a row's sequences, one after the other.
  components = jax.tree.map(
    lambda x: x.reshape(B, C * L, *x.shape[2:]), head.project(hidden)
  )
  vectors = head.classify(
    components,
    first_ends(components, token(begins, where)),
    last_ends(components, token(ends, jnp.minimum(where + widths, C * L - 1))),
  )
  queries = every(vectors[..., 1 : 1 + LINK])
  keys = every(vectors[..., 1 + LINK :])
  before = jnp.cumsum(counts, axis=1) - counts
  kept = Kept(
    valid=valid,
    segments=segments,
    words=words,
    widths=widths,
    places=jnp.take_along_axis(before, segments, axis=1) + words,
    scores=ensemble.mean(every(vectors[..., 0])),
    # The product, divided by the square root of its length, is the mean one.
    queries=ensemble.side_by_side(queries) / math.sqrt(len(queries)),
    keys=ensemble.side_by_side(keys),
  )
  return kept, scores


def _best_spans(scores, num_words, most: int):
  """Returns which of [B, P] are spans, and their indices in scores [B, N]."""
  P = min(most, scores.shape[1])
  best, chosen = jax.lax.top_k(jax.lax.stop_gradient(scores), P)
  valid = (jnp.arange(P) < jnp.ceil(TOP_RATIO * num_words)) & jnp.isfinite(best)
  # In the order of the text; what is no span comes last.
  last = scores.shape[1]
  chosen = jnp.sort(jnp.where(valid, chosen, last), axis=1)
  valid = chosen < last
  return valid, jnp.where(valid, chosen, 0)


def link_scores(kept: Kept, distance_scores, max_antecedents: int):
  """Returns s(i, j), float32 [B, P, P]; -1e9 unless j may be i's antecedent."""
  P = kept.valid.shape[1]
  products = jnp.einsum("BPE,BQE->BPQ", kept.queries, kept.keys)
  apart = kept.places[:, :, None] - kept.places[:, None]
  kinds = jnp.sum(apart[..., None] >= DISTANCES, axis=-1)
  back = jnp.arange(P)[:, None] - jnp.arange(P)
  allowed = (
    (back > 0)
    & (back <= max_antecedents)
    & kept.valid[:, :, None]
    & kept.valid[:, None]
  )
  scores = kept.scores[:, :, None] + kept.scores[:, None]
  scores += products / math.sqrt(LINK) + distance_scores[kinds]
  return jnp.where(allowed, scores, _NEVER)


def chain_loss(kept: Kept, scores, links, batch: Batch, *, max_words: int):
  """Returns (terms, metrics), as Application.loss.

  antecedents: -log of the probability of all gold antecedents of a kept span
  together; of none, if it has none or is no mention (Lee et al. 2017, section
  5). mentions: the binary cross-entropy of all spans' s_m (Zhang et al. 2018,
  arXiv:1805.04893). Both are sums over spans, per word. The arguments are from
  keep_spans and link_scores; see there.
  """
  L = batch["input_ids"].shape[-1]
  segment, word, width, chain = jnp.moveaxis(batch["mentions"], 2, 0)
  index = (segment * L + word) * max_words + width  # [B, M]
  is_gold = chain > 0
  spans = (kept.segments * L + kept.words) * max_words + kept.widths  # [B, P]
  same = (spans[..., None] == index[:, None]) & is_gold[:, None]
  kept_chain = jnp.where(
    kept.valid, jnp.max(jnp.where(same, chain[:, None], 0), axis=-1), 0
  )
  possible = links > _NEVER / 2
  gold = (
    possible
    & (kept_chain[..., None] == kept_chain[:, None])
    & (kept_chain[..., None] > 0)
  )
  is_first = ~gold.any(axis=-1)
  none = jnp.zeros_like(links[..., :1])
  everything = jnp.concatenate([none, links], axis=-1)
  right = jnp.concatenate([is_first[..., None], gold], axis=-1)
  nll = jax.nn.logsumexp(everything, axis=-1) - jax.nn.logsumexp(
    jnp.where(right, everything, _NEVER), axis=-1
  )
  best = jnp.argmax(everything, axis=-1)
  correct = jnp.take_along_axis(right, best[..., None], axis=-1)[..., 0]
  real = batch["example_weights"]
  words = real * jnp.sum(batch["word_room"] > 0, axis=(1, 2))
  nll = losses.sum_rows(jnp.where(kept.valid, nll, 0))
  is_span = jnp.isfinite(scores)
  safe = jnp.where(is_span, scores, 0)
  cross = losses.sum_rows(jnp.where(is_span, jax.nn.softplus(safe), 0))
  cross -= losses.sum_rows(
    jnp.where(is_gold, jnp.take_along_axis(safe, index, axis=1), 0)
  )
  terms = {
    "antecedents": (nll * real, words),
    "mentions": (cross * real, words),
  }
  recalled = (kept_chain > 0).astype(jnp.float32) * real[:, None]
  golds = losses.sum_rows(is_gold * real[:, None])
  return terms, {
    "mention_recall_kept": (losses.sum_rows(recalled), golds),
    "antecedent_accuracy": losses.weighted_sum(correct, recalled),
  }
