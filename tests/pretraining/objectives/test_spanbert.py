"""SpanBERT's objective against a plain reference: spans, targets, loss."""

import jax
import jax.numpy as jnp
import numpy as np

from helpers import encoder_reference, stub_objective
from helpers.stub_objective import CLS, MASK, PAD, SEP, UNK, B, V
from maskedlm.modeling import flops, masked_lm
from maskedlm.modeling.encoder import EncoderConfig
from maskedlm.pretraining.objectives import spanbert
from maskedlm.training.step import totals

L = 29
PLACES = 3
# The same in all tests that train, so that they are compiled once.
OPTIONS = {
  "mask_rate": 0.4,
  "sbo_weight": 0.25,
  "max_span_targets": PLACES,
}


def make_config(length=L, **data):
  config = stub_objective.make_config(
    "spanbert", max_positions=31, dropout=0.0, attention_dropout=0.0
  )
  config.data.update(length=length, **data)
  return config


def make_task(monkeypatch, config=None, **options):
  monkeypatch.setattr(spanbert, "PLACE_WIDTH", 7)
  asked = stub_objective.stub_batches(
    monkeypatch, spanbert.text_rows, "document_batches"
  )
  task = spanbert.make_task(
    config or make_config(),
    stub_objective.make_corpus(),
    (1, 2),
    spanbert.Options(**{**OPTIONS, **options}),
  )
  return task._replace(
    init=jax.jit(task.init),
    corrupt=jax.jit(task.corrupt),
    loss=stub_objective.jitted_loss(task),
  ), asked


def make_batch():
  """Returns rows of 29, 26, 23, ... tokens."""
  lengths = L - 3 * np.arange(B)
  return stub_objective.single_text_rows(lengths, length=L)


def randomise(params):
  """Returns parameters so large that every term of a formula matters."""
  rng = np.random.default_rng(1)
  return jax.tree.map(
    lambda x: np.float32(x + 0.3 * rng.standard_normal(x.shape)), params
  )


# Boundaries.


def boundaries(ids, masked, max_span_targets):
  """Returns {position: (left, right, place)} of a row's targets."""
  positions = np.array([sorted(masked)])
  weights = np.ones(positions.shape, np.float32)
  first, last = spanbert.spans.span_ends(positions, weights)
  outside = np.isin([ids], [PAD, CLS, SEP])
  made = spanbert.boundaries(
    jnp.asarray(outside),
    positions,
    weights,
    first,
    last,
    max_span_targets=max_span_targets,
  )
  columns = [
    np.asarray(made[f"sbo_{k}"])[0] for k in ("left", "right", "place")
  ]
  used = np.asarray(made["sbo_weights"])[0] > 0
  return {
    int(p): tuple(int(c[i]) for c in columns)
    for i, p in enumerate(positions[0])
    if used[i]
  }


def test_boundaries_by_hand():
  # Text at 1-12. The spans 1-2 and 12 touch its ends; 4 and 6-9 don't.
  ids = [CLS, *range(20, 32), SEP, PAD]
  masked = {1, 2, 4, 6, 7, 8, 9, 12}
  assert boundaries(ids, masked, 15) == {
    4: (3, 5, 0),
    6: (5, 10, 0),
    7: (5, 10, 1),
    8: (5, 10, 2),
    9: (5, 10, 3),
  }
  assert set(boundaries(ids, masked, 2)) == {4, 6, 7}  # The rest is dropped.


def test_boundaries_are_text_of_the_same_segment():
  # Two segments: 3 and 6 are at the edges of theirs. [UNK] is text.
  ids = [CLS, 20, 21, 22, SEP, CLS, 23, 24, UNK, 25, 26, SEP]
  assert boundaries(ids, {3}, 15) == {}
  assert boundaries(ids, {6}, 15) == {}
  assert boundaries(ids, {2, 9}, 15) == {2: (1, 3, 0), 9: (8, 10, 0)}


