"""Vectors of spans of tokens, and scores of labels for all spans of a row.

Jurafsky & Martin, chapter 11, equations 11.21 to 11.27. The vector of a span
from token i to token j combines its two ends and a summary of its tokens:

  spanRep_ij = [z_i; z_j; g_ij]  or  [FFN_start(z_i); FFN_end(z_j); g_ij]
  y_ij = softmax(FFN(spanRep_ij))

The FFN's first layer is linear in the three components, and g_ij is a weighted
mean of its tokens' vectors. So that layer, which maps D to H, is applied to
each token rather than to each of the far more numerous spans; a span adds up
three of its outputs and needs only the activation and the narrow last layer.
`score_all_spans` takes one width of spans at a time, so memory doesn't grow
with the widest span.

Dimensions: B rows, L tokens, P spans, X components, T labels.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from maskedlm.core.task import Array, Batch, Key, Params
from maskedlm.modeling import masked_lm
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.layers import ACTIVATIONS, Dense, Dropout

_LARGEST = 60.0  # exp(60) * 10^5 tokens is far from float32's limit, exp(88).


class SpanComponents(NamedTuple):
  """Per-token vectors that spans are made of; X is D, or H after a layer."""

  start: Array  # [B, L, X]: for a token that is the first of a span.
  end: Array  # [B, L, X]: for the last one.
  inside: Array  # [B, L, X]: for any token of a span.
  # What weighs `inside`: arrays [B, L, ...], as the summary reads them.
  weights: tuple[Array, ...]


class SpanEnds(NamedTuple):
  """The first tokens of P spans, or their last ones."""

  tokens: Array  # int32 [B, P].
  vectors: Array  # [B, P, X]: `start` of first tokens, `end` of last ones.
  totals: Array  # float32 [B, P, X]: sum of `inside` before or through them.


def first_ends(components: SpanComponents, tokens) -> SpanEnds:
  """Returns the SpanEnds of spans that begin at tokens [B, P]."""
  before = _running_totals(components)[:, :-1]
  return SpanEnds(tokens, _at(components.start, tokens), _at(before, tokens))


def last_ends(components: SpanComponents, tokens) -> SpanEnds:
  """Returns the SpanEnds of spans that end at tokens [B, P], inclusive."""
  through = _running_totals(components)[:, 1:]
  return SpanEnds(tokens, _at(components.end, tokens), _at(through, tokens))


# --- Summaries: (components, first ends, last ends) -> g [B, P, X] ---------


def mean_summary(components: SpanComponents, first: SpanEnds, last: SpanEnds):
  """Returns each span's mean [B, P, X] (11.21), from running totals."""
  count = jnp.maximum(last.tokens - first.tokens + 1, 1)
  total = (last.totals - first.totals) / count[..., None]
  return total.astype(components.inside.dtype)


def attention_summary(
  components: SpanComponents, first: SpanEnds, last: SpanEnds
):
  """Returns SelfAttention(z_i:j) [B, P, X] of each span (11.26).

  A span has a single summary, so one learnt query serves all tokens: q . K z_k
  becomes w . z_k with a vector w, the scores [B, L] of `weights`. The value and
  output matrices are absorbed by the FFN's first layer, which follows. This is
  Lee et al.'s soft head word (arXiv:1707.07045, section 4).
  """
  (scores,) = components.weights
  inside = _tokens_inside(first, last, scores.shape[1])
  scores = jnp.where(inside, scores[:, None], -1e9)
  share = jax.nn.softmax(scores, axis=-1).astype(components.inside.dtype)
  return jnp.einsum("BPL,BLX->BPX", share, components.inside)


def layer_summary(components: SpanComponents, first: SpanEnds, last: SpanEnds):
  """Returns SelfAttention(z_i:j) [B, P, X] of each span (11.26), unabridged.

  Every token of a span attends to all of its tokens,

    a_t = sum_s softmax_s(q_t . k_s / sqrt(D)) v_s,   i <= s, t <= j,

  and the summary is the mean of a_i ... a_j. `weights` has the queries and keys
  [B, L, D], `inside` the values. Time grows with L^2 for each span.
  """
  queries, keys = (x.astype(jnp.float32) for x in components.weights)
  scores = jnp.einsum("BLD,BSD->BLS", queries, keys)
  scores /= math.sqrt(queries.shape[-1])
  # Every token of a span attends to itself. Relative to that score, the sums
  # over spans are at least 1; the limit keeps them finite.
  diagonal = jnp.diagonal(scores, axis1=1, axis2=2)[..., None]
  terms = jnp.exp(jnp.minimum(scores - diagonal, _LARGEST))
  inside = _tokens_inside(first, last, scores.shape[1])  # [B, P, L]
  totals = jnp.einsum("BPS,BLS->BPL", inside.astype(terms.dtype), terms)
  share = jnp.where(inside, 1 / jnp.where(inside, totals, 1), 0)
  share /= jnp.maximum(jnp.sum(inside, axis=-1, keepdims=True), 1)
  weights = jnp.where(inside, jnp.einsum("BPL,BLS->BPS", share, terms), 0)
  weights = weights.astype(components.inside.dtype)
  return jnp.einsum("BPS,BSX->BPX", weights, components.inside)


