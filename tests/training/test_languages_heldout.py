"""Held-out metrics of each language: by hand, alone, and on a mesh.

tests/cli/test_multilingual.py runs the whole command.
"""

import math
import types

import jax
import numpy as np
import pytest

from helpers import languages as made_up
from helpers import toy
from helpers.prepare_corpus import prepare_corpus
from maskedlm.config import defaults as base
from maskedlm.inference.plots import training_curves
from maskedlm.pretraining import objectives
from maskedlm.training import language_metrics, metrics, sharding
from maskedlm.training import step as steps
from maskedlm.training.language_metrics import Language
from maskedlm.training.options import MeshOptions

SMALL = {
  "num_layers": 1,
  "width": 24,
  "num_heads": 3,
  "mlp_width": 40,
  "max_positions": 48,
}
OBJECTIVES = ["causal", pytest.param("electra", marks=pytest.mark.slow)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
  folder = tmp_path_factory.mktemp("languages")
  return prepare_corpus(made_up.make_config(folder), folder / "corpus")


def make_task(objective, corpus, *, batch_size=8, eval_rows=15, **options):
  config = base.default(objective)
  config.model.update(SMALL)
  config.data.update(length=21, batch_size=batch_size)
  config.train.update(num_steps=1, eval_rows=eval_rows)
  config.objective.update(options)
  task = objectives.make_task(config, corpus)
  return task._replace(languages=language_metrics.of_corpus(corpus))


def evaluate(task, step, params, change=lambda batch: batch):
  """Returns {metric: (sum, weight)} over the held-out batches."""
  batches = [
    task.batch_at("heldout", i) for i in range(task.num_heldout_batches)
  ]
  pairs = [step(params, change(b), i)[:2] for i, b in enumerate(batches)]
  return metrics.sums(jax.device_get(pairs))


def jitted(task):
  return jax.jit(steps.make_heldout_step(task, seed=3, accumulate=1))


def test_tokens_per_character_are_those_of_heldout_text():
  counts = {"tokens": 30, "characters": 120}
  parts = [{"name": "yo", "heldout": counts, "train": {"tokens": 1}}]
  found = language_metrics.of_corpus(types.SimpleNamespace(domains=parts))
  assert found == (Language("yo", 0.25),)
  assert language_metrics.of_corpus(types.SimpleNamespace(domains=())) == ()


def test_sums_of_each_language_by_hand():
  task = toy.make_task()
  ids = np.int32([0, 2, 2, 0, 2, 0, 2, 2, 2, 0, 2, 2])  # None is "b".
  batch = task.corrupt(task.batch_at("heldout", 1), jax.random.key(5))
  params = task.init(jax.random.key(2))

  three = tuple(Language(n, t) for n, t in (("a", 0.5), ("b", 1), ("c", 0.2)))
  terms, found = task.loss(params, batch, None, False)
  found = {**found, "mlm_loss": terms["a"]}
  stats = steps.totals(language_metrics.measure_by_language(three, found, ids))
  for name, pair in steps.totals(found).items():
    assert stats[name] == pair
  out = batch["x"] @ np.asarray(params["dense"]["kernel"])[:, 0]
  error = (out - batch["y"]) ** 2
  total, weight = (error * batch["weights"])[ids == 2], batch["weights"]
  np.testing.assert_allclose(
    stats["c/mlm_loss"], (total.sum(), weight[ids == 2].sum()), rtol=1e-5
  )
  np.testing.assert_allclose(
    stats["a/error"], (error[ids == 0].sum(), 4), rtol=1e-5
  )
  assert stats["b/error"] == (0, 0)
  values = metrics.means(stats)
  assert "b/mlm_loss" not in values and "b/bits_per_character" not in values
  # Nats per token times a fifth of a token per character, in bits.
  assert values["c/bits_per_character"] == pytest.approx(
    values["c/mlm_loss"] * 0.2 / math.log(2)
  )


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_metrics_of_a_language_are_those_of_its_rows_alone(objective, corpus):
  task = make_task(objective, corpus)
  params = jax.jit(task.init)(jax.random.key(1))
  together = jitted(task._replace(languages=()))
  terms, found = evaluate(task, jitted(task), params)
  expected_terms, expected = evaluate(task, together, params)
  for name, pair in expected_terms.items():
    assert terms[name] == pytest.approx(pair, rel=1e-5), name
  for i, language in enumerate(task.languages):

    def alone(batch, i=i):  # Other languages' rows are fillers.
      here = np.float32(batch["language_ids"] == i)
      return {**batch, "example_weights": here * batch["example_weights"]}

    for name, pair in evaluate(task, together, params, alone)[1].items():
      assert found[f"{language.name}/{name}"] == pytest.approx(
        pair, rel=1e-5, abs=1e-4
      ), name
  for name, pair in expected.items():
    assert found[name] == pytest.approx(pair, rel=1e-5), name
    each = [found[f"{language.name}/{name}"] for language in task.languages]
    assert np.sum(each, axis=0) == pytest.approx(pair, rel=1e-5), name


def test_the_same_on_eight_devices(corpus):
  task = make_task("roberta", corpus, batch_size=16, eval_rows=22)
  assert task.num_heldout_batches == 2  # The last has fillers.
  params = jax.jit(task.init)(jax.random.key(1))
  step = jitted(task)
  expected = evaluate(task, step, params)
  mesh = sharding.make_mesh(MeshOptions(data=4, fsdp=2, tensor=1))
  with jax.set_mesh(mesh):
    found = evaluate(
      task, step, params, lambda batch: sharding.place(batch, mesh)
    )
  flat = jax.tree.leaves(expected)
  assert jax.tree.leaves(found) == pytest.approx(flat, rel=1e-5)
  assert found[1]["yo/mlm_loss"][1] > 0


def test_the_table_by_hand():
  heldout = {
    "loss": 3.0,
    "mlm_loss": 3.0,
    "de/mlm_loss": 2.0,
    "de/mlm_accuracy": 0.5,
    "de/bits_per_character": 1.25,
    "yo/mlm_loss": 4.0,
    "yo/bits_per_character": 2.5,
  }
  whole, each = language_metrics.split_by_language(heldout)
  assert whole == {"loss": 3.0, "mlm_loss": 3.0} and [*each] == ["de", "yo"]
  assert language_metrics.format_line(each) == "de 1.250, yo 2.500"
  head, *lines = language_metrics.format_table(each)
  assert head.split() == ["loss", "bits/character", "accuracy"]
  assert [line.split() for line in lines] == [
    ["de", "2.000", "1.250", "50.0%"],
    ["yo", "4.000", "2.500", "-"],
    ["mean", "3.000", "1.875", "50.0%"],
  ]
  assert (
    language_metrics.split_by_language({"loss": 3.0})[1] == {}
    and language_metrics.format_line({}) == ""
  )


def test_the_curves_show_all_languages_together():
  names = (
    "mlm_loss",
    "mlm_accuracy",
    "heldout/mlm_loss",
    "heldout/de/mlm_loss",
  )
  curves = {name: training_curves.Curve([1], [2.0]) for name in names}
  assert [p.metric for p in training_curves.choose_panels([curves])] == [
    "mlm_loss",
    "mlm_accuracy",
  ]
