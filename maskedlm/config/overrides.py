"""Reads the config of a command: its file, and overrides on the command line.

`--config=FILE[:ARG]` names a config file, or one of maskedlm's by its name
(`quickstart`, `bert:base`); `--config.a.b=value` overrides one of its options,
`--config.optimizer=PRESET` replaces its optimizer, and
`--config.objective.name=NAME` switches the objective. The last two apply before
all overrides of single options, whatever their order. Without --config, the
config is that of the run in --workdir, if the verb has it. Other arguments
belong to the verb. A config file is Python code that is executed: use only
files that you trust.
"""

import argparse
import pathlib
import re
import runpy
from collections.abc import Callable, Mapping

from absl import flags
from ml_collections import ConfigDict, config_flags

from maskedlm.config import defaults, names_elsewhere, presets, shipped
from maskedlm.config.defaults import validate
from maskedlm.core import options, removed
from maskedlm.core.errors import ConfigError, did_you_mean
from maskedlm.pretraining import objectives
from maskedlm.runtime import console
from maskedlm.training.checkpoints import resume

_OPTION = re.compile(r"^--?(no)?config\.")


def split_arguments(
  parser: argparse.ArgumentParser,
  argv,
  *,
  instead: str = "",
  sections: Callable[[ConfigDict], Mapping[str, type]] = defaults.sections,
) -> tuple:
  """Returns (the verb's arguments, including .config; the overrides).

  With --help, it prints the verb's arguments, and the options of the config if
  one is given, and exits.

  Args:
    parser: the verb's, with --config. If it has --workdir, that of a run can
      be given instead.
    instead: another option that can be given instead of --config.
    sections: returns the dataclass of the options of each section of a config.

  Raises:
    ConfigError: an argument is unknown, or both --config and `instead` are
      given.
  """
  if {"-h", "--help"} & {*argv}:
    _exit_with_help(parser, argv, sections)
  # argparse takes an option with a space in its value as positional.
  spaced = [t for t in argv if _OPTION.match(t) and "=" in t and " " in t]
  args, rest = parser.parse_known_args([t for t in argv if t not in spaced])
  overrides = []
  rest += spaced
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
    is_given = getattr(args, instead) is not None
    if is_given and (args.config or overrides):
      raise ConfigError(f"give one of --config and --{instead}, not both.")
    if not is_given and not args.config:
      parser.error(f"one of --config and --{instead} is required")
  elif args.config is None and "workdir" not in args:
    parser.error("--config is required")
  elif args.config is None and not args.workdir:
    parser.error("--config is required, or the --workdir of a run")
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

  `path` is FILE or FILE:ARG, or the name of a config that is shipped.
  `validate` checks the config; by default, that it is one of pretraining.

  Raises:
    ConfigError: there is no such file or option, or a value is wrong.
  """
  path = _with_size_as_argument(shipped.find(path))
  if not pathlib.Path(path.partition(":")[0]).is_file():
    if any(pathlib.Path(x).is_file() for x in (path, path.rpartition(":")[0])):
      raise ConfigError(
        f"--config={path}: a config's path may have no colon, as one begins "
        "the file's argument (bert.py:base); copy the file to another path."
      )
    raise ConfigError(
      f"--config={path}: no such file, nor a config of maskedlm"
      f"{shipped.nearest(path)}; expected a file, or a name such as "
      "quickstart or bert:base"
    )
  return change(_load_file(path), overrides, validate, of=path)


def change(config: ConfigDict, overrides, validate, *, of: str) -> ConfigDict:
  """Returns the config with overrides, validated.

  Its sections may be replaced in place. `validate` checks it, and may complete
  it; `of` says where it comes from, for errors.

  Raises:
    ConfigError: there is no such option, or a value is wrong.
  """
  sections, overrides = _split_sections(overrides, config)
  for name, value in sections.items():
    _replace_section(config, name, value)
  known = list(resume.flatten(config.to_dict()))
  for token in overrides:
    name = _name(token)
    if _OPTION.match(token) and name not in known:
      near = removed.remedy(name) or names_elsewhere.suggest(name, known)
      raise ConfigError(f"--config.{name}: {of} has no such option{near}")
  config = apply_overrides(config, overrides)
  validate(config)
  return config


def given_options(overrides) -> list[str]:
  """Returns the names of --config.NAME=VALUE arguments, each once."""
  names = (_name(token) for token in overrides if _OPTION.match(token))
  return list(dict.fromkeys(names))


def _with_size_as_argument(path: str) -> str:
  """Returns bert.py:base for bert_base.py, its name in earlier versions."""
  file = pathlib.Path(path)
  family, _, size = file.stem.rpartition("_")
  by_size = file.parent / f"{family}.py"
  renamed = by_size.is_file() and not file.is_file()
  return f"{by_size}:{size}" if renamed else path


def _split_sections(overrides, config: ConfigDict) -> tuple[dict, list]:
  """Returns ({option: value} of overrides that replace a section, the rest)."""
  sections, rest = {}, []
  tokens = iter(overrides)
  for token in tokens:
    name = _name(token)
    if name == "optimizer" or (
      name == "objective.name" and "objective" in config
    ):
      _, equals, value = token.partition("=")
      sections[name] = value if equals else next(tokens, "")
    else:
      rest.append(token)
  return sections, rest


def _replace_section(config: ConfigDict, name: str, value: str) -> None:
  """Sets config.optimizer to a preset, or config.objective to an objective.

  The file's changes to the options of its objective are kept, and a warning is
  printed for those that the new objective doesn't have.
  """
  with config.unlocked():
    if name == "optimizer":
      config.optimizer = presets.load(value)
      return
    old = config.objective
    if value == old.name:
      return
    config.objective = objectives.switched(old, value)
    for option, setting in objectives.changed_options(old).items():
      if option not in config.objective:
        console.warn(
          f"objective.{option}={setting!r} of the config file has no effect: "
          f"objective {value!r} has no such option"
        )


def apply_overrides(config: ConfigDict, overrides) -> ConfigDict:
  """Returns the config with overrides of single options.

  Raises:
    ConfigError: a value doesn't have its option's type, or lacks an option.
  """
  values = flags.FlagValues()
  argv = ["maskedlm", *overrides]
  try:
    config_flags.DEFINE_config_dict(
      "config", config, flag_values=values, sys_argv=argv
    )
    _, *left = values(argv)
  except (flags.Error, TypeError, ValueError) as error:
    raise ConfigError(_one_line(error)) from None
  if left:  # absl reads `--config.model.unroll False` as True and "False".
    raise ConfigError(
      f"argument {left[0]} is not the value of an option: write "
      "--config.OPTION=VALUE"
    )
  return values.config


def _name(token: str) -> str:
  """Returns the option's name: "model.width" for --config.model.width=8."""
  return _OPTION.sub("", token).partition("=")[0]


def _load_file(path: str) -> ConfigDict:
  """Returns what get_config of a file returns, FILE or FILE:ARG, locked.

  Raises:
    ConfigError: the file raises an error, or returns no ConfigDict.
  """
  file, *argument = path.split(":", 1)
  try:
    get_config = runpy.run_path(file).get("get_config")
    config = get_config(*argument) if get_config else None
  except ConfigError:
    raise
  except Exception as error:
    raise ConfigError(
      f"--config={path} could not be loaded: {type(error).__name__}: "
      f"{_one_line(error)}{removed.remedy_in(str(error))}"
    ) from error
  if not isinstance(config, ConfigDict):
    problem = f"returns {type(config).__name__}" if get_config else "is missing"
    raise ConfigError(
      f"--config={path}: get_config() {problem}; expected a function that "
      "returns a ConfigDict, as in the files of configs/."
    )
  return config.lock()


def _one_line(error: Exception) -> str:
  """Returns the message of an error in one line."""
  text = re.sub(r"\('Non-boolean .*", "expected True or False", str(error))
  return " ".join(text.split())
