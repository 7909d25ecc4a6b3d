"""Runs whose corpus is streamed from a web server: the losses of a folder's."""

import json
import shutil

import pytest

from helpers import host_processes, web_server
from maskedlm.cli import main

pytest.importorskip("aiohttp")


@pytest.fixture
def web(tiny, monkeypatch, tmp_path):
  """Serves the corpus of `tiny`; uses an empty cache."""
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
  with web_server.serve(tiny[1].parent) as found:
    yield found


def test_a_run_continues_to_the_losses_of_a_folder(
  tiny, web, tmp_path, capsys, on_one
):
  address, run = f"{web.address}/corpus", tmp_path / "run"
  options = ["train.num_steps=5", "train.checkpoint_every=3"]
  options += ["train.eval_every=100", "corpus.cache_gb=0.001"]
  argv = ["pretrain", f"--config={tiny[0]}", f"--workdir={run}"]
  argv += [f"--config.{option}" for option in options]

  def losses(path):
    assert main.main([*argv, f"--config.corpus.path={path}"]) == 0
    return capsys.readouterr().err, host_processes.losses(run)

  said, streamed = losses(address)
  assert said.count(f"{address} is streamed") == 1 and "no effect" not in said
  shutil.rmtree(run / "checkpoints" / "5")  # Its last two steps again.
  said, read = losses(tiny[1])
  assert "continuing from the checkpoint of step 3 of 5" in said
  assert len([x for x in read if "loss" in x]) == 5 and streamed == read


@pytest.mark.parametrize(
  ("path", "option", "code", "expected"),
  [
    ("{web}/corpus", "cache_gb=0.25", 0, "0.25 GB"),
    ("{web}/corpus", "path={web}/corpus", 0, "copying"),
    ("{folder}", "cache_gb=2", 0, "--config.corpus.cache_gb has no effect"),
    ("{folder}", "cache_gb=0", 2, "corpus.cache_gb=0"),
    ("{web}/nowhere", "cache_gb=1", 2, "{web}/nowhere"),
  ],
)
def test_inspect_says_how_a_corpus_is_read(
  tiny, web, capsys, uncompiled, path, option, code, expected
):
  options = f"path={path}", option
  places = {"web": web.address, "folder": tiny[1]}
  argv = [f"--config.corpus.{each.format(**places)}" for each in options]
  argv = ["inspect", f"--config={tiny[0]}", "--json", *argv]
  assert main.main(argv) == code
  out, err = capsys.readouterr()
  assert expected.format(**places) in err
  assert ("streamed" in err) == (expected == "0.25 GB")
  assert ("no finished corpus" in err) == ("nowhere" in path)
  if code:
    assert err.count("\n") == 1
  else:
    assert json.loads(out)["rows_measured"]
