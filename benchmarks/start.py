"""Measures the time from the command to the end of the first step.

  python benchmarks/start.py --shape base --json FILE

First the CPU time of `import maskedlm` and `maskedlm --help`, beside that of
Python itself. Then `maskedlm pretrain` runs with BERT's recipe and an empty
compile cache (cold), and again in a new workdir with the cache that the first
run left (warm). The corpus is prepared before. Prints seconds of wall time and,
in brackets, of CPU time over all cores; if other processes run, only the second
is meaningful. A run is killed once it prints its first step: by then all
compiled programs are in the cache.
"""

import argparse
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import arguments
import table
import trained
from table import Row

CONFIG = "bert.py:base"
MASKEDLM = [sys.executable, "-m", "maskedlm"]
# layers, width, heads, length, rows, words, dtype
SHAPES = {
  "gpu": (12, 768, 12, 128, 512, 30_522, "bfloat16"),
  "base": (12, 768, 12, 128, 8, 30_522, "float32"),
  "small": (4, 256, 4, 128, 32, 30_522, "float32"),
  "tiny": (2, 48, 3, 24, 5, 500, "float32"),
}


def parse(argv: list[str] | None = None) -> argparse.Namespace:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--shape", choices=SHAPES, default="base")
  parser.add_argument("--json", **arguments.TABLE)
  args = parser.parse_args(argv)
  return args


def main() -> None:
  """Measures, prints a table, writes the JSON."""
  args = parse()
  print(table.head())
  rows = []

  def report(row: Row) -> None:
    print(table.line(row._asdict()), flush=True)
    rows.append(row)
    table.write(args.json, rows)

  python = cpu_time(["-c", "pass"])
  for subject, argv in (
    ("import maskedlm", ["-c", "import maskedlm"]),
    ("maskedlm --help", ["-m", "maskedlm", "--help"]),
  ):
    work = f"{subject}, CPU time, against Python's own start"
    report(table.against(work, 1e3 * cpu_time(argv), 1e3 * python, "ms"))
  with tempfile.TemporaryDirectory() as directory:
    folder = pathlib.Path(directory)
    settings = make_corpus(folder, args.shape)
    command = [*MASKEDLM, "pretrain", *trained.arguments(CONFIG, settings)]
    for name, goal in (("cold", 60), ("warm", 10)):
      workdir = [f"--workdir={folder / name}"]
      clock, cores = to_first_step(command + workdir, folder / "cache")
      note = f"{cores:.1f} s of all cores; goal: {goal}"
      report(Row(f"{name} start, {args.shape}", clock, unit="s", note=note))


def cpu_time(argv: list[str]) -> float:
  """Returns the CPU seconds of Python with these arguments; median of 5."""

  def used() -> float:
    of_children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return of_children.ru_utime + of_children.ru_stime

  taken = []
  for _ in range(5):
    before = used()
    subprocess.run([sys.executable, *argv], check=True, capture_output=True)
    taken.append(used() - before)
  return statistics.median(taken)


def make_corpus(folder: pathlib.Path, shape: str) -> dict[str, object]:
  """Prepares a corpus for the shape; returns the options that train on it."""
  vocab = SHAPES[shape][5]
  characters = list(map(chr, range(33, 127)))
  words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters]
  words += [f"##{c}" for c in characters]
  words += [f"word{i}" for i in range(vocab - len(words))]  # Not in the text.
  (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words))
  settings = options(shape) | {"tokenizer.path": folder / "vocab.txt"}
  corpus = folder / "corpus"
  done = subprocess.run(
    [
      *(*MASKEDLM, "prepare", f"--out={corpus}"),
      *trained.arguments(CONFIG, settings),
    ],
    capture_output=True,
    text=True,
  )
  if done.returncode:
    raise SystemExit(done.stderr)
  return settings | {"corpus.path": corpus}


def options(shape: str) -> dict[str, object]:
  """Returns the options of the command line, without those of files."""
  layers, width, heads, length, rows, _, dtype = SHAPES[shape]
  return {
    "corpus.source": "docstrings:json,email",
    "corpus.heldout_share": 0.2,
    "model.num_layers": layers,
    "model.width": width,
    "model.num_heads": heads,
    "model.mlp_width": 4 * width,
    "model.dtype": dtype,
    "data.length": length,
    "data.batch_size": rows,
    "phases": (),  # Otherwise the second one is compiled too.
    "train.num_steps": 3,
    "train.log_every": 1,
    "train.eval_rows": 0,
    "optimizer.warmup_steps": 0,
  }


def to_first_step(
  command: list[str], cache: pathlib.Path
) -> tuple[float, float]:
  """Returns seconds until step 1 is printed: of wall time, of CPU time."""
  environ = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(cache)}
  began = time.perf_counter()
  with subprocess.Popen(
    command,
    env=environ,
    stdout=subprocess.DEVNULL,
    stderr=subprocess.PIPE,
    text=True,
  ) as process:
    lines = []
    for line in process.stderr:
      lines.append(line)
      if re.match(r"step 1/", line):
        elapsed = time.perf_counter() - began, cpu_seconds(process.pid)
        process.kill()
        return elapsed
  raise SystemExit("".join(lines[-5:]))


def cpu_seconds(pid: int) -> float:
  """Returns the CPU seconds that a process has used so far."""
  stat = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
  user, system = stat.split()[11:13]
  return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
  main()
