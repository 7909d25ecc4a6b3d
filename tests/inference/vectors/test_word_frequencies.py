"""Word frequencies and the frequency effect, on made numbers."""

from collections import Counter

import numpy as np
import pytest
from scipy import stats

from maskedlm.data.labelled.text_lines import Text
from maskedlm.inference.vectors import word_frequencies


def test_counts_and_log_frequencies():
  counts = Counter()
  texts = [Text("The cat, the CAT!"), Text("a dog")]
  assert list(word_frequencies.count_words(texts, counts)) == texts
  assert counts == {"the": 2, "cat": 2, "a": 1, "dog": 1}
  found = word_frequencies.log_frequencies(["cat dog", "zebra", "..."], counts)
  assert found == pytest.approx([(np.log(3) + np.log(2)) / 2, 0, 0])


def test_cosines_that_fall_with_frequency():
  rng = np.random.default_rng(0)
  scores, frequent = rng.random(501), rng.normal(size=501)
  # Frequent pairs are judged more similar, but their cosines are lower.
  scores = scores + 0.3 * frequent
  cosines = scores - 0.4 * frequent
  effect = word_frequencies.frequency_effect(cosines, scores, frequent)
  assert effect < -0.8
  noise = rng.normal(size=501)
  assert abs(word_frequencies.frequency_effect(noise, scores, frequent)) < 0.1
  # The formula of a partial correlation of three.
  xy, xz, yz = (
    stats.spearmanr(a, b).statistic
    for a, b in ((cosines, frequent), (cosines, scores), (frequent, scores))
  )
  expected = (xy - xz * yz) / np.sqrt((1 - xz**2) * (1 - yz**2))
  assert effect == pytest.approx(expected)


def test_no_effect_without_variance():
  x = [0.1, 0.5, 0.3]
  assert np.isnan(word_frequencies.frequency_effect(x, [1, 2, 3], [4, 4, 4]))
