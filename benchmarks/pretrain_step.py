"""Compares a training step with one of PyTorch + transformers.

  python benchmarks/pretrain_step.py --shapes small,base --json FILE

Both train BERT on MLM + NSP with dropout 0.1 and AdamW (clipping, decay) on
the same rows of 128 tokens, 20 of them predicted. maskedlm's step is the one
that `maskedlm pretrain` compiles; it masks within the step, while the peer is
given masked rows. The peer runs eager and under torch.compile, each with its
own head over all positions, and with the head over the predicted positions
only, as in maskedlm. float32 on a CPU; bfloat16 on a GPU, which both frameworks
must see then.

The peer has its own process (pretrain_peer.py). Contenders take turns: an
untimed step, then a timed one (on a GPU, ten); medians are reported. On a CPU
the machine must be idle otherwise: with one of two cores taken by another
process the peer's step of the small shape took 7.1 s instead of 2.0, as its
OpenMP threads wait for each other. The table then says that it is not valid.
Needs the extra `peer`.
"""

# ruff: noqa: E402

import argparse
import functools
import itertools
import json
import math
import os
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import arguments
import this_machine

from maskedlm.runtime import allocator

allocator.keep_freed()  # As `maskedlm` and the peer do.

import jax
import numpy as np
import peer_process
from peer_process import Shape, Taken

from maskedlm.config import defaults as config_lib
from maskedlm.core.task import Task
from maskedlm.data.batches import placeholder_corpus
from maskedlm.data.corpus import concat, store
from maskedlm.data.tokenizers.libraries import Special
from maskedlm.modeling.architecture import encoder_config
from maskedlm.modeling.flops import train_flops
from maskedlm.pretraining import objectives
from maskedlm.runtime import startup, xla_flags
from maskedlm.training import sharding
from maskedlm.training import step as steps

LENGTH, PREDICTIONS, VOCAB, DROPOUT = 128, 20, 30_522, 0.1
NUM_BATCHES = 4  # Used in turn.
SHAPES = {  # And the rows in a batch.
  "small": (Shape(4, 256, 4, 1024, VOCAB), 32),
  "base": (Shape(12, 768, 12, 3072, VOCAB), 8),
}
VARIANTS = {  # Variant of the peer -> positions for which it makes logits.
  "eager": LENGTH,
  "eager, gathered": PREDICTIONS,
  "compiled": LENGTH,
  "compiled, gathered": PREDICTIONS,
}


class Contender(NamedTuple):
  """A way to train."""

  run: Callable[[int], Taken]  # Runs that many steps.
  row_flops: float  # Matmul FLOPs executed for a row.


def parse(argv: list[str] | None = None) -> argparse.Namespace:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--shapes", default="small,base", help="comma-separated")
  parser.add_argument(
    "--steps", type=arguments.count, default=15, help="turns of each"
  )
  parser.add_argument(
    "--rows",
    type=arguments.count,
    help="in a batch; default: that of the shape",
  )
  parser.add_argument("--json", **arguments.TABLE)
  args = parser.parse_args(argv)
  args.shapes = args.shapes.split(",")
  if not set(args.shapes) <= set(SHAPES):
    parser.error(f"--shapes: known: {', '.join(SHAPES)}")
  return args


def main() -> None:
  """Measures, prints a table for each shape, writes the JSON."""
  args = parse()
  if why := peer_process.lacking():
    raise SystemExit(why)
  print(machine())
  records = []
  for name in args.shapes:
    shape, rows = SHAPES[name]
    rows = args.rows or rows
    records += compare(shape, rows, args.steps)
  if args.json:
    args.json.write_text(json.dumps(records, indent=2))


def compare(shape: Shape, rows: int, rounds: int) -> list[dict]:
  """Measures one shape, prints its table and returns its JSON records."""
  on_gpu = jax.default_backend() == "gpu"
  config = configure(shape, rows, "bfloat16" if on_gpu else "float32")
  task = objectives.make_task(config, random_corpus(config))
  batches = [task.batch_at("train", i) for i in range(NUM_BATCHES)]
  real_share = float(np.mean([batch["segment_ids"] > 0 for batch in batches]))
  ours = our_step(config, task, batches)
  contenders = {"maskedlm": ours}
  with peer_process.start(shape, peer_process.masked(task, batches)) as peer:
    if (peer.device == "cuda") != on_gpu:
      raise SystemExit(
        f"jax runs on {jax.default_backend()}, torch on {peer.device}: install "
        "both for one device, or set JAX_PLATFORMS=cpu CUDA_VISIBLE_DEVICES="
      )
    for name, positions in VARIANTS.items():
      flops = row_flops(config, positions)
      run = functools.partial(peer.run, name)
      contenders[f"transformers, {name}"] = Contender(run, flops)
    seconds, others = measure(contenders, rounds, block=10 if on_gpu else 1)

  work = f"{shape.layers}x{shape.width} B{rows} S{LENGTH} {config.model.dtype}"
  if others > 0.1:
    work += f" (NOT VALID: other processes kept {others:.1f} cores busy)"
  print(f"\n{work}, {real_share:.1%} of the tokens are real\n")
  print("| | ms a step | rows/s | real tokens/s | GFLOP/s | FLOPs | time |")
  print("|---|---|---|---|---|---|---|")
  tokens = {
    name: rows * LENGTH * real_share / taken for name, taken in seconds.items()
  }
  for name, taken in seconds.items():
    flops = contenders[name].row_flops
    print(
      f"| {name} | {taken * 1e3:,.1f} | {rows / taken:,.1f} "
      f"| {tokens[name]:,.0f} | {rows * flops / taken / 1e9:,.0f} "
      f"| x{flops / ours.row_flops:.2f} | x{taken / seconds['maskedlm']:.2f} |"
    )
  return [
    {
      "work": f"training step, {work}, against {name}",
      "ours": round(tokens["maskedlm"], 1),
      "peer": round(tokens[name], 1),
      "ratio": round(tokens["maskedlm"] / tokens[name], 3),
      "unit": "real tokens/s",
    }
    for name in tokens
    if name != "maskedlm"
  ]


