"""`maskedlm embed`: writes vectors of tokens, words or sentences to a file."""

import argparse
import contextlib
from collections import Counter
from collections.abc import Sequence

from maskedlm.cli import options as shared
from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError
from maskedlm.runtime import console, output_options


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  args = _parser().parse_args(shared.join_layers(argv))
  _check(args)
  from maskedlm.data.labelled import text_lines
  from maskedlm.inference.vectors import standardise, vectors, writers
  from maskedlm.runtime import startup

  fitted = (
    standardise.load_standardiser(args.standardise)
    if args.standardise
    else None
  )
  startup.enable_compile_cache()
  model = vectors.open_text_encoder(
    args.checkpoint,
    length=args.length or 0,
    batch_tokens=args.batch_tokens,
  )
  options = vectors.VectorOptions(
    unit=args.unit,
    pool=args.pool,
    layers=shared.parse_layers(args.layers, model.cfg.num_layers),
    combine=args.combine,
    normalize=args.normalize,
  )
  options = vectors.resolve_options(options, model)
  about = {
    **standardise.describe(model, options, checkpoint=args.checkpoint),
    "standardised": args.standardise or "",
  }
  if fitted:
    standardise.check_standardiser(fitted, about, width=model.cfg.width)
  seen = Counter()
  show = shared.make_progress(text_lines.total_bytes(args.input), seen)
  texts = text_lines.read_texts(
    args.input, form=args.format, field=args.field, seen=seen
  )
  moments, count = None, 0
  long: list[int] = []
  with contextlib.ExitStack() as stack:
    write = None
    if args.out:
      write = stack.enter_context(writers.open_writer(args.out, about))
    for made in vectors.embed(model, texts, options, long=long):
      if args.fit:
        moments = standardise.update_moments(moments, made.values)
      if fitted:
        made = made._replace(
          values=standardise.apply_standardiser(fitted, made.values)
        )
      if write:
        write(made)
      count += len(made.values)
      show(count)
    if not count:
      raise ConfigError(f"the input has no {args.unit}: no vector to write.")
  if args.fit:
    standardise.save_standardiser(
      args.fit, standardise.make_standardiser(moments, about)
    )
  vectors.log_windows(model, options, long, option="--length={}")
  console.log(f"{counted(count, 'vector')} of {counted(seen['texts'], 'text')}")
  return 0


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
    prog="maskedlm embed",
    description="Writes contextual vectors of texts to a file; formats and "
    "examples are in docs/guides/use/embeddings.md.",
    allow_abbrev=False,
  )
  shared.add_checkpoint(parser)
  shared.add_input(parser)
  shared.add_batch_tokens(parser)
  shared.add_length(parser)
  parser.add_argument(
    "--unit", default="token", help="token (default) | word | sentence"
  )
  parser.add_argument(
    "--pool",
    default="",
    help="how a unit's tokens are pooled: mean | max | cls (sentences only); "
    "default: for sentences as the model was imported or trained, otherwise "
    "mean",
  )
  shared.add_layers(parser)
  shared.add_combine(parser)
  parser.add_argument(
    "--normalize", action="store_true", help="scale each vector to length 1"
  )
  shared.add_out(parser, "a .npz or .jsonl file")
  parser.add_argument(
    "--fit",
    metavar="FILE.npz",
    help="stores the mean and standard deviation of the vectors, for "
    "--standardise",
  )
  parser.add_argument(
    "--standardise",
    metavar="FILE.npz",
    help="subtracts the mean that --fit stored, divides by its standard "
    "deviation",
  )
  return parser


def _check(args: argparse.Namespace) -> None:
  """Checks what can be checked before anything slow begins."""
  if not args.out and not args.fit:
    raise ConfigError("give --out=FILE for the vectors, or --fit=FILE.")
  if args.fit and args.standardise:
    raise ConfigError(
      "--fit measures vectors as they are: leave out --standardise."
    )
  if args.pool and args.unit == "token":
    raise ConfigError(
      f"--pool={args.pool} has no effect with --unit=token: leave it out, or "
      "give --unit=word or --unit=sentence."
    )
  shared.check_at_least(args, length=8)
  shared.check_combine(args)
  shared.parse_layers(args.layers)
  shared.check_input(args)
  from maskedlm.inference.vectors import writers

  if args.out:
    writers.check_vector_file(args.out)
  if args.fit:
    output_options.check_file(args.fit, suffixes=(".npz",), option="--fit")
  read = [*args.input, *filter(None, [args.standardise])]
  for option, path in (("--out", args.out), ("--fit", args.fit)):
    if path:
      shared.check_not_read(option, path, read)
  if args.out and args.fit and shared.is_same_file(args.out, args.fit):
    raise ConfigError(f"--out and --fit are both {args.out}: give two names.")
