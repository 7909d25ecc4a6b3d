"""Span vectors against the equations, span by span, in plain Python."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import encoder_reference
from maskedlm.modeling.losses import loss_and_accuracy
from maskedlm.modeling.task_heads import span_vectors
from maskedlm.modeling.task_heads.span_vectors import (
  SpanHead,
  SpanScorer,
  score_all_spans,
)
from maskedlm.training.step import totals

NAMES = tuple(span_vectors.REPRESENTATIONS)
B, L, D, T, WIDEST = 3, 13, 10, 4, 5
# Rows of words with these numbers of tokens; the first token is [CLS].
WORDS = [(1, 2, 1, 3, 1, 1), (11,), (2, 1, 1, 1, 1, 1, 1, 1, 1, 1)]
# Words whose spans count.
KEPT = [(1, 1, 0, 1, 1, 1), (1,), (0, 0, 1, 1, 1, 1, 1, 1, 1, 0)]


def config(**options):
  given = {"width": D, "num_heads": 2, "max_positions": L, "dropout": 0.5}
  return encoder_reference.config(**{**given, **options})


@pytest.fixture(scope="module")
def batch():
  begins, ends, kept = np.zeros((3, B, L), np.int32)
  for row, sizes in enumerate(WORDS):
    ends[row, : len(sizes)] = np.cumsum(sizes)
    begins[row, : len(sizes)] = ends[row, : len(sizes)] - sizes + 1
    kept[row, : len(sizes)] = KEPT[row]
  return {"word_begins": begins, "word_ends": ends, "word_kept": kept}


@pytest.fixture(scope="module")
def hidden():
  return np.random.default_rng(3).standard_normal((B, L, D), np.float32)


def head_and_params(name, hidden, **options):
  head = SpanHead(config(**options), name, T)
  token = jnp.zeros((1, 1), jnp.int32)
  shapes = jax.eval_shape(
    lambda key: head.init(key, hidden[:1], token, token, train=False),
    jax.random.key(1),
  )
  return head, encoder_reference.randomise(shapes["params"])


@functools.partial(jax.jit, static_argnums=0)
def apply(head, params, hidden, begins, ends):
  return head.apply({"params": params}, hidden, begins, ends, train=False)


def vectors_of(name, components, begins, ends):
  """Returns spanRep [B, P, 3X]."""
  first = span_vectors.first_ends(components, begins)
  last = span_vectors.last_ends(components, ends)
  summary = span_vectors.REPRESENTATIONS[name].summary(components, first, last)
  return jnp.concatenate([first.vectors, last.vectors, summary], axis=-1)


def gelu(x):
  return np.vectorize(lambda v: v * 0.5 * (1 + math.erf(v / math.sqrt(2))))(x)


def attended_by_hand(params, tokens):
  """Returns the mean of the tokens' outputs of a self-attention layer."""
  values, queries, keys = (
    tokens @ np.float64(params[n]["kernel"]) + np.float64(params[n]["bias"])
    for n in ("value_dense", "query_dense", "key_dense")
  )
  outputs = []
  for query in queries:
    weights = np.exp(keys @ query / math.sqrt(D))
    outputs.append(weights / weights.sum() @ values)
  return np.mean(outputs, axis=0)


def vector_by_hand(name, params, z, i, j):
  """Returns spanRep of tokens i to j of a row z [L, D], by 11.21 to 11.26."""
  dense = {
    k: jax.tree.map(np.float64, v) for k, v in params.get("ends", {}).items()
  }
  if name == "endpoints_mean":
    start, end = z[i], z[j]  # 11.22
  else:  # 11.23 and 11.24
    start, end = (
      gelu(z[k] @ dense[n]["kernel"] + dense[n]["bias"])
      for k, n in ((i, "start_dense"), (j, "end_dense"))
    )
  if name == "self_attention_layer":  # 11.26, token by token
    g = attended_by_hand(params["scores"], z[i : j + 1])
    return np.concatenate([start, end, g])
  if name == "self_attention":  # 11.26, with one query
    query = np.float64(params["scores"]["query_dense"]["kernel"])[:, 0]
    weights = [math.exp(z[k] @ query) for k in range(i, j + 1)]
  else:  # 11.21
    weights = [1.0] * (j - i + 1)
  g = sum(w * z[k] for w, k in zip(weights, range(i, j + 1), strict=True))
  return np.concatenate([start, end, g / sum(weights)])  # 11.25


