"""BM25's scores, by the formula."""

import math
import sys

import numpy as np
import pytest

from maskedlm.core.errors import ConfigError
from maskedlm.inference import bm25

PASSAGES = ["The cat sat, the cat ran", "a dog ran on it", "red"]


def test_by_hand():
  """idf(cat) = ln(1 + 2.5 / 1.5), tf / (tf + k1 (1 - b + b n / mean n))."""
  pytest.importorskip("bm25s")
  found = [*map(bm25.index(PASSAGES), ["cat", "CAT ran", "?", "unknown"])]
  n = np.array([6, 4, 1])  # "a" is a letter, no word of two.
  norm = 1.5 * (0.25 + 0.75 * n / n.mean())

  def part(counts, df):
    tf = np.array(counts)
    return math.log(1 + (3 - df + 0.5) / (df + 0.5)) * tf / (tf + norm)

  cat, ran = part([2, 0, 0], 1), part([1, 1, 0], 2)
  np.testing.assert_allclose(found[0], cat, rtol=1e-6)
  np.testing.assert_allclose(found[1], cat + ran, rtol=1e-6)
  np.testing.assert_array_equal(found[2:], np.zeros((2, 3)))


def test_without_the_package(monkeypatch):
  monkeypatch.setitem(sys.modules, "bm25s", None)
  with pytest.raises(ConfigError, match=r"pip install 'maskedlm\[bm25\]'"):
    bm25.index(["b"])
