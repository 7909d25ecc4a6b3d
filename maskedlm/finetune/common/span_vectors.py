"""Spans of tokens -> vectors -> scores of labels, for all spans of a row.

Jurafsky & Martin, chapter 11, equations 11.21 to 11.27. A span from token i to
token j is what its two ends say and a summary of what is within:

  spanRep_ij = [z_i; z_j; g_ij]  or  [FFN_start(z_i); FFN_end(z_j); g_ij]
  y_ij = softmax(FFN(spanRep_ij))

The FFN's first layer is linear in the three parts, and g_ij is a weighted mean
of its tokens' vectors. So that layer is applied to the tokens, once, and not to
the spans, of which there are far more: it makes vectors of H instead of D, a
span adds up three of them, and what remains to be done for each span is the
activation and the last, narrow layer. All spans of one width are taken at a
time (`score_all`): memory doesn't grow with the widest span.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from maskedlm.core.task import (Array, Batch, Key, Params)
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.layers import (ACTIVATIONS, Dense, Dropout)


class SpanComponents(NamedTuple):
  """What the spans of a row are made of; X is D, or H after a layer."""

  start: Array  # [B, L, X]: what each token says as the first of a span.
  end: Array  # [B, L, X]: as the last.
  inside: Array  # [B, L, X]: as one within.
  scores: Array  # float32 [B, L]: how much it counts there; ignored by a mean.


class SpanEnds(NamedTuple):
  """The first tokens of P spans, or their last ones."""

  tokens: Array  # int32 [B, P].
  vectors: Array  # [B, P, X]: Parts.start of the first, .end of the last.
  totals: Array  # float32 [B, P, X]: sum of `inside` before, or up to, them.


def first_ends(parts: SpanComponents, tokens) -> SpanEnds:
  """The ends at which spans begin; tokens [B, P]."""
  before = _running_totals(parts)[:, :-1]
  return SpanEnds(tokens, _at(parts.start, tokens), _at(before, tokens))


def last_ends(parts: SpanComponents, tokens) -> SpanEnds:
  """The ends at which spans end; tokens [B, P]."""
  through = _running_totals(parts)[:, 1:]
  return SpanEnds(tokens, _at(parts.end, tokens), _at(through, tokens))


# --- Summaries: (parts, first ends, last ends) -> g [B, P, X] --------------


def mean_summary(parts: SpanComponents, first: SpanEnds, last: SpanEnds):
  """The mean of the span's tokens (11.21): a difference of running totals."""
  count = jnp.maximum(last.tokens - first.tokens + 1, 1)
  total = (last.totals - first.totals) / count[..., None]
  return total.astype(parts.inside.dtype)


def attention_summary(parts: SpanComponents, first: SpanEnds, last: SpanEnds):
  """SelfAttention(z_i:j) (11.26): one query looks at the span's tokens alone.

  A span has one summary, whichever of its tokens asks, so the query is learnt,
  the same for all: q . K z_k is then w . z_k with a vector w, Parts.scores. The
  value matrix and the one after it are absorbed by the FFN's first layer, which
  follows. This is Lee et al.'s soft head word (arXiv:1707.07045, section 4).
  """
  places = jnp.arange(parts.scores.shape[1])
  inside = (places >= first.tokens[..., None]) & (
    places <= last.tokens[..., None]
  )
  scores = jnp.where(inside, parts.scores[:, None], -1e9)
  share = jax.nn.softmax(scores, axis=-1).astype(parts.inside.dtype)
  return jnp.einsum("BPL,BLX->BPX", share, parts.inside)


# --- What a token says, by where it stands in a span -----------------------


class SameEnds(nn.Module):
  """The encoder's vectors, for both ends (11.22)."""

  cfg: EncoderConfig

  def __call__(self, x):
    """x [N, D] -> two of [N, D]."""
    return x, x


