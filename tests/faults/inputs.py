"""Makes the corpus, run and files that every trial starts from."""

import pathlib
import shutil
from typing import NamedTuple

from faults import trials
from helpers import tiny

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
  half: pathlib.Path  # A run that was stopped after 4 of 8 steps.
  whole: pathlib.Path  # The same run, finished.
  text: pathlib.Path
  skipping: pathlib.Path  # A finished run with some steps not finite.


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
      for n in ("tiny.py", "corpus", "half", "whole", "text", "skipping")
    ),
  )
  made.config.write_text(CONFIG)
  made.text.write_text("The first line.\nAnother one.\n")
  must(["prepare", f"--config={made.config}", f"--out={made.corpus}"], folder)
  must(pretrain(made, made.corpus, made.whole), folder)
  shutil.copytree(made.whole, made.half)
  for step in "6", "8":
    shutil.rmtree(made.half / "checkpoints" / step)
  for name in ("result.json", "tensorboard"):
    path = made.half / name
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
  must(
    pretrain(made, made.corpus, made.skipping),
    folder,
    inject=some_steps_not_finite,
  )
  return made


def must(argv, folder, **options):
  ended = trials.run(argv, folder / "log", **options)
  assert ended.code == 0, (argv, ended)
