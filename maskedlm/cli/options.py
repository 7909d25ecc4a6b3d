"""Defines command-line options that several verbs share.

Layers are counted the same way everywhere: 0 is the embeddings, 1 to N the
layers, -1 the last one; `last` and `all` (1 to N) are names for some of them.
"""

import argparse
import pathlib
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence

from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError
from maskedlm.inference.batch_tokens import BATCH_TOKENS
from maskedlm.runtime import console

SECONDS = 2.0  # Minimum time between two lines of progress.


def add_checkpoint(parser: argparse.ArgumentParser) -> None:
  """Adds --checkpoint."""
  parser.add_argument(
    "--checkpoint", required=True, help="a workdir, or one of its checkpoints"
  )


def add_checkpoints(parser: argparse.ArgumentParser) -> None:
  """Adds --checkpoint, which may name several for an ensemble."""
  parser.add_argument(
    "--checkpoint",
    required=True,
    help="a workdir, or one of its checkpoints; several fine-tuned ones, with "
    "commas between them, are an ensemble: the mean of their probabilities",
  )


def add_workdirs(parser: argparse.ArgumentParser) -> None:
  """Adds the runs to show, one or more."""
  parser.add_argument(
    "workdirs",
    nargs="+",
    metavar="WORKDIR",
    help="a run of pretrain or finetune, also gs://... or s3://...",
  )


def add_input(parser: argparse.ArgumentParser) -> None:
  """Adds --input, --format and --field: the texts to read."""
  parser.add_argument(
    "--input",
    nargs="+",
    action="extend",  # If it is given twice, all files are read.
    default=[],
    metavar="FILE",
    help="files with a text, or a JSON object, on each line; - or none = stdin",
  )
  parser.add_argument(
    "--format", default="", help="text | jsonl; default: by the file's name"
  )
  add_field(parser)


def add_field(parser: argparse.ArgumentParser) -> None:
  """Adds --field."""
  parser.add_argument(
    "--field",
    default="text",
    help="the field of JSON objects that holds the text; default: text",
  )


def add_data(
  parser: argparse.ArgumentParser, help: str, *, required: bool, **more
) -> None:
  """Adds --data; if it is given several times, with commas between them."""

  class Joined(argparse.Action):
    def __call__(self, parser, args, value, option=None):
      args.data = ",".join(filter(None, [args.data, value]))

  parser.add_argument(
    "--data", action=Joined, required=required, help=help, **more
  )


def add_batch_tokens(parser: argparse.ArgumentParser) -> None:
  """Adds --batch_tokens: how many tokens the encoder reads at once."""
  parser.add_argument(
    "--batch_tokens",
    type=int,
    default=BATCH_TOKENS,
    help="tokens, padding included, that the encoder reads at once; "
    "default: 1024 on a CPU, 4096 elsewhere",
  )


def add_batch_size(parser: argparse.ArgumentParser) -> None:
  """Adds --batch_size: how many examples are labelled at once."""
  parser.add_argument(
    "--batch_size", type=int, default=32, help="examples at a time; default: 32"
  )


def add_length(parser: argparse.ArgumentParser) -> None:
  """Adds --length: how many tokens of a text the encoder reads at once."""
  parser.add_argument(
    "--length",
    type=int,
    help="tokens in a row, special ones included; a longer text is cut, or "
    "read in windows; default: as the model was trained or imported",
  )


def add_json(
  parser: argparse.ArgumentParser, help: str = "print JSON instead of text"
) -> None:
  """Adds --json, a flag."""
  parser.add_argument("--json", action="store_true", help=help)


def add_out(
  parser: argparse.ArgumentParser,
  help: str,
  *,
  metavar: str = "FILE",
  required: bool = False,
) -> None:
  """Adds --out: the file or directory to write."""
  parser.add_argument("--out", metavar=metavar, required=required, help=help)


def add_layers(
  parser: argparse.ArgumentParser, default: str = "last", about: str = "last"
) -> None:
  """Adds --layers; `about` describes the default."""
  parser.add_argument(
    "--layers",
    default=default,
    help="last | all | numbers such as -1,-2 or 0,6: 0 is the embeddings, 1 "
    f"the first layer, -1 the last; default: {about}",
  )


def add_combine(
  parser: argparse.ArgumentParser, default: str = "mean", why: str = ""
) -> None:
  """Adds --combine; `why` is the reason for a default other than mean."""
  parser.add_argument(
    "--combine",
    default=default,
    help="how several layers are combined: mean | sum | concat; default: "
    f"{default}{why}",
  )


def add_old_name(
  parser: argparse.ArgumentParser, name: str, new: str, type: type = str
) -> None:
  """Adds the name that an option had in earlier versions; --help omits it."""
  parser.add_argument(
    name,
    dest=new,
    type=type,
    default=argparse.SUPPRESS,
    help=argparse.SUPPRESS,
  )


def check_at_least(args: argparse.Namespace, **bounds: int) -> None:
  """Raises ConfigError for an option below its bound; None passes."""
  for name, least in bounds.items():
    value = getattr(args, name)
    if value is not None and not value >= least:  # NaN is not, either.
      raise ConfigError(f"--{name}={value}: expected {least} or more.")


