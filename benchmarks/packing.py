"""Compares a training step on packed rows with one on rows of a single pair.

  python benchmarks/packing.py --lengths 64,128,512 --json FILE

4 layers of 256, about 4,096 positions a step, on the docstrings of the
installed packages (or a prepared corpus). The two take turns, each on its own
batches of the same corpus; medians of the steps, without the first of each.
"""

import argparse
import pathlib
import statistics
import tempfile
import time
from typing import NamedTuple

import arguments
import jax
import numpy as np
import table

from maskedlm.config import defaults as config_lib
from maskedlm.data.corpus import store
from maskedlm.data.prepare import prepare
from maskedlm.pretraining import objectives
from maskedlm.training import sharding
from maskedlm.training import step as steps

POSITIONS = 4096  # A step.


def parse(argv: list[str] | None = None) -> argparse.Namespace:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--lengths", default="64,128,512", help="tokens in a row")
  parser.add_argument(
    "--steps", type=arguments.count, default=12, help="of each contender"
  )
  parser.add_argument("--corpus", metavar="FOLDER", help="a prepared corpus")
  parser.add_argument(
    "--source", default="docstrings:", help="prepared if no --corpus is given"
  )
  parser.add_argument("--json", **arguments.TABLE)
  args = parser.parse_args(argv)
  if args.steps < 2:
    parser.error(
      f"--steps={args.steps}: expected 2 or more; the first is not timed"
    )
  return args


def main() -> None:
  """Measures, prints a table, writes the JSON."""
  args = parse()
  rows = []
  with tempfile.TemporaryDirectory() as folder:
    corpus = (
      store.open_corpus(args.corpus)
      if args.corpus
      else make_corpus(pathlib.Path(folder) / "corpus", args.source)
    )
    for length in map(int, args.lengths.split(",")):
      alone, packed = measure(corpus, length, args.steps)
      work = f"4x256, rows of {length}: packed, against rows of one pair"
      note = f"{packed.padding:.1%} padding instead of {alone.padding:.1%}"
      rates = packed.rate, alone.rate
      rows.append(table.against(work, *rates, "real tokens/s", note))
      times = 1e3 * packed.seconds, 1e3 * alone.seconds
      rows.append(table.against(f"{work}, a step", *times, "ms"))
  print(table.show(rows))
  table.write(args.json, rows)


def make_corpus(path: pathlib.Path, source: str) -> store.Corpus:
  """Prepares the source with a vocabulary of 8,192."""
  config = config_lib.default("mlm_nsp")
  config.corpus.source = source
  config.corpus.heldout_share = 0.05
  config.tokenizer.vocab_size = 8_192
  return prepare.prepare(config, path, log=lambda line: None)


class Speed(NamedTuple):
  """Of a step."""

  padding: float  # Share of the positions.
  seconds: float
  rate: float  # Real tokens a second.


def measure(corpus: store.Corpus, length: int, count: int) -> list[Speed]:
  """Returns the Speed of rows alone and of packed rows."""
  contenders = [Contender(corpus, length, pack) for pack in (False, True)]
  for turn in range(count):
    for contender in contenders:
      contender.step(turn)
  return [contender.speed() for contender in contenders]


def configure(length: int, pack: bool):
  """Returns the config of a contender."""
  config = config_lib.default("mlm_nsp")
  config.model.update(num_layers=4, width=256, num_heads=4, mlp_width=1024)
  config.model.max_positions = length
  config.data.update(length=length, batch_size=max(POSITIONS // length, 1))
  config.train.eval_rows = 0
  config.objective.pack = pack
  return config


class Contender:
  """A model trained on one kind of rows, and the times of its steps."""

  def __init__(self, corpus: store.Corpus, length: int, pack: bool):
    config = configure(length, pack)
    self.task = objectives.make_task(config, corpus)
    self.mesh = sharding.make_mesh(config.mesh, jax.devices()[:1])
    with jax.set_mesh(self.mesh):
      program = steps.over_mesh(config, self.task, self.mesh)
      self.train_step = program.step
      self.state = program.init()
    self.seconds, self.real, self.positions = [], 0, 0

  def step(self, turn: int) -> None:
    batch = self.task.batch_at("train", turn)
    with jax.set_mesh(self.mesh):
      placed = jax.block_until_ready(sharding.place(batch, self.mesh))
      began = time.perf_counter()
      self.state, _ = self.train_step(self.state, placed)
      jax.block_until_ready(self.state)
    if turn:
      self.seconds.append(time.perf_counter() - began)
      self.real += int(np.count_nonzero(batch["segment_ids"]))
      self.positions += batch["segment_ids"].size

  def speed(self) -> Speed:
    seconds = statistics.median(self.seconds)
    return Speed(
      padding=1 - self.real / self.positions,
      seconds=seconds,
      rate=self.real / len(self.seconds) / seconds,
    )


if __name__ == "__main__":
  main()
