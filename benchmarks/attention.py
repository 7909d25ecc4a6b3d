"""Attention alone: every implementation that this machine can run.

  python benchmarks/attention.py --lengths=512,2048,8192

One layer's attention, forward and backward, of BERT-base by default. Prints
for each length and each kind of rows what an implementation takes: the time
of a call (median; implementations take turns), what all cores worked for it,
and the memory that the compiled program has besides its arguments and results.
The kinds: one text, padded; packed texts of an eighth of the row; and a window
of 128 tokens on one text. Not run is what needs more memory than --memory.
"""

import argparse
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.modeling import attention
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


def compiled(name: str, sight: Sight, shape, dtype):
  """The program of forward and backward: (q, k, v, gradient) -> 4 arrays."""

  def run(query, key, value, gradient):
    def forward(query, key, value):
      return attention.attend(query, key, value, sight, implementation=name)

    y, backward = jax.vjp(forward, query, key, value)
    return y, *backward(gradient)

  x = jax.ShapeDtypeStruct(shape, dtype)
  return jax.jit(run).lower(x, x, x, x).compile()


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


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--lengths", default="512,2048,8192")
  parser.add_argument("--rows", type=int, default=1)
  parser.add_argument("--heads", type=int, default=12)
  parser.add_argument("--head_size", type=int, default=64)
  parser.add_argument("--dtype", help="default: float32 on CPU, else bfloat16")
  parser.add_argument("--kinds", default=",".join(KINDS))
  parser.add_argument("--implementations", default=",".join(choice.KNOWN[1:]))
  parser.add_argument("--repeats", type=int, default=5)
  parser.add_argument("--memory", type=float, default=4, help="GB, at most")
  args = parser.parse_args()
  platform = attention.platform()
  dtype = args.dtype or ("float32" if platform == "cpu" else "bfloat16")
  print(
    f"{jax.devices()[0].device_kind}, {dtype}, rows of {args.rows}, "
    f"{args.heads} heads of {args.head_size}\n\n"
    "| L | rows | implementation | ms | ms of all cores | temporary MB |\n"
    "|---|---|---|---|---|---|"
  )
  for length in map(int, args.lengths.split(",")):
    shape = (args.rows, length, args.heads, args.head_size)
    keys = jax.random.split(jax.random.key(0), 4)
    arrays = [jax.random.normal(key, shape, dtype) for key in keys]
    for kind in args.kinds.split(","):
      sight = make_sight(kind, args.rows, length)
      case = choice.Case(
        platform,
        length,
        args.head_size,
        dtype,
        dropout=0.0,
        windows=bool(sight.window),
        one_text=sight.one_text,
      )
      names = [
        name
        for name in args.implementations.split(",")
        if not choice.refusal(name, case)
      ]
      programs = {n: compiled(n, sight, shape, dtype) for n in names}
      memory = {
        name: program.memory_analysis().temp_size_in_bytes / 1e6
        for name, program in programs.items()
      }
      fits = {
        n: p for n, p in programs.items() if memory[n] < args.memory * 1e3
      }
      times = measure(fits, arrays, args.repeats)
      for name in names:
        spent = (
          [f"{1e3 * t:.1f}" for t in times[name]]
          if name in times
          else ["not run"] * 2
        )
        print(
          f"| {length} | {kind} | {name} | {' | '.join(spent)} | "
          f"{memory[name]:.0f} |",
          flush=True,
        )


if __name__ == "__main__":
  main()
