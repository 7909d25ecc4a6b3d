"""GPT-BERT: which rows are masked, what they predict and read, the loss."""

import functools

import jax
import numpy as np
import pytest

from helpers import encoder_reference, stub_objective
from helpers.stub_objective import MASK, B, L, jitted_loss, random_params
from maskedlm.core.errors import ConfigError
from maskedlm.data.batches import text_rows
from maskedlm.modeling import flops
from maskedlm.modeling.architecture import restored
from maskedlm.modeling.attention import layer
from maskedlm.modeling.attention.mask import AttentionMask
from maskedlm.pretraining.objectives import gptbert


@pytest.fixture
def make_task(monkeypatch):
  stub_objective.stub_batches(
    monkeypatch,
    text_rows,
    "full_sentence_batches",
    batch_at=lambda split, step: packed_rows(),
  )

  def make(model=None, **options):
    config = stub_objective.make_config(
      "gptbert",
      **{"dropout": 0.0, "attention_dropout": 0.0, **(model or {})},
    )
    options = gptbert.Options(**options)
    corpus = stub_objective.make_corpus()
    task = gptbert.make_task(config, corpus, (0, 1), options)
    return stub_objective.compiled(task)

  return make


def packed_rows():
  """Returns rows of 13, 12, ... 6 tokens, each with two documents."""
  batch = stub_objective.single_text_rows(L - np.arange(B))
  length = (L - np.arange(B))[:, None]
  column, first = np.arange(L), length // 2
  segments = np.where(column < first, 1, 2) * (column < length)
  positions = np.where(column < first, column, column - first)
  return {
    **batch,
    "segment_ids": segments.astype(np.int32),
    "positions": np.where(column < length, positions, 0).astype(np.int32),
  }


def test_as_many_rows_are_masked_as_the_share_says():
  draw = jax.jit(gptbert.masked_rows, static_argnums=(1, 2))
  keys = [jax.random.key(i) for i in range(400)]
  for share, counts in ((0.0, {0}), (1.0, {7}), (0.6, {4, 5}), (3 / 7, {3})):
    made = np.stack([draw(key, 7, share) for key in keys])
    assert set(made.sum(1)) <= counts
    # 400 draws of each row: four standard deviations are at most 0.1.
    np.testing.assert_allclose(made.mean(0), share, atol=0.1)


def test_targets_by_hand():
  """Row 0 is masked at 2 and 5, which begins a document; row 1 is causal."""
  batch = {
    "input_ids": np.array([[2, 11, 12, 3, 13, 14, 3], [2, 14, 15, 3, 0, 0, 0]]),
    "segment_ids": np.array([[1, 1, 1, 1, 1, 2, 2], [1, 1, 1, 1, 0, 0, 0]]),
    "example_weights": np.ones(2, np.float32),
  }
  masked = {
    "input_ids": np.array([[2, 11, 4, 3, 13, 4, 3], [2, 4, 15, 3, 0, 0, 0]]),
    "masked_positions": np.array([[5, 2], [1, 0]]),
    "masked_weights": np.array([[1.0, 1.0], [1.0, 0.0]]),
  }
  made = gptbert.targets(batch, masked, np.array([True, False]))
  np.testing.assert_array_equal(
    made["input_ids"], [masked["input_ids"][0], batch["input_ids"][1]]
  )
  # Token 12 is predicted at position 1; nothing of its own document is before
  # token 14.
  np.testing.assert_array_equal(
    made["next_weights"], [[0, 1, 0, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0, 0]]
  )
  np.testing.assert_array_equal(made["next_labels"][0][1], 12)
  np.testing.assert_array_equal(made["next_labels"][1][:3], [14, 15, 3])
  np.testing.assert_array_equal(made["causal_rows"], [False, True])


def reference_logits(params, cfg, batch, b):
  """Returns a row's logits by numpy; in a causal row, attention grows."""
  attention = encoder_reference.attention

  def before(x, p, cfg, segments):
    rows = range(1, len(x) + 1)
    return np.stack([attention(x[:n], p, cfg, segments[:n])[-1] for n in rows])

  names = ("input_ids", "token_type_ids", "segment_ids", "positions")
  with pytest.MonkeyPatch.context() as patched:
    if batch["causal_rows"][b]:
      patched.setattr(encoder_reference, "attention", before)
    hidden = encoder_reference.encode(
      params["encoder"], cfg, *(batch[name][b] for name in names)
    )
  table = params["encoder"]["embeddings"]["token"]["embedding"]
  return encoder_reference.mlm_logits(params["mlm_head"], cfg, hidden, table)


def test_loss_equals_numpys_row_by_row(make_task):
  share = 0.6
  task = make_task(masked_share=share, mask_rate=0.4)
  params = random_params(task)
  cfg = restored(task.describe["encoder"])
  batch = jax.device_get(task.corrupt(packed_rows(), jax.random.key(3)))
  is_causal = batch["causal_rows"]
  assert 3 <= is_causal.sum() <= 4  # Of 8 rows, 3.2.
  sums = {True: [0.0, 0, 0], False: [0.0, 0, 0]}
  for b in range(B):
    logits = reference_logits(params, cfg, batch, b)
    for i in np.flatnonzero(batch["next_weights"][b]):
      label = batch["next_labels"][b, i]
      found = sums[bool(is_causal[b])]
      found[0] += encoder_reference.cross_entropy(logits[i], label)
      found[1] += logits[i].argmax() == label
      found[2] += 1
  terms, metrics = jitted_loss(task)(params, batch, None, False)
  close = functools.partial(np.testing.assert_allclose, rtol=1e-4)
  for name, causal, weight in (("mlm", False, share), ("lm", True, 1 - share)):
    loss, correct, count = sums[causal]
    assert count > 5
    close(terms[name], (weight * loss, count))
    close(metrics[f"{name}_loss"], (loss, count))
    close(metrics[f"{name}_accuracy"], (correct, count))