# The whole objective.


def reference(cfg, params, hidden, text, masked):
  """Returns [(loss, correct)] of a row's SBO targets, by section 3.2.

  Args:
    cfg: the architecture.
    params: of the model.
    hidden: [L, D].
    text: [L], tokens before corruption.
    masked: set of positions.
  """
  p = jax.tree.map(np.float64, params["sbo_head"])
  E = np.float64(masked_lm.token_embedding(params["encoder"]))[:V]
  found = []
  for s in masked:
    if s - 1 in masked:
      continue
    e = max(i for i in range(s, L) if set(range(s, i + 1)) <= masked)
    if text[s - 1] == CLS or text[e + 1] == SEP:
      continue
    for i in range(s, min(e + 1, s + PLACES)):
      h = np.concatenate(
        [hidden[s - 1], hidden[e + 1], p["place"]["embedding"][i - s]]
      )
      for layer in (p["first"], p["second"]):
        dense = layer["dense"]
        h = encoder_reference.activate(h @ dense["kernel"] + dense["bias"], cfg)
        h = encoder_reference.norm(h, layer["norm"], cfg)
      y = E @ h + p["bias"][:V]
      loss = encoder_reference.cross_entropy(y, text[i])
      found.append((loss, y.argmax() == text[i]))
  return found


def test_loss_equals_the_reference(monkeypatch):
  task, _ = make_task(monkeypatch)
  config = make_config()
  cfg = EncoderConfig(**task.describe["encoder"])
  assert cfg.num_heads == config.model.num_heads
  params = randomise(task.init(jax.random.key(0)))
  batch = make_batch()
  corrupted = task.corrupt(batch, jax.random.key(1))
  terms, metrics = totals(task.loss(params, corrupted, None, False))
  encode = jax.jit(lambda *a: masked_lm.encode(cfg, *a, None, False))
  hidden = np.float64(encode(params, corrupted))
  found = []
  for b in range(B):
    used = np.asarray(corrupted["masked_weights"])[b] > 0
    masked = set(np.asarray(corrupted["masked_positions"])[b][used].tolist())
    text = batch["input_ids"][b]
    labels = np.asarray(corrupted["masked_labels"])[b][used]
    np.testing.assert_array_equal(labels, text[sorted(masked)])
    found += reference(cfg, params, hidden[b], text, masked)
  losses, correct = zip(*found, strict=True)
  assert len(found) > 20
  assert float(metrics["sbo_loss"][1]) == len(found)
  np.testing.assert_allclose(metrics["sbo_loss"][0], sum(losses), rtol=1e-4)
  np.testing.assert_allclose(terms["sbo"][0], 0.25 * sum(losses), rtol=1e-4)
  assert float(metrics["sbo_accuracy"][0]) == sum(correct)
  assert set(terms) == {"mlm", "sbo"}
  assert set(metrics) == {
    "mlm_loss",
    "mlm_accuracy",
    "sbo_loss",
    "sbo_accuracy",
  }
  np.testing.assert_array_equal(terms["mlm"], metrics["mlm_loss"])


def test_masked_tokens(monkeypatch):
  # At most ceil(0.15 n) of n tokens of text, in whole words (ids from 100 on
  # continue one), no special tokens, and all of a span treated alike.
  task, _ = make_task(monkeypatch, mask_rate=0.15)
  batch = make_batch()
  text_tokens = batch["segment_ids"].sum(1) - 2
  for k in range(30):
    made = {
      n: np.asarray(x)
      for n, x in task.corrupt(batch, jax.random.key(k)).items()
    }
    assert made["masked_positions"].shape == (B, 5)  # 0.15 * 27 = 4.05.
    used = made["masked_weights"] > 0
    assert (used.sum(1) <= np.ceil(0.15 * text_tokens)).all()
    for b in range(B):
      ids, at = batch["input_ids"][b], made["masked_positions"][b][used[b]]
      assert (ids[at] >= 5).all()
      for p in at:
        assert ids[p] < 100 or p - 1 in at or ids[p - 1] < 5
        assert ids[p + 1] < 100 or p + 1 in at
        if p + 1 in at:
          masks = made["input_ids"][b][[p, p + 1]] == MASK
          assert masks[0] == masks[1]
      others = np.setdiff1d(np.arange(L), at)
      np.testing.assert_array_equal(made["input_ids"][b][others], ids[others])


