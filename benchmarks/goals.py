"""The goals of pretraining speed (docs/performance.md), measured where it runs.

  python benchmarks/goals.py --parts step,peer,packing,checkpoint

Each part is a few rows: what, the goal, what was found. Shares of "the ceiling"
are of this device's own rate on square matrices, measured in the same part;
FLOPs are those of modeling/flops.py (matmuls; backward twice forward).

  step        BERT-base and -large: ours as `maskedlm pretrain` compiles it, on
              batches made beside it; without dropout, without optimizer; and
              the bare matmuls of the same shapes. On a GPU with the fastest
              model.attention of those that agree, which are tried first
  peer        transformers with SDPA and torch.compile on the same padded rows
  packing     real tokens a second on documents of a few hundred tokens
              (docstrings of installed packages): ours packed, ours and the
              peer's padded
  checkpoint  how long a save holds the loop up

The goals are of one H200 (--size gpu); the other sizes are for a CPU. Nothing
is downloaded. A part whose needs aren't there says so, and has no numbers. The
start of a run is in start.py.
"""

import argparse
import collections
import functools
import json
import os
import pathlib
import statistics
import tempfile
import time
from typing import NamedTuple

# PyTorch and JAX share the GPU: neither may take all of its memory.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm import checkpoint, inspect, runtime, sharding, train
from maskedlm import config as config_lib
from maskedlm import step as steps
from maskedlm.corpus import prepare, standin

PACKAGES = "docstrings:numpy,jax,scipy,optax"


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
CEILING = {
  "BERT-base S128": ">= 60%",
  "BERT-large S128": ">= 60%",
  "BERT-large S512": ">= 65%",
}


class Goal(NamedTuple):
  """A row of the table; found is None where it could not be measured."""

  what: str
  goal: str
  found: str | None
  note: str = ""