def _tokens_inside(first: SpanEnds, last: SpanEnds, length: int):
  """Returns bool [B, P, L]: whether a token is in a span."""
  places = jnp.arange(length)
  return (places >= first.tokens[..., None]) & (
    places <= last.tokens[..., None]
  )


# --- Token vectors by position in a span -----------------------------------


class FfnEnds(nn.Module):
  """Dense layers, one for first tokens and one for last (11.23, 11.24)."""

  cfg: EncoderConfig

  @nn.compact
  def __call__(self, x):
    """Maps x [N, D] to (start, end), [N, D] each."""
    act = ACTIVATIONS[self.cfg.activation]
    first = _dense(self.cfg, self.cfg.width, "start_dense")
    last = _dense(self.cfg, self.cfg.width, "end_dense")
    return act(first(x)), act(last(x))


class ScoredInside(nn.Module):
  """Computes w . z with a learnt w; see attention_summary."""

  cfg: EncoderConfig

  @nn.compact
  def __call__(self, x):
    """Maps x [N, D] to (x, (float32 [N],))."""
    dense = _dense(self.cfg, 1, "query_dense", use_bias=False)
    return x, (dense(x)[:, 0].astype(jnp.float32),)


class AttendedInside(nn.Module):
  """Makes values, queries and keys; see layer_summary."""

  cfg: EncoderConfig

  @nn.compact
  def __call__(self, x):
    """Maps x [N, D] to (values [N, D], (queries [N, D], keys [N, D]))."""
    names = ("value_dense", "query_dense", "key_dense")
    value, query, key = (
      _dense(self.cfg, self.cfg.width, name)(x) for name in names
    )
    return value, (query, key)


class Representation(NamedTuple):
  """A way of making a span's vector; None: the encoder's vectors as they are.

  Without `ends`, they are both ends (11.22); without `inside`, they have no
  weights, for a mean.
  """

  ends: type[nn.Module] | None
  inside: type[nn.Module] | None
  summary: Callable[[SpanComponents, SpanEnds, SpanEnds], Array]


REPRESENTATIONS = {
  "endpoints_mean": Representation(None, None, mean_summary),
  "ffn_endpoints_mean": Representation(FfnEnds, None, mean_summary),
  "self_attention": Representation(FfnEnds, ScoredInside, attention_summary),
  "self_attention_layer": Representation(
    FfnEnds, AttendedInside, layer_summary
  ),
}


class ComponentLayer(nn.Module):
  """Makes SpanComponents for a name in REPRESENTATIONS."""

  cfg: EncoderConfig
  representation: str

  @nn.compact
  def __call__(self, x) -> SpanComponents:
    """Maps x [B, L, D] to components of width D."""
    representation = REPRESENTATIONS[self.representation]
    flat = x.reshape(-1, x.shape[-1])
    start = end = inside = flat
    weights: tuple[Array, ...] = ()
    if representation.ends:
      start, end = representation.ends(self.cfg, name="ends")(flat)
    if representation.inside:  # Checkpoints know its parameters by this name.
      inside, weights = representation.inside(self.cfg, name="scores")(flat)
    return SpanComponents(
      start.reshape(x.shape),
      end.reshape(x.shape),
      inside.reshape(x.shape),
      tuple(w.reshape(*x.shape[:-1], *w.shape[1:]) for w in weights),
    )


class SpanHead(nn.Module):
  """FFN(spanRep): dense, activation, dense to T labels (11.27).

  `project` runs once per token, `classify` once per span.
  """

  cfg: EncoderConfig
  representation: str
  num_labels: int

  def setup(self):
    """Makes the layers; first, last and inside_dense are one layer, 3D to H."""
    cfg = self.cfg
    self.parts = ComponentLayer(cfg, self.representation)
    self.dropout = Dropout(cfg.dropout)
    self.first_dense = _dense(cfg, cfg.width)
    self.last_dense = _dense(cfg, cfg.width, use_bias=False)
    self.inside_dense = _dense(cfg, cfg.width, use_bias=False)
    self.label_dense = _dense(cfg, self.num_labels)

  def project(self, x, *, train: bool) -> SpanComponents:
    """Maps x [B, L, D] to components of width H: the FFN's first layer."""
    B, L, D = x.shape
    x = self.dropout(x.reshape(B * L, D), train=train).reshape(B, L, D)
    components = self.parts(x)

    def through(dense, vectors):
      return dense(vectors.reshape(B * L, D)).reshape(B, L, -1)

    return SpanComponents(
      through(self.first_dense, components.start),
      through(self.last_dense, components.end),
      through(self.inside_dense, components.inside),
      components.weights,
    )

  def classify(
    self, components: SpanComponents, first: SpanEnds, last: SpanEnds
  ):
    """Returns the logits of P spans, float32 [B, P, T], given `project(x)`."""
    summary = REPRESENTATIONS[self.representation].summary(
      components, first, last
    )
    x = first.vectors + last.vectors + summary
    B, P, H = x.shape
    x = ACTIVATIONS[self.cfg.activation](x.reshape(B * P, H))
    return self.label_dense(x).reshape(B, P, -1).astype(jnp.float32)

  def __call__(self, x, begins, ends, *, train: bool):
    """Maps x [B, L, D] to logits [B, P, T] of the spans begins..ends [B, P]."""
    components = self.project(x, train=train)
    return self.classify(
      components, first_ends(components, begins), last_ends(components, ends)
    )


