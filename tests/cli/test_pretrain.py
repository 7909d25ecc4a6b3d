"""`maskedlm pretrain` as users run it: training, resuming, masks."""

import contextlib
import io
import json
import os
import pathlib
import random
import shutil
import signal
import sys
import time

import jax
import numpy as np
import pytest

from helpers.toy_runs import logged_lines
from maskedlm.cli import main
from maskedlm.data.corpus import store
from maskedlm.pretraining.run import write_and_print
from maskedlm.training import loop
from maskedlm.training.checkpoints import load


@pytest.fixture(scope="module")
def arguments(tiny):
  config, corpus = tiny
  return ["pretrain", f"--config={config}", f"--config.corpus.path={corpus}"]


@pytest.fixture(scope="module")
def whole(forked, arguments, tmp_path_factory):
  """Returns (workdir, what it printed) of an undisturbed run."""
  workdir = tmp_path_factory.mktemp("whole")
  ended = forked([*arguments, f"--workdir={workdir}"])
  assert ended.code == 0, ended.stderr
  return workdir, ended


def assert_same_end(a, b):
  """Checks that the newest checkpoints and the results are equal to the bit."""
  trees = [load.load_params(w)[0] for w in (a, b)]
  assert jax.tree.structure(trees[0]) == jax.tree.structure(trees[1])
  for x, y in zip(*map(jax.tree.leaves, trees), strict=True):
    np.testing.assert_array_equal(x, y)
  results = [json.loads((w / "result.json").read_text()) for w in (a, b)]
  for result in results:
    result.pop("tokens_per_second")
  assert results[0] == results[1]


def test_a_run_prints_and_writes_its_results(whole):
  workdir, process = whole
  result = json.loads((workdir / "result.json").read_text())
  assert result["steps"] == 12
  assert result["tokens_per_second"] > 0
  assert 0 < result["unigram_entropy"] < np.log(500)
  assert 0 < result["heldout_mlm_loss"] < np.log(512) + 0.5
  assert 0 <= result["mlm_accuracy"] <= 1 and 0 <= result["nsp_accuracy"] <= 1
  for words in ("MLM loss", "unigram entropy", "NSP accuracy", "[MASK]", "%"):
    assert words in process.stdout
  assert "step 12/12" in process.stderr and "ETA" in process.stderr
  first, last = logged_lines(workdir)[0], logged_lines(workdir)[-1]
  names = "loss mlm_loss mlm_accuracy nsp_loss nsp_accuracy learning_rate"
  names += " step gradient_norm tokens_per_second real_share"
  assert {*names.split()} <= first.keys()
  assert last["heldout/mlm_loss"] == result["heldout_mlm_loss"]
  config = json.loads((workdir / "config.json").read_text())
  assert config["model"]["width"] == 24
  written = (workdir / "parameters.txt").read_text()
  assert "encoder/layers/mlp/up/kernel (2, 24, 40)" in written


def test_a_complete_run_changes_nothing_when_run_again(
  whole, forked, arguments
):
  workdir, _ = whole
  before = (workdir / "result.json").read_text()
  again = forked([*arguments, f"--workdir={workdir}"])
  assert again.code == 0, again.stderr
  assert "continuing from the checkpoint of step 12 of 12" in again.stderr
  assert (workdir / "result.json").read_text() == before


def send(number, text, wait=0.0):
  """Returns a watcher that sends a signal some seconds after a text."""

  def watch(pid, path):
    for _ in range(6000):
      with contextlib.suppress(FileNotFoundError):
        if text in pathlib.Path(path).read_text():
          break
      time.sleep(0.01)
    time.sleep(wait)
    with contextlib.suppress(ProcessLookupError):
      os.kill(pid, number)

  return watch


def test_a_run_stopped_and_killed_ends_the_same(
  whole, forked, arguments, tmp_path
):
  """SIGTERM saves at once; after SIGKILL, the last checkpoint counts."""
  argv = [*arguments, f"--workdir={tmp_path}"]
  stopped = forked(argv, watch=send(signal.SIGTERM, "step 3/"))
  assert stopped.code in (75, 0), stopped.stderr  # It may have been quick.
  seed = random.SystemRandom().randrange(1 << 30)
  print(f"kill seed {seed}")
  wait = random.Random(seed).random() * 0.2
  killed = forked(argv, watch=send(signal.SIGKILL, "continuing", wait))
  assert killed.code in (-signal.SIGKILL, 0)
  final = forked(["pretrain", f"--workdir={tmp_path}"])
  assert final.code == 0, final.stderr
  assert "changed since the checkpoint" not in final.stderr
  assert_same_end(tmp_path, whole[0])


def test_inspect_shows_the_config_and_the_corpus_of_a_workdir(
  whole, arguments, capsys, uncompiled
):
  found = []
  for argv in ([f"--workdir={whole[0]}"], arguments[1:]):
    assert main.main(["inspect", *argv, "--json"]) == 0
    found.append(json.loads(capsys.readouterr().out))
  assert found[0] == found[1]


