"""Sets up and runs models as `maskedlm pretrain` does, for goals.py."""

import collections
import itertools
import pathlib
import statistics
import time
from typing import NamedTuple

import jax
import numpy as np

from maskedlm.config import defaults as config_lib
from maskedlm.config import overrides
from maskedlm.data.batches import placeholder_corpus
from maskedlm.pretraining import objectives
from maskedlm.training import loop as train
from maskedlm.training import sharding
from maskedlm.training import step as steps

CONFIGS = pathlib.Path(__file__).parent.parent / "configs"


class Shape(NamedTuple):
  """Sizes of a model and of its batches."""

  layers: int
  width: int
  heads: int
  length: int
  rows: int
  vocab: int = 30_522
  config: str = ""  # In configs/; "" for BERT's layers, MLM + NSP, dropout 0.1.


# The first shape of a size is the default.
SIZES = {
  "gpu": {
    "BERT-base-128": Shape(12, 768, 12, 128, 512),
    "BERT-large-128": Shape(24, 1024, 16, 128, 256),
    "BERT-large-512": Shape(24, 1024, 16, 512, 64),
    "ModernBERT-base-1024": Shape(
      22, 768, 12, 1024, 64, 50_368, "modernbert.py"
    ),
  },
  "base": {"BERT-base-128": Shape(12, 768, 12, 128, 8)},
  "small": {"4x256-128": Shape(4, 256, 4, 128, 32)},
  "tiny": {"2x48-24": Shape(2, 48, 3, 24, 5, 500)},
}


class Bench(NamedTuple):
  """A shape to measure, with its name."""

  name: str
  shape: Shape
  steps: int  # In a block; three blocks are timed.


def configure(shape: Shape, **model):
  """Returns the config of a model of that shape, in one phase."""
  if shape.config:
    config = overrides.load_config(str(CONFIGS / shape.config))
    config.phases = ()
    config.train.accumulate = 1
  else:
    config = config_lib.default("mlm_nsp")
    config.model.mlp_width = 4 * shape.width
  on_cpu = jax.default_backend() == "cpu"
  config.model.update(
    num_layers=shape.layers,
    width=shape.width,
    num_heads=shape.heads,
    dtype="float32" if on_cpu else "bfloat16",
    **model,
  )
  config.tokenizer.vocab_size = shape.vocab
  config.data.update(length=shape.length, batch_size=shape.rows)
  config.train.eval_rows = 0
  config.optimizer.warmup_steps = 0
  return config


def make(bench: Bench, **model):
  """Returns (config, task) on placeholder documents longer than a row."""
  config = configure(bench.shape, **model)
  return config, objectives.make_task(
    config, placeholder_corpus.make_corpus(config.tokenizer)
  )


class Speed(NamedTuple):
  """Times of the training loop."""

  seconds: float  # A step; the median of three blocks.
  waiting: float  # Share of the time that the host waits for batches.
  tokens: float  # Real tokens in a step.
  first: float  # Seconds until the first step ends, mostly compilation.


def loop(config, task, count: int) -> Speed:
  """Trains as training/loop.py does, after a second of warm-up."""
  mesh = sharding.make_mesh(config.mesh, jax.devices()[:1])
  began = time.perf_counter()
  with jax.set_mesh(mesh):
    program = steps.over_mesh(config, task, mesh)
    state = program.init()
    batches = waits(train.prefetch(task, 0, 10**6))

    def block(count: int):
      """Returns (seconds, those spent waiting, real tokens) of some steps."""
      nonlocal state
      began, waited, tokens = time.perf_counter(), 0.0, 0
      ended: collections.deque = collections.deque()
      bad = 0
      for batch, seconds in itertools.islice(batches, count):
        waited += seconds
        tokens += int(np.sum(batch["segment_ids"] > 0))
        state, _ = program.step(state, sharding.place(batch, mesh))
        ended.append(state.nonfinite + 0)
        if len(ended) > train.RUN_AHEAD:
          bad += int(ended.popleft())  # Waits, as the loop does.
      jax.block_until_ready(state)
      taken = time.perf_counter() - began
      if bad or any(map(int, ended)):
        raise RuntimeError("the loss or its gradient is not finite")
      return taken, waited, tokens

    block(1)
    first, warm = time.perf_counter() - began, 0.0
    while warm < 1.0:  # Until a GPU's clock has settled.
      warm += block(5)[0]
    taken, waited, tokens = zip(*(block(count) for _ in range(3)), strict=True)
  return Speed(
    statistics.median(taken) / count,
    sum(waited) / sum(taken),
    sum(tokens) / (3 * count),
    first,
  )


def waits(batches):
  """Yields (batch, seconds waited for it)."""
  while True:
    began = time.perf_counter()
    batch = next(batches)
    yield batch, time.perf_counter() - began
