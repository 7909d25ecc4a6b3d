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


def command(tiny, path, workdir, num_steps, *more):
  return [
    "pretrain",
    f"--config={tiny[0]}",
    f"--config.corpus.path={path}",
    f"--workdir={workdir}",
    f"--config.train.num_steps={num_steps}",
    "--config.optimizer.schedule=constant",
    "--config.optimizer.warmup_steps=1",
    "--config.train.eval_every=100",
    *more,
  ]


def test_a_run_continues_to_the_losses_of_a_folder(
  tiny, web, tmp_path, capsys, on_one
):
  address = f"{web.address}/corpus"
  assert main.main(command(tiny, tiny[1], tmp_path / "folder", 5)) == 0
  capsys.readouterr()
  some = "--config.corpus.cache_gb=0.5"
  assert main.main(command(tiny, address, tmp_path / "run", 3, some)) == 0
  said = capsys.readouterr().err
  assert said.count(f"{address} is streamed") == 1 and "no effect" not in said
  # Continued with a smaller cache, which is empty.
  shutil.rmtree(tmp_path / "cache" / "maskedlm" / "blocks")
  asked, _ = web.sent(".tokens.npy")
  more = ["pretrain", f"--workdir={tmp_path / 'run'}"]
  more += ["--config.train.num_steps=5", "--config.corpus.cache_gb=0.001"]
  assert main.main(more) == 0
  assert web.sent(".tokens.npy")[0] > asked
  one, other = (
    [x for x in host_processes.losses(tmp_path / name) if "loss" in x]
    for name in ("folder", "run")
  )
  assert len(one) == 5 and one == other


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
