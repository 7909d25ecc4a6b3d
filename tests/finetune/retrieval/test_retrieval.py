"""Retrieval: rows, cosines, loss, ranks."""

import functools
import json
import math
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ml_collections import ConfigDict

from helpers import encoder_reference as reference
from helpers import letters
from helpers.letters import CLS, PAD, SEP, TOKENIZER, make_params
from maskedlm.core.errors import ConfigError, DataError
from maskedlm.data.labelled.formats.passages import Example
from maskedlm.finetune import initial_params
from maskedlm.finetune.common import batching, multi_sequence, packing
from maskedlm.finetune.common.ranked_passages import format_tables
from maskedlm.finetune.contract import Setup
from maskedlm.finetune.retrieval import contrastive, retrieval
from maskedlm.finetune.retrieval.retrieval import Options
from maskedlm.modeling import masked_lm
from maskedlm.training import sharding
from maskedlm.training.step import totals

LENGTH = 9
EXAMPLES = [
  Example("a b", ("c", "d e f"), where="x.tsv:2"),
  Example("g", ("h i j k a b c d",), where="x.tsv:3"),  # Cut to 9 tokens.
  Example("k", ("c", "h"), where="x.tsv:4"),  # The first one's passage.
  Example("a b", ("e", "c"), where="x.tsv:5"),  # The first one's query.
  Example("d", ("b a", "i"), where="x.tsv:6"),
]


make_batch = functools.partial(
  letters.make_batch, examples=EXAMPLES, length=LENGTH
)


def make(cfg=None, **options):
  cfg = cfg or reference.config()
  setup = Setup(TOKENIZER, cfg, {}, LENGTH)
  app = retrieval.make_application(setup, Options(**options))
  return letters.compiled(app)


def test_rows():
  rows = make().make_rows(EXAMPLES)
  assert rows.tokens["input_ids"][0].tolist() == [
    [CLS, 10, 11, SEP, PAD],
    [CLS, 12, SEP, PAD, PAD],
    [CLS, 13, 14, 15, SEP],
  ]
  # A missing second passage becomes an empty text with the id NONE.
  assert rows.tokens["input_ids"][1].tolist() == [
    [CLS, 16, SEP, *[PAD] * 6],
    [CLS, *range(17, 21), 10, 11, 12, SEP],
    [CLS, SEP, *[PAD] * 7],
  ]
  assert rows.values["passage_ids"].tolist() == [
    [0, 1],
    [2, -1],
    [0, 3],
    [4, 0],
    [5, 6],
  ]
  assert rows.values["query_ids"].tolist() == [0, 1, 2, 0, 3]
  assert rows.values["sequence_lengths"][:2].tolist() == [[4, 3, 5], [3, 9, 2]]
  assert len(rows.cut) == 1
  assert rows.notes == ("4 different queries, 7 different passages",)
  batch = make_batch(make(), fillers=1)
  assert batch["segment_ids"].sum(axis=-1).tolist() == [
    *rows.values["sequence_lengths"].tolist(),
    [1, 1, 1],  # A filler attends to itself.
  ]


def test_prefixes():
  app = make(query_prefix="k ", passage_prefix="j i ")
  rows = app.make_rows([EXAMPLES[0], EXAMPLES[2]])
  assert rows.tokens["input_ids"][1].tolist() == [
    [CLS, 20, 20, SEP, PAD],
    [CLS, 19, 18, 12, SEP],
    [CLS, 19, 18, 17, SEP],
  ]
  # Missing passages get no prefix.
  assert rows.values["passage_ids"].tolist() == [[0, 1], [0, 2]]
  options = Options(query_prefix="q: ")
  assert retrieval.sentence_pooling(options)["prompts"] == {"query": "q: "}
  assert retrieval.sentence_pooling(Options())["prompts"] == {}


def cosine_scores(x, batch):
  return contrastive.cosines_of(
    x[:, 0], x[:, 1:], contrastive.compared_passages(batch)
  )


