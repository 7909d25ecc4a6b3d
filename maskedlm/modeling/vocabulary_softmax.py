"""The softmax over the vocabulary, with the tied token embedding.

It is the output layer of heads (heads.py). `logits` returns all logits,
[..., V]. A loss does not need them all at once: for a vocabulary of more than
cfg.vocab_block tokens, `loss_and_correct` computes them block by block, and
again in the backward pass, so an array [N, V] never exists. The normaliser is
accumulated as in Milakov & Gimelshein (arXiv:1805.02867), and rescaled whenever
a larger logit appears.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from maskedlm.modeling import losses
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.arrays import Array, Bool, Float, Int
from maskedlm.modeling.layers import DTYPES, on_cpu

# The vocabulary is treated as 16 strips of V/16 tokens; a block is some rows of
# each. Split over `tensor`, up to 16 ways, each device has part of a block.
STRIPS = 16
TILE = 8  # Rows that a TPU moves together; V is a multiple of 128 = 16 * 8.


def logits(
  cfg: EncoderConfig,
  x: Float[Array, "*B E"],
  embedding: Float[Array, "V E"],
  bias: Float[Array, " V"],
) -> Float[Array, "*B V"]:
  """Returns float32 logits.

  V is cfg.padded_vocab_size; the ids from cfg.vocab_size on get -1e9.
  """
  V, E = embedding.shape
  flat = _logits(cfg, x.reshape(-1, E), embedding, bias, jnp.arange(V))
  return flat.reshape(*x.shape[:-1], V)


def loss_and_correct(
  cfg: EncoderConfig,
  x: Float[Array, "*B E"],
  embedding: Float[Array, "V E"],
  bias: Float[Array, " V"],
  *,
  labels: Int[Array, "*B"],
) -> tuple[Float[Array, "*B"], Bool[Array, "*B"]]:
  """Returns (loss, correct) of labels, as losses.loss_and_correct does.

  About [..., cfg.vocab_block] logits exist at once: at least 128 tokens, and
  rounded up so that a block's rows fill tiles.
  """
  # Flat, as a TPU copies [B * P, V] to reshape it to [B, P, V].
  flat, flat_labels = x.reshape(-1, x.shape[-1]), labels.reshape(-1)
  if cfg.padded_vocab_size > cfg.vocab_block:
    scores = _loss_in_blocks(cfg, flat, embedding, bias, flat_labels)
  else:
    make = _logits_on_cpu if on_cpu() else _logits
    whole = make(cfg, flat, embedding, bias, jnp.arange(len(embedding)))
    scores = losses.loss_and_correct(whole, flat_labels)
  return tuple(y.reshape(labels.shape) for y in scores)


class Blocks(NamedTuple):
  """The blocks of a vocabulary. The last may begin within the one before."""

  num_blocks: int
  rows: int  # Rows of each strip that are in a block.
  strip: int  # Rows of a strip.


def split_vocabulary(vocab_size: int, block: int) -> Blocks:
  """Returns equal blocks of about `block` tokens or less, but at least 128."""
  strip = vocab_size // STRIPS
  rows = -(-strip // -(-vocab_size // block))
  rows = -(-rows // TILE) * TILE
  return Blocks(-(-strip // rows), rows, strip)


def _logits(
  cfg: EncoderConfig,
  x: Float[Array, "N E"],
  embedding: Float[Array, "W E"],
  bias: Float[Array, " W"],
  ids: Int[Array, " W"],
) -> Float[Array, "N W"]:
  """Returns float32 logits of tokens; -1e9 for ids that pad V."""
  logits = _products(cfg, x, embedding) + bias
  return jnp.where(ids < cfg.vocab_size, logits, -1e9)


def _logits_on_cpu(cfg: EncoderConfig, x, embedding, bias, ids):
  """Returns what `_logits` does, about -1e9 for padding, for a loss on a CPU.

  Padding needs no pass over the logits. The bias's gradient is a matmul, which
  takes XLA:CPU a ninth of the time of a sum over N.
  """
  bias = jnp.where(ids < cfg.vocab_size, bias, -1e9)
  return _products(cfg, x, embedding) + jnp.ones((len(x), 1)) @ bias[None]


def _products(cfg: EncoderConfig, x, embedding):
  """Returns x [N, E] times embedding [W, E], float32 [N, W]."""
  products = jnp.einsum("NE,WE->NW", x, embedding.astype(DTYPES[cfg.dtype]))
  return products.astype(jnp.float32)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _loss_in_blocks(cfg: EncoderConfig, x, embedding, bias, labels):
  """Returns loss_and_correct of x [N, E] and labels [N], block by block."""
  return _forward(cfg, x, embedding, bias, labels)[0]


def _forward(cfg: EncoderConfig, x, embedding, bias, labels):
  """Returns (loss [N], correct [N]), and the residuals of the backward pass."""
  blocks = split_vocabulary(len(embedding), cfg.vocab_block)

  def add(carry, i):
    peak, total, picked, best = carry
    vectors, offsets, ids = _block(blocks, i, embedding, bias)
    logits = _logits(cfg, x, vectors, offsets, ids)
    high = jnp.max(logits, axis=1)
    first = ids[jnp.argmax(logits, axis=1)]
    # Blocks are not in the order of ids; the first of equal tokens wins.
    better = (high > peak) | ((high == peak) & (first < best))
    best = jnp.where(better, first, best)
    old, peak = peak, jnp.maximum(peak, high)
    share = jnp.sum(jnp.exp(logits - peak[:, None]), axis=1)
    total = total * jnp.exp(old - peak) + share
    picked += jnp.sum(jnp.where(ids == labels[:, None], logits, 0), axis=1)
    return (peak, total, picked, best), None

  zeros = jnp.zeros(len(x), jnp.float32)
  start = (zeros - jnp.inf, zeros, zeros, jnp.zeros(len(x), jnp.int32))
  (peak, total, picked, best), _ = jax.lax.scan(
    add, start, jnp.arange(blocks.num_blocks)
  )
  normaliser = peak + jnp.log(total)
  scores = normaliser - picked, best == labels
  return scores, (x, embedding, bias, labels, normaliser)


def _backward(cfg: EncoderConfig, saved, grads):
  """Returns the gradients of x, embedding and bias, filled block by block."""
  x, embedding, bias, labels, normaliser = saved
  grad, _ = grads
  blocks = split_vocabulary(len(embedding), cfg.vocab_block)

  def add(carry, i):
    x_sum, *sums = carry
    vectors, offsets, ids = _block(blocks, i, embedding, bias)
    logits, pull = jax.vjp(
      lambda *inputs: _logits(cfg, *inputs, ids), x, vectors, offsets
    )
    # Probability minus label; 0 for padding and tokens of the block before.
    error = jnp.exp(logits - normaliser[:, None]) - (ids == labels[:, None])
    x_grad, *grads = pull(error * grad[:, None])
    sums = [
      _add_rows(blocks, i, total, rows)
      for total, rows in zip(sums, grads, strict=True)
    ]
    return (x_sum + x_grad, *sums), None

  zeros = jnp.zeros(x.shape, jnp.float32)
  start = (zeros, jnp.zeros_like(embedding), jnp.zeros_like(bias))
  (x_sum, *sums), _ = jax.lax.scan(add, start, jnp.arange(blocks.num_blocks))
  return x_sum.astype(x.dtype), *sums, None


_loss_in_blocks.defvjp(_forward, _backward)


def _block(blocks: Blocks, i, embedding, bias):
  """Returns the vectors [W, E], biases [W] and ids [W] of block i.

  A token that is also in the block before gets the id V, which no token has.
  """
  first = _first_row(blocks, i)
  row = first + jnp.arange(blocks.rows)
  strips = jnp.arange(STRIPS)[:, None] * blocks.strip
  is_new = row >= i * blocks.rows
  ids = jnp.where(is_new, strips + row, len(embedding)).reshape(-1)
  vectors, offsets = (
    jax.lax.dynamic_slice_in_dim(
      _strips(blocks, x), first, blocks.rows, axis=1
    ).reshape(-1, *x.shape[1:])
    for x in (embedding, bias)
  )
  return vectors, offsets, ids


def _add_rows(blocks: Blocks, i, total, rows):
  """Returns total [V, ...] with rows [W, ...] of block i added.

  Compiled, the addition is in place.
  """
  first = _first_row(blocks, i)
  strips = _strips(blocks, total)
  rows = rows.reshape(STRIPS, blocks.rows, *rows.shape[1:])
  rows += jax.lax.dynamic_slice_in_dim(strips, first, blocks.rows, axis=1)
  strips = jax.lax.dynamic_update_slice_in_dim(strips, rows, first, axis=1)
  return strips.reshape(total.shape)


def _first_row(blocks: Blocks, i):
  return jnp.minimum(i * blocks.rows, blocks.strip - blocks.rows)


def _strips(blocks: Blocks, x):
  """Returns x [V, ...] as [STRIPS, V / STRIPS, ...]."""
  return x.reshape(STRIPS, blocks.strip, *x.shape[1:])
