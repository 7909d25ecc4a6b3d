"""GLUE: metrics and configs."""

import json

import pytest

from helpers.repository import ROOT
from maskedlm.cli import finetune
from maskedlm.config import overrides as flags
from maskedlm.data.labelled.formats import glue
from maskedlm.finetune import config as config_lib
from maskedlm.finetune.classification import classification
from maskedlm.finetune.classification.classification import Options

CONFIG = ROOT / "configs" / "glue.py"


def test_the_metric_of_each_task():
  others = {"cola": "mcc", "stsb": "pearson_spearman"}
  others |= dict.fromkeys(("mrpc", "qqp"), "accuracy_f1")
  for task in glue.TASKS:
    best = classification.layout_of(Options(layout=task)).best
    assert best == others.get(task, "accuracy")


# --- Configs ---


def load(task, *overrides):
  return flags.load_config(
    f"{CONFIG}:{task}", overrides, validate=config_lib.validate
  )


@pytest.mark.parametrize("task", glue.TASKS)
def test_the_config_of_each_task(task):
  config = load(task)
  assert config.task.layout == task
  assert 2e-5 <= config.optimizer.learning_rate <= 5e-5
  assert config.data.length == 128
  assert f"glue/{glue.FOLDERS[task]}/train" in config.data.train


def test_files_are_found(tmp_path, monkeypatch):
  monkeypatch.setenv("MASKEDLM_DATA", str(tmp_path))
  assert (load("all").suite, load("all").suite_without) == (glue.TASKS, ())
  folder = tmp_path / "glue" / "MNLI"
  folder.mkdir(parents=True)
  (folder / "train_from_dev.tsv").touch()
  config = load("mnli")
  assert config.data.train == str(folder / "train_from_dev.tsv")
  assert (config.data.dev, config.data.also_score) == ("", ())
  for name in ("train", "dev_matched", "dev_mismatched"):
    (folder / f"{name}.tsv").touch()
  config = load("mnli")
  assert config.data.train == str(folder / "train.tsv")
  assert config.data.dev == str(folder / "dev_matched.tsv")
  assert config.data.also_score == (str(folder / "dev_mismatched.tsv"),)
  assert load("all").suite == ("mnli",)
  assert load("all").suite_without == tuple(
    task for task in glue.TASKS if task != "mnli"
  )


def test_the_average_is_printed_with_what_it_leaves_out(tmp_path, capsys):
  results = {
    "mnli": {
      "best_metric": "accuracy",
      "accuracy": 0.5,
      "also_scored": {"mm.tsv": {"accuracy": 0.25, "loss": 1.0}},
    },
    "cola": {"best_metric": "mcc", "mcc": 0.25, "accuracy": 0.75},
  }
  finetune.print_suite(results, ("qqp", "wnli"), tmp_path)
  assert capsys.readouterr().out.splitlines()[4:] == [
    "| average of 2 | | 0.3750 |",
    "not in the average, because not run: qqp, wnli",
    "not in the average: mnli, mm.tsv: accuracy 0.2500",
  ]
  written = json.loads((tmp_path / "suite.json").read_text())
  assert written["average"] == 0.375
  assert written["without"] == ["qqp", "wnli"]
