"""The frame of the command line: a verb is a frozen dataclass of its flags.

  @dataclasses.dataclass(frozen=True)
  class FillMask:
    "Prints the most probable words for each mask of each text."

    checkpoint: str = shared.checkpoint()
    top_k: int = flag(5, "Words for each mask.", low=1)
    text: tuple[str, ...] = argument((), "Texts; none = lines of stdin.")

    def run(self): ...

A field whose type is such a dataclass, too, stands for all of its flags. The
parser, the checks, --help, docs/reference/cli.md and the shell's completion are
made from the fields. A class may have `check()`, for what the fields can't say,
and ONE_OF, flags of which at most one can be given.
"""

import argparse
import dataclasses
import itertools
import pathlib
import re
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from maskedlm.cli import shared
from maskedlm.cli.flags import ANY, REQUIRED, STDIN, Flag, flags_of
from maskedlm.core.errors import ConfigError, check_name, did_you_mean
from maskedlm.core.options import expected, unused
from maskedlm.runtime import buckets, console, hub_names, output_options


def make_parser(cls: type, command: str) -> argparse.ArgumentParser:
  """Returns the parser of a verb; `command` is how it is called."""
  parser = argparse.ArgumentParser(
    prog=f"maskedlm {command}",
    description=" ".join((cls.__doc__ or "").split()).replace("%", "%%"),
    allow_abbrev=False,
  )
  for flag in flags_of(cls):
    if flag.about["prefix"]:
      continue
    more: dict[str, Any] = {"help": flag.doc.replace("%", "%%")}
    if flag.kind is bool:
      parser.add_argument(flag.spelling, action="store_true", **more)
      continue
    kind = str if "config" in flag.about else flag.kind
    more |= {"type": kind, "metavar": flag.about["metavar"] or None}
    is_required = flag.default is REQUIRED
    if flag.is_many:
      more |= {"action": "extend", "nargs": flag.about["nargs"]}
    if not flag.about["is_argument"]:
      more |= {"dest": flag.name, "required": is_required}
      parser.add_argument(flag.spelling, **more)
      continue
    more["metavar"] = flag.spelling
    if not is_required:
      more["nargs"] = "*" if flag.is_many else "?"
    parser.add_argument(flag.name, **more)
  return parser


def parse(cls: type, command: str, argv: Sequence[str]) -> Any:
  """Returns the verb that a command line describes, checked.

  Raises:
    ConfigError: a value is wrong, or a flag has no effect beside the others.
  """
  if hasattr(cls, "parse"):
    return cls.parse(command, argv)
  flags = {flag.name: flag for flag in flags_of(cls)}
  collected: dict[str, Any] = {}
  for name, flag in flags.items():
    if prefix := flag.about["prefix"]:
      collected[name] = tuple(t for t in argv if t.startswith(prefix))
      argv = [t for t in argv if not t.startswith(prefix)]
  argv = normalise(cls, argv)
  parser = make_parser(cls, command)
  config = next((f for f in flags.values() if "config" in f.about), None)
  if config:
    args = _read_config(parser, argv, **config.about["config"])
  else:
    args, unknown = parser.parse_known_args(argv)
    if unknown:
      raise ConfigError(_unknown(flags, unknown[0], argv))
  read = vars(args) | collected
  given = _given_names(flags, read, argv)
  values = {
    name: read[name] if read.get(name) is not None else flag.default
    for name, flag in flags.items()
  }
  for flag in flags.values():
    _check_value(flag, values[flag.name])
  _check_together(cls, flags, values, given)
  _check_files(flags, values)
  checkpoint = values.get("checkpoint") or ""
  paths = [checkpoint] if isinstance(checkpoint, str) else checkpoint
  if hub_names.PREFIX in ",".join(paths):
    from maskedlm.interop.huggingface import hub

    # Commas separate the members of an ensemble.
    paths = [",".join(map(hub.pin, path.split(","))) for path in paths]
    values["checkpoint"] = paths[0] if isinstance(checkpoint, str) else paths
  return _build(cls, values)


