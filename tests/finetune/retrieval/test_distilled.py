"""Losses from a teacher's scores."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import encoder_reference as reference
from helpers.letters import PAD, TOKENIZER, compiled, make_params
from maskedlm.core.errors import DataError
from maskedlm.data.labelled.formats.passages import Example
from maskedlm.finetune.common import batching
from maskedlm.finetune.contract import Setup
from maskedlm.finetune.retrieval import distilled, retrieval
from maskedlm.finetune.retrieval.retrieval import Options
from maskedlm.training.step import totals

NAN = float("nan")


def on_circle(*degrees):
  angles = np.radians(degrees)
  return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


# Cosines with the query: 0.5, 1 and 0; 0.5 and -0.5; a filler.
X = jnp.float32(
  [
    3 * on_circle(0, 60, 0, 90),
    on_circle(90, 30, 210, 0),
    on_circle(0, 0, 0, 0),
  ]
)
BATCH = {
  "scores": jnp.array([[0.9, 0.3, 0.5], [2.0, 1.0, NAN], [0, 0, 0]]),
  "example_weights": jnp.array([1.0, 1.0, 0.0]),
}


def loss(kind, x=X, batch=BATCH, **how):
  how = {"temperature": 0.5, "teacher_temperature": 0.25, **how}
  compute = functools.partial(distilled.loss_and_metrics, kind, **how)
  return [*map(dict, totals(jax.jit(compute)(x, batch)))]


def test_margins_by_hand():
  """T^2 (margin / T - teacher's / its own T)^2; a missing passage has none."""
  terms, metrics = loss("margin_mse")
  margins = np.array([-0.5, 0.5, 1.0]), np.array([0.6, 0.4, 1.0])
  errors = 0.25 * (margins[0] / 0.5 - margins[1] / 0.25) ** 2
  np.testing.assert_allclose(terms["margin_mse"], (errors.sum(), 3), rtol=1e-5)
  np.testing.assert_allclose(metrics["first_is_right"], (1, 2))


def test_divergences_by_hand():
  terms, _ = loss("kl")

  def kl(s, t):
    p, q = (np.exp(v) / np.exp(v).sum() for v in (t, s))
    return np.sum(p * np.log(p / q))

  expected = kl(np.array([1, 2, 0]), np.array([3.6, 1.2, 2]))
  expected += kl(np.array([1, -1]), np.array([8, 4]))
  np.testing.assert_allclose(terms["kl"], (expected / 4, 2), rtol=1e-5)


@pytest.mark.parametrize("widths", [(), (5, 13)])
@pytest.mark.parametrize("kind", distilled.KINDS)
def test_equals_sentence_transformers(kind, widths):
  torch = pytest.importorskip("torch")
  pytest.importorskip("sentence_transformers")
  from sentence_transformers import util
  from sentence_transformers.sentence_transformer import losses

  rng = np.random.default_rng(3)
  x = rng.normal(size=(4, 5, 24)).astype(np.float32)
  scores = rng.normal(size=(4, 4)).astype(np.float32)
  batch = {"scores": jnp.array(scores), "example_weights": jnp.ones(4)}
  temperatures = {"temperature": 0.3, "teacher_temperature": 0.3}
  cosine = {"model": None, "similarity_fct": util.pairwise_cos_sim}
  if kind == "kl":
    temperatures["teacher_temperature"] = 0.7
    peer = losses.DistillKLDivLoss(
      **cosine, student_temperature=0.3, teacher_temperature=0.7
    )
  else:
    peer = losses.MarginMSELoss(**cosine)
  theirs = sum(
    peer.compute_loss_from_embeddings(
      [torch.tensor(x[:, i, :d]) for i in range(5)], torch.tensor(scores)
    ).item()
    for d in (*widths, 24)
  )
  terms, _ = loss(kind, jnp.array(x), batch, widths=widths, **temperatures)
  ours = sum(total / weight for total, weight in terms.values())
  np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.parametrize("kind", distilled.KINDS)
def test_the_task_reads_scores_and_counts_no_padding(kind):
  cfg = reference.config()
  setup = Setup(TOKENIZER, cfg, {}, 9)
  app = compiled(retrieval.make_application(setup, Options(loss=kind)))
  examples = [
    Example("a b", ("c", "d e f", "g"), scores=(0.5, 0.25, 0)),
    Example("h", ("i j k", "b"), scores=(1, 0.75)),
    Example("c", ("a",)),  # Of a development set, perhaps.
  ]
  params, rows = make_params(app, cfg), app.make_rows(examples)
  np.testing.assert_array_equal(
    rows.values["scores"],
    np.float32([[0.5, 0.25, 0], [1, 0.75, NAN], [NAN, NAN, NAN]]),
  )

  def run(which):
    batch = batching.gather_rows(rows, np.array(which), 9, PAD)
    return totals(app.loss(params, batch, None, False))[0][kind]

  both = run([0, 1, 2, -1])
  assert both[1] == (3 if kind == "margin_mse" else 2)
  parts = [np.array(run([i, -1, -1, -1])) for i in (0, 1)]
  np.testing.assert_allclose(both, sum(parts), rtol=1e-4)


def test_a_teacher_is_needed():
  task = retrieval.make_task(Options(loss="kl"))
  example = Example("a", ("b", "c"), where="x:3")
  with pytest.raises(DataError, match=r"x:3: no scores, which task\.loss=kl"):
    task.describe_labels([example._replace(scores=(1, 2)), example])
  assert retrieval.make_task(Options()).describe_labels([example]) == {}


def test_files_with_scores(tmp_path):
  path = tmp_path / "a.jsonl"

  def read(line):
    path.write_text(line + "\n")
    task = retrieval.make_task(Options(loss="kl"))
    return task.read_examples(str(path))[0]

  row = '{"query": "a", "passage": "b", "negatives": ["c", "d"], "scores": %s}'
  made = read(row % "[3, -1.5, 0]")
  assert made.passages == ("b", "c", "d") and made.scores == (3, -1.5, 0)
  for scores in ("[3, 1]", "7", '["x", 1, 2]', "null", "[1, 2, NaN]"):
    with pytest.raises(DataError, match=r"a\.jsonl:1.*2 wrong passages|JSON"):
      read(row % scores)
  # Without negatives it may say which passages are right, as before.
  with pytest.raises(DataError, match="'scores', labels by its name"):
    read('{"query": "a", "passage": "b", "scores": [1]}')
