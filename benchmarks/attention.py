"""Measures attention alone, for every implementation this machine can run.

  python benchmarks/attention.py --lengths=512,2048,8192

Runs one layer's attention of BERT-base (by default), forward and backward,
without dropout. Prints, for each length and kind of rows: the median time of a
call (implementations take turns), the CPU time of all cores, the temporary
memory of the compiled program, and how far results and gradients are from
xla's (see `apart`). The kinds are one text with padding, packed texts of an
eighth of the row, and one text with a window of 128 tokens; `distances` is xla
with DeBERTa's terms. What needs more memory than --memory is not run.
"""

import argparse
import statistics
import sys
import time

import arguments
import jax
import jax.numpy as jnp
import numpy as np
import table
from ml_collections import ConfigDict

from maskedlm.modeling.attention import dispatch as choice
from maskedlm.modeling.attention import layer as attention
from maskedlm.modeling.attention.mask import AttentionMask
from maskedlm.modeling.positions import BUCKETS
from maskedlm.runtime import startup
from maskedlm.training import sharding

KINDS = ("one text", "packed", "window")
DISTANCES = "distances"
IMPLEMENTATIONS = (*choice.IMPLEMENTATIONS[1:], DISTANCES)


def make_mask(kind: str, rows: int, length: int) -> AttentionMask:
  """Returns the mask of a kind of rows; an eighth of one text is padding."""
  column = np.broadcast_to(np.arange(length), (rows, length))
  if kind == "packed":
    return AttentionMask(jnp.asarray(1 + column * 8 // length, jnp.int32))
  segments = jnp.asarray(column < length - length // 8, jnp.int32)
  return AttentionMask(
    segments, window=128 if kind == "window" else 0, one_text=True
  )


def layer(name: str, mask: AttentionMask, gradients: bool):
  """Returns (qkv, gradient of the result) -> (result, gradient of qkv)."""
  real = mask.segment_ids[:, :, None, None] > 0

  def forward(qkv):  # The result on padding is never read.
    qkv, seen, kernel = [qkv[:, :, i] for i in range(3)], mask, name
    if name == DISTANCES:  # The table is made of keys, so it has a gradient.
      table = jnp.resize(qkv[1][0], (2 * BUCKETS, *qkv[1].shape[2:]))
      seen, kernel = mask._replace(relative=(table, table)), "xla"
    y = attention.attend(*qkv, seen, implementation=kernel)
    return jnp.where(real, y, 0)

  def run(qkv, gradient):
    if not gradients:
      return (forward(qkv),)
    y, backward = jax.vjp(forward, qkv)
    return y, *backward(gradient)

  return run


def compile_layer(name: str, mask: AttentionMask, gradients, shape, dtype):
  """Returns the compiled layer for this machine, over a mesh as in training."""
  B, L, H, K = shape
  x = jax.ShapeDtypeStruct((B, L, 3, H, K), dtype)
  y = jax.ShapeDtypeStruct(shape, dtype)
  sizes = ConfigDict(dict.fromkeys(sharding.AXES, 1))
  with jax.set_mesh(sharding.make_mesh(sizes, jax.devices()[:1])):
    return jax.jit(layer(name, mask, gradients)).lower(x, y).compile()


def compile_all(names, *options) -> dict:
  """Returns {name: program}; prints the errors of those that do not compile."""
  programs = {}
  for name in names:
    try:
      programs[name] = compile_layer(name, *options)
    except Exception as error:  # The others are still measured.
      why = str(error).splitlines()[:1]
      print(f"{name}: {type(error).__name__}: {why}", file=sys.stderr)
  return programs


@jax.jit  # The arrays are large; on the host this would take seconds.
def apart(x, y):
  """Returns the largest norm of x - y in a row, relative to that of y's row."""
  x, y = (a.astype(jnp.float32).reshape(len(a), -1) for a in (x, y))
  return jnp.max(jnp.linalg.norm(x - y, axis=1) / jnp.linalg.norm(y, axis=1))


def differences(programs, args) -> dict[str, float]:
  """Returns for each program how far its arrays are from xla's (see apart)."""
  if "xla" not in programs:
    return {}
  expected = programs["xla"](*args)
  return {
    name: float(np.max([*map(float, map(apart, program(*args), expected))]))
    for name, program in programs.items()
    if name not in ("xla", DISTANCES)
  }


def measure(programs, args, repeats: int):
  """Returns {name: (seconds, CPU seconds)}: medians, taking turns.

  Short calls are timed in groups, as starting one takes time too.
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
        result = program(*args)
      jax.block_until_ready(result)
      spent = time.perf_counter() - wall, time.process_time() - cores
      times[name].append([x / counts[name] for x in spent])
  return {
    name: tuple(statistics.median(x) for x in zip(*spent, strict=True))
    for name, spent in times.items()
  }


def make_arrays(shape, dtype):
  """Returns normal qkv [B, L, 3, H, K] and gradient [B, L, H, K]."""
  B, L, H, K = shape
  keys = jax.random.split(jax.random.key(0))
  return [
    jax.random.normal(keys[0], (B, L, 3, H, K), dtype),
    jax.random.normal(keys[1], shape, dtype),
  ]


def numbers(text: str) -> list[int]:
  """Parses an option of whole numbers separated by commas."""
  try:
    return [int(number) for number in text.split(",")]
  except ValueError:
    raise argparse.ArgumentTypeError(
      f"{text!r}: expected whole numbers separated by commas"
    ) from None


def parse(argv: list[str] | None = None) -> argparse.Namespace:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--lengths", type=numbers, default="512,2048,8192")
  parser.add_argument("--rows", type=arguments.count, default=1)
  parser.add_argument("--heads", type=arguments.count, default=12)
  parser.add_argument("--head_size", type=arguments.count, default=64)
  parser.add_argument("--dtype", help="default: float32 on CPU, else bfloat16")
  parser.add_argument("--kinds", default=",".join(KINDS))
  parser.add_argument("--implementations", default=",".join(IMPLEMENTATIONS))
  parser.add_argument("--forward", action="store_true", help="no gradients")
  parser.add_argument("--repeats", type=arguments.count, default=5)
  parser.add_argument(
    "--memory", type=arguments.amount, default=4, help="GB, at most"
  )
  parser.add_argument("--json", **arguments.TABLE)
  args = parser.parse_args(argv)
  args.implementations = args.implementations.split(",")
  if not set(args.implementations) <= set(IMPLEMENTATIONS):
    parser.error(f"--implementations: of {', '.join(IMPLEMENTATIONS)}")
  return args


def main():
  args = parse()
  machine = attention.machine()
  on_cpu = machine["platform"] == "cpu"
  dtype = args.dtype or ("float32" if on_cpu else "bfloat16")
  print(
    f"{jax.devices()[0].device_kind}, {dtype}, rows of {args.rows}, "
    f"{args.heads} heads of {args.head_size}\n\n"
    "| L | rows | implementation | ms | ms of all cores | temporary MB "
    "| from xla |\n|---|---|---|---|---|---|---|"
  )
  rows = []
  for length in args.lengths:
    shape = (args.rows, length, args.heads, args.head_size)
    arrays = make_arrays(shape, dtype)
    for kind in args.kinds.split(","):
      mask = make_mask(kind, args.rows, length)
      case = choice.Case(
        **machine, length=length, head_size=shape[-1], dtype=dtype, dropout=0.0
      )
      names = [
        name
        for name in args.implementations
        if name == DISTANCES or not choice.refusal(name, case)
      ]
      programs = compile_all(names, mask, not args.forward, shape, dtype)
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
      rows += [
        table.against(
          f"attention, L={length}, {kind}: {name} against xla",
          *(1e3 * times[one][0] for one in (name, "xla")),
          "ms",
        )
        for name in times
        if name != "xla" and "xla" in times
      ]
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
  table.write(args.json, rows)


if __name__ == "__main__":
  startup.enable_compile_cache()
  main()
