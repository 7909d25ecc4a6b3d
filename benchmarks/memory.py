"""Measures what malloc's settings bring a run on a CPU, in speed and memory.

  python benchmarks/memory.py --shape base --json FILE
  python benchmarks/memory.py --shape quickstart --steps 300

Runs `maskedlm pretrain`, which keeps the memory that XLA frees
(runtime/allocator.py), and again with glibc's malloc as it is. The shapes are
those of start.py, and the quickstart. Nothing is downloaded.
"""

import argparse
import os
import pathlib
import tempfile

import arguments
import start
import table
import trained

QUICKSTART = "quickstart"


def parse(argv: list[str] | None = None) -> argparse.Namespace:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument(
    "--shape", choices=(*start.SHAPES, QUICKSTART), default="base"
  )
  parser.add_argument("--steps", type=arguments.count, default=10)
  parser.add_argument("--json", **arguments.TABLE)
  args = parser.parse_args(argv)
  if args.steps < 2:
    parser.error(f"--steps={args.steps}: expected 2 or more")
  return args


def main() -> None:
  """Measures, prints a table, writes the JSON."""
  args = parse()
  # A setting of the user's turns maskedlm's off; this one is glibc's default.
  default = {"MALLOC_TRIM_THRESHOLD_": "131072"}
  with tempfile.TemporaryDirectory() as directory:
    folder = pathlib.Path(directory)
    config, given = start.CONFIG, {}
    if args.shape == QUICKSTART:  # The first run prepares its corpus.
      config = f"{QUICKSTART}.py"
    else:
      given = start.make_corpus(folder, args.shape)
    given |= {"train.num_steps": args.steps, "train.log_every": args.steps // 2}
    ours = trained.pretrain(config, folder / "ours", given)
    given = {"corpus.path": folder / "ours" / "corpus"} | given
    peer = trained.pretrain(
      config, folder / "peer", given, os.environ | default
    )
  what = f"pretraining, {args.shape}, against glibc's malloc as it is"
  rates = (each.result["tokens_per_second"] for each in (ours, peer))
  rows = [
    table.against(what, *rates, "tokens/s"),
    table.against(f"{what}, resident at most", ours.memory, peer.memory, "GB"),
  ]
  print(table.show(rows))
  table.write(args.json, rows)


if __name__ == "__main__":
  main()