def measure(
  contenders: dict[str, Contender], rounds: int, *, block: int
) -> tuple[dict[str, float], float]:
  """Returns median seconds of a step by name, and cores used by others.

  A compiled contender that can't start is left out with a message.
  """
  taken: dict[str, list[Taken]] = {}
  for name, contender in contenders.items():
    try:  # Compiles, and warms the caches.
      first = contender.run(2)
    except RuntimeError as error:
      if "compiled" not in name:  # torch.compile may fail in many ways.
        raise
      print(f"{name}: left out, {error}")
      continue
    if not math.isfinite(first.loss):
      raise SystemExit(f"{name}: its loss is {first.loss}")
    taken[name] = []
  began, others, used = time.perf_counter(), busy_seconds(), 0.0
  for _ in range(rounds):
    for name, timings in taken.items():
      # A turn's first step isn't timed: a virtual machine returns memory that
      # was free during the other turns to its host.
      first, timed = contenders[name].run(1), contenders[name].run(block)
      timings.append(timed)
      used += first.cpu + timed.cpu
  others = busy_seconds() - others - used
  medians = {
    name: statistics.median(x.seconds for x in timings) / block
    for name, timings in taken.items()
  }
  return medians, others / (time.perf_counter() - began)


def busy_seconds() -> float:
  """Returns the CPU seconds of all processes so far; 0 if unknown."""
  if not os.path.exists("/proc/stat"):
    return 0.0
  with open("/proc/stat", encoding="utf-8") as file:
    user, nice, system, _, _, *rest = map(int, file.readline().split()[1:9])
  return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK")


def machine() -> str:
  """Returns a description of this machine."""
  name = jax.devices()[0].device_kind
  name = this_machine.cpu() if name == "cpu" else name
  return f"{name}; {this_machine.versions('jax', 'torch', 'transformers')}"


# maskedlm's step.


def configure(shape: Shape, rows: int, dtype: str):
  """Returns the config that trains the shape."""
  config = config_lib.default("mlm_nsp")
  config.model.num_layers = shape.layers
  config.model.width = shape.width
  config.model.num_heads = shape.heads
  config.model.mlp_width = shape.mlp_width
  config.model.dropout = config.model.attention_dropout = DROPOUT
  config.model.dtype = dtype
  config.objective.update(max_predictions=PREDICTIONS, pack=False)
  config.tokenizer.vocab_size = VOCAB
  config.data.length = LENGTH
  config.data.batch_size = rows
  config.train.eval_rows = 0
  config.optimizer.warmup_steps = 0
  return config


def our_step(config, task: Task, batches: list) -> Contender:
  """Returns the step as training/loop.py compiles it, on one device."""
  mesh = sharding.make_mesh(config.mesh, jax.devices()[:1])
  with jax.set_mesh(mesh):
    program = steps.over_mesh(config, task, mesh)
    state = program.init()
  turn = itertools.cycle(batches)

  def run(count: int) -> Taken:
    nonlocal state
    began, cpu = time.perf_counter(), time.process_time()
    with jax.set_mesh(mesh):
      for _ in range(count):
        batch = sharding.place(next(turn), mesh)
        state, metrics = program.step(state, batch)
    jax.block_until_ready(state)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    return Taken(seconds, cpu, float(metrics["loss"][0]))

  return Contender(run, task.flops(0) / config.data.batch_size)


def random_corpus(config):
  """Returns 2,000 documents of 30 sentences of 5 to 35 random tokens."""
  rng = np.random.default_rng(0)
  sentences = np.cumsum([0, *rng.integers(5, 36, 2_000 * 30)])
  documents = np.arange(0, len(sentences), 30)
  tokens = rng.integers(1_000, VOCAB, sentences[-1]).astype(np.uint16)

  columns = (tokens, sentences, documents)
  split = store.Split(
    *(concat.concatenate((x,), np.zeros(1, x.dtype)) for x in columns)
  )
  corpus = placeholder_corpus.make_corpus(config.tokenizer)
  return corpus._replace(
    train=split,
    heldout=split,
    token_counts=np.bincount(tokens, minlength=VOCAB),
    tokenizer=corpus.tokenizer._replace(
      special=Special(pad=0, unk=100, cls=101, sep=102, mask=103),
      special_ids=np.arange(1_000),  # With [unusedN], as in BERT's vocabulary.
    ),
  )


def row_flops(config, num_predictions: int) -> float:
  """Returns a row's FLOPs with the head over `num_predictions` positions."""
  cfg = encoder_config(config.model, VOCAB, LENGTH)
  return train_flops(cfg, LENGTH, num_predictions=num_predictions)


if __name__ == "__main__":
  # The two frameworks share a GPU, so neither may take all of its memory.
  os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
  xla_flags.set_up(os.environ)  # As `maskedlm pretrain` does.
  startup.enable_compile_cache()
  main()
