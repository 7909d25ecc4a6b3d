"""`maskedlm evaluate`: measures a model on text, or on labelled data."""

import argparse
import itertools
import pathlib
from collections import Counter
from collections.abc import Iterator, Sequence

from maskedlm.cli import options
from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError, CorpusError
from maskedlm.finetune import data_files
from maskedlm.runtime import console, output_options

# Of a fine-tuned, and of a pretrained model.
_ONLY_LABELLED, _ONLY_TEXT = ("out",), ("mask_rate", "seed", "field")

# Counts of a report that are no irregularity.
_USUAL = ("documents", "characters", "bytes read", "files read", "lines")


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  argv, overrides = data_files.split_arguments(argv)
  args = _parser().parse_args(argv)
  options.check_at_least(args, batch_size=1, length=8, seed=0)

  from maskedlm.finetune import members
  from maskedlm.runtime import startup
  from maskedlm.training.checkpoints import load

  if args.out:
    output_options.check_file(args.out, option="--out")
  paths = members.split_paths(args.checkpoint)
  described = load.describe_checkpoint(paths[0])
  is_fine_tuned = "kind" in described.meta["task"]
  _check_options(args, overrides, is_fine_tuned)
  if len(paths) > 1 and not is_fine_tuned:
    raise ConfigError(
      f"--checkpoint={args.checkpoint}: several checkpoints are an ensemble of "
      f"fine-tuned models, but {paths[0]} is not fine-tuned; give one."
    )
  startup.enable_compile_cache()
  if is_fine_tuned:
    return _evaluate_labelled(args, paths, overrides)
  return _evaluate_text(args)


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
    prog="maskedlm evaluate",
    description="Measures a pretrained or imported model on text: loss and "
    "accuracy of masked tokens, bits per character, next-sentence prediction. "
    "Scores a fine-tuned model (its best checkpoint) on a labelled file in the "
    "format of its training data.",
    allow_abbrev=False,
    epilog=data_files.HELP,
  )
  options.add_checkpoints(parser)
  options.add_data(
    parser,
    "of a fine-tuned model: labelled files. Of others: text files, whose "
    "documents are separated by blank lines; - for stdin; or a source as in "
    "corpus.source: lines:GLOB, jsonl:GLOB, ...",
    required=True,
  )
  options.add_out(
    parser, "of a fine-tuned model: write the predictions here, as JSONL"
  )
  options.add_json(parser)
  options.add_batch_size(parser)
  options.add_length(parser)
  parser.add_argument(
    "--mask_rate",
    type=float,
    help="share of the tokens that is masked; default: 0.15",
  )
  parser.add_argument(
    "--seed", type=int, help="decides which tokens are masked; default: 0"
  )
  parser.add_argument(
    "--field",
    help="the field of jsonl: and parquet: that holds the text; default: text",
  )
  return parser


def _check_options(args, overrides: Sequence[str], is_fine_tuned: bool) -> None:
  """Refuses an option that the kind of model has no use for."""
  names = _ONLY_TEXT if is_fine_tuned else _ONLY_LABELLED
  wrong = [f"--{n}" for n in names if getattr(args, n) is not None]
  wrong += [] if is_fine_tuned else overrides
  if wrong:
    kind = "a fine-tuned" if is_fine_tuned else "a pretrained"
    raise ConfigError(
      f"{wrong[0]}: {args.checkpoint} is {kind} model, for which this option "
      "has no meaning: leave it out."
    )


def _evaluate_labelled(
  args, paths: Sequence[str], overrides: Sequence[str]
) -> int:
  from maskedlm.finetune import members, predict, run

  model = members.open_model(paths, overrides, length=args.length or 0)
  examples = predict.read_labelled(model.task, model.app, args.data)
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
  several = {"checkpoints": paths} if len(paths) > 1 else {}
  if args.json:
    console.print_json({**several, "examples": len(examples), **values})
  else:
    if several:
      print(f"mean of {len(paths)} checkpoints: {', '.join(paths)}")
    print(f"{args.data}: {counted(len(examples), 'example')}")
    run.log_result(values, print)
  if args.out:
    with output_options.named_errors(args.out, option="--out"):
      run.write_predictions(predictions, pathlib.Path(args.out))
  return 0


def _evaluate_text(args) -> int:
  from maskedlm.inference.pretrained import evaluate
  from maskedlm.training.checkpoints import load

  rate = evaluate.MASK_RATE if args.mask_rate is None else args.mask_rate
  if not 0 < rate <= 1:
    raise ConfigError(f"--mask_rate={rate}: expected above 0, at most 1.")
  opened = load.open_checkpoint(args.checkpoint)
  model = evaluate.make_model(opened, args.checkpoint, length=args.length or 0)
  report: Counter = Counter()
  values = evaluate.evaluate(
    model,
    documents(args.data, args.field, report),
    mask_rate=rate,
    seed=args.seed or 0,
    batch_size=args.batch_size,
  )
  for name, count in sorted(report.items()):
    if name not in _USUAL:
      console.log(f"  {name}: {count:,}")
  if args.json:
    console.print_json(values)
    return 0
  for line in format_values(values):
    print(line)
  return 0


def documents(
  source: str, field: str | None, report: Counter
) -> Iterator[list[str]]:
  """Yields the documents of --data, each a list of lines; adds to `report`."""
  from maskedlm.data.labelled import text_lines
  from maskedlm.data.sources import reader

  kind = source.partition(":")[0]
  if field is not None and kind not in reader.FIELD_TYPES:
    raise ConfigError(
      f"--field={field}: --data={source} has no fields; expected "
      "jsonl:..., parquet:... or tfds:...; leave it out."
    )
  if source == text_lines.STDIN:
    lines = (line.strip() for _, line in text_lines.read_lines(source))
    found = itertools.groupby(lines, key=bool)
    yield from (list(document) for has_text, document in found if has_text)
    return
  if kind not in reader.SOURCE_TYPES:
    source = f"text:{source}"
  try:
    yield from reader.read_documents(
      source, text_field=field or "text", report=report
    )
  except CorpusError as error:  # It names the options of pretraining.
    message = str(error).replace("corpus.source", "--data")
    raise CorpusError(
      message.replace("corpus.text_field", "--field")
    ) from error


def format_values(values) -> list[str]:
  """Returns lines for the terminal."""
  lines = [
    f"{counted(values['documents'], 'document')}, "
    f"{counted(values['tokens'], 'token')}, "
    f"{counted(values['characters'], 'character')}; "
    f"{counted(values['masked_tokens'], 'token')} masked: "
    f"{values['mask_rate']:.0%} of each row of up to "
    f"{values['length']}, seed {values['seed']}",
    f"  MLM loss            {values['mlm_loss']:.4f} nats (perplexity "
    f"{values['perplexity']:,.1f})",
    f"  bits per character  {values['bits_per_character']:.4f}",
    f"  MLM accuracy        {values['mlm_accuracy']:.1%}",
  ]
  if "nsp_pairs" in values:
    lines.append(
      f"  NSP accuracy        {values['nsp_accuracy']:.1%} of "
      f"{counted(values['nsp_pairs'], 'pair')}"
    )
  return lines
