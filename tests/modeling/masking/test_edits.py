"""Shuffled, deleted and inserted tokens: cases by hand, then properties."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.modeling.masking import edits, tokens
from maskedlm.modeling.masking.tokens import TokenTable

PAD, UNK, CLS, SEP, MASK = range(5)
V = 97
IS_SPECIAL = np.arange(V) < 5
# The example of docs/guides/pretrain/masking.md.
THE, CAT, SAT, ON, MAT, BLUE = 11, 12, 13, 14, 15, 50
TEXT = [CLS, THE, CAT, SAT, ON, THE, MAT, SEP]
ONLY_BLUE = TokenTable(np.array([BLUE], np.int32), np.array([], np.uint32))


def rows_of(*texts, L):
  """Returns a batch of rows of one segment each."""
  real = np.arange(L) < np.array([[len(t)] for t in texts])
  ids = np.array([[*t, *[PAD] * (L - len(t))] for t in texts], np.int32)
  types = real & (np.cumsum(ids == SEP, 1) - (ids == SEP) > 0)
  return {
    "input_ids": ids,
    "segment_ids": real.astype(np.int32),
    "token_type_ids": types.astype(np.int32),
  }


def candidates_of(rows):
  return tokens.maskable(rows["input_ids"], rows["segment_ids"], IS_SPECIAL)


@functools.partial(jax.jit, static_argnames="P")
def shuffle(key, rows, num_to_mask, *, P):
  return edits.shuffle_trigrams(
    key, rows["input_ids"], candidates_of(rows), num_to_mask, num_predictions=P
  )


@jax.jit
def delete(key, rows, positions, weights):
  return edits.delete_tokens(
    *(key, rows, candidates_of(rows), positions, jnp.float32(weights)),
    pad_id=PAD,
  )


@functools.partial(jax.jit, static_argnames="P")
def insert(key, rows, num_to_mask, *, P):
  return edits.insert_tokens(
    key,
    rows,
    candidates_of(rows),
    num_to_mask,
    num_predictions=P,
    pad_id=PAD,
    random_tokens=ONLY_BLUE,
  )


def targets(positions, labels, weights):
  """Returns for each row the set of (position, label) with weight."""
  return [
    {(int(p), int(y)) for p, y, w in zip(*row, strict=True) if w}
    for row in zip(positions, labels, weights, strict=True)
  ]


# Shuffling.


def test_a_shuffled_trigram_by_hand():
  # One trigram: columns 1-3, 2-4, 3-5 or 4-6, in any order.
  rows = rows_of(TEXT, L=9)
  seen = set()
  for k in range(200):
    ids, positions, labels, weights = map(
      np.asarray, shuffle(jax.random.key(k), rows, jnp.array([5]), P=5)
    )
    assert positions.shape == (1, 3)
    assert (weights == 1).all()
    start = positions[0, 0]
    np.testing.assert_array_equal(positions[0], start + np.arange(3))
    np.testing.assert_array_equal(
      labels, rows["input_ids"][:, start : start + 3]
    )
    order = [
      TEXT.index(t, start if t == THE else 0) for t in ids[0, positions[0]]
    ]
    seen.add((int(start), *(i - start for i in order)))
    others = np.delete(np.arange(9), positions[0])
    np.testing.assert_array_equal(ids[0, others], rows["input_ids"][0, others])
  assert {start for start, *_ in seen} == {1, 2, 3, 4}
  assert len(seen) == 24  # Each start has all six orders.


def test_trigrams_do_not_overlap_and_are_never_special():
  # Trigrams of real text only; two of them (8 // 3) where there is room.
  rows = rows_of(
    [CLS, *range(20, 31), SEP],
    [CLS, 20, 21, SEP, 22, 23, UNK, 24, SEP],
    [CLS, 20, 21, 22, SEP],
    L=13,
  )
  num_to_mask = jnp.array([8, 8, 1])
  found = np.zeros(3)
  for k in range(60):
    ids, positions, labels, weights = map(
      np.asarray, shuffle(jax.random.key(k), rows, num_to_mask, P=9)
    )
    for b in range(3):
      used = positions[b, weights[b] > 0]
      assert len(set(used)) == len(used)
      assert (rows["input_ids"][b, used] >= 5).all()
      np.testing.assert_array_equal(
        labels[b, weights[b] > 0], rows["input_ids"][b, used]
      )
      np.testing.assert_array_equal(
        np.sort(ids[b]), np.sort(rows["input_ids"][b])
      )
    found += weights.sum(1) / 3
  assert found[0] == 120  # 11 tokens hold two trigrams in any phase.
  assert found[1] == 0
  assert 10 < found[2] < 30  # One row in three has the phase of column 1.


def test_orders_and_places_are_uniform():
  # 20,000 rows of 11 tokens, one trigram each.
  N = 20_000
  rows = rows_of([CLS, *range(20, 31), SEP], L=13)
  rows = {k: np.tile(x, (N, 1)) for k, x in rows.items()}
  ids, positions, _, weights = map(
    np.asarray, shuffle(jax.random.key(3), rows, jnp.full(N, 3), P=3)
  )
  assert (weights == 1).all()
  start = positions[:, 0]
  order = np.take_along_axis(ids, positions, 1) - 19 - start[:, None]
  _, counts = np.unique(order, axis=0, return_counts=True)
  assert len(counts) == 6
  assert np.abs(counts - N / 6).max() < 5 * math.sqrt(N / 6)
  # Phases 1 and 2 have trigrams at 1 4 7 and 2 5 8, phase 0 at 3 6 9.
  places, counts = np.unique(start, return_counts=True)
  np.testing.assert_array_equal(places, np.arange(1, 10))
  assert np.abs(counts - N / 9).max() < 5 * math.sqrt(N / 9)


# Deleting.


def test_deletion_by_hand():
  # The example of docs/guides/pretrain/masking.md.
  rows = rows_of(TEXT, L=9)
  positions, weights = np.array([[6, 2, 3, 0]]), np.array([[1, 1, 1, 0]])
  moved, *predictions = delete(jax.random.key(0), rows, positions, weights)
  np.testing.assert_array_equal(
    moved["input_ids"], [[CLS, THE, ON, THE, SEP, PAD, PAD, PAD, PAD]]
  )
  np.testing.assert_array_equal(moved["segment_ids"], [[1] * 5 + [0] * 4])
  np.testing.assert_array_equal(moved["token_type_ids"], [[0] * 9])
  assert targets(*predictions) == [{(1, CAT), (3, MAT), (0, PAD), (2, PAD)}]
  assert predictions[0].shape == (1, 8)


def test_deletion_in_pairs_and_without_intact_places():
  # [CLS] the [SEP] cat sat [SEP]: the second text loses its first token, so the
  # gap is after [SEP]. The other row loses all of its text: one gap, and no
  # intact place.
  rows = rows_of([CLS, THE, SEP, CAT, SAT, SEP], [CLS, THE, CAT, SEP], L=7)
  positions, weights = np.array([[3, 0], [2, 1]]), np.array([[1, 0], [1, 1]])
  moved, *predictions = delete(jax.random.key(0), rows, positions, weights)
  np.testing.assert_array_equal(
    moved["input_ids"],
    [[CLS, THE, SEP, SAT, SEP, PAD, PAD], [CLS, SEP] + [PAD] * 5],
  )
  np.testing.assert_array_equal(
    moved["token_type_ids"][0], [0, 0, 0, 1, 1, 0, 0]
  )
  first, second = targets(*predictions)
  # The only intact place is after [CLS].
  assert first == {(2, CAT), (0, PAD)}
  assert second == {(0, THE)}


# Inserting.


def test_insertion_into_a_full_row():
  # Two tokens into rows of 9 with room for one and for none: the last tokens of
  # the text are dropped, [SEP] stays. Pairs keep their types.
  pair = [CLS, 21, 22, SEP, 23, 24, 25, 26, SEP]
  rows = rows_of(TEXT, pair, L=9)
  for k in range(20):
    moved, *predictions = insert(
      jax.random.key(k), rows, jnp.array([2, 2]), P=2
    )
    ids, types = map(np.asarray, (moved["input_ids"], moved["token_type_ids"]))
    assert (ids == BLUE).sum(1).tolist() == [2, 2]
    left = [[t for t in row if t != BLUE] for row in ids.tolist()]
    assert left[0] == [CLS, THE, CAT, SAT, ON, THE, SEP]
    assert left[1] == [CLS, 21, 22, SEP, 23, 24, SEP]
    assert (np.asarray(moved["segment_ids"]) == 1).all()
    second = np.cumsum(ids[1] == SEP) - (ids[1] == SEP) > 0
    # A token before 23 is of 23's segment, one before [SEP] is of [SEP]'s.
    np.testing.assert_array_equal(types[1], second)
    for row, found in zip(ids, targets(*predictions), strict=True):
      assert sum(label == PAD for _, label in found) == 2
      assert all(row[p] == (y or BLUE) for p, y in found)
      assert len(found) == 4


def test_intact_places_are_independent_of_inserted_ones():
  # Of 10 tokens, one has a token inserted before it and one is predicted as an
  # intact place: it is the same one in a tenth of 400 rows.
  rows = rows_of(*[[CLS, *range(21, 31), SEP]] * 400, L=13)
  num_to_mask = jnp.ones(400, jnp.int32)
  _, positions, *_ = insert(jax.random.key(1), rows, num_to_mask, P=1)
  inserted, intact = np.asarray(positions).T
  assert 15 < np.sum(intact == inserted + 1) < 65


def packed_rows():
  """Returns a row of [CLS] 21 22 23 [SEP] and [CLS] 24 25 26 27 [SEP]."""
  ids = [CLS, 21, 22, 23, SEP, CLS, 24, 25, 26, 27, SEP, PAD, PAD]
  return {
    "input_ids": np.array([ids], np.int32),
    "segment_ids": np.array([[1] * 5 + [2] * 6 + [0] * 2], np.int32),
    "token_type_ids": np.zeros((1, 13), np.int32),
    "positions": np.array([[*range(5), *range(6), 0, 0]], np.int32),
    "cls_positions": np.array([[0, 5, 0]], np.int32),
    "nsp_labels": np.array([[1, 0, 0]], np.int32),
  }


def test_packed_rows_are_moved():
  rows = packed_rows()
  moved, *_ = delete(
    jax.random.key(0), rows, np.array([[2, 7]]), np.array([[1, 1]])
  )
  expected = {
    "input_ids": [[CLS, 21, 23, SEP, CLS, 24, 26, 27, SEP] + [PAD] * 4],
    "segment_ids": [[1] * 4 + [2] * 5 + [0] * 4],
    "positions": [[*range(4), *range(5), 0, 0, 0, 0]],
    "cls_positions": [[0, 4, 0]],
    "nsp_labels": rows["nsp_labels"],
  }
  for name, value in expected.items():
    np.testing.assert_array_equal(moved[name], value)
  for k in range(20):
    moved, *_ = insert(jax.random.key(k), rows, jnp.array([4]), P=4)
    moved = {name: np.asarray(x)[0] for name, x in moved.items()}
    at = moved["cls_positions"][1]
    ids, segments = moved["input_ids"], moved["segment_ids"]
    assert (ids == BLUE).sum() == 4
    assert ids[0] == ids[at] == CLS
    np.testing.assert_array_equal(segments, 1 + (np.arange(13) >= at))
    np.testing.assert_array_equal(
      moved["positions"], np.arange(13) - at * (segments == 2)
    )


# All corruptions.


def test_properties_of_corrupted_rows():
  # 2,000 rows of 2 to 29 tokens: special tokens are kept; targets are distinct
  # positions of real tokens with the labels of the text.
  rng = np.random.default_rng(0)
  texts = [
    [CLS, *rng.integers(5, 50, n), SEP] for n in rng.integers(0, 28, 2_000)
  ]
  rows = rows_of(*texts, L=29)
  candidates = candidates_of(rows)
  num_real = rows["segment_ids"].sum(1)
  num_to_mask = tokens.count_to_mask(
    num_real, rate=0.3, length=29, num_predictions=9
  )
  key = jax.random.key(1)
  positions, weights = tokens.choose_tokens(
    key, candidates, num_to_mask, num_predictions=9
  )
  for name, (moved, *predictions) in {
    "delete": delete(key, rows, positions, weights),
    "insert": insert(key, rows, num_to_mask, P=9),
  }.items():
    ids = np.asarray(moved["input_ids"])
    real = np.asarray(moved["segment_ids"]) > 0
    change = np.asarray(weights).sum(1) * {"delete": -1, "insert": 1}[name]
    np.testing.assert_array_equal(
      real.sum(1), np.minimum(num_real + change, 29)
    )
    np.testing.assert_array_equal(ids == PAD, ~real)
    np.testing.assert_array_equal((ids == CLS).sum(1), 1)
    last = real.sum(1) - 1
    assert (ids[np.arange(2_000), last] == SEP).all()
    at, labels, used = (np.asarray(x) for x in predictions)
    assert at.shape == (2_000, 18)
    assert (at[used == 0] == 0).all()
    assert (labels[used == 0] == 0).all()
    for b, found in enumerate(targets(at, labels, used)):
      assert len({p for p, _ in found}) == used[b].sum()
      assert all(real[b, p] for p, _ in found)
      if name == "insert":
        assert all(ids[b, p] == (y or BLUE) for p, y in found)
