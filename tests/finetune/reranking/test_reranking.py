"""Reranking: rows, loss, decoding, and each bad input."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import encoder_reference as reference
from helpers.letters import CLS, PAD, SEP, TOKENIZER, make_params
from maskedlm.core.errors import DataError
from maskedlm.data.labelled.formats.passages import Example
from maskedlm.finetune.common import batching
from maskedlm.finetune.contract import Setup
from maskedlm.finetune.reranking import reranking
from maskedlm.finetune.reranking.reranking import Options
from maskedlm.training.step import totals

LENGTH = 8
EXAMPLES = [
  Example("a b", ("c", "d e f"), where="x.jsonl:1"),
  Example("g", ("h i j k a b c d", "e", "c"), where="x.jsonl:2"),  # Cut.
]


def make(cfg=None, **options):
  cfg = cfg or reference.config()
  return reranking.make_application(
    Setup(TOKENIZER, cfg, {}, LENGTH), Options(**options)
  )


def test_rows_by_hand():
  rows = make().make_rows(EXAMPLES)
  a, b, c, d, e, f, g, h, i, j, k = range(10, 21)
  assert rows.tokens["input_ids"][0].tolist() == [
    [CLS, a, b, SEP, c, SEP, PAD, PAD],
    [CLS, a, b, SEP, d, e, f, SEP],
    [CLS, SEP, SEP, PAD, PAD, PAD, PAD, PAD],
  ]
  assert rows.tokens["token_type_ids"][0][1].tolist() == [0] * 4 + [1] * 4
  assert rows.tokens["input_ids"][1].tolist() == [
    [CLS, g, SEP, h, i, j, k, SEP],
    [CLS, g, SEP, e, SEP, PAD, PAD, PAD],
    [CLS, g, SEP, c, SEP, PAD, PAD, PAD],
  ]
  assert rows.values["counts"].tolist() == [2, 3]
  assert rows.values["sequence_lengths"].tolist() == [[6, 8, 3], [8, 5, 5]]
  assert rows.cut == [12]


LOGITS = np.array([[1, -2, 9], [0.5, 0.6, -1], [7, 0, 0], [3, 3, 3]], "f")
BATCH = {
  "counts": jnp.array([2, 3, 1, 0]),
  "example_weights": jnp.array([1.0, 1.0, 1.0, 0.0]),
}


def loss(kind, logits=LOGITS, batch=BATCH):
  compute = jax.jit(functools.partial(reranking.loss_and_metrics, kind))
  terms, metrics = totals(compute(jnp.array(logits), batch))
  return terms["reranking"], metrics["first_is_right"]


def test_the_loss_of_lists_by_hand():
  (total, weight), accuracy = loss("list")
  expected = np.log1p(np.exp(-3)) + reference.cross_entropy(LOGITS[1], 0)
  np.testing.assert_allclose((total, weight), (expected, 2), rtol=1e-6)
  np.testing.assert_allclose(accuracy, (1, 2))


def test_the_loss_of_pairs_by_hand():
  (total, weight), _ = loss("pair")
  right, wrong = np.array([1, 0.5, 7]), np.array([-2, 0.6, -1])
  expected = np.log1p(np.exp(-right)).sum() + np.log1p(np.exp(wrong)).sum()
  np.testing.assert_allclose((total, weight), (expected, 6), rtol=1e-6)


def test_equals_torch():
  torch = pytest.importorskip("torch")
  theirs = torch.nn.functional.cross_entropy(
    torch.tensor(LOGITS[:2]), torch.tensor([0, 0])
  )
  batch = {"counts": jnp.array([3, 3]), "example_weights": jnp.ones(2)}
  (total, weight), _ = loss("list", LOGITS[:2], batch)
  np.testing.assert_allclose(total / weight, theirs.item(), rtol=1e-6)
  theirs = torch.nn.BCEWithLogitsLoss()(
    torch.tensor(LOGITS[:2]), torch.tensor([[1.0, 0, 0]] * 2)
  )
  (total, weight), _ = loss("pair", LOGITS[:2], batch)
  np.testing.assert_allclose(total / weight, theirs.item(), rtol=1e-6)


def test_the_score_of_a_pair_in_plain_numpy():
  """Compares with each pair alone and without padding."""
  cfg = reference.config()
  app = make(cfg, pooler=False)
  params, rows = make_params(app, cfg), app.make_rows(EXAMPLES)
  batch = batching.gather_rows(rows, np.array([0, 1, -1]), LENGTH, PAD)
  found = np.asarray(jax.jit(app.outputs)(params, batch)["scores"])
  head = params["class_head"]
  for i, example in enumerate(EXAMPLES):
    for k in range(len(example.passages)):
      n = rows.values["sequence_lengths"][i, k]
      ids, types = (
        rows.tokens[name][i][k, :n] for name in ("input_ids", "token_type_ids")
      )
      hidden = reference.encode(params["encoder"], cfg, ids, types, np.ones(n))
      (dense,) = [x for x in head.values() if "kernel" in x]
      one = hidden[0] @ dense["kernel"] + dense["bias"]
      np.testing.assert_allclose(found[i, k], one[0], atol=1e-5)


def test_ranks_by_hand():
  app = make()
  rows = app.make_rows(EXAMPLES)
  made = app.decode(
    EXAMPLES, rows, {"scores": np.array([[0.3, -1, 5], [0.2, 0.2, 0.9]])}, {}
  )
  assert [p["rank"] for p in made] == [1, 3]
  assert [p["passage"] for p in made] == ["c", "c"]
  assert made[0]["scores"] == [0.3, -1]
  found = app.score(EXAMPLES, made)
  assert found["mrr@10"] == pytest.approx((1 + 1 / 3) / 2)
  line = EXAMPLES[1]._replace(is_gold=False)
  made = app.decode([line], None, {"scores": [np.array([0.2, 0.5, 0.1])]}, {})
  assert made[0]["rank"] is None
  assert reranking.format_prediction(made[0]) == "0.500\te"


def test_examples_that_teach_nothing():
  with pytest.raises(
    DataError, match=r"x:1: no example has a query and a wrong passage.*mine"
  ):
    reranking.describe_labels([Example("a", ("b",), where="x:1")])
  with pytest.raises(DataError, match="x:2: the query is empty"):
    reranking.describe_labels([EXAMPLES[0], Example("", ("b",), where="x:2")])


def test_a_list_of_one_passage_has_no_rank():
  alone, app = Example("a", ("b",), where="x:1"), make()
  examples = [EXAMPLES[1], alone]
  scores = {"scores": np.array([[0.2, 0.2, 0.1], [7, 0, 0]])}
  made = app.decode(examples, None, scores, {})
  assert [p["rank"] for p in made] == [2, None]
  assert app.score(examples, made)["mrr@10"] == 0.5
  for few in ([alone], [EXAMPLES[0]._replace(query="")]):
    with pytest.raises(DataError, match="has a query"):
      app.require_labels(few)
