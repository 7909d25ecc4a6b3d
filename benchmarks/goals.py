"""Measures the goals of pretraining speed (docs/results/performance.md).

  python benchmarks/goals.py --parts step,kernel,shares,peer,packing,checkpoint
  python benchmarks/goals.py --parts step --shape BERT-large-512

Each part prints a few rows, with the goal in brackets. Square matmuls are those
of this device, measured in the same part; FLOPs are those of modeling/flops.py
(matmuls; backward is twice forward). The JSON is written after each row, so
that a part that is stopped leaves its first rows.

  step        the step as `maskedlm pretrain` compiles it, with batches made
              during training
  kernel      the same step with attention_dropout=0, for which attention has
              kernels
  shares      the same step against the bare matmuls of its shapes, without
              dropout, and without optimizer
  peer        transformers with SDPA and torch.compile on the same padded rows;
              as users run it, it computes logits of every position: on
              BERT-base-128 that is x1.22 of maskedlm's FLOPs
  packing     real tokens a second on documents of a few hundred tokens
              (docstrings of installed packages): maskedlm packed and padded,
              the peer padded
  checkpoint  how long a save blocks the loop

The goals are for one H200 (--size gpu); the other sizes are for a CPU. A
process measures one shape, because JAX never returns a GPU's memory and another
shape may not fit into the fragments. Nothing is downloaded. A row that can't be
measured here says why. start.py measures the start of a run.
"""

import argparse
import itertools
import os
import pathlib
import statistics
import tempfile
import time

import arguments
import jax
import matmuls  # In this folder.
import peer_process
import table
from goal_runs import (
  SIZES,
  Bench,
  Shape,
  configure,
  loop,
  make,
)
from table import Row

from maskedlm.config import defaults as config_lib
from maskedlm.data.prepare import prepare
from maskedlm.pretraining import objectives
from maskedlm.runtime import startup, xla_flags
from maskedlm.training import sharding
from maskedlm.training import step as steps
from maskedlm.training.checkpoints import manager

PACKAGES = "docstrings:numpy,jax,scipy,optax"
GOALS = {  # Of square matmuls.
  "BERT-base-128": "goal: 0.60",
  "BERT-large-128": "goal: 0.60",
  "BERT-large-512": "goal: 0.65",
}
AUTHORS = {"ModernBERT-base-1024": 308_000}  # Tokens/s, on an H100.


def parse(argv: list[str] | None = None) -> argparse.Namespace:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument(
    "--parts", default=",".join(PARTS), help="comma-separated, in this order"
  )
  parser.add_argument(
    "--steps", type=arguments.count, default=20, help="in each of three blocks"
  )
  parser.add_argument("--size", choices=SIZES, default="gpu")
  parser.add_argument(
    "--shape", help="a shape of that size; default: its first"
  )
  parser.add_argument("--json", **arguments.TABLE)
  args = parser.parse_args(argv)
  args.parts = args.parts.split(",")
  if not set(args.parts) <= set(PARTS):
    parser.error(f"--parts: known: {', '.join(PARTS)}")
  shapes = SIZES[args.size]
  args.shape = args.shape or next(iter(shapes))
  if args.shape not in shapes:
    parser.error(f"--shape={args.shape}: known: {', '.join(shapes)}")
  return args


def main() -> None:
  """Measures, prints a table, writes the JSON."""
  args = parse()
  print(f"{jax.devices()[0].device_kind}; jax {jax.__version__}\n")
  print(table.head())
  rows = []
  bench = Bench(args.shape, SIZES[args.size][args.shape], args.steps)
  for row in itertools.chain(*(PARTS[name](bench) for name in args.parts)):
    print(table.line(row._asdict()), flush=True)
    rows.append(row)
    table.write(args.json, rows)


# The step.


