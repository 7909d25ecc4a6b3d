"""The programs of the three how-to pages run as they are written there."""

import json
import pathlib
import re

import pytest

from helpers import tiny
from helpers.repository import ROOT
from maskedlm.cli import main
from maskedlm.core.errors import ConfigError
from maskedlm.finetune import config as finetune_config
from maskedlm.interop import own_task
from maskedlm.pretraining.objectives import load_objective
from maskedlm.training.checkpoints import load

pytestmark = pytest.mark.usefixtures("on_one")
SENTENCES = [
  {"words": f"the {word} is number {i}".split(), "scores": [0.5, i, 0, 0, 1]}
  for i, word in enumerate(["parser", "logger", "json"] * 5)
]


def program(page: str) -> str:
  """Returns the first Python program of a page."""
  text = (ROOT / "docs" / "design" / page).read_text()
  return re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]


@pytest.fixture(scope="module")
def here(tmp_path_factory):
  """Returns a folder with the programs, and runs of two of them."""
  folder = tmp_path_factory.mktemp("own")
  pages = {"summary": "add-an-objective.md", "complexity": "add-a-task.md"}
  pages["mine"] = "own-files.md"
  for name, page in pages.items():
    (folder / f"{name}.py").write_text(program(page))
  lines = map(json.dumps, SENTENCES)
  (folder / "words.jsonl").write_text("\n".join(lines))
  with pytest.MonkeyPatch.context() as patch:
    patch.chdir(folder)
    options = {
      "corpus.source": "docstrings:json,logging",
      "corpus.heldout_share": 0.2,
      "corpus.num_workers": 1,
      "tokenizer.vocab_size": 300,
      "model.num_layers": 1,
      "model.width": 24,
      "model.num_heads": 3,
      "model.mlp_width": 40,
      "model.dropout": 0.0,
      "model.attention_dropout": 0.0,
      "data.length": 40,
      "data.batch_size": 16,
      "train.num_steps": 2,
      "train.eval_rows": 8,
      "optimizer.warmup_steps": 1,
    }
    given = [f"--config.{name}={value}" for name, value in options.items()]
    for file, run in (("summary.py", "run"), ("mine.py", "mine")):
      argv = [f"--config={file}", f"--workdir={run}", *given]
      assert main.main(["pretrain", *argv]) == 0
  return folder


def test_the_objective_trains_and_resumes(here, monkeypatch, capsys):
  monkeypatch.chdir(here)
  assert len((here / "summary.py").read_text().splitlines()) <= 80
  assert '"heldout/summary_loss"' in (here / "run/metrics.jsonl").read_text()
  params = load.load_params(here / "run")[0]
  assert {"encoder", "mlm_head", "summary"} <= set(params)
  more = ["--config.train.num_steps=3", "--config.objective.summary_weight=0.5"]
  assert main.main(["pretrain", "--workdir=run", *more]) == 0
  assert json.loads(pathlib.Path("run/result.json").read_text())["steps"] == 3
  capsys.readouterr()
  wrong = ["--config.objective.summary_weight=11"]
  assert main.main(["pretrain", "--workdir=run", *wrong]) == 2
  assert "summary_weight=11" in capsys.readouterr().err


def test_the_objective_is_inspected_beside_another_config(
  here, monkeypatch, capsys, uncompiled
):
  monkeypatch.chdir(here)
  (here / "tiny.py").write_text(tiny.CONFIG)
  own = "--config.objective.name=./summary.py"
  assert main.main(["inspect", "--config=tiny.py", own]) == 0
  assert "summary" in capsys.readouterr().out