@pytest.mark.parametrize("pool", ["mean", "cls"])
def test_loss_in_plain_numpy(pool):
  """Compares with each text alone and without padding."""
  cfg = reference.config()
  app = make(cfg, pool=pool, temperature=0.2)
  params, batch = make_params(app, cfg), make_batch(app, length=16, fillers=2)
  rows = app.make_rows(EXAMPLES)
  x = np.zeros((5, 3, cfg.width))
  for i in range(5):
    for c, n in enumerate(rows.values["sequence_lengths"][i]):
      ids = rows.tokens["input_ids"][i][c, :n]
      hidden = reference.encode(
        params["encoder"], cfg, ids, 0 * ids, np.ones(n)
      )
      one = hidden.mean(axis=0) if pool == "mean" else hidden[0]
      x[i, c] = one / np.linalg.norm(one)
  ours = np.asarray(app.outputs(params, batch)["vectors"])
  np.testing.assert_allclose(ours[:5], x, atol=1e-5)
  wrong = [  # (example, column) of the wrong passages of each query.
    [(0, 2), (1, 1), (2, 2), (4, 1), (4, 2)],
    [(0, 1), (0, 2), (2, 1), (2, 2), (3, 1), (3, 2), (4, 1), (4, 2)],
    [(0, 2), (1, 1), (2, 2), (3, 1), (4, 1), (4, 2)],
    # The first example has the same query, and its passage is this one's
    # negative: this example's own line counts.
    [(0, 2), (1, 1), (2, 1), (2, 2), (3, 2), (4, 1), (4, 2)],
    [(0, 1), (0, 2), (1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (4, 2)],
  ]
  loss = correct = 0
  for i, others in enumerate(wrong):
    logits = np.array([x[i, 0] @ x[j] for j in [(i, 1), *others]]) / 0.2
    loss += reference.cross_entropy(logits, 0)
    correct += np.argmax(logits) == 0
  terms, metrics = totals(app.loss(params, batch, None, False))
  np.testing.assert_allclose(terms["retrieval"], (loss, 5), rtol=1e-4)
  np.testing.assert_allclose(metrics["in_batch_accuracy"], (correct, 5))


def test_hardness_by_hand():
  """Cosines of 0.5, 1 and 0: the wrong one at 1 gets 3 times it in addition."""
  angle = np.radians([60, 0, 90])
  x = np.stack([np.cos(angle), np.sin(angle)], axis=1)
  x = jnp.float32([[[2, 0], *x[:2]], [[0, 1], x[2], x[2]]])
  batch = {
    "query_ids": jnp.arange(2),
    "passage_ids": jnp.array([[0, 1], [2, retrieval.NONE]]),
    "example_weights": jnp.array([1.0, 0.0]),
  }

  @functools.partial(jax.jit, static_argnums=1)
  def loss(x, hardness):
    terms, _ = contrastive.loss_and_metrics(
      x, batch, temperature=0.5, hardness=hardness
    )
    return totals(terms)["retrieval"][0]

  np.testing.assert_allclose(loss(x, 0), np.log1p(np.exp(2 - 1)), rtol=1e-6)
  np.testing.assert_allclose(loss(x, 3), np.log1p(np.exp(5 - 1)), rtol=1e-6)
  # It is a constant: slopes are those of logits 1 and 2, times p(wrong).
  plain, hard = (jax.grad(loss)(x, float(h)) for h in (0, 3))
  ratio = (1 / (1 + np.exp(-4))) / (1 / (1 + np.exp(-1)))
  np.testing.assert_allclose(hard, plain * ratio, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("width", [0, 24])
def test_widths_of_the_model(width):
  with pytest.raises(ConfigError, match=rf"task\.widths.* {width};.*below 24"):
    make(widths=(8, width))


@pytest.mark.parametrize(
  ("hardness", "symmetric", "widths"),
  [(0, False, ()), (7.0, False, ()), (0, True, ()), (0, False, (5, 13))],
)
def test_equals_sentence_transformers(hardness, symmetric, widths):
  torch = pytest.importorskip("torch")
  pytest.importorskip("sentence_transformers")
  from sentence_transformers.sentence_transformer import losses

  cfg = reference.config()
  app = make(cfg, hardness=hardness, symmetric=symmetric, widths=widths)
  examples = [
    Example(q, (p, n))
    for q, p, n in zip("abcd", "efgh", ("i j", "k", "a b", "j c"), strict=True)
  ]
  batch = batching.gather_rows(
    app.make_rows(examples), np.arange(4), LENGTH, PAD
  )
  x = np.random.default_rng(3).normal(size=(4, 3, cfg.width))
  x = x.astype(np.float32)
  peer = losses.MultipleNegativesRankingLoss(
    model=None,
    directions=("query_to_doc", "doc_to_query")[: 1 + symmetric],
    partition_mode="per_direction",
    hardness_mode="all_negatives",
    hardness_strength=hardness,
  )
  theirs = sum(
    peer.compute_loss_from_embeddings(
      [torch.tensor(x[:, i, :d]) for i in range(3)], labels=None
    ).item()
    for d in (*widths, cfg.width)
  )
  terms = totals(jax.jit(app.loss_of_vectors)(x, batch))[0]
  ours = sum(total / weight for total, weight in terms.values())
  np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_negatives_come_from_all_devices():
  """Loss and gradient are equal on one device and on two."""
  cfg = reference.config()
  app = make(cfg)
  params, batch = make_params(app, cfg), make_batch(app, length=16, fillers=3)

  def loss(params, batch):
    total, weight = totals(app.loss(params, batch, None, False))[0]["retrieval"]
    return total / weight

  sizes = ConfigDict({"data": -1, "fsdp": 1, "tensor": 1})
  mesh = sharding.make_mesh(sizes, jax.devices()[:2])
  over = jax.jit(
    jax.value_and_grad(loss),
    in_shardings=(sharding.replicated(mesh), sharding.rows(mesh)),
  )
  found, slopes = over(params, sharding.place(batch, mesh))
  expected, one = jax.jit(jax.value_and_grad(loss))(params, batch)
  np.testing.assert_allclose(found, expected, rtol=1e-6)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), slopes, one
  )


