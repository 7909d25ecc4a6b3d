"""Multi-label classification: files, loss, metrics, the threshold."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn import metrics

from helpers import encoder_reference as reference
from helpers import untrained
from helpers.letters import TOKENIZER
from maskedlm.cli import main
from maskedlm.core.errors import DataError
from maskedlm.data.labelled.formats.texts import Example
from maskedlm.finetune.classification import multi_label
from maskedlm.finetune.classification.multi_label import Options
from maskedlm.finetune.common.head import Head
from maskedlm.finetune.contract import Setup


def write(path, text):
  path.write_text(text)
  return str(path)


def test_unusable_training_sets(tmp_path):
  path = write(tmp_path / "b.tsv", "text\tlabels\na\tx\nb\tx\n")
  with pytest.raises(DataError, match=r"all 2 .* have the labels 'x'"):
    multi_label.describe_labels(
      multi_label.make_task(Options()).read_examples(path), Options()
    )


def test_a_label_without_an_example_has_a_column(tmp_path):
  options = Options(columns=("toxic", "threat"))
  path = write(tmp_path / "a.csv", "text,toxic,threat\na,1,0\nb,0,0\n")
  examples = multi_label.make_task(options).read_examples(path)
  label_info = multi_label.describe_labels(examples, options)
  assert label_info == {"labels": ["threat", "toxic"]}


def test_the_loss_by_hand(monkeypatch):
  """There are 2 texts and a filler; one text has an unseen label."""
  logits = jnp.array([[2.0, -1.0, 0.5], [0.0, 3.0, -2.0], [9.0, 9.0, 9.0]])
  head, asked = Head(None, lambda *_: logits), {}

  def make_row_head(cfg, num_labels, **options):
    asked.update(num_labels=num_labels, **options)
    return head

  monkeypatch.setattr(multi_label, "make_row_head", make_row_head)
  setup = Setup(TOKENIZER, reference.config(), {"labels": [*"xyz"]}, 16)
  options = Options(pooler=False, metric="macro_f1")
  app = multi_label.make_application(setup, options)
  assert asked == {"num_labels": 3, "pooler": False}
  assert app.best == "macro_f1"
  examples = [
    Example("a b", label=("x", "z"), where="f:1"),
    Example("c", label=("new", "y"), where="f:2"),
  ]
  rows = app.make_rows(examples)
  assert rows.values["labels"].tolist() == [[1, 0, 1], [0, 1, 0]]
  assert "1 (1 different), such as 'new' (f:2)" in rows.notes[0]
  batch = {
    "labels": jnp.array([*rows.values["labels"], [0, 0, 0]]),
    "example_weights": jnp.array([1.0, 1.0, 0.0]),
  }
  (terms, stats) = app.loss({}, batch, None, False)

  def loss(*margins):  # Of the correct decisions.
    return np.log1p(np.exp(-np.array(margins))).mean()

  total, weights = terms["labels"]
  np.testing.assert_allclose(
    total, [loss(2, 1, 0.5), loss(0, 3, 2), 0], rtol=1e-6
  )
  assert weights.tolist() == [1, 1, 0]
  # A logit of 0, a probability of one half, is not above the threshold.
  np.testing.assert_allclose(stats["label_accuracy"][0], [1, 1, 0])
  outputs = app.outputs({}, batch)
  made = app.decode(examples, rows, {n: x[:2] for n, x in outputs.items()}, {})
  assert [p["labels"] for p in made] == [["x", "z"], ["y"]]
  assert made[0]["probabilities"]["x"] == pytest.approx(1 / (1 + np.exp(-2)))
  assert multi_label.format_prediction(made[0]) == "x\t0.881\tz\t0.622"
  assert (
    multi_label.format_prediction({"labels": [], "probabilities": {}})
    == "(none)"
  )
  # x, z and y are correct; new is missed.
  assert app.score(examples, made)["micro_f1"] == pytest.approx(6 / 7)
  # sigmoid(0.5) is 0.62, sigmoid(2) 0.88: fewer exceed a higher threshold.
  strict = multi_label.make_application(setup, Options(threshold=0.7))
  made = strict.decode(
    examples, rows, {n: x[:2] for n, x in outputs.items()}, {}
  )
  assert [p["labels"] for p in made] == [["x"], ["y"]]
  accuracy = strict.loss({}, batch, None, False)[1]["label_accuracy"][0]
  np.testing.assert_allclose(accuracy, [2 / 3, 1, 0])


def test_scores_are_those_of_sklearn():
  rng = np.random.default_rng(0)
  for _ in range(20):
    gold, found = rng.random((2, 9, 4)) < rng.random((2, 1, 4))
    names = np.array([*"abcd"])
    values = multi_label.evaluate_label_sets(
      [names[row].tolist() for row in gold],
      [names[row].tolist() for row in found],
    )
    here = (gold | found).any(axis=0)  # The mean is over labels that occur.
    for average in ("micro", "macro"):
      expected = metrics.f1_score(
        gold[:, here], found[:, here], average=average, zero_division=0.0
      )
      assert values[f"{average}_f1"] == pytest.approx(expected)
    expected = metrics.accuracy_score(gold, found)
    assert values["exact_match"] == pytest.approx(expected)
  nothing = multi_label.evaluate_label_sets([[], []], [[], []])
  assert nothing["exact_match"] == 1
  assert nothing["micro_f1"] == nothing["macro_f1"] == 0


def test_the_threshold_can_be_set_beside_a_checkpoint(tmp_path, capsys):
  info = {"labels": ["animal", "red", "thing"]}
  work = untrained.save_tuned(tmp_path / "run", "multi_label", {}, info)
  argv = ["predict", f"--checkpoint={work}", "--json", "a dog", "a\ta pair"]
  assert main.main(argv) == 0
  lines = list(map(json.loads, capsys.readouterr().out.splitlines()))
  assert len(lines) == 2
  for line in lines:
    shares = line["probabilities"]
    assert [*shares] == ["animal", "red", "thing"]
    assert line["labels"] == [n for n in shares if shares[n] > 0.5]
  assert main.main([*argv, "--config.task.threshold=0.001"]) == 0
  (line, _) = map(json.loads, capsys.readouterr().out.splitlines())
  assert line["labels"] == ["animal", "red", "thing"]