def test_a_forgotten_corpus_path_prepares_nothing(
  whole, arguments, tmp_path, capsys
):
  workdir = tmp_path / "run"
  shutil.copytree(whole[0], workdir)
  command, config, path = arguments
  assert main.main([command, config, f"--workdir={workdir}"]) == 2
  *_, line = capsys.readouterr().err.splitlines()
  assert f"add {path}," in line and "remove" not in line
  assert not (workdir / "corpus").exists()
  assert not (workdir / "corpus.lock").exists()


def test_another_corpus_names_the_one_to_give(
  whole, arguments, tmp_path, capsys
):
  workdir, other = tmp_path / "run", tmp_path / "other"
  shutil.copytree(whole[0], workdir)
  command, config, path = arguments
  made = [f"--out={other}", "--config.corpus.source=docstrings:json,pickle"]
  made.append(f"--config.tokenizer.path={workdir / 'tokenizer'}")
  assert main.main(["prepare", config, *made]) == 0
  argv = [command, config, f"--workdir={workdir}"]
  assert main.main([*argv, f"--config.corpus.path={other}"]) == 2
  *_, line = capsys.readouterr().err.splitlines()
  assert "error: " in line and f"{path}" in line and "remove" not in line


def test_a_changed_run_is_refused(whole, arguments, capsys):
  workdir, _ = whole
  before = (workdir / "config.json").read_text()
  changed = [f"--workdir={workdir}", "--config.model.width=32"]
  assert main.main([*arguments, *changed]) == 2
  *_, line = capsys.readouterr().err.splitlines()
  assert line.startswith("error: ") and "model.width was 24, now 32" in line
  assert (workdir / "config.json").read_text() == before


def test_fill_mask_of_a_checkpoint_for_lines_of_stdin(
  whole, capsys, monkeypatch
):
  lines = b"The [MASK] is a [MASK].\n\nReturn the [MASK].\n"
  monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
  checkpoint = f"--checkpoint={whole[0] / 'checkpoints' / '12'}"
  assert main.main(["fill-mask", checkpoint, "--top_k=3"]) == 0
  lines = capsys.readouterr().out.splitlines()
  assert [line.startswith("  ") for line in lines] == [0, 1, 1, 0, 1]


@pytest.mark.parametrize(
  ("override", "words"),
  [
    ("mesh.data=3", "does not fit 8 devices"),
    ("model.num_heads=5", "divisible by model.num_heads=5"),
    ("optimizer.rule=adamw", "rule='adamw' is unknown"),
    ("data.batch_size=7", "must be divisible by mesh.data"),
    ("tokenizer.vocab_size=5", "expected 6 "),
    ("corpus.path=corpsu", "corpus.path='corpsu': nothing"),
    # No text would be held out.
    ("corpus.heldout_share=0", "heldout_share=0"),
  ],
)
def test_wrong_options_are_found_before_the_corpus_is_prepared(
  tiny, tmp_path, override, words, capsys
):
  workdir = tmp_path / "w"
  argv = ["pretrain", f"--config={tiny[0]}", f"--workdir={workdir}"]
  assert main.main([*argv, f"--config.{override}"]) == 2
  (line,) = capsys.readouterr().err.splitlines()
  assert line.startswith("error: ") and words in line
  assert not workdir.exists()


def test_a_workdir_of_something_else_is_untouched(tiny, tmp_path, capsys):
  """Its config.json isn't replaced, and no corpus is prepared."""
  (tmp_path / "config.json").write_text('{"model_type": "bert"}')
  argv = ["pretrain", f"--config={tiny[0]}", f"--workdir={tmp_path}"]
  assert main.main(argv) == 2
  line = capsys.readouterr().err
  assert line.startswith(f"error: {tmp_path} holds a config.json")
  assert "--workdir" in line and line.count("\n") == 1
  assert [path.name for path in tmp_path.iterdir()] == ["config.json"]
  assert (tmp_path / "config.json").read_text() == '{"model_type": "bert"}'


@pytest.mark.parametrize(
  ("loss", "shown"),
  [
    (2.0, "MLM loss        2.000 nats (perplexity 7.4)"),
    (float("inf"), "inf nats (perplexity inf)"),
    (float("nan"), "nan nats (perplexity nan)"),
    (None, "no predictions"),  # Nothing was masked in the held-out rows.
  ],
)
def test_a_run_ends_whatever_its_loss(tiny, tmp_path, capsys, loss, shown):
  """exp(1e4) is no float: it ended every run, and every rerun, at its end."""
  heldout = {} if loss is None else {"mlm_loss": loss, "mlm_accuracy": 0.25}
  result = loop.Result({}, 7, {"nsp_loss": 0.5, **heldout}, None, False, None)
  corpus = store.open_corpus(tiny[1])
  write_and_print(tmp_path, corpus, result)
  assert shown in capsys.readouterr().out
  text = (tmp_path / "result.json").read_text()
  written = json.loads(text, parse_constant=pytest.fail)
  is_number = loss is not None and np.isfinite(loss)
  assert written["heldout_mlm_loss"] == (loss if is_number else None)
