"""Runs all benchmarks that this machine can run.

  python benchmarks/run.py --device=cpu --out measured
  python benchmarks/run.py --device=gpu --out measured

Each runs in its own process with a time budget; one that fails or takes too
long is reported, and the next one runs. OUT/results.md is printed at the end:
tables to paste into docs/results, where each row says ours, peer, ratio,
machine and date. OUT/results.json has the numbers, also of those that were
stopped, and OUT/logs what each printed. Nothing is downloaded: the text is that
of shared/data if it exists, otherwise docstrings of the installed packages.

On a GPU the most important come first, and all end within --minutes. If the
first fails, it is run again without XLA's autotuner of fusions; if that helps,
the rest are run without it too, and their names say so.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

import arguments
import table  # In this folder.
import this_machine

HERE = pathlib.Path(__file__).parent
MIN_SECONDS = 20.0  # With less time left, none is started.
QUICK_MINUTES = 30.0
# It compiles and times many kernels, which can take minutes.
NO_AUTOTUNER = "--xla_gpu_experimental_enable_fusion_autotuner=false"


class Benchmark(NamedTuple):
  """A script with its arguments; {json} and {out} are replaced by paths."""

  name: str
  command: str
  minutes: float  # At most.


GOALS = "goals.py --json {json} --parts"
START = "start.py --json {json} --shape"
# In this order. On a GPU those before pretrain_step fill the table of
# docs/results/performance.md; those for which no time is left are reported.
BENCHMARKS = {
  "gpu": (
    Benchmark("goals_base", f"{GOALS} step", 4),
    Benchmark("goals_large", f"{GOALS} step --shape BERT-large-128", 3.5),
    Benchmark("goals_long", f"{GOALS} step --shape BERT-large-512", 3.5),
    Benchmark("goals_modern", f"{GOALS} step --shape ModernBERT-base-1024", 4),
    Benchmark("goals_shares", f"{GOALS} shares", 4),
    Benchmark("start_gpu", f"{START} gpu", 3),
    Benchmark("goals_checkpoint", f"{GOALS} checkpoint", 1.5),
    Benchmark("goals_peer", f"{GOALS} peer", 3.5),
    Benchmark("goals_packing", f"{GOALS} packing", 5),
    Benchmark("goals_kernel_base", f"{GOALS} kernel", 3),
    Benchmark("goals_kernel_long", f"{GOALS} kernel --shape BERT-large-512", 3),
    Benchmark(
      "pretrain_step",
      "pretrain_step.py --shapes base --rows 512 --steps 3 --json {json}",
      4,
    ),
    Benchmark(
      "attention", "attention.py --memory 60 --rows 8 --json {json}", 2
    ),
  ),
  "cpu": (
    Benchmark("start_small", f"{START} small", 5),
    Benchmark("start_base", f"{START} base", 5),
    Benchmark("pretrain_step", "pretrain_step.py --json {json}", 20),
    Benchmark("input_pipeline", "input_pipeline.py --json {json}", 10),
    Benchmark("packing", "packing.py --json {json}", 5),
    Benchmark("goals_packing", f"{GOALS} packing --size small --steps 8", 8),
    Benchmark(
      "goals_packing_base", f"{GOALS} packing --size base --steps 2", 8
    ),
    Benchmark("goals_checkpoint", f"{GOALS} checkpoint --size small", 3),
    Benchmark("attention", "attention.py --json {json}", 10),
    Benchmark("quickstart", "quickstart.py --json {json}", 30),
    # Hours; with the same --out it continues where it was stopped.
    Benchmark(
      "finetune", "finetune.py --workdir {out}/finetune --json {json}", 1000
    ),
    Benchmark("inference", "inference.py --json {json}", 15),
  ),
}
# Commands of --quick: with these sizes each takes about a minute.
QUICK = {
  **dict.fromkeys(
    ("goals_base", "goals_large", "goals_long", "goals_modern"),
    f"{GOALS} step --size tiny --steps 3",
  ),
  **dict.fromkeys(
    ("goals_kernel_base", "goals_kernel_long"),
    f"{GOALS} kernel --size tiny --steps 3",
  ),
  "goals_shares": f"{GOALS} shares --size tiny --steps 3",
  "goals_peer": f"{GOALS} peer --size tiny --steps 3",
  **dict.fromkeys(
    ("goals_packing", "goals_packing_base"),
    f"{GOALS} packing --size tiny --steps 3",
  ),
  "start_gpu": f"{START} tiny",
  "start_small": f"{START} tiny",
  "start_base": f"{START} tiny",
  "goals_checkpoint": f"{GOALS} checkpoint --size tiny",
  "quickstart": "quickstart.py --steps 4 --source docstrings:json,email "
  "--json {json}",
  "finetune": "finetune.py --rows mrpc --contenders ours,transformers "
  "--seeds 1 --scale 0.01 --pretrain_steps 4 --workdir {out}/finetune-quick "
  "--json {json}",
  "attention": "attention.py --lengths 128 --heads 2 --repeats 2 --json {json}",
  "inference": "inference.py --texts 40 --turns 1 --json {json}",
  "pretrain_step": "pretrain_step.py --shapes small --rows 2 --steps 2 "
  "--json {json}",
  "input_pipeline": "input_pipeline.py --megabytes 2 --repeats 1 --json {json}",
  "packing": "packing.py --lengths 24 --steps 2 --source docstrings:json,email "
  "--json {json}",
}


class Outcome(NamedTuple):
  """The result of a benchmark."""

  name: str
  status: str  # "ok", or why there is no result.
  seconds: float
  printed: str
  numbers: object  # The JSON that it wrote; None if none.


def main() -> int:
  """Runs them; returns 1 if any failed, else 0."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--device", choices=BENCHMARKS, required=True)
  parser.add_argument("--out", type=pathlib.Path, default="measured")
  parser.add_argument("--only", help="names, comma-separated; default: all")
  parser.add_argument(
    "--quick", action="store_true", help="tiny sizes, to see whether they run"
  )
  parser.add_argument(
    "--minutes",
    type=arguments.amount,
    help="for all; default: 9.5 on a GPU, no limit on a CPU",
  )
  args = parser.parse_args()
  chosen = BENCHMARKS[args.device]
  names = [x.name for x in chosen]
  only = args.only.split(",") if args.only else names
  if not set(only) <= set(names):
    parser.error(f"--only={args.only}: known: {', '.join(names)}")
  try:
    args.out.mkdir(parents=True, exist_ok=True)
  except OSError as error:
    parser.error(f"--out={args.out}: {error.strerror}; name another folder")
  minutes = args.minutes or (9.5 if args.device == "gpu" else 1e9)
  began, outcomes = time.monotonic(), []
  flags, again = "", args.device == "gpu"
  with tempfile.TemporaryDirectory() as scratch:

    def run_one(benchmark: Benchmark, flags: str) -> str:
      left = 60 * minutes - (time.monotonic() - began)
      last = run(benchmark, args, pathlib.Path(scratch), left, flags)
      outcomes.append(last)
      print(f"{last.name}: {last.status} ({last.seconds:.0f} s)", flush=True)
      write_results(args, outcomes)  # In case this is stopped.
      return last.status

    for benchmark in chosen:
      if benchmark.name in only:
        failed = run_one(benchmark, flags).startswith(("exit", "stopped"))
        if failed and again and run_one(benchmark, NO_AUTOTUNER) == "ok":
          flags = NO_AUTOTUNER
        again = False  # The flag helps all models or none.
  print("\n" + (args.out / "results.md").read_text())
  return int(any(x.status != "ok" for x in outcomes))


