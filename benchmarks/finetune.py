"""Compares fine-tuning on real data with PyTorch + transformers.

  python benchmarks/finetune.py --json FILE
  python benchmarks/finetune.py --encoder runs/bert --json FILE

Both start from the same pretrained encoder (by default configs/modern_small.py,
trained first, an hour of two cores) and fine-tune on the same examples with the
same recipe (batch, rate, epochs, schedule, dropout, clipping, decay); they are
scored on the same development sets after the last step.
`transformers` (finetune_peer.py) loads what `maskedlm export --to hf` writes,
and checks before training that its vectors equal maskedlm's. `scratch` is
maskedlm without pretraining, `features` the frozen encoder under a BiLSTM,
`padded` maskedlm with every row padded to the full length.

Each run has its own process and leaves its results in --workdir. Finished runs
are not repeated, so the command continues where it was stopped; all runs of a
seed come before those of the next one. --table only prints finished results.

Seconds are wall time of training, including making batches, compiling (nothing
is cached) and writing the checkpoint (only maskedlm does), without reading the
data and without scoring. "Predicting" is the development set again, after a
first pass: maskedlm's includes tokenizing, the peer's the score. On a busy
machine they are not valid, PyTorch's least of all (see finetune_peer.py); the
load is printed under the table.

Needs the extras `peer` and `test`. finetune_rows.py defines what is compared,
finetune_table.py makes the table.
"""

import argparse
import collections
import hashlib
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

import arguments

# In this folder.
import finetune_rows
import finetune_table
import jax
import numpy as np
import trained
from finetune_rows import PEER, ROWS
from ml_collections import ConfigDict

from maskedlm.finetune import config as configs
from maskedlm.finetune import predict, run
from maskedlm.interop.huggingface import exporter, importer
from maskedlm.runtime import allocator, console
from maskedlm.training import loop, progress

HERE = pathlib.Path(__file__).resolve().parent


# --- A run of maskedlm ---


class Spent:
  """Seconds spent in a function: wall time, CPU time, compiling."""

  def __init__(self, module, name: str, compiling: list[float]):
    self.seconds = np.zeros(3)
    inner = getattr(module, name)

    def now() -> np.ndarray:
      return np.array(
        [time.perf_counter(), time.process_time(), sum(compiling)]
      )

    def timed(*args, **kwargs):
      began = now()
      try:
        return inner(*args, **kwargs)
      finally:
        self.seconds += now() - began

    setattr(module, name, timed)


def run_ours(job: Mapping[str, Any]) -> dict[str, Any]:
  """Fine-tunes as `maskedlm finetune` does; returns its times and metrics."""
  compiling: list[float] = []
  jax.monitoring.register_event_duration_secs_listener(
    lambda name, seconds, **_: (
      compiling.append(seconds) if name.endswith("compile_duration") else None
    )
  )
  whole = Spent(loop, "run", compiling)
  scoring = Spent(progress, "evaluate", compiling)  # Part of run.
  config = ConfigDict(job["config"])
  folder = pathlib.Path(job["folder"])
  result = run.finetune(configs.typed(config), folder)
  seconds, cpu_seconds, compile_seconds = whole.seconds - scoring.seconds
  return {
    "seconds": seconds,
    "cpu_seconds": cpu_seconds,
    "compile_seconds": compile_seconds,
    "predict_seconds": time_predict(folder, config.data.dev),
    "steps": result["steps"],
    "metrics": {n: x for n, x in result.items() if isinstance(x, float)},
  }


def time_predict(folder: pathlib.Path, dev: str) -> float:
  """Returns the seconds of predicting a file, the second time."""
  model = predict.open_model(folder)
  examples = predict.read_labelled(model.task, model.app, dev)
  predict.predict(model, examples)  # Compiles.
  began = time.perf_counter()
  predict.predict(model, examples)
  return time.perf_counter() - began


# --- All runs ---


