"""What each stage of `maskedlm prepare --runner=beam` costs a core.

  python benchmarks/prepare_stages.py --megabytes 8

Runs the stages (maskedlm/data/prepare/beam/stages.py) one after the other in
this process, without Beam, on novels (or docstrings). Prints for each stage the
text per CPU second and the bytes of its files per byte of text.
docs/guides/pretrain/preparing-text.md calculates with these numbers.
"""

import argparse
import collections
import functools
import json
import os
import pathlib
import tempfile
import time

import writable
from input_pipeline import write_text

from maskedlm.config import defaults as config_lib
from maskedlm.data.prepare import prepare
from maskedlm.data.prepare.beam import piece_plan, runner, stages


def main():
  parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
  parser.add_argument("--megabytes", type=float, default=8.0)
  parser.add_argument("--sentences", default="split", help="or lines")
  parser.add_argument("--near_duplicates", type=float, default=0.8)
  parser.add_argument("--kind", default="wordpiece", help="of tokenizer")
  parser.add_argument("--vocab_size", type=int, default=30_522)
  parser.add_argument("--json", **writable.TABLE)
  args = parser.parse_args()
  with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    text, name = write_text(folder / "text.txt", args.megabytes * 1e6)
    size = text.stat().st_size
    config = config_lib.default()
    config.corpus.source = f"text:{text}"
    config.corpus.sentences = args.sentences
    config.corpus.near_duplicates = args.near_duplicates
    config.tokenizer.kind = args.kind
    config.tokenizer.vocab_size = args.vocab_size
    table = measure(config, folder / "corpus", size)
  print(f"{name}, sentences={args.sentences}, {args.kind}\n")
  print("| stage | CPU s | MB/s a core | bytes a byte |\n|---|---|---|---|")
  for row in table:
    print(
      f"| {row['stage']} | {row['seconds']:.2f} | {row['rate']:.1f} |"
      f" {row['bytes']:.3f} |"
    )
  if args.json:
    args.json.write_text(json.dumps(table, indent=2) + "\n")


def measure(config, path: pathlib.Path, size: int) -> list[dict]:
  """A row for each stage, of text of `size` bytes in one piece."""
  seconds, volumes = collections.Counter(), collections.Counter()

  def timed(stage, function):
    begin = time.process_time()
    function()
    seconds[stage] += time.process_time() - begin
    volumes[stage] = folder_size(pathlib.Path(f"{path}.beam") / stage)

  def each(options, folder, log, stage, function, items):
    def run():
      for item in items:
        function(folder, *item)

    timed(stage, run)

  def find(options, folder, num_documents, pieces, log):
    def run():
      verdicts = [
        verdict
        for key, values in stages.band_hashes(folder, 0, 1)
        for _, verdict in stages.mark_duplicates(key, [values])
      ]
      stages.write_status(folder, 0, verdicts)

    timed("duplicates", run)

  def plan(folder):
    timed("plan", lambda: plan_all(folder))

  plan_all, piece_plan.write_plan = piece_plan.write_plan, plan
  runner._run_stage, runner._find_duplicates = each, find
  runner.PIECE_BYTES = 1 << 40
  prepare.prepare(
    config,
    path,
    log=print,
    run=functools.partial(runner.run, None),
  )
  return [
    {
      "stage": stage,
      "seconds": spent,
      "rate": size / 1e6 / max(spent, 1e-9),
      "bytes": volumes[stage] / size,
    }
    for stage, spent in seconds.items()
  ]


def folder_size(folder: pathlib.Path) -> int:
  """Bytes of the files in it."""
  return sum(
    os.path.getsize(file) for file in folder.rglob("*") if file.is_file()
  )


if __name__ == "__main__":
  main()
