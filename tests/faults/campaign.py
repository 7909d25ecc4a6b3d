"""Injects faults into maskedlm by the thousand, and counts what users see.

  python tests/faults/campaign.py --trials=1000 --seed=0

Prints a line for each trial that ended as no user should see it, and a table by
kind. A trial depends on its kind, its number and the seed alone: --only=KIND
--number=N repeats one.
"""

import argparse
import collections
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]


def prepare_environment(folder: pathlib.Path) -> None:
  """Sets what JAX reads when it is imported: quick compiles, one device."""
  os.environ["JAX_PLATFORMS"] = "cpu"
  os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0"
  os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder / "compiled")
  os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"


def run(options, folder: pathlib.Path) -> collections.Counter:
  """Runs the trials; returns {(kind, was well): count}."""
  from faults import inputs, kinds, trials

  trials.preload()
  made = inputs.make(folder / "inputs")
  chosen = [k for k in kinds.KINDS if options.only in (None, k)]
  total, counts = sum(kinds.SHARES[k] for k in chosen), collections.Counter()
  for kind in chosen:
    count = max(1, round(options.trials * kinds.SHARES[kind] / total))
    numbers = range(count) if options.number is None else [options.number]
    began = time.time()
    for number in numbers:
      inside = folder / "trial"
      inside.mkdir()
      rng = random.Random(f"{options.seed} {kind} {number}")
      fault = kinds.KINDS[kind](made, inside, rng)
      counts[kind, fault is None] += 1
      if fault:
        print(f"{kind} {number}: {fault}", flush=True)
      if options.number is None:
        shutil.rmtree(inside)
    seconds = time.time() - began
    print(f"# {kind}: {len(numbers)} in {seconds:.0f} s", file=sys.stderr)
  return counts


def table(counts: collections.Counter) -> str:
  """Returns a Markdown table of the counts."""
  lines = ["| fault | trials | ended badly |", "| --- | ---: | ---: |"]
  for kind in dict.fromkeys(kind for kind, _ in counts):
    well, badly = counts[kind, True], counts[kind, False]
    lines.append(f"| {kind} | {well + badly} | {badly} |")
  badly = sum(n for (_, well), n in counts.items() if not well)
  return "\n".join([*lines, f"| all | {counts.total()} | {badly} |"])


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--trials", type=int, default=1000)
  parser.add_argument("--seed", type=int, default=0)
  parser.add_argument("--only", help="one kind, such as 'killed'")
  parser.add_argument("--number", type=int, help="one trial; its files stay")
  options = parser.parse_args()
  from helpers import faulty_storage

  if "LD_PRELOAD" not in os.environ:  # The trials are forks of this process.
    os.environ.update(faulty_storage.environment(None))
    os.execv(sys.executable, [sys.executable, *sys.argv])
  folder = pathlib.Path(tempfile.mkdtemp(prefix="faults-"))
  prepare_environment(folder)
  counts = run(options, folder)
  print(table(counts))
  if options.number is None:
    shutil.rmtree(folder)
  else:
    print(f"files: {folder}")
  return int(any(not well for _, well in counts))


if __name__ == "__main__":
  sys.exit(main())
