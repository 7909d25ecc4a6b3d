"""Runs the README's quickstart, and once more with pairs in rows of their own.

  python benchmarks/quickstart.py --json FILE

Both read the same corpus, which the first prepares. They run one after the
other, and other work disturbs them differently: packing.py compares steps that
take turns. Nothing is downloaded.
"""

import argparse
import pathlib
import tempfile

import arguments
import table
import trained

CONFIG = "quickstart.py"


def parse(argv: list[str] | None = None) -> argparse.Namespace:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument(
    "--steps", type=arguments.count, help="default: those of the config"
  )
  parser.add_argument("--source", help="the text; default: the config's")
  parser.add_argument("--json", **arguments.TABLE)
  return parser.parse_args(argv)


def options(args, **more) -> dict[str, object]:
  """Returns the options of the command line."""
  chosen = dict(more)
  if args.source:
    chosen["corpus.source"] = args.source
  if args.steps:
    chosen |= {"train.num_steps": args.steps, "optimizer.warmup_steps": 1}
  return chosen


def main() -> None:
  """Measures, prints a table, writes the JSON."""
  args = parse()
  with tempfile.TemporaryDirectory() as directory:
    folder = pathlib.Path(directory)
    packed = trained.pretrain(CONFIG, folder / "packed", options(args))
    same = {"corpus.path": folder / "packed" / "corpus"}
    alone = trained.pretrain(
      CONFIG,
      folder / "alone",
      options(args, **same, **{"objective.pack": False}),
    )
  work, other = "the quickstart", "against rows of one pair"
  rates = (run.result["tokens_per_second"] for run in (packed, alone))
  rows = [
    table.Row(f"{work}, from text to the result", packed.seconds, unit="s"),
    table.against(f"{work}, packed, {other}", *rates, "real tokens/s"),
  ]
  for name, unit, times in (
    ("heldout_mlm_loss", "nats", 1),
    ("mlm_accuracy", "%", 100),
    ("nsp_accuracy", "%", 100),
  ):
    values = [times * run.result[name] for run in (packed, alone)]
    rows.append(table.Row(f"{work}, {name}, {other}", *values, unit=unit))
  print(table.show(rows))
  table.write(args.json, rows)


if __name__ == "__main__":
  main()
