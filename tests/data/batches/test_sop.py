"""Sentence order: neighbouring texts, swapped or not, and truncated alike."""

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


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
  """Every token has an id of its own: FIRST_ID + its place in the split."""
  ids = iter(range(FIRST_ID, 1 << 16))
  documents = [
    [[next(ids) for _ in sentence] for sentence in document]
    for document in random_documents(3, 150, 9, 7)
  ]
  return make_corpus(tmp_path_factory.mktemp("sop"), documents)


def texts(batch):
  """(label, A, B) of each pair; a packed row has several."""
  for i, ids in enumerate(batch["input_ids"]):
    kinds, segments = batch["token_type_ids"][i], batch["segment_ids"][i]
    labels = np.atleast_1d(batch["nsp_labels"][i])
    for segment in range(1, segments.max() + 1):
      inside = segments == segment
      assert ids[inside][0] == SPECIAL.cls
      a, b = (ids[inside & (kinds == kind)] for kind in (0, 1))
      assert a[-1] == b[-1] == SPECIAL.sep
      yield labels[segment - 1], a[1:-1], b[:-1]


def make(corpus, *, short_share=0.1, pack=False, **changes):
  config = make_config(DATA, **{"num_steps": 400, **changes})
  return pair_rows.sop_batches(
    config, corpus, (0, 1), short_share=short_share, pack=pack
  )


@pytest.mark.parametrize("pack", [False, True])
def test_b_follows_a_or_a_follows_b(corpus, pack):
  made = make(corpus, pack=pack)
  seen = []
  for step in range(60):
    for label, a, b in texts(made.batch_at("train", step)):
      first, second = (b, a) if label else (a, b)
      # Each is contiguous text, and what is left of the first comes first.
      for text in (first, second):
        np.testing.assert_array_equal(np.diff(text), 1)
      assert first[-1] < second[0]
      if len(a) + len(b) < DATA.length - 3:  # Nothing was truncated.
        assert first[-1] + 1 == second[0]
      seen.append(label)
  assert len(seen) >= 360
  bound = 5 * 0.5 / len(seen) ** 0.5
  assert np.mean(seen) == pytest.approx(0.5, abs=bound)


def test_in_order_it_is_the_pair_of_nsp(corpus):
  # The same rows, split points and cuts as for next-sentence prediction.
  config = make_config(DATA, num_steps=400)
  nsp = pair_rows.nsp_batches(config, corpus, (0, 1), short_share=0.1)
  ours = make(corpus)
  for step in range(50):
    first, second = (x.batch_at("train", step) for x in (ours, nsp))
    np.testing.assert_array_equal(first["nsp_labels"], second["nsp_labels"])
    in_order = first["nsp_labels"] == 0
    for name in ("input_ids", "token_type_ids", "segment_ids"):
      np.testing.assert_array_equal(
        first[name][in_order], second[name][in_order]
      )