def _read_config(
  parser, argv, *, instead: str, fits_corpus: bool, folder: str
) -> argparse.Namespace:
  """Returns the verb's arguments, with the validated config as .config.

  It is that of --config or of the run in --workdir, with the overrides; None if
  `instead` is given. The arguments are those of flags.config_flag.
  """
  from maskedlm.config import defaults, existing, overrides, resumed
  from maskedlm.interop.huggingface import hub
  from maskedlm.pretraining.initial import init_from

  args, changes = overrides.split_arguments(parser, argv, instead=instead)
  path, given = args.config, overrides.given_options(changes)
  if path is None and instead:
    return args

  def complete(config) -> None:
    usual = {"workdir": f"runs/{config.name}", "out": config.corpus.path}
    target = folder and (getattr(args, folder) or usual[folder])

    def started() -> bool:
      return bool(target) and buckets.origin(target).exists()

    config.init_from = hub.pin(config.init_from, target)
    # A run's own config has the architecture already.
    if path is not None or {*init_from.SOURCES} & {*given}:
      init_from.copy_architecture(config, given=given)
    existing.fit_to_tokenizer(config, given, started=started)
    if fits_corpus:
      existing.fit_to_corpus(config, given, started=started)
    defaults.validate(config)
    reasons = unused(config, defaults.sections(config))
    # No error: several runs may share a command line, and the same command must
    # continue a run that was started with them.
    for name in given:
      if name in reasons:
        console.warn(f"--config.{name} has no effect {reasons[name]}")

  if path is not None:
    args.config = overrides.load_config(path, changes, complete)
  else:
    config = resumed.load_config(args.workdir)
    args.config = overrides.change(config, changes, complete, of=args.workdir)
  return args


def _given_names(
  flags: Mapping[str, Flag], read, argv: Sequence[str]
) -> set[str]:
  """Returns the names of the flags that are on the command line."""
  tokens = argv[: argv.index("--")] if "--" in argv else argv
  spelt = {token.partition("=")[0] for token in tokens}
  return {
    name
    for name, flag in flags.items()
    if flag.spelling in spelt
    or ((flag.about["is_argument"] or flag.about["prefix"]) and read.get(name))
  }


def _build(cls: type, values: Mapping[str, Any]) -> Any:
  """Returns the verb, or a group of its flags; calls its check()."""
  hints = typing.get_type_hints(cls)
  fields = {}
  for field in dataclasses.fields(cls):
    if dataclasses.is_dataclass(hints[field.name]):
      fields[field.name] = _build(hints[field.name], values)
    elif field.name in values:
      value = values[field.name]
      fields[field.name] = tuple(value) if isinstance(value, list) else value
  verb = cls(**fields)
  if hasattr(verb, "check"):
    verb.check()
  return verb


def normalise(cls: type, argv: Sequence[str]) -> list[str]:
  """Returns argv as the parser reads it; raises ConfigError for --json=FILE.

  Names of earlier versions become today's, a dash in a name an underscore; and
  `--layers -1,-2` becomes --layers=-1,-2, as argparse would take the value for
  a flag.
  """
  flags = {f.spelling: f for f in flags_of(cls) if not f.about["is_argument"]}
  old = {name: new for new, f in flags.items() for name in f.about["old"]}
  tokens: list[str] = []
  for i, token in enumerate(argv):
    if token == "--":
      return [*tokens, *argv[i:]]
    name, equals, value = token.partition("=")
    spelt = "--" + name.removeprefix("--").replace("-", "_")
    if name.startswith("--") and spelt in flags:
      name = spelt
    name = old.get(name, name)
    if equals and name in flags and flags[name].kind is bool:
      raise ConfigError(_takes_no_value(name, value))
    token = f"{name}{equals}{value}"
    before = flags.get(tokens[-1]) if tokens else None
    if before and before.kind is not bool and re.match(r"-\d", token):
      tokens[-1] += f"={token}"
    else:
      tokens.append(token)
  return tokens


