"""`maskedlm pretrain` in phases: other text, other masks, other batches."""

import numpy as np
import pytest

from helpers import tiny as tiny_run
from helpers.toy_runs import logged_lines
from maskedlm.cli import main
from maskedlm.training.checkpoints import load


def prepare(tiny, out, *options):
  """Prepares another corpus; returns its path."""
  made = tiny_run.run(
    "prepare",
    f"--config={tiny[0]}",
    *(f"--config.{option}" for option in options),
    f"--out={out}",
  )
  assert made.returncode == 0, made.stderr
  return out


@pytest.fixture(scope="module")
def second(tiny, tmp_path_factory):
  """Returns a corpus of other text with the tokenizer of `tiny`."""
  return prepare(
    tiny,
    tmp_path_factory.mktemp("second") / "corpus",
    "corpus.source=docstrings:inspect,logging,asyncio,http,xml",
    f"tokenizer.path={tiny[1] / 'tokenizer'}",
  )


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
  lines = logged_lines(tmp_path)
  rates = [x["learning_rate"] for x in lines if "learning_rate" in x]
  assert len(rates) == 12
  # 5 steps of warm-up; the third phase has its own schedule of 4 steps.
  np.testing.assert_allclose(rates[8:], [1e-3 * n / 4 for n in (4, 3, 2, 1)])
  meta = load.load_params(tmp_path)[1]
  assert "+" in meta["identity"]["corpus"]  # Both corpora are recorded.
  again = tiny_run.run("pretrain", f"--workdir={tmp_path}")
  assert again.returncode == 0, again.stderr
  assert "from the checkpoint of step 12 of 12" in again.stderr


@pytest.mark.parametrize(
  "is_there", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_no_corpus_or_one_of_another_tokenizer_is_refused(
  tiny, tmp_path, is_there, capsys
):
  """The first before text is prepared."""
  other, workdir = tmp_path / "other", tmp_path / "run"
  if is_there:
    prepare(tiny, other, "tokenizer.vocab_size=400")
  phases = repr(({}, {"steps": 4, "corpus.path": str(other)}))
  more = [] if is_there else ["--config.corpus.path="]
  assert main.main(command(tiny, workdir, phases, *more)) == 2
  *_, line = capsys.readouterr().err.splitlines()
  assert line.startswith("error: ") and f"corpus.path='{other}'" in line
  assert ("tokenizer" in line) == is_there
  assert not (workdir / "corpus").exists()
