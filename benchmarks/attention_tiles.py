"""Our Triton kernel by its tiles: what forward takes, and backward.

  python benchmarks/attention_tiles.py

On a GPU, for who chooses attention_triton.tiles_of. A layer of BERT-base on
65,536 tokens in bfloat16, dropout 0.1. A tile that can't be compiled, as it
wants too many registers or too much memory, says so.
"""

import argparse

import attention as benchmark  # Beside this file.
import jax
import matmuls

from maskedlm.modeling import dropout_bits
from maskedlm.modeling.attention import triton
from maskedlm.modeling.attention.triton import Drop, Tile

TILES = (
  *(Tile(128, 64), Tile(128, 32), Tile(128, 128)),
  *(Tile(64, 64, 4), Tile(64, 32, 4)),
)


def measure(tile: Tile, shape, calls: int, *, interpret: bool):
  """Seconds of (forward, forward and backward)."""
  sight = benchmark.make_sight("one text", *shape[:2])
  seeds = dropout_bits.seeds(jax.random.key(1))
  drop = Drop(seeds, dropout_bits.count_of(0.1))
  qkv, gradient = benchmark.make_arrays(shape, "bfloat16")

  def attend(qkv):
    return triton.attend(
      qkv, sight, drop, tiles=(tile, tile), interpret=interpret
    )

  def both(qkv, gradient):
    y, backward = jax.vjp(attend, qkv)
    return y, backward(gradient)

  runs = [(jax.jit(attend), (qkv,)), (jax.jit(both), (qkv, gradient))]
  return [
    matmuls.seconds_of(lambda run=run, args=args: run(*args), calls)
    for run, args in runs
  ]


def main() -> None:
  """Prints the table."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--lengths", type=benchmark.numbers, default="128,512")
  parser.add_argument("--heads", type=int, default=12)
  parser.add_argument("--head_size", type=int, default=64)
  parser.add_argument(
    "--quick", action="store_true", help="interpreted: does it run?"
  )
  args = parser.parse_args()
  if jax.default_backend() != "gpu" and not args.quick:
    parser.error(f"a GPU is wanted; JAX runs on {jax.default_backend()}.")
  print("| L | block | step | warps | forward, ms | backward, ms |")
  print("|---|---|---|---|---|---|", flush=True)
  for length in [40] if args.quick else args.lengths:
    rows, calls = (1, 1) if args.quick else (65_536 // length, 200)
    for tile in TILES:
      shape = rows, length, args.heads, args.head_size
      try:
        forward, both = measure(tile, shape, calls, interpret=args.quick)
        found = f"{forward * 1e3:.3f} | {(both - forward) * 1e3:.3f}"
      except Exception as error:  # It should not cost us the others' numbers.
        found = f"{type(error).__name__}: {str(error).splitlines()[0]} | "
      block, step, warps = tile
      print(f"| {length} | {block} | {step} | {warps} | {found} |", flush=True)


if __name__ == "__main__":
  main()
