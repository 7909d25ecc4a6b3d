"""Windows, batches and results of rows, by hand."""

import numpy as np

from maskedlm.inference import rows
from maskedlm.inference.rows import Row


def test_only_words_longer_than_a_row_are_split():
  words = np.array([0, 0, 0, 1, -1, 2, 2, 2, 2, 2, 2, 2, 3])
  made = rows.token_windows(len(words), 5, lambda: words)
  # Its pieces have 3, 1, 1, 5, 2 and 1 tokens.
  assert [(w.begin, w.end) for w in made] == [(0, 5), (5, 10), (10, 13)]


def test_batch_plan_by_hand():
  lengths = [5, 40, 9, 48, 7, 8, 3]
  plan = rows.plan_padded_batches(lengths, (8, 16, 48), batch_tokens=32)
  # 48: one row each, as 32 // 48 is 0; 16: two; 8: four, of which two remain.
  assert [(which.tolist(), B, L) for which, B, L in plan] == [
    ([3], 1, 48),
    ([1], 1, 48),
    ([2, 5], 2, 16),
    ([4, 0, 6], 4, 8),
  ]


def test_packed_batch_plan_by_hand():
  lengths = [5, 40, 9, 50, 7, 8, 3]
  plan = list(rows.plan_packed_batches(lengths, (8, 16, 52), batch_tokens=110))
  # First fit, longest first: 50 | 40 + 9 + 3 | 8 + 7 + 5. Two rows at a time.
  found = [
    (dict(zip(which.tolist(), starts.tolist(), strict=True)), shape)
    for which, starts, shape in plan
  ]
  assert found == [
    ({3: 0, 1: 52, 2: 92, 6: 101}, (2, 52)),
    ({5: 0, 4: 8, 0: 15}, (1, 52)),
  ]
  # 3 + 9 tokens are one row, as short as a bucket allows.
  (plan,) = rows.plan_packed_batches([3, 9], (8, 16, 52), batch_tokens=110)
  assert plan.shape == (1, 16) and plan.starts.tolist() == [9, 0]
  # A row longer than SHARED_LENGTH is in the bucket that holds it.
  plan = rows.plan_packed_batches([130, 9], (16, 128, 160), batch_tokens=110)
  assert [batch.shape for batch in plan] == [(1, 160), (1, 16)]


def test_bucket_lengths():
  small = (8, 16, 24, 32, 40, 48)
  assert rows.bucket_lengths(50) == (*small, 50)
  assert rows.bucket_lengths(128) == (*small, 56, 64, 80, 96, 112, 128)
  assert rows.bucket_lengths(512)[-5:] == (256, 320, 384, 448, 512)
  assert rows.bucket_lengths(7) == (7,)


def test_padded_rows():
  made = [
    Row(np.int32([2, 7, 3]), np.array([1]), np.array([9])),
    Row(np.int32([2, 7, 8, 6, 3]), types=np.int32([0, 0, 1, 1, 1])),
  ]
  batch = rows.pad_rows(made, 4, 6, pad=5, least=2)
  assert batch["input_ids"].tolist() == [
    [2, 7, 3, 5, 5, 5],
    [2, 7, 8, 6, 3, 5],
    [5] * 6,
    [5] * 6,
  ]
  assert batch["segment_ids"].sum(axis=1).tolist() == [3, 5, 1, 1]
  assert batch["token_type_ids"].tolist()[1] == [0, 0, 1, 1, 1, 0]
  assert batch["masked_positions"].tolist() == [[1, 0], *[[0, 0]] * 3]
  assert batch["masked_labels"].tolist()[0] == [9, 0]
  assert batch["masked_weights"].tolist() == [[1, 0], *[[0, 0]] * 3]


def test_results_are_of_their_rows():
  made = [Row(np.full(n, n, np.int32)) for n in (5, 9, 3, 16, 8)]
  found = rows.compute_padded(
    lambda batch: batch["input_ids"].sum(axis=1),
    made,
    length=16,
    batch_tokens=20,
    pad=0,
  )
  assert dict(found) == {0: 25, 1: 81, 2: 9, 3: 256, 4: 64}