def main() -> None:
  """Measures, prints a table, writes the JSON."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--parts", default=",".join(PARTS), help="in this order")
  parser.add_argument("--steps", type=int, default=20, help="timed, of each")
  parser.add_argument("--size", choices=SIZES, default="gpu")
  parser.add_argument("--json", metavar="FILE", help="where to write the table")
  args = parser.parse_args()
  names = args.parts.split(",")
  if not set(names) <= set(PARTS) or args.steps < 1:
    parser.error(f"--parts: of {', '.join(PARTS)}; --steps: 1 or more")
  print(f"{jax.devices()[0].device_kind}; jax {jax.__version__}\n")
  print("| what | goal | found | |\n|---|---|---|---|")
  rows = []
  for name in names:
    for row in PARTS[name](SIZES[args.size], args.steps):
      print(
        f"| {row.what} | {row.goal} | {row.found or 'not measured'} | "
        f"{row.note} |",
        flush=True,
      )
      rows.append(row._asdict())
  if args.json:
    pathlib.Path(args.json).write_text(json.dumps(rows, indent=2))


# The step.


@functools.cache
def tried_attention(shape: Shape):
  """Ways to compute it, attention.Tried; none on a CPU."""
  if jax.default_backend() == "cpu":
    return []
  import attention

  heads, size = shape.heads, shape.width // shape.heads
  return attention.try_ways((shape.rows, shape.length, heads, size), 0.1)


def configure(shape: Shape, **model):
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
  if tried := tried_attention(shape):
    config.model.attention = tried[0].name
  config.tokenizer.vocab_size = shape.vocab
  config.data.update(length=shape.length, batch_size=shape.rows)
  config.train.eval_rows = 0
  config.optimizer.warmup_steps = 0
  return config


def make(shape: Shape, **model):
  """(config, task) on made-up documents, longer than a row."""
  config = configure(shape, **model)
  return config, inspect.make_task(config, standin.corpus(config.tokenizer))


def seconds_of(run, count: int) -> float:
  """Median seconds of a call, of 3 blocks of `count`; two to warm up."""
  jax.block_until_ready([run(), run()])
  taken = []
  for _ in range(3):
    began = time.perf_counter()
    for _ in range(count):
      made = run()
    jax.block_until_ready(made)
    taken.append((time.perf_counter() - began) / count)
  return statistics.median(taken)


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
    waited, tokens = 0.0, []
    for i, batch in enumerate(waits(batches)):
      batch, seconds = batch
      if i == 5:
        jax.block_until_ready(state)
        began, waited, tokens = time.perf_counter(), 0.0, []
      waited += seconds
      tokens.append(int(np.sum(batch["segment_ids"] > 0)))
      state, _ = made.step(state, sharding.place(batch, mesh))
      ended.append(state.nonfinite + 0)
      if len(ended) > train.RUN_AHEAD:
        jax.block_until_ready(ended.popleft())
    jax.block_until_ready(state)
    taken = time.perf_counter() - began
  return Speed(taken / count, waited / taken, float(np.mean(tokens)))


def waits(batches):
  """(batch, seconds until it was there) of each."""
  while True:
    began = time.perf_counter()
    batch = next(batches, None)
    if batch is None:
      return
    yield batch, time.perf_counter() - began


def measure_step(shapes: dict, count: int):
  """The rows of the step."""
  peak = ceiling(512 if jax.default_backend() == "cpu" else 8192)
  yield Goal("square matmuls, this run", "", f"{peak / 1e12:,.2f} TFLOP/s")
  speeds = {}
  for name, shape in shapes.items():
    for tried in tried_attention(shape):
      yield Goal(
        f"{name}, a layer's attention: {tried.name}",
        "",
        f"{tried.seconds * 1e3:.2f} ms",
        f"{tried.apart:.1e} from xla's",
      )
    config, task = make(shape)
    speeds[name] = speed = loop(config, task, count)
    share = task.flops(0) / speed.seconds / peak
    yield Goal(
      f"{name}, B{shape.rows}",
      CEILING.get(name, ""),
      f"{share:.1%} of it",
      f"{speed.seconds * 1e3:,.1f} ms, "
      f"{shape.rows / speed.seconds:,.0f} rows/s",
    )
  name, shape = next(iter(shapes.items()))
  whole = speeds[name].seconds
  config, task = make(shape)
  yield Goal("waiting for input", "<= 1%", f"{speeds[name].waiting:.2%}")
  bare = bare_matmuls(shape, config, task, count)
  yield Goal("the step against bare matmuls", "<= 1.6x", f"{whole / bare:.2f}x")
  without = loop(*make(shape, dropout=0.0, attention_dropout=0.0), count)
  yield Goal("dropout's share", "<= 6%", f"{1 - without.seconds / whole:.1%}")
  gradient = gradient_alone(config, task, count)
  yield Goal("optimizer's share", "<= 5%", f"{1 - gradient / whole:.1%}")


def ceiling(size: int) -> float:
  """FLOP/s of this device on square matrices of its dtype."""
  dtype = jnp.float32 if jax.default_backend() == "cpu" else jnp.bfloat16
  x = jnp.ones((size, size), dtype)
  multiply = jax.jit(lambda x, y: x @ y)
  return 2 * size**3 / seconds_of(lambda: multiply(x, x), 10)


def gradient_alone(config, task, count: int) -> float:
  """Seconds of a step that hides and differentiates, and updates nothing."""
  params = jax.jit(task.init)(jax.random.key(0))
  batch = jax.device_put(dict(task.batch_at("train", 0)))

  @jax.jit
  def run(params, batch, key):
    mask_key, dropout_key = jax.random.split(key)
    batch = task.corrupt(batch, mask_key)
    return steps.gradient_of(task, params, batch, dropout_key, 1)

  mesh = sharding.make_mesh(config.mesh, jax.devices()[:1])
  with jax.set_mesh(mesh):
    return seconds_of(lambda: run(params, batch, jax.random.key(1)), count)


def bare_matmuls(shape: Shape, config, task, count: int) -> float:
  """Seconds of the step's matmuls, forward and backward, with nothing else."""
  N, D, H, L, B, V = shape
  dtype = jnp.dtype(config.model.dtype)
  batch = dict(task.batch_at("train", 0))
  slots = jax.eval_shape(task.corrupt, batch, jax.random.key(0))
  P = slots["masked_positions"].shape[1]
  ones = jnp.ones
  weights = {
    "qkv": ones((N, D, 3 * D), dtype),
    "out": ones((N, D, D), dtype),
    "up": ones((N, D, 4 * D), dtype),
    "down": ones((N, 4 * D, D), dtype),
  }
  head = ones((D, D), dtype), ones((D, V), dtype)

  def loss(weights, head, x):
    def layer(x, w):
      qkv = (x @ w["qkv"]).reshape(B, L, 3, H, D // H)
      scores = jnp.einsum("BLHK,BSHK->BHLS", qkv[:, :, 0], qkv[:, :, 1])
      y = jnp.einsum("BHLS,BSHK->BLHK", scores, qkv[:, :, 2])
      x = y.reshape(B * L, D) @ w["out"]
      return x @ w["up"] @ w["down"], None

    x, _ = jax.lax.scan(layer, x, weights)
    x = x.reshape(B, L, D)[:, :P].reshape(B * P, D)
    return jnp.sum(x @ head[0] @ head[1], dtype=jnp.float32)

  run = jax.jit(jax.grad(loss, argnums=(0, 1, 2)))
  x = ones((B * L, D), dtype)
  return seconds_of(lambda: run(weights, head, x), count)


# The peer.


def find_peer():
  """(benchmarks/pretrain_step.py, "") or (None, why it can't run)."""
  try:
    import pretrain_step
    import torch
  except ImportError as error:
    return None, f"{error}: install the extra peer"
  on_gpu = jax.default_backend() == "gpu"
  if on_gpu != torch.cuda.is_available():
    return None, "torch does not see the device that JAX runs on"
  return pretrain_step, ""


def peer_seconds(shape: Shape, config, task, count: int) -> tuple[float, str]:
  """(seconds of the peer's compiled step; 0 if none, why) on such rows."""
  peer, why = find_peer()
  if peer is None:
    return 0.0, why
  rows = peer.Shape(
    shape.layers, shape.width, shape.heads, 4 * shape.width, shape.rows
  )
  batches = [task.batch_at("train", i) for i in range(2)]
  made = peer.peer_steps(rows, config.model.dtype, peer.masked(task, batches))
  contender = made["transformers, compiled"]
  try:
    contender.run(2)
  except Exception as error:  # torch.compile has many ways to fail.
    return 0.0, f"torch.compile: {type(error).__name__}"
  began = time.perf_counter()
  contender.run(count)
  return (time.perf_counter() - began) / count, ""


def measure_peer(shapes: dict, count: int):
  """transformers, compiled, on the same padded rows."""
  name, shape = next(iter(shapes.items()))
  config, task = make(shape)
  seconds, why = peer_seconds(shape, config, task, count)
  found = None
  if seconds:
    found = f"{seconds / loop(config, task, count).seconds:.2f}x rows/s"
  yield Goal(f"{name}, against transformers compiled", ">= 1.3x", found, why)


def measure_packing(shapes: dict, count: int):
  """Real tokens a second on documents that are shorter than a row."""
  shape = next(iter(shapes.values()))
  shape = shape._replace(length=4 * shape.length, rows=max(2, shape.rows // 4))
  with tempfile.TemporaryDirectory() as directory:
    corpus = prepare_corpus(pathlib.Path(directory), shape)
    found, tokens = {}, {}
    for name, pack in (("packed", True), ("padded", False)):
      config = configure(shape)
      config.objective.pack = pack
      task = inspect.make_task(config, corpus)
      speed = loop(config, task, count)
      found[name], tokens[name] = speed.tokens / speed.seconds, speed.tokens
    seconds, why = peer_seconds(shape, config, task, count)
  share = tokens["padded"] / (shape.rows * shape.length)
  yield Goal(
    "packed against ours padded",
    "",
    f"{found['packed'] / found['padded']:.2f}x real tokens/s",
    f"rows of {shape.length}, padded ones {share:.0%} real",
  )
  ratio = seconds and found["packed"] / (tokens["padded"] / seconds)
  yield Goal(
    "packed against transformers padded",
    ">= 2x",
    f"{ratio:.2f}x real tokens/s" if ratio else None,
    why,
  )


def prepare_corpus(folder: pathlib.Path, shape: Shape):
  """Docstrings of installed packages, in words of their own."""
  config = config_lib.default("mlm_nsp")
  tiny = shape.vocab < 1_000
  config.corpus.source = "docstrings:json,email" if tiny else PACKAGES
  config.corpus.heldout_share = 0.2
  config.tokenizer.vocab_size = min(shape.vocab, 8_192)
  return prepare.prepare(
    config, folder / "corpus", log=lambda line: None, progress=False
  )


# The run.


def measure_checkpoint(shapes: dict, count: int):
  """How long a save keeps the loop."""
  del count
  shape = next(iter(shapes.values()))
  config, task = make(shape)
  mesh = sharding.make_mesh(config.mesh, jax.devices()[:1])
  with tempfile.TemporaryDirectory() as directory, jax.set_mesh(mesh):
    made = steps.over_mesh(config, task, mesh)
    state = jax.jit(made.init, out_shardings=made.shardings)()
    size = sum(x.nbytes for x in jax.tree.leaves(state))
    opened = checkpoint.open_checkpoints(
      pathlib.Path(directory), keep_last=1, keep_best=0, log=print
    )
    taken = []
    for i in range(3):
      batch = sharding.place(task.batch_at("train", i), mesh)
      state, _ = made.step(state, batch)
      jax.block_until_ready(state)
      began = time.perf_counter()
      opened.save(i + 1, state, {"identity": {}, "task": {}}, metric=None)
      taken.append(time.perf_counter() - began)
      opened.wait()
    opened.close()
  yield Goal(
    "a checkpoint holds the loop up",
    "<= 100 ms",
    f"{statistics.median(taken) * 1e3:,.0f} ms",
    f"a state of {size / 1e6:,.0f} MB",
  )


PARTS = {
  "step": measure_step,
  "peer": measure_peer,
  "packing": measure_packing,
  "checkpoint": measure_checkpoint,
}

if __name__ == "__main__":
  runtime.enable_compile_cache()
  main()
