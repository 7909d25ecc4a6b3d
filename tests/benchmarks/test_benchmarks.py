"""Tests benchmarks/: the commands of run.py, and a measure of attention.py."""

import importlib.util
import math

import numpy as np

from helpers.repository import ROOT

BENCHMARKS = ROOT / "benchmarks"


def load(name, monkeypatch):
  monkeypatch.syspath_prepend(BENCHMARKS)  # They import each other.
  spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


def test_scripts_exist_and_have_their_options(monkeypatch):
  module = load("run", monkeypatch)
  for chosen in module.BENCHMARKS.values():
    for each in chosen:
      for command in (each.command, module.QUICK[each.name]):
        script, *options = command.split()
        text = (BENCHMARKS / script).read_text()
        for option in options:
          if option.startswith("--"):
            assert f'"{option}"' in text, (script, option)


def test_apart_by_hand(monkeypatch):
  module = load("attention", monkeypatch)
  y = np.array([[3.0, 4.0], [0.0, 2.0]])
  assert module.apart(y, y) == 0
  # The first row is off by 1 of 5, the second by 1 of 2.
  assert module.apart(np.add(y, [[0, 1], [1, 0]]), y) == 0.5
  assert math.isnan(module.apart(y * [[1.0], [math.nan]], y))
