"""Neighbouring segments: in order (ELECTRA), or swapped by half (SOP)."""

import numpy as np
import pytest

from helpers.splits import (
  SPECIAL,
  make_config,
  make_corpus,
  make_data,
  numbered_documents,
)
from maskedlm.data.batches import pair_rows

DATA = make_data()
CONFIG = make_config(DATA)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
  documents = numbered_documents(3, 150, 9, 7)
  return make_corpus(tmp_path_factory.mktemp("pairs"), documents)


def make_batches(make, corpus, **options):
  return make(CONFIG, corpus, (0, 1), short_share=0.1, **options)


def pairs(batch):
  """Yields the row, the place and A and B of each pair."""
  for i, ids in enumerate(batch["input_ids"]):
    types, segments = batch["token_type_ids"][i], batch["segment_ids"][i]
    for segment in range(segments.max()):
      inside = segments == segment + 1
      assert ids[inside][0] == SPECIAL.cls
      a, b = (ids[inside & (types == type_)] for type_ in (0, 1))
      assert a[-1] == b[-1] == SPECIAL.sep
      yield i, segment, a[1:-1], b[:-1]


def check_pair(first, second):
  """Checks that one contiguous text follows another."""
  for text in (first, second):
    np.testing.assert_array_equal(np.diff(text), 1)
  assert first[-1] < second[0]


@pytest.mark.parametrize("pack", [False, True])
def test_adjacent_pairs_are_in_order(corpus, pack):
  made = make_batches(pair_rows.adjacent_batches, corpus, pack=pack)
  whole = []
  for step in range(40):
    batch = made.batch_at("train", step)
    assert "nsp_labels" not in batch
    for _, _, a, b in pairs(batch):
      check_pair(a, b)
      whole.append(a[-1] + 1 == b[0])
  assert len(whole) >= 240
  assert np.mean(whole) > 0.5  # The others lost tokens where they meet.


@pytest.mark.parametrize("pack", [False, True])
def test_sop_pairs_are_in_order_or_swapped(corpus, pack):
  made = make_batches(pair_rows.sop_batches, corpus, pack=pack)
  labels = []
  for step in range(60):
    batch = made.batch_at("train", step)
    for i, segment, a, b in pairs(batch):
      label = np.atleast_1d(batch["nsp_labels"][i])[segment]
      first, second = (b, a) if label else (a, b)
      check_pair(first, second)
      if len(a) + len(b) < DATA.length - 3:  # Nothing was truncated.
        assert first[-1] + 1 == second[0]
      labels.append(label)
  assert len(labels) >= 360
  bound = 5 * 0.5 / len(labels) ** 0.5
  assert np.mean(labels) == pytest.approx(0.5, abs=bound)