def measure_step(bench: Bench):
  """Yields the speed of the step."""
  peak = matmuls.ceiling()
  name = f"{bench.name}, {bench.shape.rows} rows"
  config, task = make(bench)
  speed = loop(config, task, bench.steps)
  reached = task.flops(0) / speed.seconds
  yield table.against(
    f"{name}, against square matmuls",
    *(reached / 1e12, peak / 1e12, "TFLOP/s"),
    GOALS.get(bench.name, ""),
  )
  rate, authors = speed.tokens / speed.seconds, AUTHORS.get(bench.name)
  yield Row(
    f"{name}, against the authors' on an H100" if authors else name,
    rate,
    authors,
    authors and rate / authors,
    "tokens/s",
    f"a step: {speed.seconds * 1e3:,.1f} ms; the first: {speed.first:,.0f} s",
  )
  waiting = 100 * speed.waiting
  yield Row(f"{name}, waiting for input", waiting, unit="%", note="goal: 1")


def measure_kernel(bench: Bench):
  """Yields the speed of the step without attention dropout."""
  peak = matmuls.ceiling()
  config, task = make(bench, attention_dropout=0.0)
  speed = loop(config, task, bench.steps)
  yield table.against(
    f"{bench.name}, {bench.shape.rows} rows, attention_dropout=0, against "
    "square matmuls",
    *(task.flops(0) / speed.seconds / 1e12, peak / 1e12, "TFLOP/s"),
    f"{speed.tokens / speed.seconds:,.0f} tokens/s",
  )


def measure_shares(bench: Bench):
  """Yields the shares of optimizer, dropout and everything but matmuls."""
  config, task = make(bench)
  speed = loop(config, task, bench.steps)
  whole = speed.seconds
  gradient = gradient_alone(config, task, bench.steps)
  yield share("optimizer", whole, gradient, "goal: 5")
  none = make(bench, dropout=0.0, attention_dropout=0.0)
  without = loop(*none, bench.steps)
  yield share("dropout", whole, without.seconds, "goal: 6")
  arrays = jax.eval_shape(
    task.corrupt, dict(task.batch_at("train", 0)), jax.random.key(0)
  )
  bare = matmuls.bare_step(
    bench.shape,
    arrays["masked_positions"].shape[1],
    config.model.dtype,
    bench.steps,
  )
  yield table.against(
    "the step, against the bare matmuls of its shapes",
    *(1e3 * whole, 1e3 * bare, "ms", "goal: 0.63"),
  )


def share(part: str, whole: float, without: float, note: str) -> Row:
  """Returns the Row of a part's share of the step's seconds."""
  return Row(
    f"{part}'s share of the step",
    100 * (1 - without / whole),
    unit="%",
    note=note,
  )


def gradient_alone(config, task, count: int) -> float:
  """Returns the seconds of a step without its update."""
  params = jax.jit(task.init)(jax.random.key(0))
  batch = jax.device_put(dict(task.batch_at("train", 0)))

  @jax.jit
  def run(params, batch, key):
    mask_key, dropout_key = jax.random.split(key)
    batch = task.corrupt(batch, mask_key)
    return steps.gradient_of(task, params, batch, dropout_key, 1)

  mesh = sharding.make_mesh(config.mesh, jax.devices()[:1])
  with jax.set_mesh(mesh):
    key = jax.random.key(1)
    return matmuls.seconds_of(lambda: run(params, batch, key), count)


# The peer.


def peer_seconds(shape: Shape, task, count: int) -> tuple[float, str]:
  """Returns (seconds of the peer's compiled step, "") or (0, why not).

  shape: with the vocabulary of the task.
  """
  model = peer_process.Shape(
    *(shape.layers, shape.width, shape.heads, 4 * shape.width, shape.vocab)
  )
  batches = [task.batch_at("train", i) for i in range(2)]
  rows = peer_process.masked(task, batches)
  on_gpu = jax.default_backend() == "gpu"
  try:
    with peer_process.start(model, rows) as peer:
      if (peer.device == "cuda") != on_gpu:
        return 0.0, "torch does not see the device that JAX runs on"
      peer.run("compiled", 2)
      taken = [peer.run("compiled", count).seconds for _ in range(3)]
      return statistics.median(taken) / count, ""
  except RuntimeError as error:  # There is no torch, or torch.compile failed.
    return 0.0, str(error)


