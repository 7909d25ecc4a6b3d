"""Packing of short rows: the layout, the batch, and the unpacked vectors."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import encoder_reference as reference
from maskedlm.finetune.common import packing
from maskedlm.finetune.common.packing import PackingLayout
from maskedlm.finetune.contract import Rows
from maskedlm.modeling import masked_lm


@pytest.mark.parametrize("seed", range(3))
def test_compiled_row_counts_minimise_padding(seed):
  needed = np.random.default_rng(seed).integers(1, 10, 7)

  def padded(counts):
    return np.array(counts)[np.searchsorted(counts, needed)].sum()

  counts = packing.choose_row_counts(needed, 10, compiling=0)
  assert len(counts) <= 4 and counts[-1] == 10
  assert padded(counts) == min(
    padded((*some, 10)) for some in itertools.combinations(range(1, 10), 3)
  )


def cheapest_layout(
  microbatches, *, width, costs=packing.ELSEWHERE, num_steps=10**9
):
  return packing.cheapest_layout(
    microbatches, length=8, width=width, costs=costs, num_steps=num_steps
  )


def test_a_short_run_compiles_few_counts():
  # Batches that fill 3 and 5 rows of 8. One count instead of two adds a row to
  # a step of 4; compiling takes as long as 10 steps, which is 40 rows.
  batches = [np.array([8, 8, 1, 1, 1, 1]), np.array([8, 8, 8, 8, 1, 1])]
  wide = {"width": 10**6, "costs": packing.RowCosts((1,), 1, 10)}
  assert cheapest_layout(batches, **wide, num_steps=39).counts == (5, 6)
  assert cheapest_layout(batches, **wide, num_steps=41).counts == (3, 5, 6)


def test_the_cheapest_layout_is_chosen():
  # Rows of 5: one fits in 8, two in 16 and four in 32, with the same padding.
  # The encoder is wide, so longer rows' attention costs nearly nothing.
  short = [np.array([5, 5, 5, 5])]
  assert cheapest_layout(short, width=10**6) == PackingLayout(8, (4,))
  # Rows of 3: two fit in 8, five in 16.
  shorter = [np.array([3] * 10)]
  assert cheapest_layout(shorter, width=10**6) == PackingLayout(16, (2, 10))
  # Saving 1 row of 21 is not worth a compilation, 1 of 19 is.
  almost = [np.array([8] * 19 + [4] * 2)]
  assert cheapest_layout(almost, width=10**6) == PackingLayout(8, (21,))
  fewer = [np.array([8] * 17 + [4] * 2)]
  assert cheapest_layout(fewer, width=10**6) == PackingLayout(8, (18, 19))
  # In a narrow encoder attention matters.
  assert cheapest_layout(shorter, width=1) == PackingLayout(8, (5, 10))


def test_microbatches_follow_devices_and_accumulation():
  # 12 rows on 2 devices in 3 steps: device 0 has rows 0 to 5, of which 0 and 3
  # are in its first microbatch.
  microbatches = packing.microbatch_rows(12, 2, 3)
  assert microbatches.tolist() == [
    *([0, 3], [1, 4], [2, 5]),
    *([6, 9], [7, 10], [8, 11]),
  ]
  assert packing.microbatch_rows(4, 1, 1).tolist() == [[0, 1, 2, 3]]


def pack(lengths, choices=1, *, microbatches, layout, length, own=None):
  """Packs rows; choice c of row i holds 100 i + 10 c, ..., with types i."""
  ids = [
    100 * i + 10 * np.arange(choices)[:, None] + np.arange(n)
    for i, n in enumerate(lengths)
  ]
  types = [x * 0 + i for i, x in enumerate(ids)]
  sizes = np.repeat(np.array(lengths)[:, None], choices, axis=1)
  return packing.pack_batch(
    Rows(
      {"input_ids": ids, "token_type_ids": types},
      {"sequence_lengths": sizes},
      np.arange(len(lengths)),
    ),
    np.arange(len(lengths)),
    microbatches,
    layout,
    own=np.arange(len(microbatches)) if own is None else own,
    length=length,
    pad=9,
  )


def test_a_packed_batch_by_hand():
  fields = pack(
    [2, 3, 4, 1],
    microbatches=np.array([[0, 2], [1, 3]]),
    layout=PackingLayout(5, (1, 2)),
    length=4,
  )
  packed = {name: x.tolist() for name, x in fields["packed"].items()}
  # The first microbatch needs two rows of 5 for 4 + 2, the second one for
  # 3 + 1: both get two.
  assert packed["input_ids"] == [
    [[200, 201, 202, 203, 9], [0, 1, 9, 9, 9]],
    [[100, 101, 102, 300, 9], [9, 9, 9, 9, 9]],
  ]
  assert packed["token_type_ids"] == [
    [[2, 2, 2, 2, 0], [0, 0, 0, 0, 0]],
    [[1, 1, 1, 3, 0], [0, 0, 0, 0, 0]],
  ]
  assert packed["segment_ids"] == [
    [[2, 2, 2, 2, 0], [1, 1, 0, 0, 0]],
    [[1, 1, 1, 2, 0], [0, 0, 0, 0, 0]],
  ]
  assert packed["positions"] == [
    [[0, 1, 2, 3, 0], [0, 1, 0, 0, 0]],
    [[0, 1, 2, 0, 0], [0, 0, 0, 0, 0]],
  ]
  assert fields["places"].tolist() == [
    [[5, 6, 0, 0], [0, 1, 2, 3]],
    [[0, 1, 2, 0], [3, 0, 0, 0]],
  ]


def test_choices_are_packed_by_hand():
  # Two rows of two choices, of 2 and 3 tokens: each choice is a segment.
  fields = pack(
    [2, 3],
    2,
    microbatches=np.array([[0, 1]]),
    layout=PackingLayout(5, (2,)),
    length=3,
  )
  assert fields["packed"]["input_ids"].tolist() == [
    [[100, 101, 102, 0, 1], [110, 111, 112, 10, 11]]
  ]
  assert fields["packed"]["segment_ids"].tolist() == [
    [[3, 3, 3, 1, 1], [4, 4, 4, 2, 2]]
  ]
  assert fields["places"].tolist() == [
    [[3, 4, 0], [8, 9, 0], [0, 1, 2], [5, 6, 7]]
  ]


def test_a_host_packs_its_own_microbatches_in_the_common_shape():
  options = {
    "microbatches": np.array([[0], [1]]),
    "layout": PackingLayout(4, (1, 2)),
  }
  whole = pack([2, 3], length=3, **options)
  own = pack([2, 3], length=3, own=np.array([1]), **options)
  jax.tree.map(lambda x, y: np.testing.assert_array_equal(x[1:], y), whole, own)


@pytest.mark.parametrize("position", ["learned", "rope"])
def test_packed_rows_get_the_vectors_that_they_have_alone(position):
  cfg = reference.config(position=position)
  params = jax.device_put(reference.make_params(cfg))
  rng, lengths, L = np.random.default_rng(0), [7, 3, 5, 2, 4, 6], 8
  ids = [rng.integers(5, 17, n, dtype=np.int32) for n in lengths]
  types = [rng.integers(0, 2, n, dtype=np.int32) for n in lengths]
  alone = {
    name: np.zeros((6, L), np.int32)
    for name in ("input_ids", "token_type_ids", "segment_ids")
  }
  for i, n in enumerate(lengths):
    alone["input_ids"][i, :n] = ids[i]
    alone["token_type_ids"][i, :n] = types[i]
    alone["segment_ids"][i, :n] = 1
  fields = packing.pack_batch(
    Rows({"input_ids": ids, "token_type_ids": types}, {}, np.arange(6)),
    np.arange(6),
    packing.microbatch_rows(6, 1, 2),
    PackingLayout(12, (2,)),
    own=np.arange(2),
    length=L,
    pad=0,
  )

  @jax.jit
  def both(batch):
    return (
      masked_lm.encode(cfg, params, batch, None, False),
      masked_lm.encode_layers(cfg, params, batch),
    )

  # gradient_of's order: the microbatches are rows 0, 2, 4 and 1, 3, 5.
  for m in range(2):
    rows = {name: x[m::2] for name, x in alone.items()}
    microbatch = jax.tree.map(lambda x, m=m: x[m : m + 1], fields)
    packed = {**rows, **microbatch}
    expected, layers = both(rows)
    found, of_packed = both(packed)
    real = rows["segment_ids"] > 0
    np.testing.assert_allclose(found[real], expected[real], atol=1e-5)
    assert not jnp.any(found[~real])
    found = np.stack([masked_lm.unpack(x, packed) for x in of_packed])
    np.testing.assert_allclose(found[:, real], layers[:, real], atol=1e-5)
