"""Attention alone: every implementation that this machine can run.

  python benchmarks/attention.py --lengths=512,2048,8192

One layer's attention, forward and backward, of BERT-base by default. Prints
for each length and each kind of rows what an implementation takes: the time
of a call (median; implementations take turns), what all cores worked for it,
and the memory that the compiled program has besides its arguments and results;
and how far its results and gradients are from xla's, of the largest of them.
The kinds: one text, padded; packed texts of an eighth of the row; and a window
of 128 tokens on one text. Not run is what needs more memory than --memory. With
--dropout=0.1 only those are run that can drop weights; they drop the same.
"""

import argparse
import statistics
import sys
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.modeling import attention, attention_triton, random_words
from maskedlm.modeling import attention_choice as choice
from maskedlm.modeling.positions import Sight

KINDS = ("one text", "packed", "window")


def make_sight(kind: str, rows: int, length: int) -> Sight:
  """The rows of a kind; an eighth of the first kind is padding."""
  column = np.broadcast_to(np.arange(length), (rows, length))
  if kind == "packed":
    return Sight(jnp.asarray(1 + column * 8 // length, jnp.int32))
  segments = jnp.asarray(column < length - length // 8, jnp.int32)
  return Sight(segments, window=128 if kind == "window" else 0, one_text=True)


def way(name: str, sight: Sight, dropout: float):
  """(q, k, v) [B, L, H, K] each -> [B, L, H, K], dropping by a fixed key."""
  count, key = random_words.count_of(dropout), jax.random.key(1)
  if not count:
    return lambda *qkv: attention.attend(*qkv, sight, implementation=name)
  if name == "triton":
    drop = attention_triton.Drop(random_words.seeds(key), count)
    return lambda *qkv: attention_triton.attend(
      jnp.stack(qkv, axis=2), sight, drop
    )

  def through(weights):
    words = random_words.random_words(key, weights.shape)
    return random_words.drop(weights, words, count)

  return lambda *qkv: attention.plain(*qkv, sight, through)


def layer(name: str, sight: Sight, dropout: float):
  """(qkv, gradient of the result) -> (result, gradient of qkv)."""
  attend = way(name, sight, dropout)
  real = sight.segment_ids[:, :, None, None] > 0

  def forward(qkv):  # What padding becomes, nothing reads.
    return jnp.where(real, attend(*(qkv[:, :, i] for i in range(3))), 0)

  def run(qkv, gradient):
    y, backward = jax.vjp(forward, qkv)
    return y, *backward(gradient)

  return run


def compiled(name: str, sight: Sight, shape, dtype, dropout: float):
  """The program of layer, for this machine."""
  B, L, H, K = shape
  x = jax.ShapeDtypeStruct((B, L, 3, H, K), dtype)
  y = jax.ShapeDtypeStruct(shape, dtype)
  return jax.jit(layer(name, sight, dropout)).lower(x, y).compile()


def those_that_compile(names, *options) -> dict:
  """{name: program}; of the others, what was raised is told."""
  programs = {}
  for name in names:
    try:
      programs[name] = compiled(name, *options)
    except Exception as error:  # It should not cost us the others' numbers.
      why = str(error).splitlines()[:1]
      print(f"{name}: {type(error).__name__}: {why}", file=sys.stderr)
  return programs


def differences(programs, args) -> dict[str, float]:
  """Of each program's arrays from xla's, at most, by xla's largest entry."""
  if "xla" not in programs:
    return {}
  made = {
    name: [np.asarray(x, np.float32) for x in program(*args)]
    for name, program in programs.items()
  }
  return {
    name: float(
      np.max(  # NaN where one is.
        [
          np.abs(x - y).max() / np.abs(y).max()
          for x, y in zip(arrays, made["xla"], strict=True)
        ]
      )
    )
    for name, arrays in made.items()
    if name != "xla"
  }


def measure(programs, args, repeats: int):
  """{name: (seconds, seconds of all cores)}: medians, taking turns."""
  times = {name: [] for name in programs}
  for i in range(repeats + 1):
    for name, program in programs.items():
      wall, cores = time.perf_counter(), time.process_time()
      jax.block_until_ready(program(*args))
      spent = time.perf_counter() - wall, time.process_time() - cores
      if i:  # The first is to warm up.
        times[name].append(spent)
  return {
    name: tuple(statistics.median(x) for x in zip(*spent, strict=True))
    for name, spent in times.items()
  }


class Tried(NamedTuple):
  """A way, on rows of one text."""

  name: str
  seconds: float  # Forward and backward of a layer.
  apart: float  # From xla, as differences has it.


AGREES = 0.03  # Rounding to bfloat16, of what the largest entry is.


def try_ways(shape, dropout: float) -> list[Tried]:
  """What this machine can do in bfloat16, the fastest that agrees first.

  shape: B, L, H, K.
  """
  B, L, _, K = shape
  sight = make_sight("one text", B, L)
  case = choice.Case(
    attention.platform(), L, K, "bfloat16", dropout, one_text=True
  )
  names = [name for name in choice.KNOWN[1:] if not choice.refusal(name, case)]
  args = make_arrays(shape, "bfloat16")
  programs = those_that_compile(names, sight, shape, "bfloat16", dropout)
  apart = {"xla": 0.0, **differences(programs, args)}
  tried = [
    Tried(name, seconds, apart[name])
    for name, (seconds, _) in measure(programs, args, 5).items()
  ]
  return sorted(tried, key=lambda x: (not x.apart <= AGREES, x.seconds))


def make_arrays(shape, dtype):
  """(qkv [B, L, 3, H, K], a gradient [B, L, H, K]), normal."""
  B, L, H, K = shape
  keys = jax.random.split(jax.random.key(0))
  return [
    jax.random.normal(keys[0], (B, L, 3, H, K), dtype),
    jax.random.normal(keys[1], shape, dtype),
  ]


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--lengths", default="512,2048,8192")
  parser.add_argument("--rows", type=int, default=1)
  parser.add_argument("--heads", type=int, default=12)
  parser.add_argument("--head_size", type=int, default=64)
  parser.add_argument("--dtype", help="default: float32 on CPU, else bfloat16")
  parser.add_argument("--kinds", default=",".join(KINDS))
  parser.add_argument("--implementations", default=",".join(choice.KNOWN[1:]))
  parser.add_argument("--dropout", type=float, default=0.0)
  parser.add_argument("--repeats", type=int, default=5)
  parser.add_argument("--memory", type=float, default=4, help="GB, at most")
  args = parser.parse_args()
  asked = args.implementations.split(",")
  if not set(asked) <= set(choice.KNOWN[1:]):
    parser.error(f"--implementations: of {', '.join(choice.KNOWN[1:])}")
  platform = attention.platform()
  dtype = args.dtype or ("float32" if platform == "cpu" else "bfloat16")
  print(
    f"{jax.devices()[0].device_kind}, {dtype}, rows of {args.rows}, "
    f"{args.heads} heads of {args.head_size}, dropout {args.dropout}\n\n"
    "| L | rows | implementation | ms | ms of all cores | temporary MB "
    "| from xla |\n|---|---|---|---|---|---|---|"
  )
  for length in map(int, args.lengths.split(",")):
    shape = (args.rows, length, args.heads, args.head_size)
    arrays = make_arrays(shape, dtype)
    for kind in args.kinds.split(","):
      sight = make_sight(kind, args.rows, length)
      case = choice.Case(
        platform,
        length,
        args.head_size,
        dtype,
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
          [f"{1e3 * t:.1f}" for t in times[name]]
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
  main()
