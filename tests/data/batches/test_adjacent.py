"""ELECTRA's rows: running text in two segments, always in order."""

import numpy as np
import pytest

from helpers.splits import (
  FIRST_ID,
  SPECIAL,
  make_config,
  make_corpus,
  make_data,
  random_documents,
)
from maskedlm.data.batches import pair_rows

DATA = make_data()
CONFIG = make_config(DATA, num_steps=400)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
  """Every token has an id of its own: FIRST_ID + its place in the split."""
  ids = iter(range(FIRST_ID, 1 << 16))
  documents = [
    [[next(ids) for _ in sentence] for sentence in document]
    for document in random_documents(3, 150, 9, 7)
  ]
  return make_corpus(tmp_path_factory.mktemp("adjacent"), documents)


@pytest.mark.parametrize("pack", [False, True])
def test_b_always_follows_a(corpus, pack):
  made = pair_rows.adjacent_batches(
    CONFIG, corpus, (0, 1), short_share=0.1, pack=pack
  )
  count = whole = 0
  for step in range(40):
    batch = made.batch_at("train", step)
    assert "nsp_labels" not in batch
    for i, ids in enumerate(batch["input_ids"]):
      kinds, segments = batch["token_type_ids"][i], batch["segment_ids"][i]
      for segment in range(1, segments.max() + 1):
        inside = segments == segment
        assert ids[inside][0] == SPECIAL.cls
        a, b = (ids[inside & (kinds == kind)] for kind in (0, 1))
        assert a[-1] == b[-1] == SPECIAL.sep
        a, b = a[1:-1], b[:-1]
        np.testing.assert_array_equal(np.diff(a), 1)
        np.testing.assert_array_equal(np.diff(b), 1)
        assert a[-1] < b[0]
        whole += a[-1] + 1 == b[0]
        count += 1
  assert count >= 240
  assert whole / count > 0.5  # The others lost tokens where they meet.


def test_it_is_the_pair_of_nsp_where_b_is_next(corpus):
  ours = pair_rows.adjacent_batches(CONFIG, corpus, (0, 1), short_share=0.1)
  nsp = pair_rows.nsp_batches(CONFIG, corpus, (0, 1), short_share=0.1)
  for step in range(50):
    first, second = (x.batch_at("train", step) for x in (ours, nsp))
    is_next = second["nsp_labels"] == 0
    for name in ("input_ids", "token_type_ids", "segment_ids"):
      np.testing.assert_array_equal(first[name][is_next], second[name][is_next])
