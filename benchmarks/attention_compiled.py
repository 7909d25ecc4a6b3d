"""Measures the memory traffic of attention, compiled for a GPU not present.

  python benchmarks/attention_compiled.py --topology=h200:1

Prints, for each implementation, the bytes that move through memory and the
temporary memory of a layer of BERT-base in bfloat16, forward and backward.
Nothing is executed, so there are no times. JAX's CUDA plugin is required
(docs/guides/pretrain/planning.md).
"""

import argparse

import attention as benchmark
import jax
from ml_collections import ConfigDict

from maskedlm.modeling.attention import dispatch as choice
from maskedlm.planning import gpus, hlo, memory_traffic, topologies
from maskedlm.training import sharding


def measure(topology, name, kind, shape):
  """Returns (bytes through memory, temporary bytes)."""
  B, L, H, K = shape
  sizes = ConfigDict({"data": 1, "fsdp": 1, "tensor": 1})
  mesh = sharding.make_mesh(sizes, gpus.gpu_devices(topology))
  whole = sharding.replicated(mesh)
  run = benchmark.layer(name, benchmark.make_mask(kind, B, L))
  args = [
    jax.ShapeDtypeStruct(size, "bfloat16", sharding=whole)
    for size in ((B, L, 3, H, K), shape)
  ]
  with jax.set_mesh(mesh):
    lowered = jax.jit(run).lower(*args)
  made = lowered.compile(compiler_options=gpus.compiler_options())
  moved = memory_traffic.measure_traffic(hlo.parse_program(made.as_text()))
  total = moved.matmuls + moved.others + sum(x.bytes for x in moved.counted)
  return total, made.memory_analysis().temp_size_in_bytes


def main():
  """Prints the table."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--topology", default="h200:1")
  parser.add_argument("--tokens", type=int, default=32_768)
  parser.add_argument(
    "--lengths", type=benchmark.numbers, default="128,512,2048"
  )
  parser.add_argument("--heads", type=int, default=12)
  parser.add_argument("--head_size", type=int, default=64)
  parser.add_argument(
    "--implementations", default=",".join(choice.IMPLEMENTATIONS[1:])
  )
  args = parser.parse_args()
  if not gpus.can_compile():
    parser.error(f"JAX has no CUDA plugin here: {gpus.INSTALL}")
  names = args.implementations.split(",")
  if not set(names) <= set(choice.IMPLEMENTATIONS[1:]):
    parser.error(
      f"--implementations: of {', '.join(choice.IMPLEMENTATIONS[1:])}"
    )
  jax.config.update("jax_platforms", "cpu")
  topology = topologies.parse_topology(args.topology)
  print(
    "| L | rows | implementation | GB through memory | temporary MB "
    "|\n|---|---|---|---|---|"
  )
  for length in args.lengths:
    shape = args.tokens // length, length, args.heads, args.head_size
    for kind in ("one text", "packed"):
      case = choice.Case(
        *("gpu", length, args.head_size, "bfloat16", 0.0),
        one_text=kind == "one text",
      )
      for name in names:
        if choice.refusal(name, case):
          continue
        moved, held = measure(topology, name, kind, shape)
        print(
          f"| {length} | {kind} | {name} | {moved / 1e9:.2f} | "
          f"{held / 1e6:,.0f} |",
          flush=True,
        )


if __name__ == "__main__":
  main()
