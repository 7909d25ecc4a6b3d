"""Measures what streaming a corpus costs: requests, bytes and time of a step.

  python benchmarks/streamed_corpus.py --tokens 1e8 --folder /tmp/streamed

Writes a corpus of random tokens, serves it over HTTP from another process,
whose answers wait for `--latency` seconds as those of a bucket do, and reads
batches of 256 rows of 128 tokens, in two threads as training does, through
caches that hold some share of the tokens. `requests` and `MB` are those of a
step, once the cache is as full as it gets; `ms` is a step's time, and `CPU ms`
that of this process, in which the requests are made. A corpus in a folder is
read for comparison. The corpus and the cache are deleted at the end.
"""

import argparse
import concurrent.futures
import contextlib
import http.server
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import arguments
import large_corpus

from maskedlm.config import defaults
from maskedlm.data.batches import pair_rows, text_rows
from maskedlm.data.corpus import concat, shards, store, streamed

SHARES = (0.1, 0.5, 0.9, 1.1)
KINDS = {
  "rows of one document": text_rows.document_batches,
  "pairs": lambda *args: pair_rows.nsp_batches(*args, short_share=0.1),
}


def main():
  parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
  parser.add_argument("--tokens", type=arguments.amount, default=1e8)
  parser.add_argument("--folder", help="default: the temporary folder")
  parser.add_argument("--latency", type=float, default=0.03, help="seconds")
  parser.add_argument("--steps", type=arguments.count, default=20)
  parser.add_argument("--json", **arguments.TABLE)
  parser.add_argument("--serve", help=argparse.SUPPRESS)
  args = parser.parse_args()
  if args.serve:
    serve(args.serve, args.latency)
    return
  table = []
  with tempfile.TemporaryDirectory(dir=args.folder) as folder:
    path = pathlib.Path(folder, "corpus")
    large_corpus.write_corpus(path, int(args.tokens))
    os.environ["XDG_CACHE_HOME"] = folder
    with serving(folder, args.latency) as address:
      for kind, make in KINDS.items():
        local = store.open_corpus(path)
        table.append({"rows": kind, "cache": None})
        table[-1] |= measure(make, local, path.parent, args.steps)
        for share in SHARES:
          tokens = concat.size(local.train.tokens)
          corpus = streamed.open_corpus(
            f"{address}/corpus", cache_gb=share * tokens * 2 / 1e9, log=print
          )
          table.append({"rows": kind, "cache": share})
          table[-1] |= measure(
            make, corpus, path.parent, args.steps, tokens=tokens, share=share
          )
          print(table[-1], file=sys.stderr, flush=True)
        shutil.rmtree(pathlib.Path(folder, "maskedlm", "blocks"))
  print(
    "| rows | cache | requests | MB | ms | CPU ms |\n|---|---|---|---|---|---|"
  )
  for row in table:
    cache = "a folder" if row["cache"] is None else f"{row['cache']:.0%}"
    print(
      f"| {row['rows']} | {cache} | {row['requests']:.0f} | {row['MB']:.1f} |"
      f" {row['ms']:.0f} | {row['cpu_ms']:.0f} |"
    )
  if args.json:
    args.json.write_text(json.dumps(table, indent=2) + "\n")


def measure(make, corpus, folder, steps, *, tokens=0, share=0.0) -> dict:
  """Returns a step's requests, MB, and milliseconds of time and of CPU."""
  config = defaults.default()
  config.data.length, config.data.batch_size = 128, 256
  config.train.eval_rows = 0
  batches = make(config, corpus, (0, 1))
  # Steps until the cache is full, or has nearly all, if rows were blocks.
  passes = 5 if share > 1 else -math.log(1 - share)
  blocks = tokens * 2 // shards.HASHED
  warm = int(passes * blocks) // config.data.batch_size + 1

  def read(first, count):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
      range_ = range(first, first + count)
      list(pool.map(lambda step: len(batches.batch_at("train", step)), range_))

  read(0, warm)
  before = sent(folder)
  seconds, cpu = time.perf_counter(), time.process_time()
  read(warm, steps)
  seconds = time.perf_counter() - seconds
  cpu = time.process_time() - cpu
  requests, num_bytes = (
    a - b for a, b in zip(sent(folder), before, strict=True)
  )
  return {
    "requests": requests / steps,
    "MB": num_bytes / steps / 1e6,
    "ms": seconds / steps * 1e3,
    "cpu_ms": cpu / steps * 1e3,
  }


# The server


def sent(folder: pathlib.Path) -> tuple[int, int]:
  """Returns the numbers of requests and bytes that the server has answered."""
  sizes = (folder / "log").read_text().split()
  return len(sizes), sum(map(int, sizes))


@contextlib.contextmanager
def serving(folder: str, latency: float):
  """Yields the address of a server of a folder, in its own process."""
  command = [sys.executable, __file__, "--serve", folder]
  with subprocess.Popen(
    [*command, "--latency", str(latency)], stdout=subprocess.PIPE, text=True
  ) as process:
    try:
      yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
      process.terminate()


def serve(folder: str, latency: float) -> None:
  """Serves a folder, and logs the bytes of each answer, until it is ended."""
  log = open(pathlib.Path(folder, "log"), "a", buffering=1)  # noqa: SIM115

  class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
      time.sleep(latency)
      file = pathlib.Path(folder, self.path.lstrip("/"))
      size = file.stat().st_size
      wanted = re.findall(r"\d+", self.headers.get("Range", ""))
      first, last = map(int, wanted or (0, size - 1))
      with file.open("rb") as opened:
        opened.seek(first)
        body = opened.read(last + 1 - first)
      self.send_response(206 if wanted else 200)
      self.send_header("Content-Length", str(len(body)))
      self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
      self.end_headers()
      self.wfile.write(body)
      log.write(f"{len(body)}\n")

    def log_message(self, *args):
      pass

  server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
  server.request_queue_size = 128
  print(server.server_port, flush=True)
  server.serve_forever()


if __name__ == "__main__":
  main()
