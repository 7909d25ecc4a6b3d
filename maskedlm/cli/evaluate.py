"""`maskedlm evaluate`: scores a fine-tuned checkpoint on a labelled file."""

import argparse
import pathlib
from collections.abc import Sequence

from maskedlm.cli import options
from maskedlm.core.counts import counted
from maskedlm.finetune import data_files
from maskedlm.runtime import console, output_options


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog="maskedlm evaluate",
    description="Scores a fine-tuned checkpoint (the best of a workdir) on a "
    "labelled file in the format of its training data.",
    allow_abbrev=False,
    epilog=data_files.HELP,
  )
  options.add_checkpoint(parser)
  options.add_data(parser, "labelled files", required=True)
  options.add_out(parser, "write the predictions here, as JSONL")
  options.add_json(parser)
  options.add_batch_size(parser)
  options.add_length(parser)
  argv, overrides = data_files.split_arguments(argv)
  args = parser.parse_args(argv)

  from maskedlm.finetune import predict, run
  from maskedlm.runtime import startup

  options.check_at_least(args, batch_size=1, length=8)
  if args.out:
    output_options.check_file(args.out, option="--out")
  startup.enable_compile_cache()
  model = predict.open_model(
    args.checkpoint, overrides, length=args.length or 0
  )
  examples = predict.read_labelled(
    model.task, model.app, model.options, args.data
  )
  cut: list[int] = []
  predictions = predict.predict(
    model,
    examples,
    batch_size=args.batch_size,
    progress=predict.show_progress,
    cut=cut,
  )
  predict.log_cut(model, cut, option="--length={}")
  values = model.app.score(examples, predictions)
  if args.json:
    console.print_json({"examples": len(examples), **values})
  else:
    print(f"{args.data}: {counted(len(examples), 'example')}")
    run.log_result(values, print)
  if args.out:
    with output_options.named_errors(args.out, option="--out"):
      run.write_predictions(predictions, pathlib.Path(args.out))
  return 0
