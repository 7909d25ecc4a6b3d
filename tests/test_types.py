"""The folders that mypy checks may only become more."""

import tomllib

from helpers.repository import ROOT

CHECKED = {
  *("config", "core", "modeling", "pretraining", "runtime", "training"),
  *("finetune/common", "finetune/*.py"),
}


def test_no_folder_leaves_the_list():
  settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
  files = settings["tool"]["mypy"]["files"]
  assert {name.removeprefix("maskedlm/") for name in files} >= CHECKED
