"""`maskedlm embed`: vectors of tokens, words or sentences, into a file."""

import argparse
import contextlib
import pathlib
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence

from maskedlm import cli, outputs
from maskedlm.config import ConfigError

SECONDS = 2.0  # Between two lines of progress.


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  args = _parser().parse_args(glue_layers(argv))
  _check(args)
  from maskedlm import metrics, runtime
  from maskedlm.analysis import inputs, standardise, vector_files, vectors

  fitted = standardise.load(args.standardise) if args.standardise else None
  options = vectors.Options(
    unit=args.unit,
    pool=args.pool,
    layers=parse_layers(args.layers),
    combine=args.combine,
    normalize=args.normalize,
  )
  runtime.enable_compile_cache()
  model = vectors.open_model(args.checkpoint)
  options = vectors.as_made(options, model)
  layers = vectors.find_layers(options, model.cfg)
  about = {
    **options._asdict(),
    "layers": list(layers),
    "checkpoint": args.checkpoint,
    "encoder": vectors.fingerprint(model),
    "standardised": args.standardise or "",
  }
  if fitted:
    width = model.cfg.width * (len(layers) if args.combine == "concat" else 1)
    standardise.check(fitted, about, width=width)
  seen = Counter()
  show = progress(inputs.size(args.input), seen)
  texts = inputs.read(args.input, form=args.format, field=args.field, seen=seen)
  moments, count = None, 0
  with contextlib.ExitStack() as stack:
    write = None
    if args.out:
      write = stack.enter_context(vector_files.open_writer(args.out, about))
    for made in vectors.embed(
      model, texts, options, batch_tokens=args.batch_tokens
    ):
      if args.fit:
        moments = standardise.add(moments, made.values)
      if fitted:
        made = made._replace(values=standardise.apply(fitted, made.values))
      if write:
        write(made)
      count += len(made.values)
      show(count)
    if not count:
      raise ConfigError(f"the input has no {args.unit}: there is no vector.")
  if args.fit:
    standardise.save(args.fit, standardise.finish(moments, about))
  metrics.log(f"{count:,} vectors of {seen['texts']:,} texts")
  return 0


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
    prog="maskedlm embed",
    description="Writes contextual vectors of texts into a file; formats and "
    "examples are in docs/embeddings.md.",
    allow_abbrev=False,
  )
  add_input(parser)
  parser.add_argument(
    "--unit", default="token", help="token (default) | word | sentence"
  )
  parser.add_argument(
    "--pool",
    default="",
    help="how a unit's tokens are pooled: mean | max | cls (sentences only); "
    "default: for sentences as the model was imported or trained, else mean",
  )
  parser.add_argument(
    "--layers",
    default="last",
    help="last (default), or a list such as -1,-2,-3,-4 (the last four) or "
    "0,6: 0 is the embeddings, -1 the last layer",
  )
  parser.add_argument(
    "--combine",
    default="mean",
    help="how several layers are combined: mean (default) | sum | concat",
  )
  parser.add_argument(
    "--normalize", action="store_true", help="each vector to length 1"
  )
  parser.add_argument("--out", help="a name in .npz, .safetensors or .jsonl")
  parser.add_argument(
    "--fit",
    metavar="FILE.npz",
    help="stores mean and standard deviation of the vectors, for --standardise",
  )
  parser.add_argument(
    "--standardise",
    metavar="FILE.npz",
    help="subtracts the mean and divides by the standard deviation of --fit",
  )
  return parser


