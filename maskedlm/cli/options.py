"""Command-line options that several verbs share."""

import argparse
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence

from maskedlm.core.errors import ConfigError
from maskedlm.runtime import console

SECONDS = 2.0  # Between two lines of progress.


def add_input(parser: argparse.ArgumentParser) -> None:
  """The options that say what is embedded, and with what."""
  add_checkpoint(parser)
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
  from maskedlm.data.labelled import text_lines

  text_lines.check_files(args.input, form=args.format)
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
      left = console.format_seconds((now - start) * (1 / share - 1))
      bar = ("#" * round(20 * share)).ljust(20, ".")
      line = f"[{bar}] {share:.0%} | ETA {left} | {line}"
    console.progress(line)

  return show


def add_checkpoint(parser: argparse.ArgumentParser) -> None:
  """The option that says which model."""
  parser.add_argument(
    "--checkpoint", required=True, help="a workdir, or one of its checkpoints"
  )