def check_combine(args: argparse.Namespace, default: str = "mean") -> None:
  """Checks --combine, and prints if there is only one layer to combine.

  Args:
    args: has combine and layers.
    default: the default of --combine.

  Raises:
    ConfigError: only the Python interface accepts the value.
  """
  if args.combine == "stack":
    raise ConfigError(
      "--combine=stack is for Python; expected mean, sum or concat."
    )
  one = args.layers and len(parse_layers(args.layers)) == 1
  if one and args.combine != default:
    console.log(
      f"--combine={args.combine} has no effect with --layers={args.layers}, "
      "which is one layer"
    )


def check_input(args: argparse.Namespace) -> None:
  """Checks the options of add_input and add_batch_tokens; sets the input.

  Raises:
    ConfigError: a file doesn't exist, or a value is wrong.
  """
  from maskedlm.data.labelled import text_lines

  args.input = args.input or [text_lines.STDIN]
  text_lines.check_files(args.input, form=args.format)
  check_field(args, args.input)
  check_at_least(args, batch_tokens=1)


def check_field(args: argparse.Namespace, files: Sequence[str]) -> None:
  """Raises ConfigError for --field if no file has JSON objects."""
  from maskedlm.data.labelled import text_lines

  form = getattr(args, "format", None)  # None: the verb has no --format.
  if args.field != "text" and not any(
    text_lines.is_jsonl(file, form or "") for file in files
  ):
    remedy = "" if form is None else ", or give --format=jsonl"
    raise ConfigError(
      f"--field={args.field} has no effect: {', '.join(files)} is not read as "
      f"JSON lines; name it FILE.jsonl{remedy}, or leave out --field."
    )


def check_not_read(option: str, path: str, read: Sequence[str]) -> None:
  """Raises ConfigError if a file that is to be written is an input, too."""
  if any(is_same_file(path, other) for other in read):
    raise ConfigError(f"{option}={path} is an input, too: give another name.")


def is_same_file(a: str, b: str) -> bool:
  """Returns whether two paths name one file, which may not exist yet."""
  first, second = pathlib.Path(a), pathlib.Path(b)
  return first.resolve() == second.resolve() or (
    first.exists() and second.exists() and first.samefile(second)
  )


def check_json_flag(argv: Sequence[str]) -> None:
  """Raises ConfigError for `--json FILE`, its form before --json was a flag.

  Only for verbs without positional arguments.
  """
  for arg, after in zip(argv, [*argv[1:], "-"], strict=True):
    name, _, file = arg.partition("=")
    if arg == "--json" and not after.startswith("-"):
      file = after
    if name == "--json" and file:
      raise ConfigError(
        f"--json={file}: --json takes no value and prints JSON; to write it to "
        f"a file, give --out={file}."
      )


def join_layers(argv: Sequence[str]) -> list[str]:
  """Returns argv with --layers=-1,-2 for `--layers -1,-2`.

  Otherwise argparse would take the value for an option.
  """
  joined = list(argv)
  for i, arg in enumerate(argv[:-1]):
    if arg in ("--layers", "--layer"):
      joined[i : i + 2] = [f"{arg}={argv[i + 1]}"]
      break
  return joined


def parse_layers(text: str, num_layers: int | None = None) -> tuple[int, ...]:
  """Parses --layers: "last", "all" or numbers such as "-1,-2".

  Args:
    text: the option's value.
    num_layers: the encoder's number of layers; None = not known yet, to check
      the value only ("all" is then empty).

  Returns:
    Numbers of layers, possibly negative.

  Raises:
    ConfigError: the value has another form.
  """
  if text == "last":
    return (-1,)
  if text == "all":
    return tuple(range(1, (num_layers or 0) + 1))
  if not re.fullmatch(r"-?\d+(,-?\d+)*", text):
    raise ConfigError(
      f"--layers={text!r}: expected last, all, or numbers such as -1,-2,-3,-4."
    )
  return tuple(map(int, text.split(",")))


def make_progress(
  size: int, seen: Counter, what: str = "vector"
) -> Callable[[int], None]:
  """Returns a function that shows how far texts are read, every SECONDS.

  Args:
    size: bytes of the input; 0 = unknown.
    seen: numbers of "bytes" and "texts" read so far.
    what: what is made of the texts.

  Returns:
    A function of the number made so far.
  """
  start = shown = time.perf_counter()

  def show(count: int) -> None:
    nonlocal shown
    now = time.perf_counter()
    if now - shown < SECONDS:
      return
    shown = now
    rate = seen["texts"] / (now - start)
    line = (
      f"{counted(seen['texts'], 'text')} | {counted(count, what)} | "
      f"{rate:,.0f} texts/s"
    )
    if size and seen["bytes"]:
      share = seen["bytes"] / size
      left = console.format_seconds((now - start) * (1 / share - 1))
      bar = ("#" * round(20 * min(share, 1.0))).ljust(20, ".")
      line = f"[{bar}] {share:.0%} | ETA {left} | {line}"
    console.progress(line)

  return show