def test_masked_rows_have_masks_and_causal_rows_none(make_task):
  task = make_task(masked_share=0.5, mask_share=1.0, random_share=0.0)
  plain = packed_rows()
  made = jax.device_get(task.corrupt(plain, jax.random.key(1)))
  has_mask = (made["input_ids"] == MASK).any(axis=1)
  np.testing.assert_array_equal(has_mask, ~made["causal_rows"])
  assert has_mask.sum() == 4
  again = jax.device_get(task.corrupt(plain, jax.random.key(1)))
  jax.tree.map(np.testing.assert_array_equal, made, again)
  other = jax.device_get(task.corrupt(plain, jax.random.key(2)))
  assert (made["input_ids"] != other["input_ids"]).any()


def test_heldout_rows_are_measured_in_both_ways(make_task):
  task = make_task(masked_share=0.9, mask_rate=0.4, heldout_mask_rate=0.15)
  batch = packed_rows()
  params = random_params(task)
  (first, second) = task.measured
  masked, causal = (
    jax.device_get(jax.jit(corrupt)(batch, jax.random.key(0)))
    for corrupt, _ in (first, second)
  )
  assert not masked["causal_rows"].any() and causal["causal_rows"].all()
  np.testing.assert_array_equal(causal["input_ids"], batch["input_ids"])
  # Two documents in each row: all but their last tokens predict the next one.
  assert causal["next_weights"].sum() == sum(range(6, 14)) - 2 * B
  (_, mlm), (_, lm) = (
    jax.jit(loss, static_argnums=3)(params, made, None, False)
    for made, (_, loss) in zip((masked, causal), task.measured, strict=True)
  )
  # Names that both had would hide one of them.
  assert not mlm.keys() & lm.keys()
  assert lm["lm_loss"][1].sum() == causal["next_weights"].sum()
  # 15% of 13 down to 6 tokens; of those that begin a document, none counts.
  assert 6 < mlm["mlm_loss"][1].sum() <= 2 + 2 + 2 + 2 + 1 + 1 + 1 + 1


@pytest.mark.parametrize("implementation", ["xla", "blockwise"])
@pytest.mark.parametrize("window", [0, 4])
def test_mixed_attention_is_that_of_each_row_alone(implementation, window):
  rng = np.random.default_rng(0)
  shape = B, L, 3, 8
  arrays = [rng.standard_normal(shape).astype(np.float32) for _ in range(3)]
  segments = packed_rows()["segment_ids"]
  rows = np.arange(B) % 3 == 1
  mask = AttentionMask(segments, rows, causal=True, window=window)

  def attend(mask):
    def total(*arrays):
      made = layer.attend(*arrays, mask, implementation=implementation)
      return (made**2).sum(axis=(1, 2, 3)).sum(), made

    gradient = jax.grad(total, argnums=(0, 1, 2), has_aux=True)
    return jax.jit(gradient)(*arrays)

  mixed, one_way, both = map(
    attend,
    (
      mask,
      mask._replace(causal_rows=None),
      mask._replace(causal_rows=None, causal=False),
    ),
  )
  jax.tree.map(
    lambda x, a, b: np.testing.assert_allclose(
      x, np.where(rows[:, None, None, None], a, b), atol=1e-5
    ),
    *(mixed, one_way, both),
  )


def test_entropy_of_mixed_rows():
  rng = np.random.default_rng(0)
  query, key = rng.standard_normal((2, B, L, 3, 8)).astype(np.float32)
  rows = np.arange(B) % 2 == 0
  mask = AttentionMask(packed_rows()["segment_ids"], rows, causal=True)
  weights = jax.nn.softmax(layer.scores(query, key, mask))
  expected = -np.sum(
    np.where(weights > 0, weights * np.log(np.maximum(weights, 1e-30)), 0), -1
  ).mean(1)
  np.testing.assert_allclose(
    layer.entropy(query, key, mask), expected, atol=1e-4
  )


def test_flops_are_those_of_both_kinds(make_task):
  task = make_task(masked_share=0.75)
  cfg = restored(task.describe["encoder"])
  cost = flops.train_flops(cfg, L, num_predictions=L)
  # A causal row has (L + 1) / 2L of the pairs.
  pairs = cfg.num_layers * 2 * cfg.width * (L**2 - L * (L + 1) / 2)
  assert task.flops(0) == pytest.approx(B * (cost - 0.25 * 6 * pairs))


@pytest.mark.parametrize(
  ("model", "options", "words"),
  [
    ({}, {"corruption": "delete"}, "corruption='delete' moves tokens"),
    ({}, {"corruption": "shuffle"}, "corruption='shuffle' moves tokens"),
    ({"attention": "splash"}, {}, "attention='splash' reads all rows"),
  ],
)
def test_what_does_not_go_is_refused(make_task, model, options, words):
  with pytest.raises(ConfigError, match=words):
    make_task(model, **options)
