"""The CRF against the enumeration of all sequences."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maskedlm.data.labelled import bio
from maskedlm.modeling.task_heads import crf

B, W, T = 5, 4, 3
LENGTHS = np.array([4, 1, 3, 0, 2])


def random_steps(rng, num_tags=T, rows=None):
  lead = () if rows is None else (rows,)
  return crf.TransitionScores(
    start=rng.normal(size=(*lead, num_tags)).astype(np.float32),
    transitions=rng.normal(size=(num_tags, num_tags)).astype(np.float32),
    end=rng.normal(size=(*lead, num_tags)).astype(np.float32),
  )


@pytest.fixture
def rng():
  return np.random.default_rng(3)


def score_by_hand(emissions, steps, tags):
  """Returns the score of one sequence, given emissions [n, T]."""
  score = steps.start[tags[0]] + steps.end[tags[-1]]
  score += sum(emissions[w, t] for w, t in enumerate(tags))
  score += sum(steps.transitions[s, t] for s, t in itertools.pairwise(tags))
  return float(score)


def of_row(steps, b):
  if steps.start.ndim == 1:
    return steps
  return steps._replace(start=steps.start[b], end=steps.end[b])


def enumerate_all(emissions, steps, length, num_tags=T):
  """Returns {tags: score} of all sequences of a row."""
  return {
    tags: score_by_hand(emissions, steps, tags)
    for tags in itertools.product(range(num_tags), repeat=length)
  }


@pytest.mark.parametrize("rows", [None, B])
def test_against_enumeration(rng, rows):
  emissions = rng.normal(size=(B, W, T)).astype(np.float32)
  steps = random_steps(rng, rows=rows)
  tags = rng.integers(0, T, size=(B, W))
  partition = jax.jit(crf.log_partition)(emissions, steps, LENGTHS)
  scores = jax.jit(crf.path_score)(emissions, steps, tags, LENGTHS)
  best, best_score = jax.jit(crf.viterbi)(emissions, steps, LENGTHS)
  sure = jax.jit(crf.marginals)(emissions, steps, LENGTHS)
  for b, length in enumerate(LENGTHS):
    if not length:
      assert partition[b] == scores[b] == best_score[b] == 0
      assert not best[b].any() and not sure[b].any()
      continue
    found = enumerate_all(emissions[b], of_row(steps, b), length)
    values = np.array(list(found.values()))
    np.testing.assert_allclose(
      partition[b], np.log(np.sum(np.exp(values))), rtol=1e-5
    )
    np.testing.assert_allclose(
      scores[b], found[tuple(tags[b, :length])], rtol=1e-5, atol=1e-6
    )
    likeliest = max(found, key=found.get)
    assert tuple(best[b, :length].tolist()) == likeliest
    assert not best[b, length:].any()
    np.testing.assert_allclose(best_score[b], found[likeliest], rtol=1e-5)
    expected = np.zeros((W, T))
    for path, value in found.items():
      for w, t in enumerate(path):
        expected[w, t] += np.exp(value - partition[b])
    np.testing.assert_allclose(sure[b], expected, atol=1e-5)


def test_padding_does_not_matter(rng):
  emissions = rng.normal(size=(B, W, T)).astype(np.float32)
  steps = jax.tree.map(jnp.asarray, random_steps(rng))
  tags = rng.integers(0, T, size=(B, W))
  mask = np.arange(W) >= LENGTHS[:, None]
  other = np.where(mask[..., None], 1e3, emissions).astype(np.float32)
  other_tags = np.where(mask, 1, tags)

  @jax.jit
  def run(emissions, tags):
    return (
      crf.log_partition(emissions, steps, LENGTHS),
      crf.path_score(emissions, steps, tags, LENGTHS),
      crf.viterbi(emissions, steps, LENGTHS)[0],
    )

  jax.tree.map(
    np.testing.assert_array_equal, run(emissions, tags), run(other, other_tags)
  )


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
def test_forbidden_steps(rng, scheme):
  """Viterbi and the partition consider the legal sequences only."""
  tags = bio.all_tags(["A", "B"] if scheme == "bio" else ["A"], scheme)
  size, length = len(tags), 4
  legal = crf.legal_transitions(
    tags, functools.partial(bio.may_follow, scheme=scheme)
  )
  learnt = random_steps(rng, size)
  steps = crf.TransitionScores(
    *(a + b for a, b in zip(learnt, legal, strict=True))
  )
  emissions = 3 * rng.normal(size=(7, length, size)).astype(np.float32)
  lengths = np.array([4, 3, 2, 1, 4, 4, 3])
  partition = jax.jit(crf.log_partition)(emissions, steps, lengths)
  best, _ = jax.jit(crf.viterbi)(emissions, steps, lengths)
  sure = jax.jit(crf.marginals)(emissions, steps, lengths)
  for b, count in enumerate(lengths):
    found = {
      path: score
      for path, score in enumerate_all(
        emissions[b], learnt, count, size
      ).items()
      if is_legal([tags[t] for t in path], scheme)
    }
    assert tuple(best[b, :count].tolist()) == max(found, key=found.get)
    np.testing.assert_allclose(
      partition[b], np.log(sum(map(np.exp, found.values()))), rtol=1e-5
    )
    np.testing.assert_allclose(sure[b, :count].sum(-1), 1, atol=1e-4)
  if scheme == "bio":  # No sentence begins with I.
    assert float(np.max(sure[:, 0, [3, 4]])) == 0


def is_legal(tags, scheme):
  return all(
    bio.may_follow(s, t, scheme)
    for s, t in itertools.pairwise([None, *tags, None])
  )


def test_gradients_are_finite_and_push_the_right_way(rng):
  tags = bio.all_tags(["A"], "bio")  # O B I.
  legal = crf.legal_transitions(
    tags, functools.partial(bio.may_follow, scheme="bio")
  )
  emissions = jnp.asarray(rng.normal(size=(B, W, T)), jnp.float32)
  gold = np.zeros((B, W), np.int32)
  gold[:, :2] = [1, 2]

  def loss(emissions, learnt):
    steps = crf.TransitionScores(
      *(a + b for a, b in zip(learnt, legal, strict=True))
    )
    return jnp.sum(
      crf.log_partition(emissions, steps, LENGTHS)
      - crf.path_score(emissions, steps, gold, LENGTHS)
    )

  value, grads = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))(
    emissions, crf.zero_transitions(T)
  )
  assert value > 0
  assert all(np.isfinite(x).all() for x in jax.tree.leaves(grads))
  # Forbidden transitions get no gradient; B -> I, which is gold, goes up.
  assert grads[1].transitions[0, 2] == grads[1].start[2] == 0
  assert grads[1].transitions[1, 2] < 0
  assert not grads[0][3].any()  # No word, no gradient.
