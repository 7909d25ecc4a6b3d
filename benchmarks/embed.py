"""Sentence vectors of real sentences: rows of one length together, or not.

  python benchmarks/embed.py --checkpoint runs/x --lines 2000 --json FILE

Texts a second through the encoder, from rows of tokens to pooled vectors, by
three ways of making batches of the same number of positions:

  longest  all rows padded to the longest one there is; what the issue compares
  arrival  rows as they come, each batch padded to the longest in it (rounded up
           to a bucket, as each length is compiled): what one writes first
  ours     rows sorted by length within what is held at once (rows.plan)

They take turns, so that whatever else the machine does hits all; medians count,
and the vectors must be equal. Compilation is over before the clock starts.
"""

# ruff: noqa: E402

import argparse
import functools
import itertools
import json
import os
import pathlib
import platform
import statistics
import time

import writable

from maskedlm.runtime import allocator

allocator.keep_freed()  # As `maskedlm embed` does.

import jax
import numpy as np

from maskedlm.data.labelled import text_lines
from maskedlm.inference.vectors import pooling, rows, vectors
from maskedlm.runtime import startup

ROOT = pathlib.Path(__file__).parent.parent
DATA = pathlib.Path(
  os.environ.get("MASKEDLM_DATA", ROOT.parent / "shared" / "data")
)


def main() -> None:
  """Measures, prints a table, writes the JSON."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--checkpoint", required=True, help="any workdir")
  parser.add_argument("--input", default=str(DATA / "text" / "en_novels.txt"))
  parser.add_argument("--lines", type=int, default=2000)
  parser.add_argument("--repeats", type=int, default=5)
  parser.add_argument("--json", **writable.TABLE)
  args = parser.parse_args()
  startup.enable_compile_cache()
  model = vectors.open_text_encoder(args.checkpoint)
  texts = itertools.islice(text_lines.read_texts([args.input]), args.lines)
  cut = rows.make_row_cutter(
    model.tokenizer, "sentence", length=model.cfg.max_positions
  )
  made = [row for text in texts for row in cut(text).rows]
  lengths = np.array([len(row.ids) for row in made])
  load = os.getloadavg()[0]
  print(
    f"{platform.machine()}, {os.cpu_count()} cores, load {load:.1f}; jax "
    f"{jax.__version__}, {jax.devices()[0].device_kind}\n{model.cfg.num_layers}"
    f" layers of {model.cfg.width}; {len(made):,} rows of {lengths.mean():.1f} "
    f"tokens on average, {np.median(lengths):.0f} in the median, "
    f"{lengths.max()} at most"
  )
  ways = contenders(model, made)
  seconds = {name: [] for name in ways}
  pooled = {name: run() for name, run in ways.items()}  # Compiles, too.
  for name, values in pooled.items():
    np.testing.assert_allclose(values, pooled["ours"], atol=1e-4, err_msg=name)
  for _ in range(args.repeats):
    for name, run in ways.items():
      start = time.perf_counter()
      run()
      seconds[name].append(time.perf_counter() - start)
  table = []
  print(
    "\n| batches | rows/s | ours is faster by | padding |\n|---|---|---|---|"
  )
  ours = statistics.median(seconds["ours"])
  for name, run in ways.items():
    median = statistics.median(seconds[name])
    share = padding(made, run.keywords["plan"])
    table.append(
      {
        "batches": name,
        "rows_per_second": len(made) / median,
        "ours_faster": median / ours,
        "padding": share,
        "load": load,
      }
    )
    print(
      f"| {name} | {len(made) / median:.1f} | {median / ours:.2f} x |"
      f" {share:.1%} |"
    )
  if args.json:
    with args.json.open("w", encoding="utf-8") as file:
      json.dump(table, file, indent=2)


def contenders(model, made) -> dict[str, functools.partial]:
  """Name -> a call that gives the pooled vectors [n, D] of the rows made."""
  lengths = [len(row.ids) for row in made]
  buckets = rows.bucket_lengths(model.cfg.max_positions)
  tokens = vectors.BATCH_TOKENS
  return {
    name: functools.partial(pool_rows, model, made, plan=list(plan))
    for name, plan in {
      "longest": rows.plan_batches(
        lengths, (max(lengths),), batch_tokens=tokens
      ),
      "arrival": as_they_come(lengths, buckets, tokens // max(lengths)),
      "ours": rows.plan_batches(lengths, buckets, batch_tokens=tokens),
    }.items()
  }


def as_they_come(lengths, buckets, size):
  """A plan of batches of `size` rows in their order."""
  for begin in range(0, len(lengths), size):
    which = np.full(size, -1)
    taken = np.arange(begin, min(begin + size, len(lengths)))
    which[: len(taken)] = taken
    longest = max(lengths[i] for i in taken)
    yield which, int(buckets[np.searchsorted(buckets, longest)])


def pool_rows(model, made, *, plan) -> np.ndarray:
  """Mean-pooled vectors [n, D] of the rows, by this plan."""
  encode = functools.partial(
    vectors.make_layer_encoder(model.cfg, (model.cfg.num_layers,), "mean"),
    model.params,
  )
  pooled = np.zeros((len(made), model.cfg.width), np.float32)
  pad = model.tokenizer.special.pad
  for i, x in vectors.encode_rows(encode, made, plan, pad=pad):
    parts = pooling.pool_row(x, made[i], "mean", cls_place=0)
    pooled[i] = pooling.to_vectors(parts, "mean")[0]
  return pooled


def padding(made, plan) -> float:
  """Share of padding among the positions of a plan."""
  positions = sum(len(which) * L for which, L in plan)
  return 1 - sum(len(row.ids) for row in made) / positions


if __name__ == "__main__":
  main()
