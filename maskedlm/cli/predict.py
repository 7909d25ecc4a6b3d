"""`maskedlm predict`: labels raw text with a fine-tuned checkpoint."""

import argparse
import pathlib
from collections.abc import Iterator, Sequence

from maskedlm.cli import options
from maskedlm.core.errors import ConfigError
from maskedlm.finetune import data_files
from maskedlm.runtime import console, output_files, output_options

CHUNK = 256  # Lines to read at a time.


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  argv, overrides = data_files.split_arguments(argv)
  args = _parser().parse_args(argv)
  if sum(map(bool, (args.input, args.data, args.text))) > 1:
    raise ConfigError("give one of --input, --data and texts.")
  if args.export and not args.data:
    raise ConfigError("--export needs a whole file: give it as --data.")
  options.check_at_least(args, batch_size=1, length=8)
  if args.export:
    output_options.check_folder(args.export, option="--export")

  from maskedlm.data.labelled import text_lines
  from maskedlm.finetune import members, predict
  from maskedlm.runtime import startup

  text_lines.check_files([args.input or text_lines.STDIN], form="")
  startup.enable_compile_cache()
  model = members.open_model(
    members.split_paths(args.checkpoint), overrides, length=args.length or 0
  )
  if args.export and not model.task.export_predictions:
    raise ConfigError(
      f"--export: the task {model.task.name} has no "
      "official format; use --json."
    )
  made, cut = [], []
  for lines, examples in _examples(model, args):
    predictions = predict.predict(
      model, examples, batch_size=args.batch_size, cut=cut
    )
    for line, prediction in zip(lines, predictions, strict=True):
      if args.json:
        record = {"line": line, **prediction} if line else prediction
        console.print_json(record)
      elif not args.export:
        print(model.task.format_prediction(prediction), flush=True)
    made += predictions if args.export else []
  predict.log_cut(model, cut, option="--length={}")
  if args.export:
    folder = pathlib.Path(args.export)
    files = model.task.export_predictions(made)
    with (
      output_options.named_errors(folder, option="--export"),
      output_files.folder(folder),
    ):
      for name, text in files.items():
        output_files.write_text(folder / name, text)
        print(folder / name)
  return 0


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
    prog="maskedlm predict",
    description="Labels texts, or JSON objects, one on each line; the "
    "tutorials in docs/guides/finetune/overview.md show what a line holds.",
    allow_abbrev=False,
    epilog=data_files.HELP,
  )
  options.add_checkpoints(parser)
  parser.add_argument("--input", help="a file of lines; - or none = stdin")
  options.add_data(
    parser,
    "instead of --input: files in the training data's format",
    required=False,
  )
  parser.add_argument(
    "--export",
    metavar="DIR",
    help="with --data: writes the task's official files (GLUE, SQuAD, ...)",
  )
  options.add_json(parser, "print a JSON line for each text")
  options.add_batch_size(parser)
  options.add_length(parser)
  parser.add_argument("text", nargs="*", help="texts, instead of --input")
  return parser


def _examples(model, args) -> Iterator[tuple[Sequence[int], Sequence]]:
  """Yields (line numbers, examples), a few at a time; 0 = no number."""
  from maskedlm.core.errors import DataError
  from maskedlm.data.labelled import text_lines

  if args.data:
    examples = data_files.read_examples(model.task, args.data)
    yield [0] * len(examples), examples
    return
  path = args.input or text_lines.STDIN

  def parse(number: int, line: str):
    try:
      return model.task.parse_line(line)
    except DataError as error:
      if not number:  # From the command line.
        raise
      name = "stdin" if path == text_lines.STDIN else path
      raise DataError(f"{name}:{number}: {error}") from None

  parsed = (
    (number, parse(number, line))
    for number, line in text_lines.given_texts(args.text, path)
  )
  for some in text_lines.request_groups(parsed, CHUNK, args.text, [path]):
    yield tuple(zip(*some, strict=True))
