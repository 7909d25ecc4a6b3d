"""A model of a shape, set up and run as by `maskedlm pretrain`: for goals.py.

On a GPU with the fastest model.attention of those that agree with xla.
"""

import collections
import json
import math
import pathlib
import subprocess
import sys
import time
from typing import NamedTuple

import jax
import numpy as np
from attention import Tried  # Beside this file.

from maskedlm import config as config_lib
from maskedlm import objectives, sharding, train
from maskedlm import step as steps
from maskedlm.corpus import standin

HERE = pathlib.Path(__file__).parent
TRY_SECONDS = 75.0  # Longer than that the ways of attention aren't tried.


class Shape(NamedTuple):
  """A model and its rows."""

  layers: int
  width: int
  heads: int
  length: int
  rows: int
  vocab: int = 30_522


# The first of a size is what the parts after `step` measure.
SIZES = {
  "gpu": {
    "BERT-base S128": Shape(12, 768, 12, 128, 512),
    "BERT-large S128": Shape(24, 1024, 16, 128, 256),
    "BERT-large S512": Shape(24, 1024, 16, 512, 64),
  },
  "base": {"BERT-base S128": Shape(12, 768, 12, 128, 8)},
  "small": {"4x256 S128": Shape(4, 256, 4, 128, 32)},
  "tiny": {"2x48 S24": Shape(2, 48, 3, 24, 5, 500)},
}


class Bench(NamedTuple):
  """What is measured."""

  shapes: dict[str, Shape]
  steps: int  # Timed, of each.
  tried: pathlib.Path  # What is known of ways of attention.


def tried_attention(bench: Bench, shape: Shape) -> list[Tried]:
  """Ways to compute it, the fastest that agrees first; none on a CPU."""
  if jax.default_backend() == "cpu":
    return []
  known = json.loads(bench.tried.read_text()) if bench.tried.exists() else {}
  size = shape.width // shape.heads
  sizes = f"{shape.rows},{shape.length},{shape.heads},{size}"
  if sizes not in known:
    known[sizes] = try_apart(sizes)
    bench.tried.write_text(json.dumps(known))
  return [Tried(*each) for each in known[sizes]]


def try_apart(sizes: str) -> list:
  """attention.try_ways in a process of its own; xla alone if that fails."""
  command = [sys.executable, str(HERE / "attention.py"), "--dropout=0.1"]
  try:
    done = subprocess.run(
      [*command, "--try", sizes],
      stdout=subprocess.PIPE,  # What went wrong is told on stderr, ours too.
      text=True,
      timeout=TRY_SECONDS,
    )
  except subprocess.TimeoutExpired:
    why = f"over {TRY_SECONDS:.0f} s"
  else:
    if not done.returncode:
      return json.loads(done.stdout.splitlines()[-1])
    why = f"exit {done.returncode}"
  print(f"attention was not tried: {why}", flush=True)
  return [["xla", math.nan, 0.0]]


def configure(bench: Bench, shape: Shape, **model):
  """BERT of that shape on its rows: MLM + NSP, dropout 0.1, AdamW."""
  config = config_lib.default("mlm_nsp")
  on_cpu = jax.default_backend() == "cpu"
  config.model.update(
    num_layers=shape.layers,
    width=shape.width,
    num_heads=shape.heads,
    mlp_width=4 * shape.width,
    dtype="float32" if on_cpu else "bfloat16",
    **model,
  )
  if tried := tried_attention(bench, shape):
    config.model.attention = tried[0].name
  config.tokenizer.vocab_size = shape.vocab
  config.data.update(length=shape.length, batch_size=shape.rows)
  config.train.eval_rows = 0
  config.optimizer.warmup_steps = 0
  return config


def make(bench: Bench, shape: Shape, **model):
  """(config, task) on made-up documents, longer than a row."""
  config = configure(bench, shape, **model)
  return config, objectives.make(config, standin.corpus(config.tokenizer))


class Speed(NamedTuple):
  """Of the loop at work."""

  seconds: float  # A step.
  waiting: float  # The share that the host waits for a batch.
  tokens: float  # Real ones, of a step.


def loop(config, task, count: int) -> Speed:
  """Trains as train.py does, on batches made beside it; 5 steps to warm up."""
  mesh = sharding.make_mesh(config.mesh, jax.devices()[:1])
  with jax.set_mesh(mesh):
    made = steps.over_mesh(config, task, mesh)
    state = jax.jit(made.init, out_shardings=made.shardings)()
    batches = train._prefetch(task, 0, count + 5, config.train.prefetch)
    ended: collections.deque = collections.deque()
    waited, tokens, bad = 0.0, [], 0
    for i, (batch, seconds) in enumerate(waits(batches)):
      if i == 5:
        jax.block_until_ready(state)
        began, waited, tokens = time.perf_counter(), 0.0, []
      waited += seconds
      tokens.append(int(np.sum(batch["segment_ids"] > 0)))
      state, _ = made.step(state, sharding.place(batch, mesh))
      ended.append(state.nonfinite + 0)
      if len(ended) > train.RUN_AHEAD:
        bad += int(ended.popleft())  # Waits for it, as train.py does.
    jax.block_until_ready(state)
    taken = time.perf_counter() - began
  if bad or any(map(int, ended)):
    raise RuntimeError("the loss or its gradient is not finite")
  return Speed(taken / count, waited / taken, float(np.mean(tokens)))


def waits(batches):
  """(batch, seconds until it was there) of each."""
  while True:
    began = time.perf_counter()
    batch = next(batches, None)
    if batch is None:
      return
    yield batch, time.perf_counter() - began