def test_packing_does_not_change_the_vectors():
  cfg = reference.config()
  app = make(cfg)
  params, rows = make_params(app, cfg), app.make_rows(EXAMPLES)
  microbatches = packing.microbatch_rows(6, 2, 1)
  layout = packing.PackingLayout(2 * LENGTH, (3, 5))
  packed = batching.train_batches(
    rows,
    batch_size=6,
    length=LENGTH,
    layout=layout,
    microbatches=microbatches,
    pad=PAD,
    seed=5,
    shard=(0, 1),
  )
  batch = packed.batch_at(0)
  assert batch["packed"]["input_ids"].shape[1] in (3, 5)
  # The encoder reads the packed rows.
  read = masked_lm.encoder_inputs(multi_sequence.flatten_sequences(batch))[
    "input_ids"
  ]
  assert read.shape[1] == 2 * LENGTH
  plain = batching.gather_rows(rows, packed.row_ids(0), LENGTH, PAD)
  made = [app.outputs(params, b)["vectors"] for b in (batch, plain)]
  np.testing.assert_allclose(*made, atol=1e-5)


def on_circle(*degrees):
  angles = np.radians(degrees)
  return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def test_ranks_by_hand(monkeypatch):
  app = make()
  rows = app.make_rows(EXAMPLES)
  # Passages: c 10, "d e f" 50, "h i j ..." 80, h 30, e 0, "b a" 90, i 20.
  outputs = {
    "vectors": [
      on_circle(12, 10, 50),  # c, then i 20, e 0: but e is right, too.
      on_circle(20, 80, 0),  # i, then c and h, e, d e f, and only then this.
      on_circle(31, 10, 30),  # h 30, i 20, "d e f" 50, c.
      on_circle(12, 0, 10),  # c counts as correct here; i is nearer than e.
      on_circle(20, 90, 20),  # The last of 7.
    ]
  }
  made = app.decode(EXAMPLES, rows, outputs, {})
  assert [p["rank"] for p in made] == [1, 6, 4, 2, 7]
  assert [p["passage"] for p in made] == ["c", "i", "h", "c", "i"]
  assert made[2]["cosine"] == pytest.approx(math.cos(math.radians(1)))
  assert made[1]["cosines"] == pytest.approx([0.5])  # It has one passage.
  assert json.loads(json.dumps(made)) == made
  monkeypatch.setattr(retrieval, "BLOCK", 2)  # Queries at once: 2, 2, 1.
  assert app.decode(EXAMPLES, rows, outputs, {}) == made
  found = app.score(EXAMPLES, made)
  assert found == {
    "mrr@10": pytest.approx((1 + 1 / 6 + 1 / 4 + 1 / 2 + 1 / 7) / 5),
    "recall@1": pytest.approx(1 / 5),
    "recall@10": 1.0,
  }
  late = app.score(EXAMPLES[:2], [{"rank": 11}, {"rank": 10}])
  assert late == {"mrr@10": 0.05, "recall@1": 0.0, "recall@10": 0.5}
  assert format_tables((), made)["ranks.tsv"].splitlines()[:4] == [
    *("k\trecall", "1\t0.2000", "2\t0.4000", "5\t0.6000")
  ]
  # If all are equal, the rank is the last.
  same = {"vectors": [on_circle(5, 5, 5)] * 5}
  ranks = [p["rank"] for p in app.decode(EXAMPLES, rows, same, {})]
  assert ranks == [6, 7, 7, 6, 7]