def test_its_checkpoint_needs_no_file(here, tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  run = f"--checkpoint={here / 'run'}"
  assert main.main(["fill-mask", run, "the [MASK]."]) == 0
  out = [f"--out={tmp_path / 'hf'}", "--to=hf", "--part=encoder"]
  assert main.main(["export", run, *out]) == 0
  assert (tmp_path / "hf" / "model.safetensors").is_file()
  # Its run does, and says which.
  capsys.readouterr()
  assert main.main(["pretrain", f"--workdir={here / 'run'}"]) == 2
  assert "summary.py': no such file" in capsys.readouterr().err


def test_the_task(here, monkeypatch, capsys):
  monkeypatch.chdir(here)
  assert len((here / "complexity.py").read_text().splitlines()) <= 200
  data = ["--config.data.train=words.jsonl", "--config.data.dev=words.jsonl"]
  few = ["--config.train.epochs=0.1", "--config.data.length=40"]
  argv = ["--config=complexity.py", "--config.init_from=run", "--workdir=tuned"]
  assert main.main(["finetune", *argv, *data, *few]) == 0
  assert (
    main.main(["evaluate", "--checkpoint=tuned", "--data=words.jsonl"]) == 0
  )
  capsys.readouterr()
  argv = ["--checkpoint=tuned,tuned", "--json", "It is great. " * 40]
  assert main.main(["predict", *argv]) == 0
  made = json.loads(capsys.readouterr().out)
  # The sentence is longer than a row; each of its words has a number.
  assert len(made["scores"]) == len(made["words"]) == 160
  argv = ["--checkpoint=tuned", "--to=hf", "--out=hf"]
  assert main.main(["export", *argv]) == 2
  assert "--part=encoder" in capsys.readouterr().err


FILL = ("fill-mask", "--json", "the [MASK].")


def test_layers_rules_and_measures(here, monkeypatch, tmp_path, capsys):
  """A model of one's own layer is computed by its own code, or refused."""
  monkeypatch.chdir(here)
  assert '"heldout/vector_norm"' in (here / "mine/metrics.jsonl").read_text()
  (kept,) = (here / "mine/code").glob("*/mine.py")
  assert kept.read_text() == program("own-files.md")
  config = json.loads((here / "mine/config.json").read_text())
  names = [
    config[section][key].rpartition("/")[2]
    for section, key in (
      ("model", "mlp"),
      ("optimizer", "rule"),
      ("objective", "name"),
    )
  ]
  assert set(names) == {f"mine.py#{kept.parent.name}"}
  fill = [*FILL, f"--checkpoint={here / 'mine'}"]
  assert main.main(fill) == 0
  found = capsys.readouterr().out
  more = ["pretrain", "--workdir=mine", "--config.train.num_steps=3"]
  edited = kept.read_text().replace("jnp.square", "jnp.abs")
  (here / "mine.py").write_text(edited)
  for argv in (fill, more):
    assert main.main(argv) == 2
    assert "mine.py': it was edited after the run" in capsys.readouterr().err
  (here / "mine.py").unlink()
  assert main.main(fill) == 2
  error = capsys.readouterr().err
  assert f"no such file in {here}; the run keeps a copy, code/" in error
  # Elsewhere, with the copy.
  monkeypatch.chdir(tmp_path)
  (tmp_path / "mine.py").write_bytes(kept.read_bytes())
  assert main.main(fill) == 0
  assert capsys.readouterr().out == found
  (here / "mine.py").write_bytes(kept.read_bytes())
  monkeypatch.chdir(here)
  assert main.main(more) == 0


def test_a_file_that_is_none(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  for name, text, message in (
    ("absent.py", None, "absent.py'.*no such file in"),
    ("empty.py", "", "empty.py'.*has no make_task"),
    ("half.py", "make_task = None", "half.py'.*has no Options"),
    ("wrong.py", "1 / 0", "wrong.py'.*ZeroDivisionError"),
    (
      "old.py",
      "from maskedlm.objectives import auto_pack",
      "old.py'.*; it is maskedlm.pretraining now",
    ),
  ):
    if text is not None:
      pathlib.Path(name).write_text(text)
    with pytest.raises(ConfigError, match=f"objective.name='{message}"):
      load_objective(name)
  with pytest.raises(ConfigError, match=r"task.kind='empty.py'.*no Options"):
    finetune_config.load_task("empty.py")
  with pytest.raises(ConfigError, match=r"'robertta' .*roberta.*FILE\.py"):
    load_objective("robertta")


def test_an_import_runs_no_file(here, monkeypatch):
  """What is downloaded may name a file that is there, too."""
  monkeypatch.chdir(here)
  own = {
    "kind": "complexity.py",
    "options": {},
    "about": {"mean": 3},
    "length": 9,
  }
  lines = []
  found = own_task.read_own_task(
    {own_task.KEY: own}, {}, max_positions=9, log=lines.append
  )
  assert found == ({}, {}) and "never runs" in lines[0]
