"""`maskedlm pretrain` in phases: other text, other masks, other batches."""

import json
import random
import signal
import time

import jax
import numpy as np
import pytest

from helpers import tiny as tiny_run
from maskedlm.training.checkpoints import load


@pytest.fixture(scope="module")
def second(tiny, tmp_path_factory):
  """Returns a corpus of other text with the tokenizer of `tiny`."""
  config, corpus = tiny
  out = tmp_path_factory.mktemp("second") / "corpus"
  made = tiny_run.run(
    "prepare",
    f"--config={config}",
    "--config.corpus.source=docstrings:inspect,logging,asyncio,http,xml",
    f"--config.tokenizer.path={corpus / 'tokenizer'}",
    f"--out={out}",
  )
  assert made.returncode == 0, made.stderr
  return out


def command(tiny, workdir, phases, *more):
  config, corpus = tiny
  return [
    "pretrain",
    f"--config={config}",
    f"--config.corpus.path={corpus}",
    f"--workdir={workdir}",
    f"--config.phases={phases}",
    *more,
  ]


def three(second):
  """Returns phases of 5, 3 and 4 steps."""
  return repr(
    (
      {"steps": 5},
      {"steps": 3, "data.batch_size": 8, "objective.mask_rate": 0.3},
      {
        "corpus.path": str(second),
        "data.length": 48,
        "optimizer.learning_rate": 1e-3,
        "optimizer.warmup_steps": 0,
      },
    )
  )


def test_other_text_masks_and_rows(tiny, second, tmp_path):
  done = tiny_run.run(*command(tiny, tmp_path, three(second)))
  assert done.returncode == 0, done.stderr
  assert "phase 2 of 3, to step 8: data.batch_size=8" in done.stderr
  lines = [
    json.loads(line)
    for line in (tmp_path / "metrics.jsonl").read_text().splitlines()
  ]
  rates = [x["learning_rate"] for x in lines if "learning_rate" in x]
  assert len(rates) == 12
  # 5 steps of warm-up; the third phase has its own schedule of 4 steps.
  np.testing.assert_allclose(rates[8:], [1e-3 * n / 4 for n in (4, 3, 2, 1)])
  meta = load.load_params(tmp_path)[1]
  assert "+" in meta["identity"]["corpus"]  # Both corpora are recorded.
  again = tiny_run.run("pretrain", f"--workdir={tmp_path}")
  assert again.returncode == 0, again.stderr
  assert "from the checkpoint of step 12 of 12" in again.stderr


def test_a_corpus_that_is_not_there_is_told_before_text_is_prepared(
  tiny, tmp_path
):
  phases = repr(({}, {"steps": 4, "corpus.path": str(tmp_path / "no")}))
  given = command(tiny, tmp_path / "run", phases, "--config.corpus.path=")
  done = tiny_run.run(*given)
  assert done.returncode == 2
  (line,) = done.stderr.splitlines()
  assert f"corpus.path='{tmp_path / 'no'}'" in line
  assert not (tmp_path / "run" / "corpus").exists()


@pytest.mark.slow
def test_a_corpus_of_another_tokenizer_is_refused(tiny, tmp_path):
  config, _ = tiny
  other = tmp_path / "other"
  made = tiny_run.run(
    "prepare",
    f"--config={config}",
    "--config.tokenizer.vocab_size=400",
    f"--out={other}",
  )
  assert made.returncode == 0, made.stderr
  phases = repr(({}, {"steps": 4, "corpus.path": str(other)}))
  done = tiny_run.run(*command(tiny, tmp_path / "run", phases))
  assert done.returncode == 2
  *_, line = done.stderr.splitlines()
  assert line.startswith("error: ") and f"corpus.path='{other}'" in line
  assert "tokenizer" in line


@pytest.mark.slow
def test_50_kills_change_nothing(tiny, second, tmp_path):
  """Runs of 12 steps, which save each, are killed at random moments."""
  moments = random.Random(7)
  more = ("--config.train.ema_decay=0.9", "--config.train.checkpoint_every=1")
  whole = tmp_path / "whole"
  done = tiny_run.run(*command(tiny, whole, three(second), *more))
  assert done.returncode == 0, done.stderr
  kills, runs = 0, 0
  while kills < 50:
    workdir, runs = tmp_path / f"run{runs}", runs + 1
    argv = command(tiny, workdir, three(second), *more)
    while killed(argv, moments):
      kills += 1
    for load_one in (load.open_checkpoint, load.open_ema):
      jax.tree.map(
        np.testing.assert_array_equal,
        load_one(workdir).params,
        load_one(whole).params,
      )
  print(f"{kills} kills in {runs} runs")


def killed(argv, moments) -> bool:
  """Starts a command; returns whether it was killed before its end."""
  process = tiny_run.start(*argv)
  left = moments.randint(1, 3)
  for line in process.stderr:
    left -= line.startswith("step ")
    if not left:
      break
  time.sleep(moments.random() * 0.3)
  process.send_signal(signal.SIGKILL)
  for _ in process.stderr:  # A full pipe would block the process.
    pass
  code = process.wait()
  assert code in (0, -signal.SIGKILL)
  return code != 0
