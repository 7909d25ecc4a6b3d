"""Ensembles of every task: members' scores are averaged, then decoded."""

import dataclasses
import json

import jax
import numpy as np
import pytest

import maskedlm
from helpers import applications, untrained
from helpers import finetune_runs as runs
from maskedlm.cli import main
from maskedlm.core.errors import ConfigError
from maskedlm.finetune import config as configs
from maskedlm.finetune import members, predict
from maskedlm.finetune.common import batching, ensemble
from maskedlm.training.checkpoints import load


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
  folder = tmp_path_factory.mktemp("members") / "encoder"
  return load.open_checkpoint(runs.make_encoder(folder, init_stddev=0.2))


def stacked(*params):
  return jax.tree.map(lambda *x: np.stack(x), *params)


@pytest.mark.parametrize("name", configs.task_names())
def test_every_task_combines_its_members(name, encoder, tmp_path):
  """That outputs are of no single member is checked by over_members."""
  examples, app, own = applications.make(name, encoder, tmp_path)
  rows = app.make_rows(examples)
  batch = batching.gather_rows(
    rows, np.arange(len(rows.example)), 24, encoder.tokenizer.special.pad
  )
  found = jax.eval_shape(
    ensemble.over_members(app.outputs), stacked(*own), batch
  )
  assert found and {x.shape[0] for x in found.values()} == {len(rows.example)}


LOGITS = ("classification", "multiple_choice", "relations")


@pytest.mark.slow
@pytest.mark.parametrize("name", configs.task_names())
def test_predictions(name, encoder, tmp_path):
  """One thrice is that one; of two, the order doesn't matter."""
  examples, app, own = applications.make(name, encoder, tmp_path)
  rows = app.make_rows(examples)

  def predictions(outputs, params):
    found = predict.compute_outputs(
      app._replace(outputs=outputs),
      params,
      rows,
      batch_size=8,
      buckets=(24,),
      pad=encoder.tokenizer.special.pad,
    )
    return app.decode(examples, rows, found, {}), found

  one, first = predictions(app.outputs, own[0])
  thrice, _ = predictions(
    ensemble.over_members(app.outputs), stacked(*own[:1] * 3)
  )
  applications.check_close(thrice, one)
  _, second = predictions(app.outputs, own[1])
  both, joint = predictions(ensemble.over_members(app.outputs), stacked(*own))
  applications.check_close(
    predictions(ensemble.over_members(app.outputs), stacked(*own[::-1]))[0],
    both,
  )
  if name in LOGITS:
    expected = (
      jax.nn.softmax(np.stack(first["logits"]))
      + jax.nn.softmax(np.stack(second["logits"]))
    ) / 2
    found = jax.nn.softmax(np.stack(joint["logits"]))
    np.testing.assert_allclose(found, expected, atol=1e-5)
  if name == "retrieval":
    x, y, z = (np.stack(o["vectors"]) for o in (first, second, joint))
    np.testing.assert_allclose(
      np.einsum("nd,mkd->nmk", z[:, 0], z[:, 1:]),
      sum(np.einsum("nd,mkd->nmk", v[:, 0], v[:, 1:]) for v in (x, y)) / 2,
      atol=1e-5,
    )


# The verbs and Python.


@pytest.fixture(scope="module")
def moods(tmp_path_factory):
  """Returns the paths of two checkpoints of one run."""
  folder = tmp_path_factory.mktemp("members") / "moods"
  untrained.save_tuned(
    folder, *untrained.TUNED["mood"], metrics=(1, 2), heldout={"a": 1.0}
  )
  return [str(folder / "checkpoints" / step) for step in ("1", "2")]