def _unknown(flags: Mapping[str, Flag], token: str, argv: Sequence[str]) -> str:
  """Returns the error of an argument that the verb doesn't have."""
  names = [flag.spelling for flag in flags.values()]
  if ["--json", token] in map(list, itertools.pairwise(argv)):
    return _takes_no_value("--json", token)
  near = did_you_mean(token.partition("=")[0], names)
  return f"unknown argument {token}{near}"


def _takes_no_value(name: str, value: str) -> str:
  to_file = f"; to write JSON to a file, give --out={value}"
  return f"{name}={value}: {name} takes no value{to_file * (name == '--json')}."


def _check_value(flag: Flag, value: Any) -> None:
  """Checks the range or the choices of a flag's value, or of each value."""
  if value is None or value == flag.default or "config" in flag.about:
    return
  for item in value if flag.is_many else [value]:
    if flag.about["choices"] is not None:
      check_name(flag.spelling, item, flag.about["choices"])
  if wanted := expected(flag.cls, flag.name, value):
    raise ConfigError(f"{flag.spelling}={value}: expected {wanted}.")


def _check_together(cls: type, flags, values, given) -> None:
  """Refuses flags that have no effect beside others, or exclude each other."""
  exclusive = [flags[name] for name in getattr(cls, "ONE_OF", ())]
  if sum(flag.name in given for flag in exclusive) > 1:
    *most, last = (
      f"{flag.name}s" if flag.about["is_argument"] else flag.spelling
      for flag in exclusive
    )
    raise ConfigError(f"give one of {', '.join(most)} and {last}.")
  for name in (name for name in flags if name in given):
    shown = flags[name].spelling
    if flags[name].kind is not bool and not flags[name].is_many:
      shown = f"{shown}={values[name]}"
    for other, wanted in flags[name].about["needs"].items():
      spelling = flags[other].spelling
      if not wanted and other not in given:
        raise ConfigError(
          f"{shown} has no effect without {spelling}: leave it out, or give "
          f"{spelling}."
        )
      if wanted and values[other] not in wanted:
        remedy = " or ".join(f"{spelling}={value}" for value in wanted)
        raise ConfigError(
          f"{shown} has no effect with {spelling}={values[other]}: leave it "
          f"out, or give {remedy}."
        )
    for other in flags[name].about["not_beside"]:
      if other in given:  # Not each verb with the flag has the other.
        raise ConfigError(
          f"{shown} has no effect beside {flags[other].spelling}: leave it out."
        )


def _check_files(flags: Mapping[str, Flag], values: Mapping[str, Any]) -> None:
  """Checks the files to read and to write, and that pictures can be drawn."""
  read = []
  for name, flag in flags.items():
    if not flag.about["reads"] or not values[name]:
      continue
    paths = values[name] if flag.is_many else [values[name]]
    paths = [path for path in paths if path != STDIN]
    read += paths
    for path in paths:
      if not pathlib.Path(path).exists():
        raise ConfigError(f"{flag.spelling}={path}: no such file.")
      if pathlib.Path(path).is_dir():
        raise ConfigError(
          f"{flag.spelling}={path} is a folder; give its files."
        )
  written = [
    flag
    for name, flag in flags.items()
    if flag.about["writes"] and values[name]
  ]
  for i, flag in enumerate(written):
    path = values[flag.name]
    suffixes = () if flag.about["writes"] == ANY else flag.about["writes"]
    output_options.check_file(path, option=flag.spelling, suffixes=suffixes)
    if any(_is_same_file(path, other) for other in read):
      raise ConfigError(
        f"{flag.spelling}={path} is an input, too: give another name."
      )
    for other in written[:i]:
      if _is_same_file(path, values[other.name]):
        raise ConfigError(
          f"{other.spelling} and {flag.spelling} are both {path}: give two "
          "names."
        )
  if any(flag.about["writes"] == shared.PICTURES for flag in written):
    from maskedlm.inference.plots import figure

    figure.load_matplotlib()


def _is_same_file(a: str, b: str) -> bool:
  """Returns whether two paths name one file, which may not exist yet."""
  first, second = pathlib.Path(a), pathlib.Path(b)
  return first.resolve() == second.resolve() or (
    first.exists() and second.exists() and first.samefile(second)
  )
