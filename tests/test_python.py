"""Training from Python: the notebook as written, and errors as exceptions."""

import json

import pytest

import maskedlm
from helpers.repository import ROOT
from maskedlm.config import defaults
from maskedlm.core.errors import ConfigError
from maskedlm.finetune import config as finetuning

NOTEBOOK = ROOT / "docs" / "getting-started" / "first-hour.ipynb"


def test_the_notebook_runs(tmp_path, monkeypatch, on_one):
  monkeypatch.chdir(tmp_path)
  names, steps = {}, 0
  for cell in json.loads(NOTEBOOK.read_text())["cells"]:
    if cell["cell_type"] == "code":
      source = "".join(cell["source"])
      steps += "num_steps=200" in source
      # Its steps, but not all of them.
      short = source.replace("num_steps=200, eval_every=100", "num_steps=4")
      short = short.replace("warmup_steps=20", "warmup_steps=2")
      short = short.replace("num_layers=2", "num_layers=1")
      short = short.replace("email,unittest", "email")
      exec(short.replace("epochs = 3.0", "epochs = 1.0"), names)
  assert steps == 1
  assert names["result"]["steps"] == 4
  assert maskedlm.train(names["config"], "runs/small")["steps"] == 4
  again = maskedlm.train(names["tuning"], "runs/returns")
  assert 0 <= again["accuracy"] <= 1


def test_wrong_calls_are_errors(tmp_path):
  config = defaults.default()
  config.train.log_every = 0
  with pytest.raises(ConfigError, match=r"train.log_every=0"):
    maskedlm.train(config, tmp_path / "run")
  with pytest.raises(ConfigError, match=r"absent.py: no such file"):
    maskedlm.train("absent.py", tmp_path / "run")
  config = finetuning.default("tagging")
  with pytest.raises(ConfigError, match="init_from"):
    maskedlm.train(config, tmp_path / "run")
  config.suite = ("a", "b")
  with pytest.raises(ConfigError, match="several runs"):
    maskedlm.train(config, tmp_path / "run")


def test_earlier_names(monkeypatch):
  assert maskedlm.pretrain is maskedlm.train
  monkeypatch.delattr(maskedlm, "finetune")  # As before it is imported.
  with pytest.raises(AttributeError, match=r"call maskedlm.train\(config"):
    _ = maskedlm.finetune