def test_probabilities_are_the_mean_of_the_members(moods, tmp_path, capsys):
  texts = ["the red book", "a cat"]
  single = [maskedlm.load(path).predict(texts) for path in moods]
  found = maskedlm.load_ensemble(moods).predict(texts)
  for a, b, both in zip(*single, found, strict=True):
    for label in ("good", "bad", "so so"):
      mean = (a["probabilities"][label] + b["probabilities"][label]) / 2
      assert both["probabilities"][label] == pytest.approx(mean, abs=1e-6)
    assert both["probabilities"][both["label"]] == both["probability"]
  capsys.readouterr()
  argv = ["--checkpoint", ", ".join(moods)]
  assert main.main(["predict", *argv, "--json", *texts]) == 0
  shown = capsys.readouterr().out.splitlines()
  assert list(map(json.loads, shown)) == found
  data = tmp_path / "dev.tsv"
  labels = [prediction["label"] for prediction in found]
  lines = [f"{t}\t{x}" for t, x in zip(texts, labels, strict=True)]
  data.write_text("\n".join(["text\tlabel", *lines, "a dog\tso so", ""]))
  argv = ["evaluate", *argv, "--data", str(data)]
  assert main.main([*argv, "--json"]) == 0
  result = json.loads(capsys.readouterr().out)
  assert result["checkpoints"] == moods and result["examples"] == 3
  assert result["accuracy"] >= 2 / 3
  assert main.main(argv) == 0
  assert f"mean of 2 checkpoints: {', '.join(moods)}" in capsys.readouterr().out


def test_thresholds_are_the_means(tmp_path):
  options, about = {"max_span_words": 3}, {"labels": ["NULL", "x"]}
  for name, value in (("a", 0.25), ("b", -1.0), ("c", 3.0)):
    untrained.save_tuned(
      tmp_path / name, "spans", options, about, heldout={"threshold": value}
    )
  model = members.open_model([tmp_path / name for name in "abc"])
  assert model.tuned == {"threshold": 0.75}


@pytest.fixture(scope="module")
def different(moods, tmp_path_factory):
  """Returns the paths of models of which each differs from the first."""
  folder = tmp_path_factory.mktemp("different")
  task, options, about = untrained.TUNED["mood"]

  def save(name, task, options, about, heldout=None):
    untrained.save_tuned(
      folder / name, task, options, about, heldout=heldout or {"a": 1.0}
    )

  save("labels", task, options, {"labels": ["bad", "good", "fair"]})
  save("task.pooler", task, {**options, "pooler": False}, about)
  save("task", "text_features", {}, about)
  save("held-out figures", task, options, about, {"b": 1.0})
  untrained.pretrained(folder / "pretrained")
  return folder


@pytest.mark.parametrize(
  ("name", "said"),
  [
    ("labels", "differ in labels.labels: "),
    ("task.pooler", "differ in task.pooler: True and False"),
    ("task", "differ in task: classification and text_features"),
    ("held-out figures", "differ in held-out figures: "),
    ("pretrained", "not fine-tuned"),
  ],
)
def test_a_difference_is_one_line(name, said, moods, different, capsys):
  other = str(different / name)
  capsys.readouterr()
  assert main.main(["predict", "--checkpoint", f"{moods[0]},{other}", "a"]) == 2
  error = capsys.readouterr().err
  assert said in error and error.count("\n") == 1
  assert moods[0] in error and other in error
  with pytest.raises(ConfigError, match=said.partition(":")[0]):
    maskedlm.load_ensemble([moods[0], other])


def test_odd_checkpoints_are_refused(moods, different, tmp_path, capsys):
  def refused(verb, checkpoint, *args):
    capsys.readouterr()
    assert main.main([verb, "--checkpoint", checkpoint, *args]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error

  assert "a name is empty" in refused("predict", f"{moods[0]},,{moods[1]}", "a")
  pretrained = str(different / "pretrained")
  data = ("--data", str(tmp_path))
  assert "--checkpoint=" in refused("evaluate", f"{pretrained},b", *data)
  with pytest.raises(ConfigError, match="expected a list"):
    maskedlm.load_ensemble(moods[0])
  folder = tmp_path / "a,b"
  folder.mkdir()
  assert members.split_paths(str(folder)) == [str(folder)]
  assert members.split_paths("x , y") == ["x", "y"]


def test_a_task_without_a_mean_is_refused(moods, monkeypatch):
  task = configs.make_task("classification", {})

  def make_application(setup):
    made = task.make_application(setup)
    return made._replace(outputs=lambda params, batch: {})

  monkeypatch.setattr(
    predict.data_files,
    "make_task",
    lambda kind, values: task._replace(make_application=make_application),
  )
  with pytest.raises(ConfigError, match="task classification defines no mean"):
    members.open_model(moods)


def test_what_only_training_reads_may_differ(moods):
  start = load.open_checkpoint(moods[0])
  other = start._replace(cfg=dataclasses.replace(start.cfg, dropout=0.3))
  assert members._model_facts(start, 0) == members._model_facts(other, 0)
