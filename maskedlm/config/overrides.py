"""Reads the config of a verb: its file, and overrides of the command line.

`--config=FILE[:ARG]` names a config file, `--config.a.b=value` overrides one of
its options, `--config.optimizer=PRESET` its whole optimizer, and
`--config.objective.name=NAME` switches the objective. Everything else belongs
to the verb. A config file is Python and is executed: run only those that you
trust.
"""

import argparse
import pathlib
import re
import sys
import warnings
from collections.abc import Callable, Mapping

from absl import flags
from ml_collections import ConfigDict, config_flags

from maskedlm.config import defaults, presets
from maskedlm.config.defaults import objective_section, validate
from maskedlm.core import options
from maskedlm.core.errors import ConfigError, did_you_mean
from maskedlm.training.checkpoints import init_from

_OPTION = re.compile(r"^--?(no)?config\.")


def parse_config(
  parser: argparse.ArgumentParser, argv, *, instead: str = ""
) -> tuple:
  """Returns (the verb's arguments, the config of pretraining, validated).

  Args:
    parser: of the verb; --config is added to it.
    argv: arguments of the command line.
    instead: an option of the verb that takes the place of --config; where it is
      given, the config is None.

  Raises:
    ConfigError: the file or an override is wrong; one line with the remedy.
    CheckpointError: config.init_from can't be used.
  """
  args, overrides = split_arguments(parser, argv, instead=instead)
  if args.config is None:
    return args, None

  def complete(config: ConfigDict) -> None:
    init_from.copy_architecture(
      config, given=[_name(token) for token in overrides]
    )
    validate(config)

  return args, load_config(args.config, overrides, complete)


def split_arguments(
  parser: argparse.ArgumentParser,
  argv,
  *,
  instead: str = "",
  sections: Callable[[ConfigDict], Mapping[str, type]] = defaults.sections,
) -> tuple:
  """Returns (the verb's arguments, with .config; the overrides as given).

  With --help it prints the verb's arguments, and the options of a config that
  is given too, and exits.

  Args:
    parser, argv, instead: as in `parse`.
    sections: config -> the dataclass of the options of each section.

  Raises:
    ConfigError: an argument is neither; --config beside `instead`.
  """
  parser.add_argument(
    "--config",
    required=not instead,
    metavar="FILE",
    help="config file, e.g. configs/bert.py:base; any option of it can be "
    "overridden: --config.model.num_layers=6; with --help, lists them",
  )
  parser.allow_abbrev = False
  if {"-h", "--help"} & {*argv}:
    _exit_with_help(parser, argv, sections)
  args, rest = parser.parse_known_args(argv)
  overrides = []
  for i, token in enumerate(rest):
    follows = i > 0 and "=" not in rest[i - 1] and rest[i - 1] in overrides
    if _OPTION.match(token) or (follows and not re.match(r"-[^\d.]", token)):
      overrides.append(token)
    else:
      known = [o for a in parser._actions for o in a.option_strings]
      raise ConfigError(
        f"unknown argument {token}"
        f"{did_you_mean(token.partition('=')[0], known)}"
      )
  if instead:
    given = getattr(args, instead) is not None
    if given and (args.config or overrides):
      raise ConfigError(f"give one of --config and --{instead}, not both.")
    if not given and not args.config:
      parser.error(f"one of --config and --{instead} is required")
  return args, overrides


def _exit_with_help(parser: argparse.ArgumentParser, argv, sections) -> None:
  parser.print_help()
  finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
  finder.add_argument("--config")
  path = finder.parse_known_args(argv)[0].config
  if path:
    config = load_config(path, validate=lambda config: None)
    print(f"\noptions of {path}:")
    for name, cls in sections(config).items():
      values = config[name] if name else config
      print(*options.help_lines(name, cls, values), sep="\n")
  parser.exit()


def load_config(path: str, overrides=(), validate=validate) -> ConfigDict:
  """Returns the config of a file, with overrides like "--config.seed=1".

  Args:
    path: FILE or FILE:ARG.
    overrides: arguments of the command line.
    validate: called with the config; by default that of pretraining.

  Raises:
    ConfigError: there is no such file or option, or a value is wrong.
  """
  file = pathlib.Path(path.partition(":")[0])
  if not file.is_file():
    expected = "a config such as configs/quickstart.py"
    # Sizes are arguments: bert_base.py is now bert.py:base.
    family, _, size = file.stem.rpartition("_")
    if (by_size := file.with_name(f"{family}.py")).is_file():
      expected = f"--config={by_size}:{size}"
    raise ConfigError(f"--config={path}: no such file; expected {expected}")
  config = _parse(path, [])
  sections, overrides = _split_sections(overrides, config)
  for name, value in sections.items():
    _replace_section(config, name, value)
  known = _option_names(config)
  for token in overrides:
    name = _name(token)
    if _OPTION.match(token) and name not in known:
      near = did_you_mean(name, known)
      raise ConfigError(f"--config.{name}: {path} has no such option{near}")
  config = (
    apply_overrides(config, overrides) if sections else _parse(path, overrides)
  )
  validate(config)
  return config