class SpanScorer(NamedTuple):
  """A head with its parameters: a SpanHead, or a module with its methods."""

  module: nn.Module
  params: Params
  key: Key | None = None  # For dropout.
  train: bool = False

  def project(self, x) -> SpanComponents:
    """Returns the components of vectors [B, L, D]; see SpanHead.project."""
    components: Any = self.module.apply(
      {"params": self.params},
      x,
      train=self.train,
      rngs=masked_lm.head_rngs(self.key, self.train),
      method="project",
    )
    return components

  def classify(
    self, components: SpanComponents, first: SpanEnds, last: SpanEnds
  ):
    """Returns the logits [B, P, T] of spans; see SpanHead.classify."""
    return self.module.apply(
      {"params": self.params}, components, first, last, method="classify"
    )


def score_all_spans(
  head: SpanScorer,
  x,
  batch: Batch,
  step: Callable[[Any, Any, Array, Array], tuple[Any, Any]],
  carry: Any,
  *,
  max_words: int,
  per_width: Any = None,
) -> tuple[Any, Any]:
  """Scores all spans of 1, 2, ... max_words words.

  One span of each width starts at each of the W words; those that would leave
  the row are not scored. Only one width's arrays exist at a time, [B, W, H]
  each, and the backward pass recomputes them.

  Args:
    head: gives the logits.
    x: [B, L, D], the encoder's vectors.
    batch: word_begins and word_ends [B, W], the first and the last token of
      each word, 0 after the last word; word_kept [B, W], 1 where the spans that
      begin with a word are to be scored.
    step: (carry, per_width[i], logits [B, W, T], scored [B, W] bool) ->
      (carry, output), for the spans of i + 1 words.
    carry: the initial carry. It should be small, as the backward pass keeps
      that of each step.
    max_words: the width of the widest span.
    per_width: a tree of arrays [max_words, ...].

  Returns:
    (carry, outputs stacked to [max_words, ...]).
  """
  components = head.project(x)
  first = first_ends(components, batch["word_begins"])
  last = last_ends(components, batch["word_ends"])
  B, W = batch["word_begins"].shape
  num_words = jnp.sum(batch["word_begins"] > 0, axis=1, keepdims=True)
  padded = jax.tree.map(
    lambda x: jnp.pad(
      x, [(0, 0), (0, max_words - 1), *[(0, 0)] * (x.ndim - 2)]
    ),
    last,
  )
  # Wider spans leave every row: their logits are zeros, and cost nothing.
  most_words = jnp.max(num_words)

  @jax.checkpoint
  def score_width(carry, inputs):
    width, of_width = inputs
    ahead = jax.tree.map(
      lambda x: jax.lax.dynamic_slice_in_dim(x, width, W, axis=1), padded
    )
    logits = jax.lax.cond(
      width < most_words,
      lambda: head.classify(components, first, ahead),
      lambda: jnp.zeros((B, W, head.module.num_labels), jnp.float32),
    )
    scored = (batch["word_kept"] > 0) & (jnp.arange(W) + width < num_words)
    return step(carry, of_width, logits, scored)

  return jax.lax.scan(score_width, carry, (jnp.arange(max_words), per_width))


def _running_totals(components: SpanComponents):
  """Returns the sum of `inside` before each token, float32 [B, L + 1, X]."""
  totals = jnp.cumsum(components.inside.astype(jnp.float32), axis=1)
  return jnp.pad(totals, [(0, 0), (1, 0), (0, 0)])


def _at(x, tokens):
  """Returns x [B, L, X] at tokens [B, P] as [B, P, X]."""
  return jnp.take_along_axis(x, tokens[..., None], axis=1)


def _dense(cfg: EncoderConfig, features: int, name=None, use_bias=True):
  return Dense(
    (cfg.width,), (features,), cfg.init_stddev, cfg.dtype, use_bias, name=name
  )