def logits_by_hand(name, params, z, i, j):
  """Returns FFN(spanRep) (11.27): one layer of [3D, D], then one of [D, T]."""
  kernel = np.concatenate(
    [
      np.float64(params[n]["kernel"])
      for n in ("first_dense", "last_dense", "inside_dense")
    ]
  )
  x = vector_by_hand(name, params.get("parts", {}), z, i, j) @ kernel
  x = gelu(x + np.float64(params["first_dense"]["bias"]))
  label = jax.tree.map(np.float64, params["label_dense"])
  return x @ label["kernel"] + label["bias"]


SPANS = np.array([[[1, 1], [2, 7], [0, 12]], [[3, 4]] * 3, [[12, 12]] * 3])


@pytest.mark.parametrize("name", NAMES)
def test_scores_of_given_spans(name, hidden):
  head, params = head_and_params(name, hidden)
  made = apply(head, params, hidden, SPANS[..., 0], SPANS[..., 1])
  for b in range(B):
    for p, (i, j) in enumerate(SPANS[b]):
      expected = logits_by_hand(name, params, np.float64(hidden[b]), i, j)
      np.testing.assert_allclose(made[b, p], expected, atol=1e-5)


def collect(carry, given, logits, scored):
  return carry + jnp.sum(scored), (given, logits, scored)


@pytest.mark.parametrize("name", NAMES)
def test_all_spans_of_words(name, hidden, batch):
  head, params = head_and_params(name, hidden)
  per_width = jnp.arange(10, 10 + WIDEST)
  count, (given, logits, scored) = jax.jit(
    lambda p: score_all_spans(
      SpanScorer(head, p),
      hidden,
      batch,
      collect,
      0,
      max_words=WIDEST,
      per_width=per_width,
    )
  )(params)
  np.testing.assert_array_equal(given, per_width)
  found = 0
  for b, sizes in enumerate(WORDS):
    for width in range(WIDEST):
      for w in range(L):
        exists = w + width < len(sizes) and bool(KEPT[b][w])
        assert scored[width, b, w] == exists
        if exists:
          found += 1
          i, j = 1 + sum(sizes[:w]), sum(sizes[: w + width + 1])
          expected = logits_by_hand(name, params, np.float64(hidden[b]), i, j)
          np.testing.assert_allclose(logits[width, b, w], expected, atol=1e-5)
  # Spans of 1 to 5 words, counted by hand: 5 + 4 + 3 + 2 + 2 from words 0, 1,
  # 3, 4, 5 of six, then 1, and 7 + 7 + 6 + 5 + 4 from words 2 to 8 of ten.
  assert found == count == 16 + 1 + 29


@pytest.mark.parametrize("name", ["self_attention", "self_attention_layer"])
def test_gradient_is_that_of_given_spans(name, hidden, batch):
  """Compares the scan, its slices and recomputation with plain gathers."""
  head, params = head_and_params(name, hidden)
  labels = np.random.default_rng(0).integers(0, T, (WIDEST, B, L))

  def add(carry, labels, logits, scored):
    loss, _ = loss_and_accuracy(
      logits, labels, weights=scored.astype(jnp.float32)
    )
    total, weight = totals(loss)
    return (carry[0] + total, carry[1] + weight), None

  @jax.jit
  @jax.value_and_grad
  def scanned(given):
    params, x = given
    (total, weight), _ = score_all_spans(
      SpanScorer(head, params),
      x,
      batch,
      add,
      (0.0, 0.0),
      max_words=WIDEST,
      per_width=labels,
    )
    return total / weight

  places = [
    (width, b, w)
    for b, sizes in enumerate(WORDS)
    for width in range(WIDEST)
    for w in range(len(sizes) - width)
    if KEPT[b][w]
  ]

  @jax.jit
  @jax.value_and_grad
  def gathered(given):
    params, x = given
    total = 0.0
    for b in range(B):
      mine = [(k, w) for k, row, w in places if row == b]
      begins = np.array([[batch["word_begins"][b, w] for _, w in mine]])
      ends = np.array([[batch["word_ends"][b, w + k] for k, w in mine]])
      logits = head.apply(
        {"params": params}, x[b : b + 1], begins, ends, train=False
      )
      gold = np.array([[labels[k, b, w] for k, w in mine]])
      ones = np.ones(gold.shape)
      (loss, _), _ = loss_and_accuracy(logits, gold, weights=ones)
      total += loss.sum()
    return total / len(places)

  value, grads = scanned((params, hidden))
  expected, expected_grads = gathered((params, hidden))
  assert value == pytest.approx(float(expected), rel=1e-5)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5),
    grads,
    expected_grads,
  )


