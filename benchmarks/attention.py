"""Attention alone: every implementation that this machine can run.

  python benchmarks/attention.py --lengths=512,2048,8192

One layer's attention, forward and backward, of BERT-base by default. Prints
for each length and each kind of rows what an implementation takes: the time
of a call (median; implementations take turns), what all cores worked for it,
and the memory that the compiled program has besides its arguments and results;
and how far its results and gradients are from xla's (see apart).
The kinds: one text, padded; packed texts of an eighth of the row; and a window
of 128 tokens on one text. Not run is what needs more memory than --memory. With
--dropout=0.1 only those are run that can drop weights; they drop the same.

--try B,L,H,K prints what try_ways yields, each as a line of JSON: for goals.py,
for which a way that crashes or hangs must do so in another process.
"""

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from maskedlm.modeling import dropout_bits
from maskedlm.modeling.attention import dispatch as choice
from maskedlm.modeling.attention import layer as attention
from maskedlm.modeling.attention import triton
from maskedlm.modeling.attention.mask import Sight
from maskedlm.runtime import startup
from maskedlm.training import sharding

KINDS = ("one text", "packed", "window")


def make_sight(kind: str, rows: int, length: int) -> Sight:
  """The rows of a kind; an eighth of the first kind is padding."""
  column = np.broadcast_to(np.arange(length), (rows, length))
  if kind == "packed":
    return Sight(jnp.asarray(1 + column * 8 // length, jnp.int32))
  segments = jnp.asarray(column < length - length // 8, jnp.int32)
  return Sight(segments, window=128 if kind == "window" else 0, one_text=True)


def way(name: str, sight: Sight, dropout: float):
  """qkv [B, L, 3, H, K] -> [B, L, H, K], dropping by a fixed key."""
  count, key = dropout_bits.count_of(dropout), jax.random.key(1)
  if name == "triton":  # It reads the three in one array.
    seeds = dropout_bits.seeds(key)
    drop = triton.Drop(seeds, count) if count else None
    return lambda qkv: triton.attend(qkv, sight, drop)

  def through(weights):
    words = dropout_bits.random_words(key, weights.shape)
    return dropout_bits.drop(weights, words, count)

  def attend(*qkv):
    if count:
      return attention.plain(*qkv, sight, through)
    return attention.attend(*qkv, sight, implementation=name)

  return lambda qkv: attend(*(qkv[:, :, i] for i in range(3)))


def layer(name: str, sight: Sight, dropout: float):
  """(qkv, gradient of the result) -> (result, gradient of qkv)."""
  attend = way(name, sight, dropout)
  real = sight.segment_ids[:, :, None, None] > 0

  def forward(qkv):  # What padding becomes, nothing reads.
    return jnp.where(real, attend(qkv), 0)

  def run(qkv, gradient):
    y, backward = jax.vjp(forward, qkv)
    return y, *backward(gradient)

  return run


def compiled(name: str, sight: Sight, shape, dtype, dropout: float):
  """The program of layer, for this machine: over a mesh, as training has it."""
  B, L, H, K = shape
  x = jax.ShapeDtypeStruct((B, L, 3, H, K), dtype)
  y = jax.ShapeDtypeStruct(shape, dtype)
  sizes = ConfigDict(dict.fromkeys(sharding.AXES, 1))
  with jax.set_mesh(sharding.make_mesh(sizes, jax.devices()[:1])):
    return jax.jit(layer(name, sight, dropout)).lower(x, y).compile()


def those_that_compile(names, *options) -> dict:
  """{name: program}; of the others, what was raised is told."""
  programs = {}
  for name in names:
    try:
      programs[name] = compiled(name, *options)
    except Exception as error:  # It should not cost us the others' numbers.
      tell(name, error)
  return programs


def tell(name: str, error: Exception) -> None:
  """Says what a way has raised."""
  why = str(error).splitlines()[:1]
  print(f"{name}: {type(error).__name__}: {why}", file=sys.stderr)


@jax.jit  # The device's arrays are large; the host would take seconds.
def apart(x, y):
  """How far a row of x is from y's at most, by its norm; NaN where one is."""
  x, y = (a.astype(jnp.float32).reshape(len(a), -1) for a in (x, y))
  return jnp.max(jnp.linalg.norm(x - y, axis=1) / jnp.linalg.norm(y, axis=1))


def differences(programs, args) -> dict[str, float]:
  """How far each program's arrays are from xla's, at most."""
  if "xla" not in programs:
    return {}
  expected = programs["xla"](*args)
  return {
    name: float(np.max([*map(float, map(apart, program(*args), expected))]))
    for name, program in programs.items()
    if name != "xla"
  }


def measure(programs, args, repeats: int):
  """{name: (seconds, seconds of all cores)}: medians, taking turns.

  Short calls are timed several together: to start one takes time as well.
  """
  times, counts = {name: [] for name in programs}, {}
  for name, program in programs.items():
    jax.block_until_ready(program(*args))
    began = time.perf_counter()
    jax.block_until_ready(program(*args))
    taken = time.perf_counter() - began
    counts[name] = max(1, min(20, int(0.05 / taken)))
  for _ in range(repeats):
    for name, program in programs.items():
      wall, cores = time.perf_counter(), time.process_time()
      for _ in range(counts[name]):
        made = program(*args)
      jax.block_until_ready(made)
      spent = time.perf_counter() - wall, time.process_time() - cores
      times[name].append([x / counts[name] for x in spent])
  return {
    name: tuple(statistics.median(x) for x in zip(*spent, strict=True))
    for name, spent in times.items()
  }


class Tried(NamedTuple):
  """A way, on rows of one text."""

  name: str
  seconds: float  # Forward and backward of a layer.
  apart: float  # From xla, as differences has it.


# Apart at most, by rounding to bfloat16: 0.014 was seen on a CPU, with 512
# tokens. A wrong head of twelve is 0.29 of a row.
AGREES = 0.03


def try_ways(shape, dropout: float) -> Iterator[list[Tried]]:
  """What this machine can do in bfloat16, the fastest that agrees first.

  After each way, of all up to then: who waits knows them, should the next one
  crash or hang. xla is the last; until it is there, all are NaN apart from it.

  shape: B, L, H, K.
  """
  B, L, _, K = shape
  sight = make_sight("one text", B, L)
  case = choice.Case(
    **attention.machine(),
    length=L,
    head_size=K,
    dtype="bfloat16",
    dropout=dropout,
    one_text=True,
  )
  names = [name for name in choice.KNOWN[1:] if not choice.refusal(name, case)]
  args = make_arrays(shape, "bfloat16")
  programs, seconds = {}, {}
  for name in sorted(names, key=lambda name: name == "xla"):
    try:
      made = {name: compiled(name, sight, shape, "bfloat16", dropout)}
      ((seconds[name], _),) = measure(made, args, 5).values()
    except Exception as error:
      tell(name, error)
      continue
    programs |= made
    far = differences(programs, args)
    if "xla" in programs:
      far["xla"] = 0.0
    tried = [Tried(n, seconds[n], far.get(n, math.nan)) for n in programs]
    yield sorted(tried, key=lambda x: (not x.apart <= AGREES, x.seconds))


def make_arrays(shape, dtype):
  """(qkv [B, L, 3, H, K], a gradient [B, L, H, K]), normal."""
  B, L, H, K = shape
  keys = jax.random.split(jax.random.key(0))
  return [
    jax.random.normal(keys[0], (B, L, 3, H, K), dtype),
    jax.random.normal(keys[1], shape, dtype),
  ]


def numbers(text: str) -> list[int]:
  """Of an option: whole numbers between commas."""
  try:
    return [int(number) for number in text.split(",")]
  except ValueError:
    raise argparse.ArgumentTypeError(
      f"{text!r}: expected whole numbers between commas"
    ) from None


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--lengths", type=numbers, default="512,2048,8192")
  parser.add_argument("--rows", type=int, default=1)
  parser.add_argument("--heads", type=int, default=12)
  parser.add_argument("--head_size", type=int, default=64)
  parser.add_argument("--dtype", help="default: float32 on CPU, else bfloat16")
  parser.add_argument("--kinds", default=",".join(KINDS))
  parser.add_argument("--implementations", default=",".join(choice.KNOWN[1:]))
  parser.add_argument("--dropout", type=float, default=0.0)
  parser.add_argument("--repeats", type=int, default=5)
  parser.add_argument("--memory", type=float, default=4, help="GB, at most")
  parser.add_argument("--try", dest="tried", type=numbers, metavar="B,L,H,K")
  args = parser.parse_args()
  if args.tried:
    if len(args.tried) != 4:
      parser.error(f"--try: {len(args.tried)} numbers; expected B,L,H,K")
    for tried in try_ways(args.tried, args.dropout):
      print(json.dumps(tried), flush=True)
    return
  asked = args.implementations.split(",")
  if not set(asked) <= set(choice.KNOWN[1:]):
    parser.error(f"--implementations: of {', '.join(choice.KNOWN[1:])}")
  machine = attention.machine()
  on_cpu = machine["platform"] == "cpu"
  dtype = args.dtype or ("float32" if on_cpu else "bfloat16")
  print(
    f"{jax.devices()[0].device_kind}, {dtype}, rows of {args.rows}, "
    f"{args.heads} heads of {args.head_size}, dropout {args.dropout}\n\n"
    "| L | rows | implementation | ms | ms of all cores | temporary MB "
    "| from xla |\n|---|---|---|---|---|---|---|"
  )
  for length in args.lengths:
    shape = (args.rows, length, args.heads, args.head_size)
    arrays = make_arrays(shape, dtype)
    for kind in args.kinds.split(","):
      sight = make_sight(kind, args.rows, length)
      case = choice.Case(
        **machine,
        length=length,
        head_size=args.head_size,
        dtype=dtype,
        dropout=args.dropout,
        windows=bool(sight.window),
        one_text=sight.one_text,
      )
      names = [name for name in asked if not choice.refusal(name, case)]
      programs = those_that_compile(names, sight, shape, dtype, args.dropout)
      names = list(programs)
      memory = {
        name: program.memory_analysis().temp_size_in_bytes / 1e6
        for name, program in programs.items()
      }
      fits = {
        n: p for n, p in programs.items() if memory[n] < args.memory * 1e3
      }
      times = measure(fits, arrays, args.repeats)
      far = differences(fits, arrays)
      for name in names:
        spent = (
          [f"{1e3 * t:,.3g}" for t in times[name]]
          if name in times
          else ["not run"] * 2
        )
        print(
          f"| {length} | {kind} | {name} | {' | '.join(spent)} | "
          f"{memory[name]:.0f} | "
          + (f"{far[name]:.1e} |" if name in far else "- |"),
          flush=True,
        )


if __name__ == "__main__":
  startup.enable_compile_cache()
  main()
