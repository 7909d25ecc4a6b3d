"""The linear Viterbi against the CRF's with forbidden transitions."""

import functools

import jax
import numpy as np
import pytest

from maskedlm.data.labelled import bio
from maskedlm.modeling.task_heads import crf
from maskedlm.modeling.task_heads.bio_viterbi import viterbi_bio


@pytest.mark.parametrize("types", [1, 3])
def test_equal_to_a_crf_without_scores(types):
  tags = bio.all_tags([f"C-A{i}" for i in range(types)], "bio")
  scores = np.random.default_rng(types).normal(size=(7, 11, len(tags)))
  # I is tempting where it is not allowed.
  scores[..., types + 1 :] += 1.5
  lengths = np.array([11, 1, 0, 5, 10, 2, 8])
  scores = scores.astype(np.float32)
  legal = crf.legal_transitions(
    tags, functools.partial(bio.may_follow, scheme="bio")
  )
  expected, best = jax.jit(crf.viterbi)(scores, legal, lengths)
  found = np.asarray(jax.jit(viterbi_bio)(scores, lengths))
  assert found.dtype == np.int32
  np.testing.assert_array_equal(found, expected)
  for row, length, total in zip(found, lengths, np.asarray(best), strict=True):
    names = [tags[t] for t in row[:length]]
    assert names == bio.repair_tags(names)
    place = np.flatnonzero(lengths == length)[0]
    chosen = scores[place, np.arange(length), row[:length]]
    assert total == pytest.approx(chosen.sum(), abs=1e-3)