def run_job(job: dict[str, Any], workdir: pathlib.Path) -> dict[str, Any]:
  """Runs a job in its own process; returns its result and times.

  Raises:
    SystemExit: it failed; the message names its log.
  """
  is_peer = job["contender"] == PEER
  folder = workdir / "run"
  shutil.rmtree(folder, ignore_errors=True)
  job = {**job, "folder": str(folder), "out": str(workdir / "out.json")}
  path, log = workdir / "job.json", workdir / f"{job['config']['name']}.log"
  path.write_text(json.dumps(job))
  script = [str(HERE / "finetune_peer.py")] if is_peer else [__file__, "--job"]
  env = {k: v for k, v in os.environ.items() if "COMPILATION_CACHE" not in k}
  # As `maskedlm` sets it; PyTorch gains from it too.
  env["GLIBC_TUNABLES"] = allocator.TUNABLES
  began, busy = time.perf_counter(), busy_seconds()
  with log.open("w") as file:
    process = subprocess.Popen(
      [sys.executable, *script, str(path)], env=env, stdout=file, stderr=file
    )
    status, usage = trained.wait(process)
  seconds, busy = time.perf_counter() - began, busy_seconds() - busy
  if status:
    raise SystemExit(f"{job['config']['name']} failed; its log is {log}")
  shutil.rmtree(folder, ignore_errors=True)
  cpu_seconds = usage.ru_utime + usage.ru_stime
  return {
    **{name: job[name] for name in ("row", "contender", "weights", "config")},
    **json.loads(pathlib.Path(job["out"]).read_text()),
    "process_seconds": seconds,
    "process_cpu_seconds": cpu_seconds,
    "cores": len(cores()),
    "other_cores": max(busy - cpu_seconds, 0.0) / seconds,
  }


def cores() -> set[int]:
  """Returns the cores this process may use (see `taskset`)."""
  if not hasattr(os, "sched_getaffinity"):
    return set(range(os.cpu_count() or 1))
  return os.sched_getaffinity(0)


def busy_seconds() -> float:
  """Returns the CPU seconds used so far on these cores; 0 if unknown."""
  if not os.path.exists("/proc/stat"):
    return 0.0
  names, ticks = {f"cpu{n}" for n in cores()}, 0
  with open("/proc/stat", encoding="utf-8") as file:
    for line in file:
      name, *figures = line.split()
      if name in names:
        user, nice, system, _, _, *rest = map(int, figures[:8])
        ticks += user + nice + system + sum(rest)
  return ticks / os.sysconf("SC_CLK_TCK")


def make_jobs(args, workdir: pathlib.Path) -> list[dict[str, Any]]:
  """Returns the jobs in order; writes the encoder and data they start from.

  Both sides start from the directory that `maskedlm export` writes, maskedlm
  through `maskedlm import`, so that heads have the same layers on both.
  """
  data, hf = workdir / f"data-{args.scale:g}", workdir / "hf"
  encoder, start = workdir / "encoder", workdir / "start.npz"
  data.mkdir(parents=True, exist_ok=True)
  for folder in (hf, encoder):
    shutil.rmtree(folder, ignore_errors=True)
  exporter.export_huggingface(
    pathlib.Path(args.encoder), hf, part="encoder", log=console.log
  )
  importer.import_model(hf, encoder, log=console.log)
  finetune_rows.write_start(args.encoder, start)
  weights = hashlib.sha256((hf / "model.safetensors").read_bytes()).hexdigest()
  files = {
    name: finetune_rows.write_examples(name, data, args.scale)
    for name in args.rows
  }

  def job(name: str, contender: str, seed: int) -> dict[str, Any]:
    config = finetune_rows.configure(
      name, contender, seed, files=files[name], encoder=str(encoder)
    )
    return {
      "row": name,
      "contender": contender,
      "config": json.loads(config.to_json_best_effort()),
      "weights": weights,
      "hf": str(hf),
      "start": str(start),
    }

  return [
    job(name, contender, seed)
    for seed in range(args.seeds)
    for name in args.rows
    for contender in ROWS[name].contenders
    if contender in args.contenders
  ]