def _split_sections(overrides, config: ConfigDict) -> tuple[dict, list]:
  """Returns ({option: value} that replace a whole section, the others)."""
  whole, rest = {}, []
  tokens = iter(overrides)
  for token in tokens:
    name = _name(token)
    if name == "optimizer" or (
      name == "objective.name" and "objective" in config
    ):
      _, given, value = token.partition("=")
      whole[name] = value if given else next(tokens, "")
    else:
      rest.append(token)
  return whole, rest


def _replace_section(config: ConfigDict, name: str, value: str) -> None:
  """Sets config.optimizer to a preset, or config.objective to an objective.

  Of an objective's options those keep the file's value that both have and that
  the file changed. An option that the file changed and that the new objective
  doesn't have is printed.
  """
  with config.unlocked():
    if name == "optimizer":
      config.optimizer = presets.load(value)
      return
    old = config.objective
    if value == old.name:
      return
    usual, new = objective_section(old.name), objective_section(value)
    for option, given in old.items():
      if option == "name" or given == usual[option]:
        continue
      if option in new:
        new[option] = given
      else:
        print(
          f"objective.{option}={given!r} of the config file is dropped: "
          f"objective {value!r} has no such option",
          file=sys.stderr,
        )
    config.objective = new


def apply_overrides(config: ConfigDict, overrides) -> ConfigDict:
  """Returns the config with overrides of options that it has.

  Raises:
    ConfigError: a value isn't of the option's type, or belongs to none.
  """
  values = flags.FlagValues()
  argv = ["maskedlm", *overrides]
  try:
    config_flags.DEFINE_config_dict(
      "config", config, flag_values=values, sys_argv=argv
    )
    _read(values, argv)
    return values.config
  except (flags.Error, TypeError, ValueError) as error:
    raise ConfigError(_one_line(error)) from None


def _name(token: str) -> str:
  """Returns the option's name: "model.width" for --config.model.width=8."""
  return _OPTION.sub("", token).partition("=")[0]


def _parse(path: str, overrides) -> ConfigDict:
  """Loads a file by ml_collections, with flags of its own: no global state."""
  values = flags.FlagValues()
  argv = ["maskedlm", f"--config={path}", *overrides]
  config_flags.DEFINE_config_file(
    "config", None, "", lock_config=True, flag_values=values, sys_argv=argv
  )
  try:
    with warnings.catch_warnings():
      # ml_collections loads the file by a deprecated method.
      warnings.simplefilter("ignore", DeprecationWarning)
      _read(values, argv)
      config = values.config
    if not isinstance(config, ConfigDict):
      getattr(config, "seed")  # noqa: B009 - raises the file's own error.
  except Exception as error:
    if own := _raised_by_file(error):
      raise own from None
    if isinstance(error, flags.Error):
      raise ConfigError(_one_line(error)) from None
    raise ConfigError(
      f"--config={path} could not be loaded: {type(error).__name__}: "
      f"{_one_line(error)}"
    ) from error
  return config


def _read(values: flags.FlagValues, argv) -> None:
  """Sets the flags; all of argv must be used."""
  _, *left = values(argv)
  if left:  # `--config.model.unroll False` would set it, and drop the False.
    raise ConfigError(
      f"argument {left[0]} is no option's value: write --config.OPTION=VALUE"
    )


def _raised_by_file(error: BaseException | None) -> ConfigError | None:
  """Returns the ConfigError that get_config(arg) raised, or None."""
  found = None
  while error is not None:
    found = error if isinstance(error, ConfigError) else found
    error = error.__context__
  return found


def _one_line(error: Exception) -> str:
  return " ".join(str(error).split())


def _option_names(config: ConfigDict, prefix: str = "") -> list[str]:
  names = []
  for name, value in config.items():
    if isinstance(value, ConfigDict):
      names += _option_names(value, f"{prefix}{name}.")
    else:
      names.append(prefix + name)
  return names
