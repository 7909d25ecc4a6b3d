"""`maskedlm pretrain` in phases: other text, other masks, other batches."""

import numpy as np
import pytest

from helpers.toy_runs import logged_lines
from maskedlm.cli import main
from maskedlm.training.checkpoints import load


@pytest.fixture(scope="module")
def second(tiny, tmp_path_factory):
  """Returns a corpus of other text with the tokenizer of `tiny`."""
  config, corpus = tiny
  out = tmp_path_factory.mktemp("second") / "corpus"
  source = "docstrings:inspect,logging,asyncio"
  options = [f"corpus.source={source}"]
  options.append(f"tokenizer.path={corpus / 'tokenizer'}")
  given = [f"--config.{option}" for option in options]
  assert (
    main.main(["prepare", f"--config={config}", f"--out={out}", *given]) == 0
  )
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


def two(second):
  """Returns phases of 8 and 4 steps."""
  changes = {"data.length": 48, "data.batch_size": 8}
  changes |= {"objective.mask_rate": 0.3, "optimizer.learning_rate": 1e-3}
  changes |= {"corpus.path": str(second), "optimizer.warmup_steps": 0}
  return repr(({"steps": 8}, changes))


def test_other_text_masks_and_rows(tiny, second, forked, tmp_path):
  done = forked(command(tiny, tmp_path, two(second)))
  assert done.code == 0, done.stderr
  assert "phase 2 of 2, to step 12:" in done.stderr
  assert "data.batch_size=8" in done.stderr
  lines = logged_lines(tmp_path)
  rates = [x["learning_rate"] for x in lines if "learning_rate" in x]
  assert len(rates) == 12
  # 5 steps of warm-up; the second phase has its own schedule of 4 steps.
  np.testing.assert_allclose(rates[8:], [1e-3 * n / 4 for n in (4, 3, 2, 1)])
  meta = load.load_params(tmp_path)[1]
  assert "+" in meta["identity"]["corpus"]  # Both corpora are recorded.


@pytest.mark.parametrize("vocab_size", [None, 400])
def test_a_corpus_that_does_not_fit_is_told(tiny, tmp_path, capsys, vocab_size):
  """One that is not there, before text is prepared; and another tokenizer."""
  other, given = tmp_path / "other", ["--config.corpus.path="]
  if vocab_size:
    argv = [f"--config={tiny[0]}", f"--out={other}"]
    argv.append(f"--config.tokenizer.vocab_size={vocab_size}")
    assert main.main(["prepare", *argv]) == 0
    given = []
  phases = repr(({}, {"steps": 4, "corpus.path": str(other)}))
  capsys.readouterr()
  assert main.main(command(tiny, tmp_path / "run", phases, *given)) == 2
  *more, line = capsys.readouterr().err.splitlines()
  assert line.startswith("error: ") and f"corpus.path='{other}'" in line
  assert "tokenizer" in line if vocab_size else not more
  assert not (tmp_path / "run" / "corpus").exists()
