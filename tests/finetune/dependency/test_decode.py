"""The best tree against all trees of up to five words, and its cost."""

import itertools
import time

import numpy as np
import pytest

from maskedlm.finetune.dependency.decode import best_tree


def is_tree(heads):
  """Returns whether all words lead to a single root, -1."""
  for word in range(len(heads)):
    for _ in heads:
      word = heads[word] if word >= 0 else word
    if word >= 0:
      return False
  return list(heads).count(-1) == 1


def total(heads, scores, roots):
  return sum(
    roots[word] if head < 0 else scores[word, head]
    for word, head in enumerate(heads)
  )


def arcs_of(scores, keep=1.0, rng=None):
  """Returns (dependents, heads, scores) of a share of the pairs of words."""
  is_arc = ~np.eye(len(scores), dtype=bool)
  if rng is not None:
    is_arc &= rng.random(scores.shape) < keep
  dependents, heads = np.nonzero(is_arc)
  return dependents, heads, scores[dependents, heads]


def test_by_hand():
  # Each of the first two would have the other as its head (9 + 8), and both
  # the third (1, 2): the cycle is left where that costs least, 8 -> 2.
  scores = np.array([[0, 9, 1], [8, 0, 2], [0, 0, 0]], float)
  arcs = arcs_of(scores)
  assert best_tree(*arcs, [-5.0, -5.0, 5.0]) == [1, 2, -1]
  # Two roots would be worth more: 7 + 6 instead of 7 + 0.
  assert best_tree([0, 1], [1, 0], [-1.0, 0.0], [7.0, 6.0]) == [-1, 0]
  # Arcs may cross: 0 -> 2 and 1 -> 3.
  crossing = [([0, 1, 3], [2, 3, 2], [1.0, 1.0, 1.0])]
  assert best_tree(*crossing[0], [-1, -1, 1, -1]) == [2, 3, -1, 2]
  assert best_tree([], [], [], [0.5]) == [-1]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_the_best_of_all_trees(count):
  heads = itertools.product(range(-1, count), repeat=count)
  trees = [tree for tree in heads if is_tree(tree)]
  assert len(trees) == count ** (count - 1)  # Cayley's formula.
  rng = np.random.default_rng(count)
  for _ in range(9):
    scores, roots = rng.normal(size=(count, count)), rng.normal(size=count)
    found = best_tree(*arcs_of(scores), roots)
    assert is_tree(found)
    best = max(total(tree, scores, roots) for tree in trees)
    assert total(found, scores, roots) == pytest.approx(best, abs=1e-12)


def test_any_arcs_give_a_tree_and_words_without_any_hang_at_a_neighbour():
  rng = np.random.default_rng(1)
  for count in (2, 7, 19, 43):
    scores, roots = rng.normal(size=(count, count)), rng.normal(size=count)
    assert is_tree(best_tree(*arcs_of(scores, 0.1, rng), roots))
  # Words 3 and 4 have no arcs to the others.
  assert best_tree(
    [1, 0, 4], [0, 1, 3], [-3.0, -2.0, -1.0], [0, -9, -9, -9, -9]
  ) == [*(-1, 0, 1, 2, 3)]


def test_a_long_sentence_takes_no_long():
  count = 2_000
  rng = np.random.default_rng(2)
  dependents = np.repeat(np.arange(count), 16)
  heads = np.clip(
    dependents + rng.integers(-60, 61, len(dependents)), 0, count - 1
  )
  apart = dependents != heads
  began = time.process_time()
  found = best_tree(
    dependents[apart],
    heads[apart],
    rng.normal(size=apart.sum()),
    rng.normal(size=count),
  )
  assert len(found) == count and found.count(-1) == 1
  assert time.process_time() - began < 5
