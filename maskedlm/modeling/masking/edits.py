"""Corruptions that move tokens: shuffling, deletion, insertion.

Each has its own positions and labels (docs/guides/pretrain/masking.md):

- shuffle: at each place of a shuffled trigram, the original token.
- delete: at the token left of a gap, the first token that is missing; at as
  many intact places, NOTHING.
- insert: at an inserted token, NOTHING; at as many tokens of the text, the
  token itself.

So the model must locate deletions and insertions as well as undo them: half of
the predictions are at intact places. NOTHING is the id of [PAD], which no text
contains.

Keys, predictions and static shapes are as in tokens.py.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.core.task import Batch
from maskedlm.modeling.arrays import Array, Bool, Float, Int, Key
from maskedlm.modeling.masking.tokens import (
  TokenTable,
  choose_tokens,
  draw_tokens,
  write_at,
)

ORDERS = np.array(list(itertools.permutations(range(3))))  # Identity first.


def shuffle_trigrams(
  key: Key[Array, ""],
  input_ids: Int[Array, "B L"],
  candidates: Bool[Array, "B L"],
  num_to_mask: Int[Array, " B"],
  *,
  num_predictions: int,
) -> tuple[
  Int[Array, "B L"], Int[Array, "B P"], Int[Array, "B P"], Float[Array, "B P"]
]:
  """Shuffles trigrams (StructBERT, Wang et al., arXiv:1908.04577, section 2.2).

  A trigram is three neighbouring tokens, none of them special. It gets one of
  its six orders at random, so one in six is unchanged. Trigrams do not overlap:
  in a row, all begin at columns with the same remainder modulo 3, which is
  drawn for each row.

  Args:
    key: decides which, and their order.
    candidates: tokens that may be moved.
    num_to_mask: tokens to shuffle: three for each trigram, of which there is at
      least one.
    num_predictions: at least 3; rounded down to a multiple of 3, which is P.

  Returns:
    input_ids, positions, labels, weights.
  """
  B, L = input_ids.shape
  G = num_predictions // 3
  phase_key, choose_key, order_key = jax.random.split(key, 3)
  phase = jax.random.randint(phase_key, (B, 1), 0, 3)
  whole = candidates & _next(candidates) & _next(candidates, 2)
  starts, weights = choose_tokens(
    choose_key,
    whole & (jnp.arange(L) % 3 == phase),
    jnp.clip(num_to_mask // 3, 1, G),
    num_predictions=G,
  )
  positions = starts[..., None] + jnp.arange(3)  # [B, G, 3]
  positions = jnp.where(weights[..., None] > 0, positions, 0)
  drawn = jax.random.randint(order_key, (B, G), 0, len(ORDERS))
  order = jnp.asarray(ORDERS)[drawn]
  positions = positions.reshape(B, 3 * G)
  original = jnp.take_along_axis(input_ids, positions, axis=1)
  shuffled = jnp.take_along_axis(original.reshape(B, G, 3), order, axis=2)
  weights = jnp.repeat(weights, 3, axis=1)
  corrupted = write_at(
    input_ids, positions, weights, shuffled.reshape(B, 3 * G)
  )
  labels = jnp.where(weights > 0, original, 0)
  return corrupted, positions, labels, weights


def delete_tokens(
  key: Key[Array, ""],
  rows: Batch,
  candidates: Bool[Array, "B L"],
  positions: Int[Array, "B P"],
  weights: Float[Array, "B P"],
  *,
  pad_id: int,
):
  """Deletes the chosen tokens; the row closes up and is padded.

  Args:
    key: for the intact places that are predicted.
    rows: `rearrange` lists the fields that are read.
    candidates: tokens that might have been chosen: a place is a remaining token
      whose right neighbour is a candidate.
    positions, weights: the chosen tokens.
    pad_id: id of [PAD]: padding, and NOTHING.

  Returns:
    The rows, and positions, labels [B, 2P] int32, weights [B, 2P] float32:
    first the gaps, one prediction each whatever their length, then as many
    intact places.
  """
  input_ids = rows["input_ids"]
  P = positions.shape[1]
  deleted = _marked(input_ids, positions, weights)
  to = _columns(input_ids) - jnp.cumsum(deleted, axis=1)
  source = _origin(to, ~deleted)
  place = ~deleted & _next(candidates)
  gap = place & _next(deleted)
  num_gaps = jnp.sum(gap, axis=1)
  gaps = choose_tokens(key, gap, num_gaps, num_predictions=P)
  intact = choose_tokens(key, place & ~gap, num_gaps, num_predictions=P)
  predictions = _join(
    _predictions(*gaps, to, _next(input_ids)),
    _predictions(*intact, to, jnp.full_like(input_ids, pad_id)),
  )
  return rearrange(rows, source, to, pad_id=pad_id), *predictions


def insert_tokens(
  key: Key[Array, ""],
  rows: Batch,
  candidates: Bool[Array, "B L"],
  num_to_mask: Int[Array, " B"],
  *,
  num_predictions: int,
  pad_id: int,
  random_tokens: TokenTable,
):
  """Inserts random tokens before tokens of the text.

  To make room, the last tokens of the row are dropped, except special ones. An
  inserted token belongs to the segment of the token it precedes.

  Args:
    key: decides which, and where.
    rows: `rearrange` lists the fields that are read.
    candidates: tokens that others may precede.
    num_to_mask: tokens to insert, each before another token, at most P.
    num_predictions: P.
    pad_id: id of [PAD]: padding, and NOTHING.
    random_tokens: what inserted tokens are drawn from.

  Returns:
    The rows, and positions, labels [B, 2P] int32, weights [B, 2P] float32:
    first the inserted tokens, then as many tokens of the text.
  """
  input_ids = rows["input_ids"]
  L = input_ids.shape[1]
  choose_key, token_key, intact_key = jax.random.split(key, 3)
  num_real = jnp.sum(rows["segment_ids"] > 0, axis=1)
  excess = jnp.maximum(num_real + num_to_mask - L, 0)
  from_end = jnp.cumsum(candidates[:, ::-1], axis=1)[:, ::-1]
  dropped = candidates & (from_end <= excess[:, None])
  kept = candidates & ~dropped
  before, weights = choose_tokens(
    choose_key, kept, num_to_mask, num_predictions=num_predictions
  )
  inserted = _marked(input_ids, before, weights)
  shift = inserted.astype(jnp.int32) - dropped
  to = _columns(input_ids) + jnp.cumsum(shift, axis=1)
  at = jnp.take_along_axis(to, before, axis=1) - 1
  source = write_at(_origin(to, ~dropped), at, weights, before)
  moved = rearrange(rows, source, to, pad_id=pad_id)
  drawn = draw_tokens(token_key, random_tokens, before.shape)
  moved["input_ids"] = write_at(moved["input_ids"], at, weights, drawn)
  intact, intact_weights = choose_tokens(
    intact_key, kept, jnp.sum(inserted, axis=1), num_predictions=num_predictions
  )
  predictions = _join(
    _predictions(before, weights, to - 1, jnp.full_like(input_ids, pad_id)),
    _predictions(intact, intact_weights, to, input_ids),
  )
  return moved, *predictions


def rearrange(
  rows: Batch, source: Int[Array, "B L"], to: Int[Array, "B L"], *, pad_id: int
) -> dict[str, Array]:
  """Returns the rows with each column taken from another one.

  Args:
    rows: input_ids, segment_ids, token_type_ids [B, L]; in packed rows also
      positions [B, L] and cls_positions [B, G]. Other fields are kept.
    source: the column to take; L for padding.
    to: the column that each one moves to, if it is taken.
    pad_id: id of [PAD].
  """
  L = source.shape[1]
  real, column = source < L, jnp.minimum(source, L - 1)

  def take(name, padding):
    values = jnp.take_along_axis(rows[name], column, axis=1)
    return jnp.where(real, values, padding)

  moved = {
    **rows,
    "input_ids": take("input_ids", pad_id),
    "segment_ids": take("segment_ids", 0),
    "token_type_ids": take("token_type_ids", 0),
  }
  if "positions" in rows:
    segment_ids = moved["segment_ids"]
    column = _columns(segment_ids)
    begins = segment_ids != jnp.roll(segment_ids, 1, axis=1)
    first = jax.lax.cummax(jnp.where(begins, column, 0), axis=1)
    moved["positions"] = jnp.where(segment_ids > 0, column - first, 0)
  if "cls_positions" in rows:
    moved["cls_positions"] = jnp.take_along_axis(
      to, rows["cls_positions"], axis=1
    )
  return moved


def _columns(x):
  """Returns 0, 1, ... L - 1 in each row, of the shape of x [B, L]."""
  return jnp.broadcast_to(jnp.arange(x.shape[1]), x.shape)


def _next(x, steps=1):
  """Returns x [B, L] shifted left, filled with 0 or False."""
  return jnp.pad(x[:, steps:], ((0, 0), (0, steps)))


def _marked(x, positions, weights):
  """Returns bool [B, L], the shape of x: True at positions of weight > 0."""
  nowhere = jnp.zeros(x.shape, bool)
  return write_at(nowhere, positions, weights, jnp.ones(positions.shape, bool))


def _origin(to, kept):
  """Returns the column that moves to each column, [B, L]; L for none."""
  L = to.shape[1]
  return write_at(jnp.full_like(to, L), to, kept, _columns(to))


def _predictions(columns, weights, to, labels):
  """Returns positions, labels, weights [B, P] of predictions at old columns."""
  used = weights > 0
  at, label = (
    jnp.where(used, jnp.take_along_axis(x, columns, axis=1), 0)
    for x in (to, labels)
  )
  return at, label, weights


def _join(*predictions):
  return tuple(
    jnp.concatenate(x, axis=1) for x in zip(*predictions, strict=True)
  )
