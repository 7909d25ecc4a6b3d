"""Makes the corpus, run and files that every trial starts from."""

import pathlib
import shutil
from typing import NamedTuple

from faults import trials
from helpers import task_files, tiny

# One layer and one row length: a run takes some 4 s.
CONFIG = tiny.CONFIG.replace(
  "  return c\n",
  """
  c.model.num_layers = 1
  c.model.max_positions = 32
  c.data.length = 32
  c.data.batch_size = 8
  c.phases = ()
  c.optimizer.warmup_steps = 2
  c.train.num_steps = 8
  c.train.eval_every = 4
  c.train.eval_rows = 8
  c.train.checkpoint_every = 2
  c.train.keep_last = 4
  return c
""",
)


class Inputs(NamedTuple):
  folder: pathlib.Path
  config: pathlib.Path
  corpus: pathlib.Path
  whole: pathlib.Path  # The same run, finished.
  text: pathlib.Path
  skipping: pathlib.Path  # A finished run with some steps not finite.
  within: pathlib.Path  # Finished runs on two devices, as `within` makes them.
  changes: dict[str, int]  # Calls of each of these that change its workdir.


def some_steps_not_finite() -> None:
  """Makes the loss of about one step in three NaN: the same steps always."""
  import jax
  from jax import numpy as jnp

  from maskedlm.training import step

  whole = step.gradient_of

  def gradient_of(task, params, batch, key, accumulate):
    gradient, loss, stats = whole(task, params, batch, key, accumulate)
    bad = jax.random.bits(key) % 3 == 0
    return gradient, jnp.where(bad, jnp.nan, loss), stats

  step.gradient_of = gradient_of


def pretrain(made, corpus, workdir, *more):
  return [
    "pretrain",
    f"--config={made.config}",
    f"--config.corpus.path={corpus}",
    f"--workdir={workdir}",
    *more,
  ]


def make(folder: pathlib.Path) -> Inputs:
  """Prepares a corpus and trains on it, without faults."""
  folder.mkdir(parents=True)
  made = Inputs(
    folder,
    *(
      folder / n
      for n in (*("tiny.py", "corpus", "whole", "text", "skipping", "within"),)
    ),
    changes={},
  )
  made.config.write_text(CONFIG)
  made.text.write_text("The first line.\nAnother one.\n")
  must(["prepare", f"--config={made.config}", f"--out={made.corpus}"], folder)
  must(pretrain(made, made.corpus, made.whole), folder)
  must(
    pretrain(made, made.corpus, made.skipping),
    folder,
    inject=some_steps_not_finite,
  )
  return made


_TUNE = """
from maskedlm.finetune import config

def get_config():
  return config.default("retrieval")
"""
# The runs of `within`, by name: their options.
_RUNS = {
  "data": [],
  "fsdp": ["--config.mesh.fsdp=2"],
  "tensor": ["--config.mesh.tensor=2"],
  "grow": ["--config.grow=tile", "--config.model.num_layers=2"],
}


def within(made, name, workdir, corpus=None) -> list:
  """Returns the command of one of the runs within a process."""
  if name != "sweep":
    more = list(_RUNS[name])
    if name == "grow":
      more.append(f"--config.init_from={made.within / 'data'}")
    return pretrain(made, corpus or made.corpus, workdir, *more)
  return [
    *("finetune", f"--config={made.folder / 'tune.py'}"),
    f"--workdir={workdir}",
    f"--config.init_from={made.whole}",
    f"--config.data.train={made.folder / 'train.tsv'}",
    f"--config.data.dev={made.folder / 'dev.tsv'}",
    *("--config.data.length=32", "--config.data.batch_size=8"),
    "--config.train.accumulate=2",
    *("--config.train.epochs=2", "--config.sweep.seeds=1,2"),
  ]


def make_within(made) -> None:
  """Makes the runs of `within`, in a process with two devices."""
  from faults import within as process

  made.within.mkdir()
  (made.folder / "tune.py").write_text(_TUNE)
  for name, count in ("train", 16), ("dev", 8):
    file = task_files.make_file("retrieval", count, count)
    (made.folder / f"{name}.tsv").write_text(file.text)
  for name in (*_RUNS, "sweep"):
    workdir = made.within / name
    argv = within(made, name, workdir)
    made.changes[name] = process.count_changes(argv, workdir)
  _halve(made.within / "data", made.within / "half")
  ended = process.verb(
    [
      *("embed", f"--checkpoint={made.within / 'data'}", "--unit=sentence"),
      *(f"--input={made.text}", f"--out={made.within / 'vectors.npz'}"),
    ]
  )
  assert ended.code == 0, ended


def must(argv, folder, **options):
  ended = trials.run(argv, folder / "log", **options)
  assert ended.code == 0, (argv, ended)


def _halve(whole: pathlib.Path, half: pathlib.Path) -> None:
  """Makes of a finished run one that was stopped after 4 of 8 steps."""
  shutil.copytree(whole, half)
  for step in "6", "8":
    shutil.rmtree(half / "checkpoints" / step)
  shutil.rmtree(half / "tensorboard")
  (half / "result.json").unlink()
