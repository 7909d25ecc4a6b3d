"""The goals of pretraining speed (docs/performance.md), measured where it runs.

  python benchmarks/goals.py --parts step,peer,packing,checkpoint

Each part is a few rows: what, the goal, what was found. Shares of "the ceiling"
are of this device's own rate on square matrices, measured in the same part;
FLOPs are those of modeling/flops.py (matmuls; backward twice forward). The JSON
is written after each row: of a part that is stopped it has what there was.

  step        BERT-base and -large: ours as `maskedlm pretrain` compiles it, on
              batches made beside it; without dropout, without optimizer; and
              the bare matmuls of the same shapes
  peer        transformers with SDPA and torch.compile on the same padded rows.
              As a user runs it, it makes logits of every position: on
              BERT-base S128 that is x1.22 of our FLOPs
  packing     real tokens a second on documents of a few hundred tokens
              (docstrings of installed packages): ours packed, ours and the
              peer's padded
  checkpoint  how long a save holds the loop up

The goals are of one H200 (--size gpu); the other sizes are for a CPU. Nothing
is downloaded. A part whose needs aren't there says so, and has no numbers. The
start of a run is in start.py.

On a GPU all use the fastest model.attention of those that agree with xla. They
are tried first, in a process of their own (attention.py): what was found is
kept in --tried, where there is such a file, for the other parts.
"""

import argparse
import itertools
import json
import math
import os
import pathlib
import statistics
import tempfile
import time
from typing import NamedTuple

# The peer's process needs room on the GPU too.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import matmuls  # Beside this file.
import peer_process
from goal_runs import (
  SIZES,
  Bench,
  Shape,
  Speed,
  configure,
  loop,
  make,
  tried_attention,
)

from maskedlm import checkpoint, objectives, runtime, sharding, xla_flags
from maskedlm import config as config_lib
from maskedlm import step as steps
from maskedlm.corpus import prepare

PACKAGES = "docstrings:numpy,jax,scipy,optax"
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
  parser.add_argument(
    "--tried", metavar="FILE", help="keeps which attention is fastest"
  )
  args = parser.parse_args()
  names = args.parts.split(",")
  if not set(names) <= set(PARTS) or args.steps < 1:
    parser.error(f"--parts: of {', '.join(PARTS)}; --steps: 1 or more")
  for path in filter(None, (args.json, args.tried)):
    if not pathlib.Path(path).parent.is_dir():
      parser.error(f"{path}: its folder isn't there; make it first")
  print(f"{jax.devices()[0].device_kind}; jax {jax.__version__}\n")
  print("| what | goal | found | |\n|---|---|---|---|")
  rows = []
  with tempfile.TemporaryDirectory() as folder:
    tried = pathlib.Path(args.tried or f"{folder}/tried.json")
    bench = Bench(SIZES[args.size], args.steps, tried)
    for row in itertools.chain(*(PARTS[name](bench) for name in names)):
      print(
        f"| {row.what} | {row.goal} | {row.found or 'not measured'} | "
        f"{row.note} |",
        flush=True,
      )
      rows.append(row._asdict())
      if args.json:
        pathlib.Path(args.json).write_text(json.dumps(rows, indent=2))


# The step.


def measure_step(bench: Bench):
  """The rows of the step: all of the first shape, then the others."""
  peak = matmuls.ceiling()
  yield Goal("square matmuls, this run", "", f"{peak / 1e12:,.2f} TFLOP/s")
  name, *others = bench.shapes
  yield from of_attention(bench, name)
  config, task = made = make(bench, bench.shapes[name])
  speed = loop(*made, bench.steps)
  yield of_ceiling(bench, name, task, speed, peak)
  yield Goal("waiting for input", "<= 1%", f"{speed.waiting:.2%}")
  whole, shape = speed.seconds, bench.shapes[name]
  slots = jax.eval_shape(
    task.corrupt, dict(task.batch_at("train", 0)), jax.random.key(0)
  )
  bare = matmuls.bare_step(
    shape,
    slots["masked_positions"].shape[1],
    config.model.dtype,
    bench.steps,
  )
  yield Goal("the step against bare matmuls", "<= 1.6x", f"{whole / bare:.2f}x")
  none = make(bench, shape, dropout=0.0, attention_dropout=0.0)
  without = loop(*none, bench.steps)
  yield Goal("dropout's share", "<= 6%", f"{1 - without.seconds / whole:.1%}")
  gradient = gradient_alone(config, task, bench.steps)
  yield Goal("optimizer's share", "<= 5%", f"{1 - gradient / whole:.1%}")
  for name in others:
    yield from of_attention(bench, name)
    config, task = made = make(bench, bench.shapes[name])
    yield of_ceiling(bench, name, task, loop(*made, bench.steps), peak)


