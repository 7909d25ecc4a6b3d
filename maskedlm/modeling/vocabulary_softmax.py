"""The softmax over the vocabulary: vectors against the tied token embedding.

The end of the heads (heads.py). `logits` makes them all, [..., V]. For a loss
they needn't exist together: with more than cfg.vocab_block words, `score` goes
over the vocabulary block by block, and again in the backward pass, so [N, V]
never exists. The normaliser is summed up as in Milakov & Gimelshein
(arXiv:1805.02867), by rescaling whenever a larger logit comes.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from maskedlm.modeling import losses
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.layers import DTYPES

# The vocabulary lies in 16 strips, V/16 words long, and a block is some rows of
# each: split over `tensor`, up to 16 ways, each device has its part of a block.
STRIPS = 16
TILE = 8  # Rows that a TPU moves at once; V is a multiple of 128 = 16 * 8.


def logits(cfg: EncoderConfig, x, embedding, bias):
  """x [..., E], embedding [V, E], bias [V] -> float32 [..., V].

  V is the padded vocabulary; its ids beyond vocab_size get -1e9.
  """
  V, E = embedding.shape
  made = _logits(cfg, x.reshape(-1, E), embedding, bias, jnp.arange(V))
  return made.reshape(*x.shape[:-1], V)


def loss_and_correct(cfg: EncoderConfig, x, embedding, bias, *, labels):
  """How x [..., E] predicts labels [...]: (nats, hits), as losses.score.

  embedding [V, E], bias [V]. About [..., cfg.vocab_block] logits exist at once:
  at least 128 words, and rounded up so that a block's rows fill tiles.
  """
  # Flat: to cut [B * P, V] into [B, P, V] a TPU copies it, as P fills no tiles.
  flat, flat_labels = x.reshape(-1, x.shape[-1]), labels.reshape(-1)
  if cfg.padded_vocab_size > cfg.vocab_block:
    scores = _loss_in_blocks(cfg, flat, embedding, bias, flat_labels)
  else:
    made = _logits(cfg, flat, embedding, bias, jnp.arange(len(embedding)))
    scores = losses.loss_and_correct(made, flat_labels)
  return tuple(y.reshape(labels.shape) for y in scores)


class Blocks(NamedTuple):
  """How a vocabulary is cut. The last block may begin within the one before."""

  count: int
  rows: int  # Of each strip, in each block.
  strip: int  # Rows of a strip.


def split_vocabulary(vocab_size: int, block: int) -> Blocks:
  """Blocks of equal size, of about `block` words at most (128 at least)."""
  strip = vocab_size // STRIPS
  rows = -(-strip // -(-vocab_size // block))
  rows = -(-rows // TILE) * TILE
  return Blocks(-(-strip // rows), rows, strip)


def _logits(cfg: EncoderConfig, x, words, bias, ids):
  """x [N, E] against words [W, E] -> float32 [N, W]; -1e9 where ids say so."""
  made = jnp.einsum("NE,WE->NW", x, words.astype(DTYPES[cfg.dtype]))
  made = made.astype(jnp.float32) + bias
  return jnp.where(ids < cfg.vocab_size, made, -1e9)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _loss_in_blocks(cfg: EncoderConfig, x, embedding, bias, labels):
  """`score` of x [N, E] and labels [N], block by block."""
  return _forward(cfg, x, embedding, bias, labels)[0]


def _forward(cfg: EncoderConfig, x, embedding, bias, labels):
  """-> (nats [N], hits [N]), and what the backward pass takes."""
  blocks = split_vocabulary(len(embedding), cfg.vocab_block)

  def add(carry, i):
    peak, total, picked, best = carry
    words, offsets, ids = _block(blocks, i, embedding, bias)
    made = _logits(cfg, x, words, offsets, ids)
    high = jnp.max(made, axis=1)
    first = ids[jnp.argmax(made, axis=1)]
    # Blocks don't follow each other by id: of equals, the first word wins.
    better = (high > peak) | ((high == peak) & (first < best))
    best = jnp.where(better, first, best)
    old, peak = peak, jnp.maximum(peak, high)
    share = jnp.sum(jnp.exp(made - peak[:, None]), axis=1)
    total = total * jnp.exp(old - peak) + share
    picked += jnp.sum(jnp.where(ids == labels[:, None], made, 0), axis=1)
    return (peak, total, picked, best), None

  zeros = jnp.zeros(len(x), jnp.float32)
  start = (zeros - jnp.inf, zeros, zeros, jnp.zeros(len(x), jnp.int32))
  (peak, total, picked, best), _ = jax.lax.scan(
    add, start, jnp.arange(blocks.count)
  )
  normaliser = peak + jnp.log(total)
  scores = normaliser - picked, best == labels
  return scores, (x, embedding, bias, labels, normaliser)


def _backward(cfg: EncoderConfig, saved, grads):
  """Gradients of x, embedding and bias; a block's fill its part of theirs."""
  x, embedding, bias, labels, normaliser = saved
  grad, _ = grads
  blocks = split_vocabulary(len(embedding), cfg.vocab_block)

  def add(carry, i):
    x_sum, *sums = carry
    words, offsets, ids = _block(blocks, i, embedding, bias)
    made, pull = jax.vjp(
      lambda *inputs: _logits(cfg, *inputs, ids), x, words, offsets
    )
    # Probability minus label; 0 for padding, and what the block before has too.
    error = jnp.exp(made - normaliser[:, None]) - (ids == labels[:, None])
    x_part, *parts = pull(error * grad[:, None])
    sums = [
      _add_rows(blocks, i, whole, part)
      for whole, part in zip(sums, parts, strict=True)
    ]
    return (x_sum + x_part, *sums), None

  zeros = jnp.zeros(x.shape, jnp.float32)
  start = (zeros, jnp.zeros_like(embedding), jnp.zeros_like(bias))
  (x_sum, *sums), _ = jax.lax.scan(add, start, jnp.arange(blocks.count))
  return x_sum.astype(x.dtype), *sums, None


_loss_in_blocks.defvjp(_forward, _backward)


def _block(blocks: Blocks, i, embedding, bias):
  """Block i: its words' vectors [W, E], bias [W] and ids [W].

  The id of a word that the block before has too is V, which is none.
  """
  first = _first_row(blocks, i)
  row = first + jnp.arange(blocks.rows)
  strips = jnp.arange(STRIPS)[:, None] * blocks.strip
  is_new = row >= i * blocks.rows
  ids = jnp.where(is_new, strips + row, len(embedding)).reshape(-1)
  words, offsets = (
    jax.lax.dynamic_slice_in_dim(
      _strips(blocks, x), first, blocks.rows, axis=1
    ).reshape(-1, *x.shape[1:])
    for x in (embedding, bias)
  )
  return words, offsets, ids


def _add_rows(blocks: Blocks, i, whole, part):
  """whole [V, ...] with part [W, ...] of block i added; in place, compiled."""
  first = _first_row(blocks, i)
  strips = _strips(blocks, whole)
  part = part.reshape(STRIPS, blocks.rows, *part.shape[1:])
  part += jax.lax.dynamic_slice_in_dim(strips, first, blocks.rows, axis=1)
  strips = jax.lax.dynamic_update_slice_in_dim(strips, part, first, axis=1)
  return strips.reshape(whole.shape)


def _first_row(blocks: Blocks, i):
  return jnp.minimum(i * blocks.rows, blocks.strip - blocks.rows)


def _strips(blocks: Blocks, x):
  """x [V, ...] -> [STRIPS, V / STRIPS, ...]."""
  return x.reshape(STRIPS, blocks.strip, *x.shape[1:])