@pytest.mark.parametrize("name", ["self_attention", "self_attention_layer"])
def test_attention_is_stable_when_scores_are_far_apart(name, hidden):
  head, params = head_and_params(name, hidden)
  params["parts"]["scores"]["query_dense"]["kernel"] *= 100
  made = apply(head, params, hidden, SPANS[..., 0], SPANS[..., 1])
  assert np.all(np.isfinite(made))


def test_dropout_applies_to_the_vectors_in_training_only(hidden, batch):
  head, params = head_and_params("endpoints_mean", hidden)

  @functools.partial(jax.jit, static_argnums=1)
  def run(seed, train):
    return score_all_spans(
      SpanScorer(head, params, jax.random.key(seed), train),
      hidden,
      batch,
      collect,
      0,
      max_words=2,
    )[1][1]

  np.testing.assert_array_equal(run(0, False), run(1, False))
  assert not np.allclose(run(0, True), run(1, True))


def test_running_totals_are_float32():
  # 279 ones before the span and 300 through its end; bfloat16 has no 279.
  ones = jnp.ones((1, 300, 1), jnp.bfloat16)
  parts = span_vectors.SpanComponents(ones, ones, ones, ())
  at = jnp.array([[279]]), jnp.array([[299]])
  made = vectors_of("endpoints_mean", parts, *at)
  assert made.tolist() == [[[1, 1, 1]]]


def test_bfloat16_is_near(hidden, batch):
  head, params = head_and_params("ffn_endpoints_mean", hidden)
  rough = SpanHead(config(dtype="bfloat16"), "ffn_endpoints_mean", T)
  exact, near = (
    apply(h, params, hidden, SPANS[..., 0], SPANS[..., 1])
    for h in (head, rough)
  )
  assert near.dtype == jnp.float32
  np.testing.assert_allclose(exact, near, atol=0.15)


@pytest.mark.parametrize("name", ["endpoints_mean", "self_attention_layer"])
def test_memory_does_not_grow_with_the_widest_span(name):
  """Compiles a training step on fixed rows."""
  b, length, width = 4, 64, 48
  cfg = config(width=width)
  head = SpanHead(cfg, name, T)
  x = jnp.zeros((b, length, width))
  token = jnp.zeros((1, 1), jnp.int32)
  params = jax.eval_shape(
    lambda key: head.init(key, x, token, token, train=False), jax.random.key(1)
  )["params"]

  def step(params, x, batch, labels, *, max_words):
    def add(total, labels, logits, scored):
      (loss, _), _ = loss_and_accuracy(
        logits, labels, weights=scored.astype(jnp.float32)
      )
      return total + loss.sum(), None

    return score_all_spans(
      SpanScorer(head, params),
      x,
      batch,
      add,
      0.0,
      max_words=max_words,
      per_width=labels,
    )[0]

  def temporaries(max_words):
    words = jax.ShapeDtypeStruct((b, length), jnp.int32)
    labels = jax.ShapeDtypeStruct((max_words, b, length), jnp.int32)
    batch = dict.fromkeys(("word_begins", "word_ends", "word_kept"), words)
    compiled = (
      jax.jit(
        jax.grad(
          lambda *given: step(*given, max_words=max_words), argnums=(0, 1)
        )
      )
      .lower(params, x, batch, labels)
      .compile()
    )
    return compiled.memory_analysis().temp_size_in_bytes

  few, many = temporaries(4), temporaries(32)
  # Only the padding by max_words - 1 words depends on max_words: a vector, a
  # running total (of `width` each) and a place, and as much for the gradient.
  padding = 2 * 4 * (32 - 4) * b * (2 * width + 1)
  assert many - few <= padding
  # The vectors of all spans, [32, b, length, 3 * width], would be 4.7 MB.
  # The layer has queries, keys and values of each token besides.
  share = 1 / 2 if name == "self_attention_layer" else 1 / 3
  assert many < 4 * 32 * b * length * 3 * width * share
