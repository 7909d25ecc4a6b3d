"""CKY against an exhaustive search, and its cost."""

import functools
import time

import numpy as np
import pytest

from maskedlm.finetune.constituency.decode import best_spans


def best_sum(count, margins):
  """Returns the best sum of margins of spans {(begin, width): m} that nest."""

  @functools.cache
  def best(begin, width):
    own = max(margins.get((begin, width), 0.0), 0.0)
    cuts = range(1, width)
    parts = [best(begin, k) + best(begin + k, width - k) for k in cuts]
    return own + max(parts, default=0.0)

  return best(0, count)


def test_by_hand():
  # (0, 3) crosses (2, 5); the two apart are worth more than either and (0, 5).
  begins, widths = np.array([0, 2, 0, 4, 0]), np.array([3, 3, 5, 1, 2])
  margins = np.array([2.0, 3.0, 1.0, 0.5, -1.0])
  assert best_spans(5, begins, widths, margins) == [2, 1, 3]
  assert best_spans(5, begins, widths, margins - 9) == []
  assert best_spans(1, np.array([0]), np.array([1]), np.array([0.1])) == [0]


@pytest.mark.parametrize("seed", range(5))
def test_the_best_of_all_trees(seed):
  rng = np.random.default_rng(seed)
  for count in (1, 2, 3, 5, 8, 11):
    widest = int(rng.integers(1, count + 1))  # Fewer than the sentence, often.
    spans = [
      (begin, width)
      for width in range(1, widest + 1)
      for begin in range(count + 1 - width)
      if rng.random() < 0.8 or begin == 0
    ]
    rng.shuffle(spans)
    begins, widths = np.array(spans).T
    margins = rng.normal(size=len(spans))
    found = best_spans(count, begins, widths, margins)
    chosen = [(int(begins[i]), int(begins[i] + widths[i])) for i in found]
    assert chosen == sorted(set(chosen), key=lambda x: (x[0], -x[1]))
    assert not any(a < c < b < d for a, b in chosen for c, d in chosen)
    of_span = dict(zip(map(tuple, spans), margins, strict=True))
    expected = best_sum(count, of_span)
    assert margins[found].sum() == pytest.approx(expected, abs=1e-5)


def test_a_long_sentence_takes_no_long():
  count, widest = 20_000, 30
  rng = np.random.default_rng(1)
  begins = np.arange(count - widest)
  widths = rng.integers(1, widest + 1, len(begins))
  began = time.process_time()
  found = best_spans(count, begins, widths, rng.normal(size=len(begins)))
  assert len(found) > count / 10
  assert time.process_time() - began < 5
