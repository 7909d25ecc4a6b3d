"""Training curves from metrics.jsonl files."""

import json

import pytest

from maskedlm.cli import main
from maskedlm.core.errors import DataError
from maskedlm.inference.plots import training_curves
from maskedlm.training.optimizer_options import OptimizerOptions

SPEED = {"learning_rate": 1e-3, "tokens_per_second": 900.0, "skipped": 0.0}


def write(folder, *lines, tail=""):
  folder.mkdir()
  text = "".join(f"{json.dumps(line)}\n" for line in lines)
  (folder / "metrics.jsonl").write_text(text + tail)
  return str(folder)


def pretraining(folder, *, terms=("mlm", "nsp"), tail=""):
  lines = []
  for step in (10, 20, 30):
    losses = {f"{term}_loss": 60 / step for term in terms}
    scores = {f"{term}_accuracy": step / 40 for term in terms}
    total = {"loss": sum(losses.values())}
    lines.append({"step": step, **losses, **scores, **total, **SPEED})
    if step > 10:
      lines.append({"step": step, "heldout/mlm_loss": 61 / step})
  return write(folder, *lines, tail=tail)


def test_curves_by_hand(tmp_path):
  run = training_curves.read_run(
    pretraining(tmp_path / "a", tail='{"step": 40, "mlm_l')
  )
  assert run["mlm_loss"] == ([10, 20, 30], [6.0, 3.0, 2.0])
  assert run["heldout/mlm_loss"] == ([20, 30], [61 / 20, 61 / 30])
  assert training_curves.last_step(run) == 30


@pytest.mark.parametrize("logged", [0.75, 0.9])
def test_the_rate_is_the_schedules(tmp_path, logged):
  """Steps 0 to 3 have the rates 0, 1/2, 1 and 1/2; a line has the mean of two.

  A rate that the config doesn't explain is drawn as it was logged.
  """
  rates = {2: 0.25, 4: logged}
  lines = ({"step": n, "learning_rate": rate} for n, rate in rates.items())
  folder = write(tmp_path / "a", *lines)
  optimizer = OptimizerOptions(learning_rate=1.0, warmup_steps=2)
  config = {"seed": 0, "profile": 0, "model": {}, "train": {"num_steps": 4}}
  config["data"] = {"batch_size": 1, "length": 8}
  config["optimizer"] = vars(optimizer)
  for more in ({}, {"phases": []}):  # Of fine-tuning, of pretraining.
    text = json.dumps({**config, **more})
    (tmp_path / "a" / "config.json").write_text(text)
    found = training_curves.read_run(folder)["learning_rate"]
    expected = [0, 0.5, 1, 0.5] if logged == 0.75 else [0.25, 0.9]
    assert list(found.values) == expected
    assert list(found.steps) == ([1, 2, 3, 4] if logged == 0.75 else [2, 4])


def test_tokens_by_hand(tmp_path):
  """Two lines of held-out rows are between those of training."""
  lines = [
    {"step": 10, "loss": 6.0, "tokens": 700.0},
    {"step": 10, "heldout/loss": 6.5},
    {"step": 15, "heldout/loss": 6.0},
    {"step": 30, "loss": 5.0, "tokens": 1000.0},
    {"step": 30, "heldout/loss": 5.5},
  ]
  run = training_curves.read_run(write(tmp_path / "a", *lines))
  found = training_curves.over_tokens(run, "a")
  assert found["loss"] == ([700, 1700], [6.0, 5.0])
  assert found["heldout/loss"] == ([700, 950, 1700], [6.5, 6.0, 5.5])
  old = training_curves.read_run(pretraining(tmp_path / "old"))
  with pytest.raises(DataError, match=r"^old: .*--over=tokens"):
    training_curves.over_tokens(old, "old")


def test_runs_of_other_batches_are_compared_over_tokens(tmp_path, capsys):
  """The second reads three times as many tokens in a step."""
  folders = [
    write(
      tmp_path / name,
      *(
        line
        for step in (10, 20, 30)
        for line in (
          {"step": step, "loss": 60 / step, "tokens": 5e6 * size, **SPEED},
          {"step": step, "heldout/loss": 61 / step},
        )
      ),
    )
    for name, size in (("small", 1), ("large", 3))
  ]
  out = tmp_path / "compared.svg"
  argv = ["plot", "run", *folders, f"--out={out}", "--panels=heldout/loss"]
  assert main.main([*argv, "--over=steps,tokens"]) == 0
  picture = out.read_text()
  # Matplotlib puts texts in comments.
  for text in ("small", "large", "steps", "tokens", "Loss, held out", "40M"):
    assert f"<!-- {text} -->" in picture


@pytest.mark.parametrize("suffix", ["svg", "pdf"])
def test_a_papers_figure(tmp_path, capsys, suffix):
  """One panel, as wide as a column."""
  folder, out = pretraining(tmp_path / "a"), tmp_path / f"figure.{suffix}"
  argv = ["plot", "run", folder, f"--out={out}", "--panels=mlm_loss"]
  assert main.main([*argv, "--width=3.3"]) == 0
  made = out.read_bytes()
  if suffix == "svg":  # 72 points an inch.
    assert b'width="237.6pt"' in made and b"MLM loss" in made
  if suffix == "pdf":
    assert b"/Type3" not in made


def test_the_verb(tmp_path, size, verb):
  a = pretraining(tmp_path / "a", tail='{"step": 40, ')
  b = pretraining(tmp_path / "b", terms=("mlm",))
  out = tmp_path / "run.png"
  assert (
    verb("plot", "run", a, b, f"--out={out}").out
    == f"{out}: steps of a 30, b 30\n"
  )
  # 7 panels in three columns and three rows.
  width, height = size(out)
  assert width == round(150 * (3 * (3.3 + 0.85) + 0.2)) and 1300 < height < 1600
  assert out.stat().st_size > 20_000
