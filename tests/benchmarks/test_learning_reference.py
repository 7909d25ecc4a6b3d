"""Tests the bands of benchmarks/learning_reference.py."""

import json
import subprocess
import sys

import pytest

from helpers.repository import ROOT

SCRIPT = ROOT / "benchmarks" / "learning_reference.py"


def check(workdir, *argv):
  return subprocess.run(
    [sys.executable, SCRIPT, f"--workdir={workdir}", "--steps=7", *argv],
    capture_output=True,
    text=True,
    check=False,
  )


@pytest.fixture
def workdir(tmp_path):
  """Returns runs of three seeds: 4, 5, 6 nats, then 3 nats each."""
  for seed, nats in enumerate((4.0, 5.0, 6.0)):
    folder = tmp_path / "runs" / f"mlm_nsp-7-seed{seed}"
    folder.mkdir(parents=True)
    (folder / "curve.json").write_text(
      json.dumps([[40, nats, 0.1, 1, 1], [80, 3.0, 0.2, 2, 2]])
    )
  return tmp_path / "runs"


def test_band_is_three_deviations_or_the_minimum(workdir, tmp_path):
  path = tmp_path / "reference.json"
  assert check(workdir, f"--write={path}").returncode == 0
  # stdev(4, 5, 6) = 1.
  assert json.loads(path.read_text()) == {
    "mlm_nsp": [[40, 5.0, 3.0, 3], [80, 3.0, 0.02, 3]]
  }


def test_a_curve_outside_its_band_is_reported(workdir, tmp_path):
  path = tmp_path / "reference.json"
  check(workdir, f"--write={path}")
  made = check(workdir, f"--check={path}")
  assert (made.returncode, made.stderr) == (0, "")
  odd = workdir / "mlm_nsp-7-seed2" / "curve.json"
  odd.write_text(json.dumps([[40, 8.5, 0.1, 1, 1], [80, 3.01, 0.2, 2, 2]]))
  made = check(workdir, f"--check={path}")
  assert made.returncode == 1
  assert made.stderr == (
    "mlm_nsp, seed2: at 40 positions 8.500 nats, expected 5.000 +- 3.000\n"
  )


@pytest.mark.parametrize("text", [None, "[3]"])
def test_a_file_without_bands_is_an_error(workdir, tmp_path, text):
  path = tmp_path / "reference.json"
  if text is not None:
    path.write_text(text)
  made = check(workdir, f"--check={path}")
  assert made.returncode == 2
  assert f"--check={path}: expected a file of --write" in made.stderr
  assert "Traceback" not in made.stderr


def test_committed_bands_are_complete_and_fall():
  bands = json.loads(
    (ROOT / "docs" / "results" / "learning_reference.json").read_text()
  )
  for name, of_name in bands.items():
    assert len({seeds for *_, seeds in of_name}) == 1, name
    losses = [nats for _, nats, _, _ in of_name]
    assert losses == sorted(losses, reverse=True), name