def test_spans_at_the_edges_have_a_boundary_loss_too(monkeypatch):
  batch = make_batch()
  counts = {}
  for at_edges in (False, True):
    task, _ = make_task(monkeypatch, sbo_at_edges=at_edges)
    assert task.describe["sbo_at_edges"] is at_edges
    made = task.corrupt(batch, jax.random.key(1))
    used = np.asarray(made["sbo_weights"]) > 0
    ends = [
      np.take_along_axis(batch["input_ids"], np.asarray(made[name]), 1)[used]
      for name in ("sbo_left", "sbo_right")
    ]
    assert not np.isin(ends, PAD).any()
    counts[at_edges] = [
      np.sum(ends[0] == CLS),
      np.sum(ends[1] == SEP),
    ]
  assert counts[False] == [0, 0] and min(counts[True]) > 0


def test_a_packed_row_equals_its_parts(monkeypatch):
  # Rows of 14 and 11 tokens, joined after they were corrupted.
  task, _ = make_task(monkeypatch)
  params, batch = randomise(task.init(jax.random.key(0))), make_batch()
  corrupted = task.corrupt(batch, jax.random.key(3))
  parts = {k: np.asarray(x)[[5, 6]] for k, x in corrupted.items()}
  apart = totals(task.loss(params, parts, None, False))
  n, m = parts["segment_ids"].sum(1)
  assert (n, m) == (14, 11)
  packed = {}
  for name, x in parts.items():
    if name in ("masked_positions", "sbo_left", "sbo_right"):
      x = x + np.array([[0], [n]])
    if x.shape[-1] == L:
      packed[name] = np.concatenate([x[0, :n], x[1, :m], [0] * 4])[None]
    elif x.ndim == 2:
      packed[name] = x.reshape(1, -1)
  packed["segment_ids"] = np.repeat([[1, 2, 0]], [n, m, 4], axis=1)
  packed["positions"] = np.concatenate([np.arange(n), np.arange(m), [0] * 4])[
    None
  ]
  joint = totals(task.loss(params, packed, None, False))
  assert float(apart[0]["sbo"][1]) > 3
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), joint, apart
  )
  # Spans and their boundaries are within a segment of the packed row.
  packed["input_ids"][0, :-4] = np.concatenate(
    [batch["input_ids"][5, :n], batch["input_ids"][6, :m]]
  )
  packed["example_weights"] = np.ones(1, np.float32)
  segments = packed["segment_ids"][0]
  for k in range(20):
    made = task.corrupt(packed, jax.random.key(k))
    used = np.asarray(made["sbo_weights"])[0] > 0
    inside, left, right = (
      segments[np.asarray(made[name])[0][used]]
      for name in ("masked_positions", "sbo_left", "sbo_right")
    )
    assert (inside == left).all()
    assert (inside == right).all()


def test_flops_follow_the_rows(monkeypatch):
  # 5 predictions in a row of 31 tokens. One of SBO uses (2 * 24 + 7) * 24 +
  # 24^2 + 24 * 131 weights.
  config = make_config(length=31, batch_size=3)
  task, _ = make_task(monkeypatch, config, mask_rate=0.15)
  cfg = EncoderConfig(**task.describe["encoder"])
  sbo = 6 * 5 * (1320 + 576 + 3144)
  by_hand = 3 * (flops.train_flops(cfg, 31, num_predictions=5) + sbo)
  assert task.flops(0) == task.flops(9) == by_hand
