"""`maskedlm average`: averages the weights of several checkpoints."""

import argparse
import pathlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from maskedlm.cli import options
from maskedlm.core.errors import ConfigError
from maskedlm.runtime import console, output_options


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  args = _parser().parse_args(argv)

  from maskedlm.training.checkpoints import average, load, write

  paths = args.checkpoints
  if len(paths) < 2 and not args.ema:
    raise ConfigError(f"{paths[0]}: expected two checkpoints or more.")
  weights = _weights(args, len(paths))
  steps = [load.describe_checkpoint(path).meta["step"] for path in paths]
  if args.decay is not None:  # From the oldest to the newest.
    steps, paths = zip(*sorted(zip(steps, paths, strict=True)), strict=True)

  def opened() -> Iterator[tuple[str, load.LoadedCheckpoint]]:
    for path in paths:
      console.log(f"reading {path}")
      yield path, open_one(path)

  members = [
    {"checkpoint": path, "step": step, "weight": weight}
    for path, step, weight in zip(paths, steps, weights, strict=True)
  ]
  open_one = load.open_ema if args.ema else load.open_checkpoint
  loss_of = _measure(args.data) if args.data else None
  with output_options.new_folder(pathlib.Path(args.out)) as unfinished:
    losses = [loss_of(path) for path in paths if loss_of]
    made = average.average(opened(), weights)
    last = load.describe_checkpoint(paths[-1])
    last.tokenizer.save(unfinished / "tokenizer")
    write.write_workdir(
      unfinished,
      made.params,
      last.meta["task"],
      origin={"averaged": members, "ema": args.ema},
      corpus="averaged",
      tokenizer=last.tokenizer.sha256,
      log=console.log,
      heldout=made.thresholds,
    )
  rows = [
    (f"{m['step']:,}", f"{m['weight']:.4f}", m["checkpoint"]) for m in members
  ]
  rows.append((None, None, f"{args.out}, their mean"))
  columns = ("step", "weight", "checkpoint")
  if loss_of:
    losses.append(loss_of(args.out))
    columns = (*columns, "MLM loss")
    rows = [(*r, f"{x:.4f}") for r, x in zip(rows, losses, strict=True)]
  print("\n".join(console.table(columns, rows, align=">><")))
  return 0


def _measure(data: str) -> Callable[[str], float]:
  """Returns a function from a checkpoint to its loss on a text.

  All have the same masks, in rows of the first one's length.
  """
  from maskedlm.cli import evaluate as evaluate_verb
  from maskedlm.inference.pretrained import evaluate
  from maskedlm.training.checkpoints import load

  documents = list(evaluate_verb.documents(data, None, Counter()))
  length = 0

  def loss_of(path: str) -> float:
    nonlocal length
    console.log(f"evaluating {path}")
    opened = load.open_checkpoint(path)
    model = evaluate.make_model(opened, path, length=length)
    length = model.length
    return evaluate.evaluate(model, documents)["mlm_loss"]

  return loss_of


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
    prog="maskedlm average",
    description="Averages the weights of checkpoints of one model: the last "
    "ones of a run (runs/x/checkpoints/*), or models fine-tuned from the same "
    "start.",
    allow_abbrev=False,
  )
  parser.add_argument(
    "checkpoints",
    nargs="+",
    metavar="CHECKPOINT",
    help="two or more: workdirs, or checkpoints of one",
  )
  parser.add_argument(
    "--ema",
    action="store_true",
    help="take the moving averages that they hold (train.ema_decay) instead of "
    "the weights; one checkpoint is enough",
  )
  options.add_out(parser, "the workdir to create", metavar="DIR", required=True)
  options.add_data(
    parser,
    "of pretrained models: text, as that of `maskedlm evaluate`; prints the "
    "loss of each checkpoint and of the average on it",
    required=False,
  )
  how = parser.add_mutually_exclusive_group()
  how.add_argument(
    "--weights",
    help="their weights, as 1,2,3 in the order that is given; default: equal",
  )
  how.add_argument(
    "--decay",
    type=float,
    help="an exponential moving average over them, oldest first: average = "
    "decay * average + (1 - decay) * next",
  )
  return parser


def _weights(args, count: int) -> list[float]:
  """Returns the weights, which add up to 1."""
  from maskedlm.training.checkpoints import average

  if args.decay is not None:
    if not 0 < args.decay < 1:
      raise ConfigError(f"--decay={args.decay}: expected above 0, below 1.")
    return average.decay_weights(args.decay, count).tolist()
  try:
    given = [
      float(x) for x in (args.weights or ",".join("1" * count)).split(",")
    ]
  except ValueError:
    given = []
  if len(given) != count or not all(0 < x < float("inf") for x in given):
    raise ConfigError(
      f"--weights={args.weights}: expected {count} positive numbers, one for "
      "each checkpoint, as 1,2,3."
    )
  return [x / sum(given) for x in given]
