"""Checks that losses of learning.py lie within the bands of several seeds.

  for seed in 0 1 2; do
    python benchmarks/learning.py --positions 4e5 --evaluations 4 --seed $seed
  done
  reference=docs/results/learning_reference.json
  python benchmarks/learning_reference.py --write $reference
  python benchmarks/learning_reference.py --check $reference

A band is the mean of the seeds' losses at a point, plus or minus three standard
deviations (of two seeds or more), but at least 0.02 nats, as so few seeds may
lie close by chance. --check compares every run in --workdir with the same
number of steps, and exits 1 if one leaves its band.
"""

import argparse
import json
import pathlib
import statistics
import sys
from typing import NamedTuple

import arguments

MIN_WIDTH = 0.02  # Nats, to either side of the mean.


class Band(NamedTuple):
  """The expected losses at a point of a curve."""

  positions: int
  nats: float  # Mean.
  within: float  # To either side.
  seeds: int


def make_band(positions: int, losses: list[float]) -> Band:
  """Returns the band of several seeds' losses at one point."""
  within = max(3 * statistics.stdev(losses), MIN_WIDTH)
  return Band(
    positions, statistics.fmean(losses), round(within, 4), len(losses)
  )


def read_curves(
  workdir: pathlib.Path, steps: int
) -> dict[str, dict[str, list]]:
  """Returns {contender: {seed: curve}} of finished runs of so many steps."""
  runs: dict[str, dict[str, list]] = {}
  for path in sorted(workdir.glob(f"*-{steps}-seed*/curve.json")):
    name, _, seed = path.parent.name.rsplit("-", 2)
    runs.setdefault(name, {})[seed] = json.loads(path.read_text())
  return runs


def make_bands(runs) -> dict[str, list[Band]]:
  """Returns {contender: bands} for those with two seeds or more."""
  return {
    name: [
      make_band(points[0][0], [point[1] for point in points])
      for points in zip(*curves.values(), strict=True)
    ]
    for name, curves in runs.items()
    if len(curves) > 1
  }


def outside(curve: list, bands: list[Band]) -> list[str]:
  """Returns a line for each point of a curve outside its band."""
  by_position = {b.positions: b for b in bands}
  return [
    f"at {positions:,} positions {nats:.3f} nats, expected {b.nats:.3f} +- "
    f"{b.within:.3f}"
    for positions, nats, *_ in curve
    if (b := by_position.get(positions)) and abs(nats - b.nats) > b.within
  ]


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument(
    "--workdir", type=pathlib.Path, default=pathlib.Path("runs/learning")
  )
  parser.add_argument("--steps", type=arguments.count, default=195)
  parser.add_argument("--write", type=pathlib.Path)
  parser.add_argument("--check", type=pathlib.Path)
  args = parser.parse_args()
  runs = read_curves(args.workdir, args.steps)
  if not runs:
    parser.error(f"{args.workdir}: no finished run of {args.steps} steps")
  if args.write:
    args.write.write_text(json.dumps(make_bands(runs), indent=1) + "\n")
  bands = make_bands(runs)
  if args.check:
    try:
      written = json.loads(args.check.read_text())
      bands = {name: [Band(*b) for b in bs] for name, bs in written.items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
      parser.error(f"--check={args.check}: expected a file of --write: {error}")
  print("| objective | " + " | ".join(_columns(bands)) + " |")
  print("|---|" + "---|" * len(_columns(bands)))
  for name, of_name in bands.items():
    cells = [f"{b.nats:.3f} ± {b.within:.3f}" for b in of_name]
    print(f"| {name} | " + " | ".join(cells) + " |")
  problems = [
    f"{name}, {seed}: {problem}"
    for name, curves in runs.items()
    for seed, curve in curves.items()
    for problem in outside(curve, bands.get(name, []))
  ]
  for problem in problems if args.check else ():
    print(problem, file=sys.stderr)
  return 1 if args.check and problems else 0


def _columns(bands) -> list[str]:
  points = next(iter(bands.values()), [])
  return [f"{b.positions / 1e6:.2f}M positions" for b in points]


if __name__ == "__main__":
  sys.exit(main())
