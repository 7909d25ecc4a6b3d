"""Linking spans on the host, against a loop over all pairs."""

import time

import numpy as np

from maskedlm.finetune.coreference_chains import linking
from maskedlm.finetune.coreference_chains.linking import Spans
from maskedlm.modeling.task_heads.chain_head import DISTANCES


def random_spans(count, words, seed=0, width=7):
  draw = np.random.default_rng(seed)
  begins = np.sort(draw.integers(0, words, count))
  return Spans(
    begins,
    begins + draw.integers(1, 5, count),
    draw.normal(size=count),
    *draw.normal(size=(2, count, width)),
  )


def test_crossing_spans_go_by_score():
  #        0-3 crosses 2-5, which is better; 3-4 is in it; 0-2 only touches it.
  begins, ends = np.array([0, 0, 2, 3]), np.array([2, 3, 5, 4])
  rows = np.zeros((4, 1))
  spans = Spans(begins, ends, np.array([1.0, 2.0, 3.0, 0.0]), rows, rows)
  found = linking.without_crossings(spans)
  assert found.begins.tolist() == [0, 2, 3]
  assert found.ends.tolist() == [2, 5, 4]


def test_no_pair_crosses_and_what_is_left_out_crosses_a_better_one():
  spans = random_spans(80, 60)
  found = linking.without_crossings(spans)
  kept = list(zip(found.begins, found.ends, found.scores, strict=True))

  def crosses(a, b, c, d):
    return a < c < b < d or c < a < d < b

  for a, b, score in zip(spans.begins, spans.ends, spans.scores, strict=True):
    worse = [s for c, d, s in kept if crosses(a, b, c, d)]
    assert ((a, b, score) in kept) == (not worse)
    assert not worse or max(worse) > score


def test_antecedents_by_a_loop():
  """In more spans than are scored together."""
  count, most = 600, 5
  spans = random_spans(count, 1200, seed=1)
  bias = np.linspace(0.3, -0.4, len(DISTANCES) + 1)
  found = linking.best_antecedents(spans, DISTANCES, bias, most)
  for i in range(count):
    links = {}
    for j in range(max(i - most, 0), i):
      apart = spans.begins[i] - spans.begins[j]
      kind = int(np.floor(np.log2(apart + 1)))
      score = spans.scores[i] + spans.scores[j] + bias[kind]
      links[j] = score + spans.queries[i] @ spans.keys[j] / np.sqrt(7)
    best = max(links, key=links.get, default=None)
    assert found[i] == (-1 if best is None or links[best] <= 0 else best)
  assert (found >= 0).any() and (found[1:] < 0).any()


def test_chains():
  begins = np.arange(6)
  spans = Spans(begins, begins + 1, *np.zeros((3, 6, 1)))
  chains = linking.make_chains(spans, np.array([-1, -1, 1, 0, 2, -1]))
  assert chains == [[(0, 1), (3, 4)], [(1, 2), (2, 3), (4, 5)]]
  assert linking.make_chains(spans, np.full(6, -1)) == []


def test_a_long_document_takes_linear_time():
  """The links of all pairs of 20,000 spans would be 3 GB."""
  spans = random_spans(20_000, 50_000, width=16)
  began = time.process_time()
  found = linking.best_antecedents(
    linking.without_crossings(spans), DISTANCES, np.zeros(11), 200
  )
  assert len(found) > 10_000
  begins = np.arange(20_000)
  spans = Spans(begins, begins + 1, *np.zeros((3, 20_000, 1)))
  (chain,) = linking.make_chains(spans, begins - 1)
  assert len(chain) == 20_000
  assert time.process_time() - began < 15
