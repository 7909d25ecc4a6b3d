"""Measures whether start-up time and memory grow with the corpus.

  python benchmarks/large_corpus.py --tokens 1e6,1e9 --folder /tmp/large

Writes corpora of random tokens in the corpus format (about 2.3 bytes a token),
and for each kind of rows starts a process twice: the first start cuts the text
into rows and keeps the row table beside the corpus, the second one finds it.
Seconds, of wall time and CPU time, are those from the start of the process to
its first batch, including imports. Memory is the process's own (RssAnon), at
its peak and after `--batches` batches of 256 rows, and separately the pages of
mapped files, which the system may reclaim (RssFile). At last, the same for
`maskedlm pretrain` with a tiny model, including JAX. The corpora are deleted at
the end.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator

import arguments
import numpy as np
import table
import trained

from maskedlm.config import defaults as config_lib
from maskedlm.data.corpus import manifest, shards, store
from maskedlm.data.tokenizers import tokenizer

SENTENCE, DOCUMENT = 20, 25  # Tokens, sentences; on average.
LENGTH, BATCH = 128, 256
KINDS = ("pairs", "documents", "full sentences")
CONFIG = "bert.py:tiny"
OPTIONS = {  # Of `maskedlm pretrain`, without those of files.
  "tokenizer.vocab_size": 40,
  "model.num_layers": 1,
  "model.width": 32,
  "model.num_heads": 2,
  "model.mlp_width": 64,
  "data.batch_size": 32,
  "optimizer.warmup_steps": 5,
  "train.num_steps": 50,
  "train.log_every": 1,
  "train.eval_rows": 64,
}


def parse(argv: list[str] | None = None) -> argparse.Namespace:
  parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
  parser.add_argument(
    "--tokens", type=sizes, default="1e6,1e9", help="sizes of corpora"
  )
  parser.add_argument(
    "--folder", help="for the corpora; default: the temporary folder"
  )
  parser.add_argument("--batches", type=arguments.count, default=200)
  parser.add_argument("--json", **arguments.TABLE)
  parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
  return parser.parse_args(argv)


def sizes(text: str) -> list[int]:
  """Parses numbers of tokens, such as "1e6,1e9"."""
  return [int(float(size)) for size in text.split(",")]


def main():
  args = parse()
  if args.child:
    print(json.dumps(measure(*args.child, args.batches)))
    return
  found = []
  with tempfile.TemporaryDirectory(dir=args.folder) as folder:
    for size in args.tokens:
      path = pathlib.Path(folder) / "corpus"
      write_corpus(path, size)
      for kind in KINDS:
        for start in ("first", "next"):
          found.append({"tokens": size, "rows": kind, "start": start})
          found[-1] |= in_process(path, kind, args.batches)
          print(found[-1], file=sys.stderr, flush=True)
      for start in ("first", "next"):
        found.append({"tokens": size, "rows": "pretrain", "start": start})
        found[-1] |= pretrain(path)
        print(found[-1], file=sys.stderr, flush=True)
      shutil.rmtree(path)
  print(
    "| tokens | rows | start | s | CPU s | own memory, MB | at most, MB |"
    " mapped, MB |\n|---|---|---|---|---|---|---|---|"
  )
  for row in found:
    print(
      f"| {row['tokens']:.0e} | {row['rows']} | {row['start']} |"
      f" {row['seconds']:.1f} | {row['cpu']:.1f} | {row['anon']:.0f} |"
      f" {row['peak']:.0f} |"
      f" {row['file']:.0f} |"
    )
  table.write(args.json, compare(found))


def compare(found: list[dict]) -> Iterator[table.Row]:
  """Yields each larger corpus beside the smallest one."""
  smallest = found[0]["tokens"]
  known = {(x["tokens"], x["rows"], x["start"]): x for x in found}
  for (tokens, kind, start), x in known.items():
    if tokens != smallest:
      what = (
        f"a trainer's {start} start on {tokens:.0e} tokens, rows: {kind}, "
        f"against {smallest:.0e} tokens"
      )
      peer = known[smallest, kind, start]
      yield table.against(
        f"{what}: to the first batch", x["seconds"], peer["seconds"], "s"
      )
      yield table.against(
        f"{what}: its own memory, at most", x["peak"], peer["peak"], "MB"
      )


def write_corpus(path: pathlib.Path, num_tokens: int) -> None:
  """Writes a corpus of random tokens, 99% of them for training."""
  made = tokenizer.train_tokenizer(
    ["the cat sat on the mat"] * 9,
    kind="wordpiece",
    vocab_size=40,
    lowercase=True,
  )
  work = path.with_name("corpus.tmp")
  work.mkdir()
  made.save(work / "tokenizer")
  rng = np.random.default_rng(0)
  splits, counts = {}, np.zeros(made.vocab_size, np.int64)
  for split, size in (
    ("train", num_tokens * 99 // 100),
    ("heldout", num_tokens // 100),
  ):
    found = []
    while size > 0:
      length = min(size, 1 << 26)
      name = work / shards.shard_name(split, len(found))
      tokens = rng.integers(5, made.vocab_size, length, dtype=np.uint16)
      columns = {
        "tokens": tokens,
        "sentences": starts(rng, length, SENTENCE),
      }
      columns["documents"] = starts(rng, len(columns["sentences"]), DOCUMENT)
      for column, values in columns.items():
        with open(f"{name}.{column}.npy", "wb") as file:
          file.write(shards.header_bytes(values.dtype, len(values)))
          file.write(values.tobytes())
      found.append({column: len(v) for column, v in columns.items()})
      if split == "train":
        counts += np.bincount(tokens, minlength=made.vocab_size)
      size -= length
    sums = {c: sum(shard[c] for shard in found) for c in shards.COLUMNS}
    splits[split] = {"shards": found, **sums}
  manifest.finish_corpus(
    str(path),
    str(work),
    splits=splits,
    counts=counts,
    files={},
    hashes={},
    tokenizer=made,
    options={},
    report=Counter(),
    domains=(),
  )


def starts(rng, size: int, mean: int) -> np.ndarray:
  """Returns starts (uint32) of runs of 1 to 2 mean - 1 elements, up to size."""
  lengths = rng.integers(1, 2 * mean, 2 * size // mean + 2, dtype=np.int64)
  ends = np.cumsum(lengths)
  return np.append(0, ends[ends < size]).astype("<u4")


def in_process(path: pathlib.Path, kind: str, batches: int) -> dict:
  """Runs `measure` in its own process."""
  begin = time.time()
  command = [sys.executable, __file__, "--child", str(path), kind]
  found = subprocess.run(
    [*command, "--batches", str(batches)],
    capture_output=True,
    text=True,
    check=False,
  )
  if found.returncode:
    raise SystemExit(found.stderr)
  values = json.loads(found.stdout.splitlines()[-1])
  return {**values, "seconds": values["seconds"] - begin}


def measure(path: str, kind: str, num_batches: int) -> dict:
  """Returns time and memory of the data side of a training process."""
  from maskedlm.data.batches import pair_rows as batches
  from maskedlm.data.batches import text_rows

  config = config_lib.default()
  config.data.length, config.data.batch_size = LENGTH, BATCH
  config.train.update(num_steps=10**6, eval_rows=2048)
  samples, over = [], threading.Event()

  def watch():
    while not over.wait(0.02):
      samples.append(memory()["anon"])

  threading.Thread(target=watch, daemon=True).start()
  corpus = store.open_corpus(path)
  if kind == "pairs":
    made = batches.nsp_batches(config, corpus, (0, 1), short_share=0.1)
  elif kind == "documents":
    made = text_rows.document_batches(config, corpus, (0, 1))
  else:
    made = text_rows.full_sentence_batches(
      config, corpus, (0, 1), isolate_documents=False
    )
  made.batch_at("train", 0)
  seconds, cpu = time.time(), time.process_time()
  for step in range(num_batches):
    made.batch_at("train", step * 31)
  over.set()
  now = memory()
  found = {"seconds": seconds, "cpu": cpu, **now}
  return {**found, "peak": max([*samples, now["anon"]])}


def pretrain(path: pathlib.Path) -> dict:
  """Measures a training run of 50 steps; seconds are to its first log."""
  workdir = path.with_name("run")
  given = OPTIONS | {
    "corpus.path": path,
    "tokenizer.path": path / "tokenizer",
  }
  begin, found, seconds = time.time(), [], None
  process = subprocess.Popen(
    [
      *(sys.executable, "-m", "maskedlm", "pretrain"),
      f"--workdir={workdir}",
      *trained.arguments(CONFIG, given),
    ],
    cwd=trained.ROOT,
    stdout=subprocess.DEVNULL,
    stderr=subprocess.DEVNULL,
  )
  while process.poll() is None:
    time.sleep(0.1)
    metrics = workdir / "metrics.jsonl"
    with contextlib.suppress(OSError, KeyError):
      found.append(memory(process.pid))
      if seconds is None and metrics.exists() and metrics.stat().st_size:
        seconds = time.time() - begin
        cpu = cpu_seconds(process.pid)
  if process.returncode:
    raise SystemExit(f"maskedlm pretrain ended with {process.returncode}")
  shutil.rmtree(workdir)
  return {
    **found[-1],
    "seconds": seconds,
    "cpu": cpu,
    "peak": max(each["anon"] for each in found),
  }


def cpu_seconds(pid: int) -> float:
  """Returns the CPU seconds that a process has used."""
  stat = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
  ticks = sum(map(int, stat.split()[11:13]))  # utime and stime.
  return ticks / os.sysconf("SC_CLK_TCK")


def memory(pid: int | str = "self") -> dict[str, float]:
  """Returns MB of a process: its own, and pages of mapped files."""
  status = pathlib.Path(f"/proc/{pid}/status").read_text()
  fields = dict(line.split(":\t", 1) for line in status.splitlines())
  kB = {name: int(fields[name].split()[0]) for name in ("RssAnon", "RssFile")}
  return {"anon": kB["RssAnon"] / 1e3, "file": kB["RssFile"] / 1e3}


if __name__ == "__main__":
  main()
