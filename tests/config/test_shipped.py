"""Configs of maskedlm are found by name, in any folder and from a wheel."""

import os
import pathlib
import subprocess
import sys
import zipfile

import pytest

from helpers.repository import ROOT
from maskedlm.config import overrides, shipped
from maskedlm.core.errors import ConfigError


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  return tmp_path


@pytest.mark.parametrize(
  ("given", "file"),
  [
    ("quickstart", "quickstart.py"),
    ("quickstart.py", "quickstart.py"),
    ("configs/quickstart.py", "quickstart.py"),
    ("bert:base", "bert.py:base"),
    ("configs/bert.py:tiny", "bert.py:tiny"),
  ],
)
def test_a_name_is_the_config_of_maskedlm(given, file):
  assert shipped.find(given) == f"{ROOT}/configs/{file}"


@pytest.mark.parametrize(
  "path", ["own/bert.py:base", "/etc/bert.py", "../configs/bert.py", "unknown"]
)
def test_other_paths_are_left(path):
  assert shipped.find(path) == path


def test_a_file_of_ones_own_is_meant_before_a_name(elsewhere):
  (elsewhere / "configs").mkdir()
  (elsewhere / "configs" / "bert.py").touch()
  assert shipped.find("configs/bert.py:base") == "configs/bert.py:base"
  assert shipped.find("bert:base") == f"{ROOT}/configs/bert.py:base"


def test_a_misspelt_name_names_the_nearest():
  with pytest.raises(ConfigError, match=r"--config=quikstart.*quickstart"):
    overrides.load_config("quikstart")
  assert overrides.load_config("bert:tiny").model.width


@pytest.mark.slow
def test_a_wheel_has_them(elsewhere):
  """.ci/release tries the wheel in an empty environment, with its packages."""
  build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", ".", ROOT]
  subprocess.run(build, check=True, capture_output=True)
  (wheel,) = elsewhere.glob("*.whl")
  zipfile.ZipFile(wheel).extractall("installed")
  code = "from maskedlm.config import shipped; print(shipped.find('bert:tiny'))"
  ended = subprocess.run(
    [sys.executable, "-c", code],
    env={**os.environ, "PYTHONPATH": str(elsewhere / "installed")},
    check=True,
    capture_output=True,
    text=True,
  )
  found = pathlib.Path(ended.stdout.strip().partition(":")[0])
  assert found == elsewhere / "installed" / "maskedlm" / "configs" / "bert.py"