def measure_peer(bench: Bench):
  """Yields the speed against compiled transformers on the same rows."""
  # The peer comes first, while JAX holds little of the GPU's memory.
  seconds, why = peer_seconds(bench.shape, make(bench)[1], bench.steps)
  work = f"{bench.name}, against transformers, SDPA and torch.compile, padded"
  if not seconds:
    yield Row(work, None, note=why)
    return
  ours = bench.shape.rows / loop(*make(bench), bench.steps).seconds
  peer = bench.shape.rows / seconds
  yield table.against(work, ours, peer, "rows/s", "goal: 1.3")


def measure_packing(bench: Bench):
  """Yields real tokens a second on documents shorter than a row."""
  shape = bench.shape
  shape = shape._replace(length=4 * shape.length, rows=max(2, shape.rows // 4))
  with tempfile.TemporaryDirectory() as directory:
    corpus = prepare_corpus(pathlib.Path(directory), shape)
    shape = shape._replace(vocab=corpus.tokenizer.vocab_size)

    def contender(pack: bool):
      config = configure(shape)
      config.objective.pack = pack
      return config, objectives.make_task(config, corpus)

    seconds, why = peer_seconds(shape, contender(pack=False)[1], bench.steps)
    packed, padded = (
      loop(*contender(pack), bench.steps) for pack in (True, False)
    )
  ours, alone = (speed.tokens / speed.seconds for speed in (packed, padded))
  padding = 1 - padded.tokens / (shape.rows * shape.length)
  work = f"{bench.name}'s model on docstrings, rows of {shape.length}: packed"
  yield table.against(
    f"{work}, against maskedlm padded",
    *(ours, alone, "real tokens/s"),
    f"{padding:.0%} padding",
  )
  work = f"{work}, against transformers, torch.compile, padded"
  if not seconds:
    yield Row(work, None, note=why)
    return
  peer = padded.tokens / seconds
  yield table.against(work, ours, peer, "real tokens/s", "goal: 2")


def prepare_corpus(folder: pathlib.Path, shape: Shape):
  """Prepares docstrings of installed packages with their own vocabulary."""
  config = config_lib.default("mlm_nsp")
  tiny = shape.vocab < 1_000
  config.corpus.source = "docstrings:json,email" if tiny else PACKAGES
  config.corpus.heldout_share = 0.2
  config.tokenizer.vocab_size = min(shape.vocab, 8_192)
  return prepare.prepare(config, folder / "corpus", log=lambda line: None)


# The run.


def measure_checkpoint(bench: Bench):
  """Yields how long a save blocks the loop."""
  config, task = make(bench)
  mesh = sharding.make_mesh(config.mesh, jax.devices()[:1])
  with tempfile.TemporaryDirectory() as directory, jax.set_mesh(mesh):
    program = steps.over_mesh(config, task, mesh)
    state = program.init()
    size = sum(x.nbytes for x in jax.tree.leaves(state))
    checkpoints = manager.open_checkpoints(
      pathlib.Path(directory), keep_last=1, keep_best=0, log=print
    )
    taken = []
    for i in range(3):
      batch = sharding.place(task.batch_at("train", i), mesh)
      state, _ = program.step(state, batch)
      jax.block_until_ready(state)
      began = time.perf_counter()
      checkpoints.save(i + 1, state, {"identity": {}, "task": {}}, metric=None)
      taken.append(time.perf_counter() - began)
      checkpoints.wait()
    checkpoints.close()
  yield Row(
    f"a checkpoint of {size / 1e6:,.0f} MB holds the loop up",
    1e3 * statistics.median(taken),
    unit="ms",
    note="goal: 100",
  )


PARTS = {
  "step": measure_step,
  "kernel": measure_kernel,
  "shares": measure_shares,
  "peer": measure_peer,
  "packing": measure_packing,
  "checkpoint": measure_checkpoint,
}

if __name__ == "__main__":
  # The peer's process needs GPU memory too, so JAX must not take all of it.
  os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
  os.environ.setdefault("XLA_CLIENT_MEM_FRACTION", "0.92")
  xla_flags.set_up(os.environ)  # As `maskedlm pretrain` does.
  startup.enable_compile_cache()
  main()