class FfnEnds(nn.Module):
  """A feedforward layer for first tokens and another for last (11.23-24)."""

  cfg: EncoderConfig

  @nn.compact
  def __call__(self, x):
    """x [N, D] -> two of [N, D]."""
    act = ACTIVATIONS[self.cfg.activation]
    first = _dense(self.cfg, self.cfg.width, "start_dense")
    last = _dense(self.cfg, self.cfg.width, "end_dense")
    return act(first(x)), act(last(x))


class NoScores(nn.Module):
  """Of a mean."""

  cfg: EncoderConfig

  def __call__(self, x):
    """x [N, D] -> zeros [N]."""
    return jnp.zeros(x.shape[0], jnp.float32)


class QueryScores(nn.Module):
  """w . z, with a learnt w; see `attend`."""

  cfg: EncoderConfig

  @nn.compact
  def __call__(self, x):
    """x [N, D] -> float32 [N]."""
    dense = _dense(self.cfg, 1, "query_dense", use_bias=False)
    return dense(x)[:, 0].astype(jnp.float32)


class Representation(NamedTuple):
  """A way to make a span's vector."""

  ends: type[nn.Module]
  scores: type[nn.Module]
  summary: Callable[[SpanComponents, SpanEnds, SpanEnds], Array]


REPRESENTATIONS = {
  "endpoints_mean": Representation(SameEnds, NoScores, mean_summary),
  "ffn_endpoints_mean": Representation(FfnEnds, NoScores, mean_summary),
  "self_attention": Representation(FfnEnds, QueryScores, attention_summary),
}


class ComponentLayer(nn.Module):
  """The encoder's vectors -> Parts, of a name in REPRESENTATIONS."""

  cfg: EncoderConfig
  representation: str

  @nn.compact
  def __call__(self, x) -> SpanComponents:
    """x [B, L, D] -> Parts of width D."""
    made = REPRESENTATIONS[self.representation]
    flat = x.reshape(-1, x.shape[-1])
    start, end = made.ends(self.cfg, name="ends")(flat)
    scores = made.scores(self.cfg, name="scores")(flat)
    return SpanComponents(
      start.reshape(x.shape),
      end.reshape(x.shape),
      x,
      scores.reshape(x.shape[:-1]),
    )


def span_vectors(representation: str, parts: SpanComponents, begins, ends):
  """spanRep of given spans: tokens begins..ends [B, P] -> [B, P, 3X]."""
  first, last = first_ends(parts, begins), last_ends(parts, ends)
  summary = REPRESENTATIONS[representation].summary(parts, first, last)
  return jnp.concatenate([first.vectors, last.vectors, summary], axis=-1)


class SpanHead(nn.Module):
  """FFN(spanRep): dense, activation, dense to T labels (11.27).

  `project` is what is done once for each token, `classify` for each span.
  """

  cfg: EncoderConfig
  representation: str
  num_labels: int

  def setup(self):
    """Makes the layers; those of the three parts make one layer of 3D -> H."""
    cfg = self.cfg
    self.parts = ComponentLayer(cfg, self.representation)
    self.dropout = Dropout(cfg.dropout)
    self.first_dense = _dense(cfg, cfg.width)
    self.last_dense = _dense(cfg, cfg.width, use_bias=False)
    self.inside_dense = _dense(cfg, cfg.width, use_bias=False)
    self.label_dense = _dense(cfg, self.num_labels)

  def project(self, x, *, train: bool) -> SpanComponents:
    """x [B, L, D] -> Parts of width H; their sum is the FFN's first layer."""
    B, L, D = x.shape
    x = self.dropout(x.reshape(B * L, D), train=train).reshape(B, L, D)
    parts = self.parts(x)

    def through(dense, vectors):
      return dense(vectors.reshape(B * L, D)).reshape(B, L, -1)

    return SpanComponents(
      through(self.first_dense, parts.start),
      through(self.last_dense, parts.end),
      through(self.inside_dense, parts.inside),
      parts.scores,
    )

  def classify(self, parts: SpanComponents, first: SpanEnds, last: SpanEnds):
    """The logits of P spans: float32 [B, P, T]; parts as from `project`."""
    summary = REPRESENTATIONS[self.representation].summary(parts, first, last)
    x = first.vectors + last.vectors + summary
    B, P, H = x.shape
    x = ACTIVATIONS[self.cfg.activation](x.reshape(B * P, H))
    return self.label_dense(x).reshape(B, P, -1).astype(jnp.float32)

  def __call__(self, x, begins, ends, *, train: bool):
    """Logits [B, P, T] of the spans begins..ends [B, P]; x [B, L, D]."""
    parts = self.project(x, train=train)
    return self.classify(parts, first_ends(parts, begins), last_ends(parts, ends))


