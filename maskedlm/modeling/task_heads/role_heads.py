"""The heads of semantic roles: is a word a predicate, and what are its roles?

A sentence is encoded once for all of its predicates. The tags of word w for
predicate p are scored by a feedforward net,

  softmax(U gelu((1 + C b_p) * A z_w + b_p + d_{w-p})), b_p = B z_p

As in Shi and Lin's classifier (arXiv:1904.05255) it reads the predicate's
vector beside each word's, with a distance d in place of their indicator. The
factor lets the predicate choose what it reads of a word (FiLM, Perez et al.
2018, arXiv:1709.07871). A, B and C are applied to words rather than to pairs.

Dimensions: B rows, L words of a row, K predicates, T tags.
"""

import jax.numpy as jnp
from flax import linen as nn

from maskedlm.core.task import Array
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.heads import head_input, head_stddevs
from maskedlm.modeling.layers import ACTIVATIONS, Dense, Dropout

MAX_DISTANCE = 30  # In words; farther ones share a vector on each side.


class WordHead(nn.Module):
  """What is computed once for each word."""

  cfg: EncoderConfig

  @nn.compact
  def __call__(self, x, *, train: bool) -> tuple[Array, Array, Array]:
    """Maps words x [B, L, D] to three arrays.

    Returns:
      (float32 logits [B, L] of being a predicate, A z_w [B, L, D], B z_p
      [B, L, D]).
    """
    cfg = self.cfg
    B, L, D = x.shape
    x = head_input(cfg, x.reshape(B * L, D))
    x = Dropout(cfg.dropout)(x, train=train)
    hidden, last = head_stddevs(cfg)

    def dense(features, stddev, name, **options):
      return Dense((D,), features, stddev, cfg.dtype, name=name, **options)

    logits = dense((1,), last, "predicate_dense")(x)
    word = dense((D,), hidden, "word_dense")(x)
    own = dense((D,), hidden, "own_dense", use_bias=False)(x)
    return (
      logits.reshape(B, L).astype(jnp.float32),
      word.reshape(B, L, D),
      own.reshape(B, L, D),
    )


class RoleHead(nn.Module):
  """Scores of the tags of all words of a row for each of K predicates."""

  cfg: EncoderConfig
  num_tags: int

  @nn.compact
  def __call__(self, word, own, predicates, *, train: bool):
    """Returns float32 logits [B, K, L, T] for WordHead's word and own.

    `predicates` int32 [B, K] are the words that are predicates.
    """
    cfg = self.cfg
    B, L, D = word.shape
    stddev, last = head_stddevs(cfg)
    distances = self.param(
      "distances",
      nn.initializers.truncated_normal(stddev),
      (2 * MAX_DISTANCE + 1, D),
    )
    places = jnp.arange(L) - predicates[..., None]  # [B, K, L].
    places = jnp.clip(places, -MAX_DISTANCE, MAX_DISTANCE) + MAX_DISTANCE
    chosen = jnp.take_along_axis(own, predicates[..., None], axis=1)
    # Their product is small at first, even with twice the deviation.
    scale = Dense((D,), (D,), 2 * stddev, cfg.dtype, name="scale_dense")(chosen)
    x = (1 + scale[:, :, None]) * word[:, None] + chosen[:, :, None]
    x = x + distances[places].astype(word.dtype)
    x = ACTIVATIONS[cfg.activation](x.reshape(-1, D))
    x = Dropout(cfg.dropout)(x, train=train)
    T = self.num_tags
    logits = Dense((D,), (T,), last, cfg.dtype, name="tag_dense")(x)
    return logits.reshape(B, -1, L, T).astype(jnp.float32)
