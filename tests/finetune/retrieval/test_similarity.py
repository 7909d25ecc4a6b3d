"""Graded pairs: losses, rows, scores, and bad grades."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import encoder_reference as reference
from helpers.letters import PAD, TOKENIZER, compiled, make_params
from maskedlm.core.errors import DataError
from maskedlm.data.labelled.formats.texts import Example
from maskedlm.finetune.common import batching
from maskedlm.finetune.contract import Setup
from maskedlm.finetune.retrieval import retrieval, similarity
from maskedlm.finetune.retrieval.similarity import Options
from maskedlm.training.step import totals


def vectors(*cosines):
  """Returns pairs [n, 2, 2] of such cosines, of length 1 and 2."""
  c = np.array(cosines)
  b = np.stack([c, np.sqrt(1 - c**2)], axis=-1)
  return jnp.float32(np.stack([np.broadcast_to([1, 0], b.shape), 2 * b], 1))


def loss(kind, x, grades, weights=None):
  total, weight = total_and_weight(kind, x, grades, weights)
  return total / weight


def total_and_weight(kind, x, grades, weights=None):
  weights = np.ones(len(grades)) if weights is None else weights
  batch = {
    "grades": jnp.float32(grades),
    "example_weights": jnp.float32(weights),
  }
  compute = functools.partial(
    similarity.loss_and_metrics, kind, temperature=0.5
  )
  return totals(jax.jit(compute)(x, batch))[0][kind]


def test_the_order_of_grades_by_hand():
  """Pairs 5 > 3, 5 > 1 and 3 > 1; the last is a filler."""
  x = vectors(0.5, 0.8, -0.1, 0.9)
  gaps = np.array([0.8 - 0.5, -0.1 - 0.5, -0.1 - 0.8]) / 0.5
  expected = np.log(1 + np.exp(gaps).sum())
  found = loss("cosent", x, [5, 3, 1, 0], [1, 1, 1, 0])
  np.testing.assert_allclose(found, expected, rtol=1e-5)
  # Nothing is to be ordered, so nothing counts.
  assert total_and_weight("cosent", x, [2, 2, 2, 2]) == (0, 0)


def test_grades_as_cosines_by_hand():
  x = vectors(0.5, 0.8, -0.1)
  found = loss("cosine", x, [0.7, 0.8, 0.9], [1, 1, 0])
  np.testing.assert_allclose(found, 0.04 / 2, rtol=1e-4)


@pytest.mark.parametrize("kind", ["cosent", "cosine"])
def test_equals_sentence_transformers(kind):
  torch = pytest.importorskip("torch")
  pytest.importorskip("sentence_transformers")
  from sentence_transformers.sentence_transformer import losses

  rng = np.random.default_rng(1)
  x = rng.normal(size=(7, 2, 13)).astype(np.float32)
  grades = np.float32([0, 0.5, 0.5, 1, 0.25, 0.75, 0])
  peer = {
    "cosent": lambda: losses.CoSENTLoss(model=None, scale=2.0),
    "cosine": lambda: losses.CosineSimilarityLoss(model=None),
  }[kind]()
  theirs = peer.compute_loss_from_embeddings(
    [torch.tensor(x[:, i]) for i in range(2)], torch.tensor(grades)
  )
  ours = loss(kind, jnp.array(x), grades)
  np.testing.assert_allclose(ours, theirs.item(), rtol=1e-5)


def test_rows_have_the_vectors_of_retrieval():
  cfg = reference.config()
  setup = Setup(TOKENIZER, cfg, {}, 9)
  app = compiled(similarity.make_application(setup, Options(pool="cls")))
  plain = retrieval.make_application(setup, retrieval.Options(pool="cls"))
  examples = [Example("a b", "c", 3.0), Example("d", "d e f", 1.0)]
  rows, params = app.make_rows(examples), make_params(app, cfg)
  assert rows.values["grades"].tolist() == [3, 1] and not rows.texts
  batch = batching.gather_rows(rows, np.array([0, 1, -1]), 9, PAD)
  found = np.asarray(app.outputs(params, batch)["vectors"])
  same = compiled(plain).outputs(params, batch)["vectors"]
  np.testing.assert_array_equal(found, same)
  made = app.decode(examples, rows, {"vectors": [*found[:2]]}, {})
  cosines = np.sum(found[:2, 0] * found[:2, 1], axis=-1)
  np.testing.assert_allclose([p["cosine"] for p in made], cosines, rtol=1e-6)
  rank = 1.0 if cosines[0] > cosines[1] else -1.0
  assert app.score(examples, made)["spearman"] == pytest.approx(rank)


def test_grades_that_are_no_cosines():
  task = similarity.make_task(Options(loss="cosine"))
  examples = [Example("a", "b", 0.5, "x:1"), Example("a", "c", 4.0, "x:2")]
  with pytest.raises(DataError, match="x:2: the grade is 4; expected -1 to 1"):
    task.describe_labels(examples)
  assert similarity.make_task(Options()).describe_labels(examples) == {}


def test_grades_are_no_labels_of_retrieval(tmp_path):
  path = tmp_path / "a.tsv"
  path.write_text("query\tpassage\tlabel\na\tb\t0.5\n")
  with pytest.raises(DataError, match=r"a\.tsv:2: label is '0\.5'.*similarity"):
    retrieval.make_task(retrieval.Options()).read_examples(str(path))