def score_all_spans(
  head: SpanHead,
  params: Params,
  x,
  batch: Batch,
  step: Callable[[Any, Any, Array, Array], tuple[Any, Any]],
  carry: Any,
  *,
  max_words: int,
  per_width: Any = None,
  train: bool = False,
  rngs: Mapping[str, Key] | None = None,
) -> tuple[Any, Any]:
  """Scores all spans of words: those of one word, of two, ... of max_words.

  There is a span from each of W words on; the last ones would lead out of the
  row, and are not scored. Only one width's arrays exist at a time, [B, W, H]
  each, in the backward pass too: a width is computed again there.

  Args:
    head, params: the module and its parameters.
    x: [B, L, D], the encoder's vectors.
    batch: word_begins and word_ends [B, W], the first and the last token of
      each word, 0 after the last; word_kept [B, W], 1 where the spans from
      that word on are to be scored.
    step: (carry, per_width[i], logits [B, W, T], scored [B, W] bool) ->
      (carry, made), of the spans of i + 1 words.
    carry: what the first step gets; small, as each step's is kept.
    max_words: the widest span's.
    per_width: a tree of arrays [max_words, ...].
    train, rngs: of the dropout.

  Returns:
    (carry, made, stacked: [max_words, ...]).
  """
  parts = head.apply(
    {"params": params}, x, train=train, rngs=rngs, method="project"
  )
  first = first_ends(parts, batch["word_begins"])
  last = last_ends(parts, batch["word_ends"])
  W = batch["word_begins"].shape[1]
  num_words = jnp.sum(batch["word_begins"] > 0, axis=1, keepdims=True)
  padded = jax.tree.map(
    lambda x: jnp.pad(
      x, [(0, 0), (0, max_words - 1), *[(0, 0)] * (x.ndim - 2)]
    ),
    last,
  )

  @jax.checkpoint
  def at(carry, given):
    width, of_width = given
    ahead = jax.tree.map(
      lambda x: jax.lax.dynamic_slice_in_dim(x, width, W, axis=1), padded
    )
    logits = head.apply(
      {"params": params}, parts, first, ahead, method="classify"
    )
    scored = (batch["word_kept"] > 0) & (jnp.arange(W) + width < num_words)
    return step(carry, of_width, logits, scored)

  return jax.lax.scan(at, carry, (jnp.arange(max_words), per_width))


def _running_totals(parts: SpanComponents):
  """float32 [B, L + 1, X]: the sum of `inside` before each place."""
  totals = jnp.cumsum(parts.inside.astype(jnp.float32), axis=1)
  return jnp.pad(totals, [(0, 0), (1, 0), (0, 0)])


def _at(x, tokens):
  """x [B, L, X] at tokens [B, P] -> [B, P, X]."""
  return jnp.take_along_axis(x, tokens[..., None], axis=1)


def _dense(cfg: EncoderConfig, features: int, name=None, use_bias=True):
  return Dense(
    (cfg.width,), (features,), cfg.init_stddev, cfg.dtype, use_bias, name=name
  )
