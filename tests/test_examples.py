"""The examples in docstrings do what they say."""

import doctest
import importlib
import pathlib
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import maskedlm
from helpers import untrained
from helpers.repository import ROOT

_OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_EXAMPLE = re.compile(r"^ +>>> ", re.MULTILINE)


NAMES = {"jax": jax, "jnp": jnp, "np": np, "maskedlm": maskedlm}
MODULES = [
  ".".join(path.relative_to(ROOT).with_suffix("").parts)
  for path in sorted((ROOT / "maskedlm").rglob("*.py"))
  if _EXAMPLE.search(path.read_text())
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  """Returns a folder with two models: runs/own, runs/mood."""
  folder = tmp_path_factory.mktemp("examples")
  heads = ("pooler", "mlm_head", "nsp_head")
  untrained.pretrained(folder / "runs" / "own", heads=heads)
  untrained.finetuned(folder / "runs" / "mood", "mood")
  return folder


@pytest.fixture(scope="module")
def models(folder):
  """Returns what examples call model and mood."""
  runs = folder / "runs"
  return {
    "model": maskedlm.load(runs / "own"),
    "mood": maskedlm.load(runs / "mood"),
  }


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, folder: pathlib.Path, models, monkeypatch):
  monkeypatch.chdir(folder)
  failed, tried = doctest.testmod(
    importlib.import_module(name),
    extraglobs={**NAMES, **models},
    optionflags=_OPTIONS,
  )
  assert tried and not failed
