"""The commands of docs/guides/reproduce.md are ones that maskedlm takes."""

import argparse
import re
import shlex

import pytest

from helpers.repository import ROOT
from maskedlm.config import overrides
from maskedlm.finetune import config as configs
from maskedlm.finetune.sweep import grid_settings, run_folder

PAGE = (ROOT / "docs" / "guides" / "reproduce.md").read_text()
COMMANDS = [
  shlex.split(line)[1:]
  for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
  for line in block.replace("\\\n", "").splitlines()
]
FINETUNE = [argv for argv in COMMANDS if argv[0] == "finetune"]


def load(argv, monkeypatch):
  monkeypatch.chdir(ROOT)
  parser = argparse.ArgumentParser()
  parser.add_argument("--workdir")
  parser.add_argument("--config")
  args, changes = overrides.split_arguments(
    parser, argv, sections=configs.sections
  )
  config = overrides.load_config(
    args.config, changes, validate=configs.validate
  )
  return args, config


def test_the_page_has_commands_for_each_table():
  verbs = [argv[0] for argv in COMMANDS]
  assert verbs.count("import") == 4 and len(FINETUNE) == 10
  assert {"predict", "evaluate"} < {*verbs}


@pytest.mark.parametrize("argv", FINETUNE, ids=lambda argv: argv[-1])
def test_finetune(argv, monkeypatch):
  args, config = load(argv[2:], monkeypatch)
  assert config.task.kind == argv[1]
  assert args.workdir.startswith("runs/")
  known = [a[a.index("--out") + 1] for a in COMMANDS if a[0] == "import"]
  known.append("runs/quickstart")
  known += [x.removeprefix("--workdir=") for a in FINETUNE for x in a]
  assert config.init_from in known


def test_the_members_of_the_ensemble_are_runs_of_the_sweep(monkeypatch):
  [evaluate] = [argv for argv in COMMANDS if argv[0] == "evaluate"]
  members = evaluate[evaluate.index("--checkpoint") + 1].split(",")
  [sweep] = [a for a in FINETUNE if "--workdir=runs/squad_large" in a]
  args, config = load(sweep[2:], monkeypatch)
  [setting] = grid_settings(config)
  assert members == [
    f"{args.workdir}/{run_folder(setting, seed)}" for seed in range(7)
  ]
