"""Tests docs/show.py: what pages show is what their commands print."""

import contextlib
import io
import json
import shlex
import shutil
import sys
import types

import pytest

from helpers import untrained
from helpers.repository import ROOT
from maskedlm.cli import main

sys.path.insert(0, str(ROOT / "docs"))
import show

METRICS = {"step": 1, "loss": 7.0, "learning_rate": 0.1, "tokens": 9}


@pytest.fixture
def runs(tmp_path, monkeypatch):
  """Makes the models that the pages name, untrained, in this folder."""
  monkeypatch.chdir(tmp_path)
  runs = tmp_path / "runs"
  for name in "quickstart", "small", "spanbert":
    untrained.pretrained(runs / name)
    (runs / name / "metrics.jsonl").write_text(json.dumps(METRICS))
  untrained.finetuned(runs / "returns", "mood")
  return runs


def test_blocks_of_a_page(tmp_path):
  page = tmp_path / "page.md"
  page.write_text(
    "```pycon\n>>> x = [\n...   1\n... ]\n>>> x\n3\n```\n"
    "```console\n$ echo a \\\n  b\nc\n$ true\n```\n```sh\nfalse\n```\n"
    "```pycon\n>>> x[0] + 1\n```\n"
  )
  assert show.show(page) == 3
  assert page.read_text() == (
    "```pycon\n>>> x = [\n...   1\n... ]\n>>> x\n[1]\n```\n"
    "```console\n$ echo a \\\n  b\na b\n$ true\n```\n```sh\nfalse\n```\n"
    "```pycon\n>>> x[0] + 1\n2\n```\n"
  )


def run_here(command, **options):
  """As subprocess.run of a command of maskedlm, in this process."""
  program, *argv = shlex.split(command)
  assert program == "maskedlm", command
  with contextlib.redirect_stdout(io.StringIO()) as printed:
    assert main.main(argv) == 0, command
  return types.SimpleNamespace(stdout=printed.getvalue())


def test_every_page_can_be_shown(runs, tmp_path, monkeypatch):
  here = types.SimpleNamespace(run=run_here, PIPE=None)
  monkeypatch.setattr(show, "subprocess", here)
  docs = shutil.copytree(ROOT / "docs", tmp_path / "docs")
  shown = {
    p.name: show.show(p) for p in docs.rglob("*.md") if show.has_blocks(p)
  }
  assert {"index.md", "pictures.md", "python.md"} <= shown.keys()
  drawn = {path.name for path in tmp_path.glob("*.png")}
  assert drawn == {"attention.png", "masks.png", "run.png"}