def test_passages_without_a_query_are_searched_too():
  """By hand; examples without a query add passages."""
  app = make()
  others = [Example("", ("k", "j"), where="y.tsv:2"), Example("", ("c",))]
  examples = [*EXAMPLES[:2], *others]
  rows = app.make_rows(examples)
  assert rows.values["query_ids"].tolist() == [0, 1, -1, -1]
  assert rows.tokens["input_ids"][2].tolist() == [
    [CLS, SEP, PAD],
    [CLS, 20, SEP],
    [CLS, 19, SEP],
  ]
  assert rows.notes == ("2 different queries, 5 different passages",)
  outputs = {
    "vectors": [
      on_circle(12, 10, 50),  # c 10 before k 20.
      on_circle(40, 80, 0),  # d e f 50, k 20, c 10, and only then this 80.
      on_circle(7, 20, 90),
      on_circle(7, 10, 0),  # The same c: one passage.
    ]
  }
  made = app.decode(examples, rows, outputs, {})
  assert [p["rank"] for p in made] == [1, 4, None, None]
  assert retrieval.format_prediction(made[2]) == "(no query)"
  assert app.score(examples, made) == {
    "mrr@10": pytest.approx((1 + 1 / 4) / 2),
    "recall@1": 0.5,
    "recall@10": 1.0,
  }
  assert "\n2\t0.5000\n" in format_tables((), made)["ranks.tsv"]
  with pytest.raises(DataError, match=r"y\.tsv:2: neither this nor any other"):
    app.require_labels(others)
  # They are wrong passages of other queries, and have no loss.
  batch = batching.gather_rows(rows, np.array([0, 2]), LENGTH, PAD)
  x = jnp.float32(np.stack([outputs["vectors"][i] for i in (0, 2)]))
  cosines = np.asarray(cosine_scores(x, batch))
  np.testing.assert_allclose(
    cosines[0], np.cos(np.radians([2, 38, 8, 78])), atol=1e-6
  )
  terms, stats = jax.jit(app.loss_of_vectors)(x, batch)
  assert terms["retrieval"][1].tolist() == [1, 0]
  assert stats["in_batch_accuracy"][1].tolist() == [1, 0]


def test_lines_are_compared_with_their_own_passages():
  app = make()
  examples = [
    Example("a", ("b", "c"), is_gold=False),
    Example("d", ("e",), is_gold=False),
  ]
  outputs = {"vectors": [on_circle(0, 60, 0), on_circle(0, 60, 0)]}
  rows = app.make_rows(examples)
  assert not rows.notes
  made = app.decode(examples, rows, outputs, {})
  assert [p["passage"] for p in made] == ["c", "e"]
  assert made[1]["cosines"] == pytest.approx([0.5])
  assert retrieval.format_prediction(made[1]) == "0.500\te"
  assert (
    retrieval.format_prediction({"cosine": 1, "passage": "a\tb\nc"})
    == "1.000\ta b c"
  )
  with pytest.raises(DataError, match="'a': the passage that answers it"):
    app.require_labels(examples)
  assert app.decode([], None, {}, {}) == []


def test_another_pooling_of_init_from_is_logged():
  def log(**sentences):
    lines, meta = [], {"task": {"sentences": sentences} if sentences else {}}
    start = types.SimpleNamespace(meta=meta)
    made = retrieval.sentence_pooling(Options(query_prefix="q: "))
    initial_params.check_sentence_pooling(start, made, lines.append)
    return lines

  assert log() == log(pool="mean", normalize=True, length=9) == []
  assert log(pool="cls", normalize=True, prompts={"query": "x: "}) == [
    "init_from made the vectors of texts with pool 'cls' (here 'mean'), "
    "prompts {'query': 'x: '} (here {'query': 'q: '})"
  ]
