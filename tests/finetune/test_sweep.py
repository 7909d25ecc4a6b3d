"""A sweep: every setting once, statistics by hand, the best run."""

import json

import pytest

from maskedlm.core.errors import ConfigError
from maskedlm.finetune import config as configs
from maskedlm.finetune import run, sweep
from maskedlm.training import nonfinite_rows

# (learning rate, seed) -> the metric.
SCORES = {
  (0.5, 3): 0.4,
  (0.5, 8): 0.4,
  (1e-5, 3): 0.5,
  (1e-5, 5): 0.7,
  (1e-5, 8): 0.9,
  (2e-5, 3): 0.6,
  (2e-5, 5): 0.95,
  (2e-5, 8): 0.61,
}


@pytest.fixture
def more():
  """Seed -> what its runs end with besides SCORES: results, or an error."""
  return {}


@pytest.fixture
def runs(monkeypatch, more):
  """Replaces run.finetune; returns the runs it was called with."""
  made = []

  def finetune(config, workdir):
    made.append((config, workdir))
    ending = more.get(config.seed, {})
    if isinstance(ending, Exception):
      raise ending
    score = SCORES[config.optimizer.learning_rate, config.seed]
    degenerate = {"degenerate": score == 0.5}
    return {"best_metric": "mcc", "mcc": score, **degenerate, **ending}

  monkeypatch.setattr(run, "finetune", finetune)
  return made


def test_a_grid_is_run_and_the_best_result_returned(runs, tmp_path, capsys):
  config = configs.default("classification")
  config.sweep.learning_rate = (1e-5, 2e-5)
  config.sweep.seeds = (3, 5, 8)
  best = sweep.sweep(configs.typed(config), tmp_path)
  assert best["mcc"] == 0.95
  assert len(runs) == len({path for _, path in runs}) == 6
  assert runs[0][1].name == "lr1e-05-b32-e3-seed3"
  written = json.loads((tmp_path / "sweep.json").read_text())
  assert written["best"] == "lr2e-05-b32-e3-seed5"
  first, second = written["settings"]
  assert first["values"] == [0.5, 0.7, 0.9]
  assert first["mean"] == pytest.approx(0.7)
  assert first["stddev"] == pytest.approx(0.2)  # sqrt((.04 + 0 + .04) / 2).
  assert first["median"] == 0.7
  assert (first["degenerate"], second["degenerate"]) == (1, 0)
  out = capsys.readouterr().out
  assert "| 1e-05 | 32 | 3 | 3 | 0.7000 | 0.2000 | 0.7000 | 0.9000 | 1 |" in out


def test_the_test_figures_of_restarts_are_averaged_too(
  runs, more, tmp_path, capsys
):
  # The best on the development set is not the best here.
  for seed, value in ((3, 0.1), (5, 0.5), (8, 0.6)):
    scores = {"mcc": value, "accuracy": 0.9}
    more[seed] = {"also_scored": {"/x/eng.testb": scores}}
  config = configs.default("tagging")
  config.optimizer.learning_rate = 1e-5
  config.sweep.seeds = (3, 5, 8)
  sweep.sweep(configs.typed(config), tmp_path)
  written = json.loads((tmp_path / "sweep.json").read_text())
  found = written["settings"][0]["also_scored"]["/x/eng.testb"]
  assert found["values"] == [0.1, 0.5, 0.6]
  assert found["mean"] == pytest.approx(0.4)
  # Squares of -.3, .1 and .2, divided by two: .07.
  assert found["stddev"] == pytest.approx(0.07**0.5)
  columns, _, row, *_ = capsys.readouterr().out.splitlines()
  assert columns.endswith("| degenerate | eng.testb: mean | sd |")
  assert row.endswith("| 0.7000 | 0.9000 | 1 | 0.4000 | 0.2646 |")


@pytest.mark.parametrize("wrong", [float("nan"), float("-inf")])
def test_a_metric_that_is_not_a_number_is_never_the_best(
  runs, tmp_path, capsys, monkeypatch, wrong
):
  for seed in (3, 8):  # The first and the last of the grid.
    monkeypatch.setitem(SCORES, (1e-5, seed), wrong)
  config = configs.default("classification")
  config.sweep.learning_rate = (1e-5, 2e-5)
  config.sweep.seeds = (3, 5, 8)
  assert sweep.sweep(configs.typed(config), tmp_path)["mcc"] == 0.95
  text = (tmp_path / "sweep.json").read_text()
  first, _ = json.loads(text, parse_constant=pytest.fail)["settings"]
  assert first["values"] == [None, 0.7, None] and first["mean"] is None
  assert "| 0.7000 |" in capsys.readouterr().out  # The best of its setting.


def test_a_run_that_diverges_stops_no_other(runs, more, tmp_path, capsys):
  error = "steps 3 to 12: the loss was not finite"
  more[5] = nonfinite_rows.NonFiniteError(error)
  config = configs.default("classification")
  config.sweep.learning_rate = (0.5, 1e-5)
  config.sweep.seeds = (3, 5, 8)
  assert sweep.sweep(configs.typed(config), tmp_path)["mcc"] == 0.9
  written = json.loads((tmp_path / "sweep.json").read_text())
  assert [s["values"] for s in written["settings"]] == [[0.4, 0.4], [0.5, 0.9]]
  names = ["lr0.5-b32-e3-seed5", "lr1e-05-b32-e3-seed5"]
  assert written["diverged"] == names
  assert f"because they diverged: {', '.join(names)}" in capsys.readouterr().out
  config.sweep.seeds = (5,)
  with pytest.raises(nonfinite_rows.NonFiniteError, match="steps 3 to 12"):
    sweep.sweep(configs.typed(config), tmp_path)


def test_an_empty_tuple_stands_for_the_configs_value(runs, tmp_path):
  config = configs.default("classification")
  config.optimizer.learning_rate = 2e-5
  config.seed = 8
  config.sweep.epochs = (0.5, 4)
  sweep.sweep(configs.typed(config), tmp_path)
  assert [c.train.epochs for c, _ in runs] == [0.5, 4]
  assert {c.seed for c, _ in runs} == {8}


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"learning_rate": (1e-5, 3.0)}, r"learning_rate=3\.0 "),
    ({"learning_rate": (1e-5, "fast")}, r"sweep\.learning_rate=.* type float"),
    ({"epochs": (1, 0)}, r"train\.epochs=0 .* expected above 0"),
    ({"batch_size": (32, 0)}, r"data\.batch_size=0"),
    ({"batch_size": (32, 33)}, "a batch of 33 rows must be divisible"),
    ({"seeds": (3, 0.5)}, r"sweep\.seeds=\(3, 0\.5\) .* type int"),
  ],
)
def test_errors_are_raised_before_anything_is_run(
  changes, message, runs, tmp_path
):
  config = configs.default("classification")
  config.sweep.update(changes)
  with pytest.raises(ConfigError, match=message):
    sweep.sweep(configs.typed(config), tmp_path)
  assert not runs
