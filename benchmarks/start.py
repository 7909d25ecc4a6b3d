"""Measures the time from the command to the end of the first step.

  python benchmarks/start.py --shape base --json FILE

Runs `maskedlm pretrain` with BERT's recipe and an empty compile cache (cold),
and again in a new workdir with the cache that the first run left (warm). The
corpus is prepared before. Prints seconds of wall time and of CPU time over all
cores; if other processes run, only the second is meaningful. A run is killed
once it prints its first step: by then all compiled programs are in the cache.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import writable

CONFIG = f"{pathlib.Path(__file__).parent.parent}/configs/bert.py:base"
MASKEDLM = [sys.executable, "-m", "maskedlm"]
# layers, width, heads, length, rows, words, dtype
SHAPES = {
  "gpu": (12, 768, 12, 128, 512, 30_522, "bfloat16"),
  "base": (12, 768, 12, 128, 8, 30_522, "float32"),
  "small": (4, 256, 4, 128, 32, 30_522, "float32"),
  "tiny": (2, 48, 3, 24, 5, 500, "float32"),
}


def main() -> None:
  """Measures, prints a table, writes the JSON."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--shape", choices=SHAPES, default="base")
  parser.add_argument("--json", **writable.TABLE)
  args = parser.parse_args()
  print("| start | goal | found | of all cores |\n|---|---|---|---|")
  records = []
  with tempfile.TemporaryDirectory() as directory:
    folder = pathlib.Path(directory)
    command = prepare(folder, args.shape)
    for name, goal in (("cold", "<= 60 s"), ("warm", "<= 10 s")):
      workdir = [f"--workdir={folder / name}"]
      clock, cores = to_first_step(command + workdir, folder / "cache")
      print(
        f"| {name}, {args.shape} | {goal} | {clock:.1f} s | {cores:.1f} s |",
        flush=True,
      )
      records.append(
        {"what": f"{name} start, {args.shape}", "goal": goal}
        | {"found": f"{clock:.1f} s", "cores": round(cores, 1)}
      )
      if args.json:
        args.json.write_text(json.dumps(records, indent=2))


def prepare(folder: pathlib.Path, shape: str) -> list[str]:
  """Prepares a corpus for the shape and returns the command that trains."""
  layers, width, heads, length, rows, vocab, dtype = SHAPES[shape]
  characters = list(map(chr, range(33, 127)))
  words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters]
  words += [f"##{c}" for c in characters]
  words += [f"word{i}" for i in range(vocab - len(words))]  # Not in the text.
  (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words))
  options = {
    "corpus.source": "docstrings:json,email",
    "corpus.heldout_share": 0.2,
    "tokenizer.path": folder / "vocab.txt",
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
  given = [f"--config.{name}={value}" for name, value in options.items()]
  given.insert(0, f"--config={CONFIG}")
  corpus = folder / "corpus"
  done = subprocess.run(
    [*MASKEDLM, "prepare", *given, f"--out={corpus}"],
    capture_output=True,
    text=True,
  )
  if done.returncode:
    raise SystemExit(done.stderr)
  return [*MASKEDLM, "pretrain", *given, f"--config.corpus.path={corpus}"]


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
        found = time.perf_counter() - began, cpu_seconds(process.pid)
        process.kill()
        return found
  raise SystemExit("".join(lines[-5:]))


def cpu_seconds(pid: int) -> float:
  """Returns the CPU seconds that a process has used so far."""
  stat = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
  user, system = stat.split()[11:13]
  return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
  main()