def of_attention(bench: Bench, name: str):
  """What each way takes that was tried."""
  for tried in tried_attention(bench, bench.shapes[name]):
    yield Goal(
      f"{name}, a layer's attention: {tried.name}",
      "",
      None if math.isnan(tried.seconds) else f"{tried.seconds * 1e3:.3g} ms",
      f"{tried.apart:.1e} from xla's",
    )


def of_ceiling(bench: Bench, name: str, task, speed: Speed, peak: float):
  """The row of a shape's speed."""
  rows = bench.shapes[name].rows
  return Goal(
    f"{name}, B{rows}",
    CEILING.get(name, ""),
    f"{task.flops(0) / speed.seconds / peak:.1%} of it",
    f"{speed.seconds * 1e3:,.1f} ms, {rows / speed.seconds:,.0f} rows/s",
  )


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
    key = jax.random.key(1)
    return matmuls.seconds_of(lambda: run(params, batch, key), count)


# The peer.


def peer_seconds(shape: Shape, config, task, count: int) -> tuple[float, str]:
  """(seconds of the peer's compiled step; 0 if none, why) on such rows.

  shape: with the vocabulary that ours has.
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
      return peer.run("compiled", count).seconds / count, ""
  except RuntimeError as error:  # No torch; torch.compile's many ways to fail.
    return 0.0, str(error)


def measure_peer(bench: Bench):
  """transformers, compiled, on the same padded rows."""
  name, shape = next(iter(bench.shapes.items()))
  config, task = make(bench, shape)
  seconds, why = peer_seconds(shape, config, task, bench.steps)
  found = None
  if seconds:
    found = f"{seconds / loop(config, task, bench.steps).seconds:.2f}x rows/s"
  yield Goal(f"{name}, against transformers compiled", ">= 1.3x", found, why)


def measure_packing(bench: Bench):
  """Real tokens a second on documents that are shorter than a row."""
  shape = next(iter(bench.shapes.values()))
  shape = shape._replace(length=4 * shape.length, rows=max(2, shape.rows // 4))
  with tempfile.TemporaryDirectory() as directory:
    corpus = prepare_corpus(pathlib.Path(directory), shape)
    shape = shape._replace(vocab=corpus.tokenizer.vocab_size)
    found, tokens = {}, {}
    for name, pack in (("packed", True), ("padded", False)):
      config = configure(bench, shape)
      config.objective.pack = pack
      task = objectives.make(config, corpus)
      speed = loop(config, task, bench.steps)
      found[name], tokens[name] = speed.tokens / speed.seconds, speed.tokens
    share = tokens["padded"] / (shape.rows * shape.length)
    yield Goal(
      "packed against ours padded",
      "",
      f"{found['packed'] / found['padded']:.2f}x real tokens/s",
      f"rows of {shape.length}, padded ones {share:.0%} real",
    )
    seconds, why = peer_seconds(shape, config, task, bench.steps)
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


def measure_checkpoint(bench: Bench):
  """How long a save keeps the loop."""
  config, task = make(bench, next(iter(bench.shapes.values())))
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
  xla_flags.set_up(os.environ)  # As of `maskedlm pretrain`.
  runtime.enable_compile_cache()
  main()