def run_all(jobs: list[dict[str, Any]], workdir: pathlib.Path) -> None:
  """Runs the unfinished jobs and prints a line for each."""
  paths = [workdir / f"{job['config']['name']}.json" for job in jobs]
  pending = [
    (job, path)
    for job, path in zip(jobs, paths, strict=True)
    if not path.exists()
    or any(read(path)[name] != job[name] for name in ("config", "weights"))
  ]
  took = collections.defaultdict(list)  # (row, contender) -> seconds.
  for result in map(read, set(paths) - {path for _, path in pending}):
    took[result["row"], result["contender"]].append(result["process_seconds"])
  done = len(jobs) - len(pending)
  while pending:
    job, path = pending.pop(0)
    result = run_job(job, workdir)
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(json.dumps(result, indent=2) + "\n")
    unfinished.rename(path)
    done += 1
    took[job["row"], job["contender"]].append(result["process_seconds"])
    known = {key: statistics.mean(values) for key, values in took.items()}
    usual = statistics.mean(known.values())
    left = sum(known.get((j["row"], j["contender"]), usual) for j, _ in pending)
    scores = ", ".join(
      f"{name} {result['metrics'][name]:.4f}"
      for name in ROWS[job["row"]].metrics
    )
    print(
      f"[{done}/{len(jobs)}] {job['config']['name']}: {scores}; training "
      f"{result['seconds']:.0f} s of {result['process_seconds']:.0f} s | ETA "
      f"{console.format_seconds(left)}",
      flush=True,
    )


def read(path: pathlib.Path) -> dict[str, Any]:
  return json.loads(path.read_text())


def parse(argv: list[str] | None = None) -> argparse.Namespace:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  known = tuple(dict.fromkeys(c for r in ROWS.values() for c in r.contenders))
  for option, names in (("--rows", tuple(ROWS)), ("--contenders", known)):
    parser.add_argument(
      option,
      type=lambda text: text.split(","),
      default=names,
      help=f"comma-separated; known: {', '.join(names)}",
    )
  parser.add_argument(
    "--encoder", help="a pretrained workdir; default: one is trained"
  )
  parser.add_argument(
    "--pretrain_steps",
    type=arguments.count,
    help="of that encoder; default: those of its config",
  )
  parser.add_argument(
    "--seeds", type=arguments.count, default=3, help="number of seeds"
  )
  parser.add_argument(
    "--scale",
    type=arguments.amount,
    default=1.0,
    help="share of the examples; less than 1 to try it out",
  )
  parser.add_argument(
    "--workdir", type=pathlib.Path, default=pathlib.Path("runs/finetune")
  )
  parser.add_argument(
    "--table", action="store_true", help="only print the table"
  )
  parser.add_argument("--json", **arguments.TABLE)
  parser.add_argument("--job", type=pathlib.Path, help=argparse.SUPPRESS)
  args = parser.parse_args(argv)
  for chosen, names in ((args.rows, tuple(ROWS)), (args.contenders, known)):
    if unknown := set(chosen) - set(names):
      parser.error(
        f"{', '.join(unknown)} is unknown; known: {', '.join(names)}"
      )
  if args.encoder and not pathlib.Path(args.encoder).is_dir():
    parser.error(f"--encoder={args.encoder}: expected a pretrained workdir")
  if args.encoder and args.pretrain_steps:
    parser.error("--pretrain_steps has no effect beside --encoder")
  args.workdir = args.workdir.resolve()
  return args


def pretrained(workdir: pathlib.Path, steps: int | None) -> pathlib.Path:
  """Returns the workdir of an encoder, which is trained if it isn't there."""
  folder = workdir / "pretrained"
  if not (folder / "result.json").exists():
    options = {"corpus.source": trained.text_source()}
    if steps:
      options |= {"train.num_steps": steps, "optimizer.warmup_steps": 1}
    folder.parent.mkdir(parents=True, exist_ok=True)
    print("training an encoder ...", flush=True)
    trained.pretrain("modern_small.py", folder, options)
  return folder


def main() -> None:
  """Runs what is not finished, prints a table, writes the JSON."""
  args = parse()
  if args.job:
    job = read(args.job)
    pathlib.Path(job["out"]).write_text(json.dumps(run_ours(job)))
    return
  workdir = args.workdir
  if missing := finetune_rows.missing(args.rows):
    print(f"not run: {missing} is absent; set MASKEDLM_DATA to the folder")
    return
  if not args.table:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    encoder = args.encoder or pretrained(workdir, args.pretrain_steps)
    args.encoder = str(pathlib.Path(encoder).resolve())
    run_all(make_jobs(args, workdir), workdir)
  results = finetune_table.load(workdir)
  if not results:
    raise SystemExit(f"--workdir={workdir} has no results yet")
  table, records = finetune_table.tabulate(results)
  print(f"\n{table}")
  if args.json:
    args.json.write_text(json.dumps(records, indent=2) + "\n")


if __name__ == "__main__":
  main()
