"""Injects faults into maskedlm by the thousand, and counts what users see.

  python tests/faults/campaign.py --trials=10000 --minutes=30 --seed=0

Prints a line for each trial that ended as no user should see it, and a table by
kind: `silent` are those in which other numbers came and no line said so. A
trial depends on its kind, its number and the seed alone: --only=KIND --number=N
repeats one. Their order is random, so that a campaign that is stopped by its
time is a fair part of the whole.
"""

import argparse
import collections
import multiprocessing.connection
import os
import pathlib
import random
import resource
import shutil
import subprocess
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
  """Runs the trials; returns {(kind, was silent, was bad): count}."""
  from faults import inputs, kinds, kinds_within, slots, trials

  trials.preload()
  made = slots.prepare(inputs.make(folder / "inputs"))
  every = kinds.KINDS | kinds_within.KINDS
  chosen = [k for k in every if options.only in (None, k)]
  total = sum(every[k][1] for k in chosen)
  plan = [
    (kind, number)
    for kind in chosen
    for number in range(max(1, round(options.trials * every[kind][1] / total)))
  ]
  if options.number is not None:
    plan = [(options.only, options.number)]
  # However early it is stopped, all kinds have been tried.
  random.Random(options.seed).shuffle(plan)
  until, readers, halves = time.time() + 60 * options.minutes, [], []
  for slot in range(min(options.slots, len(plan))):
    here, there = slots.FORK.Pipe()
    args = plan[slot :: options.slots], made, folder / f"slot{slot}"
    halves.append(
      slots.FORK.Process(
        target=slots.work, args=(*args, options.seed, until, there)
      )
    )
    halves[-1].start()
    there.close()
    readers.append(here)
  counts, spent = collections.Counter(), collections.Counter()
  while readers:
    for here in multiprocessing.connection.wait(readers):
      try:
        result = here.recv()
      except EOFError:  # All its trials are done.
        readers.remove(here)
        continue
      fault = result.fault or ""
      counts[result.kind, "in silence" in fault, bool(fault)] += 1
      spent[result.kind] += result.seconds
      if fault:
        print(f"{result.kind} {result.number}: {fault}", flush=True)
  for half in halves:
    half.join()
  for kind, seconds in spent.most_common():
    print(f"# {kind}: {seconds:.0f} s", file=sys.stderr)
  return counts


def table(counts: collections.Counter) -> str:
  """Returns a Markdown table of the counts."""
  lines = [
    "| fault | trials | silent | ended badly |",
    "| --- | ---: | ---: | ---: |",
  ]
  sums = collections.Counter()
  for (kind, silent, bad), count in counts.items():
    for name in kind, "all":
      sums[name, 0] += count
      sums[name, 1] += count * silent
      sums[name, 2] += count * bad
  for kind in [*sorted({kind for kind, _, _ in counts}), "all"]:
    cells = (f"{sums[kind, i]:,}" for i in range(3))
    lines.append(f"| {kind} | {' | '.join(cells)} |")
  return "\n".join(lines)


def write_page(text: str) -> None:
  """Puts a text in place of the last campaign's in docs/results/faults.md."""
  page = ROOT / "docs" / "results" / "faults.md"
  begin, mark, rest = page.read_text().partition("<!-- the last campaign -->\n")
  _, end, rest = rest.partition("<!-- end -->\n")
  page.write_text(f"{begin}{mark}{text}\n{end}{rest}")


def describe(options, counts: collections.Counter, seconds: float) -> str:
  """Returns the page's sentence and table."""
  commit = subprocess.run(
    ["git", "-C", ROOT, "rev-parse", "--short", "HEAD"],
    capture_output=True,
    check=True,
    text=True,
  ).stdout.strip()
  ran, used = counts.total(), resource.getrusage(resource.RUSAGE_CHILDREN)
  cpu = (used.ru_utime + used.ru_stime) / 60
  return (
    f"Measured on {time.strftime('%Y-%m-%d')} with commit {commit}, "
    f"`--seed={options.seed}`: {ran:,} of {options.trials:,} trials in "
    f"{seconds / 60:.0f} minutes, two at a time, {cpu:.0f} CPU minutes.\n\n"
    f"{table(counts)}\n"
  )


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--trials", type=int, default=1000)
  parser.add_argument("--seed", type=int, default=0)
  parser.add_argument(
    "--minutes", type=float, default=1e6, help="no trial begins later"
  )
  parser.add_argument("--slots", type=int, default=2, help="trials at once")
  parser.add_argument(
    "--write", action="store_true", help="the table to docs/results/faults.md"
  )
  parser.add_argument("--only", help="one kind, such as 'killed'")
  parser.add_argument("--number", type=int, help="one trial; its files stay")
  options = parser.parse_args()
  from helpers import faulty_storage

  if "LD_PRELOAD" not in os.environ:  # The trials are forks of this process.
    os.environ.update(faulty_storage.environment(None))
    os.execv(sys.executable, [sys.executable, *sys.argv])
  folder = pathlib.Path(tempfile.mkdtemp(prefix="faults-"))
  prepare_environment(folder)
  began = time.time()
  counts = run(options, folder)
  print(table(counts))
  if options.write:
    write_page(describe(options, counts, time.time() - began))
  if options.number is None:
    shutil.rmtree(folder)
  else:
    print(f"files: {folder}")
  return int(any(bad for _, _, bad in counts))


if __name__ == "__main__":
  sys.exit(main())