def run(
  benchmark: Benchmark, args, scratch: pathlib.Path, left: float, flags: str
) -> Outcome:
  """Runs one benchmark in its own process group, with XLA_FLAGS `flags`."""
  command = QUICK[benchmark.name] if args.quick else benchmark.command
  name = " ".join(filter(None, (benchmark.name, flags)))
  # In small, they test whether the scripts run, on however busy a machine.
  limit = min(
    60 * (benchmark.minutes if not args.quick else QUICK_MINUTES), left
  )
  if limit < MIN_SECONDS:
    return Outcome(name, "not run: no time is left", 0.0, "", None)
  file = scratch / f"{name}.json"
  places = {"json": file, "out": args.out.resolve()}
  script, *options = (word.format(**places) for word in command.split())
  # So that maskedlm need not be installed.
  path = [str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
  environ = dict(
    os.environ, PYTHONUNBUFFERED="1", PYTHONPATH=os.pathsep.join(path)
  )
  if flags:
    environ["XLA_FLAGS"] = f"{environ.get('XLA_FLAGS', '')} {flags}".strip()
  if args.device == "cpu":
    environ.update(JAX_PLATFORMS="cpu", CUDA_VISIBLE_DEVICES="")
  began = time.monotonic()
  process = subprocess.Popen(
    [sys.executable, str(HERE / script), *options],
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
    env=environ,
    cwd=HERE.parent,
    start_new_session=True,
  )
  try:
    printed, _ = process.communicate(timeout=limit)
    status = "ok" if not process.returncode else f"exit {process.returncode}"
  except subprocess.TimeoutExpired:
    os.killpg(process.pid, signal.SIGKILL)
    printed, _ = process.communicate()
    status = f"stopped after {limit:.0f} s"
  numbers = json.loads(file.read_text()) if file.exists() else None
  seconds = time.monotonic() - began
  return Outcome(name, status, seconds, printed, numbers)


def write_results(args, outcomes: list[Outcome]) -> None:
  """Writes results.md, results.json and logs/."""
  cells = machine(args.device), time.strftime("%Y-%m-%d")
  lines = [
    f"# Benchmarks, {args.device}{', quick: not for comparison' * args.quick}"
  ]
  (args.out / "logs").mkdir(exist_ok=True)
  for outcome in outcomes:
    lines += [
      "",
      f"## {outcome.name}: {outcome.status}, {outcome.seconds:.0f} s",
      "",
    ]
    if outcome.numbers:  # Also of one that was stopped.
      lines.append(table.head("machine", "date"))
      lines += [table.line(record, *cells) for record in outcome.numbers]
    if outcome.status != "ok" or not outcome.numbers:
      # The last lines say why.
      lines += ["```", *outcome.printed.splitlines()[-30:], "```"]
    name = re.sub(r"\W+", "_", outcome.name)
    (args.out / "logs" / f"{name}.txt").write_text(outcome.printed)
  (args.out / "results.md").write_text("\n".join(lines) + "\n")
  records = [outcome._asdict() | {"printed": None} for outcome in outcomes]
  (args.out / "results.json").write_text(json.dumps(records, indent=2))


def machine(device: str) -> str:
  """Returns the name of the GPU, or of the CPU with the number of its cores."""
  if device == "gpu":
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
      names = subprocess.run(command, capture_output=True, text=True).stdout
    except OSError:  # No NVIDIA.
      names = ""
    return names.splitlines()[0] if names else "a GPU"
  return this_machine.cpu()


if __name__ == "__main__":
  sys.exit(main())