def _check(args: argparse.Namespace) -> None:
  """What of the options can be checked before anything slow begins."""
  if not args.out and not args.fit:
    raise ConfigError("give --out=FILE for the vectors, or --fit=FILE.")
  if args.fit and args.standardise:
    raise ConfigError("--fit is of vectors as they are: leave --standardise.")
  if args.combine == "stack":
    raise ConfigError(
      "combine='stack' is for Python; in a file, use mean, sum or concat."
    )
  check_input(args)
  from maskedlm.analysis import vector_files

  if args.out:
    vector_files.check(args.out)
  if args.fit:
    outputs.check(args.fit, suffixes=(".npz",), option="--fit")
  read = [*args.input, *filter(None, [args.standardise])]
  for option, path in (("--out", args.out), ("--fit", args.fit)):
    if path and any(_same(path, other) for other in read):
      raise ConfigError(f"{option}={path} is what is read: give another name.")
  if args.out and args.fit and _same(args.out, args.fit):
    raise ConfigError(f"--out and --fit are both {args.out}: give two names.")


def _same(a: str, b: str) -> bool:
  """Whether two paths are of one file, there or to be made."""
  a, b = pathlib.Path(a), pathlib.Path(b)
  return a.resolve() == b.resolve() or (
    a.exists() and b.exists() and a.samefile(b)
  )


def add_input(parser: argparse.ArgumentParser) -> None:
  """The options that say what is embedded, and with what."""
  cli.add_checkpoint(parser)
  parser.add_argument(
    "--input",
    nargs="+",
    default=["-"],
    metavar="FILE",
    help="files with a text, or a JSON object, on each line; - or none = stdin",
  )
  parser.add_argument(
    "--format", default="", help="text | jsonl; default: by the file's name"
  )
  parser.add_argument(
    "--field",
    default="text",
    help="of JSON objects, where the text is; default: text",
  )
  add_batch_tokens(parser)


def add_batch_tokens(parser: argparse.ArgumentParser) -> None:
  """The option that says how much the encoder is given at once."""
  parser.add_argument(
    "--batch_tokens",
    type=int,
    default=4096,
    help="positions that the encoder sees at once; default: 4096",
  )


def check_batch_tokens(args: argparse.Namespace) -> None:
  """Raises ConfigError for no batch."""
  if args.batch_tokens < 1:
    raise ConfigError(
      f"--batch_tokens={args.batch_tokens}: expected 1 or more."
    )


def check_input(args: argparse.Namespace) -> None:
  """What of add_input's options can be checked at once.

  Raises:
    ConfigError: a file that is not there, an unknown format, no batch.
  """
  from maskedlm.analysis import inputs

  inputs.check(args.input, form=args.format)
  check_batch_tokens(args)


def glue_layers(argv: Sequence[str]) -> list[str]:
  """--layers -1,-2 as --layers=-1,-2, which argparse takes for an option."""
  glued = list(argv)
  for i, arg in enumerate(argv[:-1]):
    if arg == "--layers":
      glued[i : i + 2] = [f"--layers={argv[i + 1]}"]
      break
  return glued


def parse_layers(text: str) -> tuple[int, ...]:
  """ "last" or "-1,-2" -> numbers.

  Raises:
    ConfigError: neither.
  """
  if text == "last":
    return (-1,)
  if not re.fullmatch(r"-?\d+(,-?\d+)*", text):
    raise ConfigError(
      f"--layers={text!r}: expected last, or numbers such as -1,-2,-3,-4."
    )
  return tuple(map(int, text.split(",")))


def progress(size: int, seen: Counter) -> Callable[[int], None]:
  """The function that shows how many vectors there are, now and then.

  Args:
    size: bytes of the input; 0 = unknown.
    seen: "bytes" and "texts" that were read so far.
  """
  from maskedlm import metrics

  start = shown = time.perf_counter()

  def show(count: int) -> None:
    nonlocal shown
    now = time.perf_counter()
    if now - shown < SECONDS:
      return
    shown = now
    rate = seen["texts"] / (now - start)
    line = f"{seen['texts']:,} texts | {count:,} vectors | {rate:,.0f} texts/s"
    if size:
      share = seen["bytes"] / size
      left = metrics.format_seconds((now - start) * (1 / share - 1))
      bar = ("#" * round(20 * share)).ljust(20, ".")
      line = f"[{bar}] {share:.0%} | ETA {left} | {line}"
    metrics.progress(line)

  return show


if __name__ == "__main__":
  sys.exit(cli.run(main))
