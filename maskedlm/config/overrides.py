"""The command line of the verbs that take a config.

`--config=FILE[:ARG]` names a config file, `--config.a.b=value` overrides any
of its options, and everything else belongs to the verb. A config file is
Python and is executed: run only those that you trust.
"""

import argparse
import pathlib
import re
import warnings

from absl import flags
from ml_collections import ConfigDict, config_flags

from maskedlm.config.defaults import validate
from maskedlm.core.errors import ConfigError, did_you_mean
from maskedlm.training.checkpoints import init_from

_OPTION = re.compile(r"^--?(no)?config\.")


def parse(parser: argparse.ArgumentParser, argv) -> tuple:
  """(verb's arguments, the config of pretraining, complete and validated).

  Raises:
    ConfigError: the file or an override is wrong; one line with the remedy.
    CheckpointError: config.init_from can't be used.
  """
  args, overrides = split(parser, argv)

  def complete(config: ConfigDict) -> None:
    init_from.adopt(config, given=[_name(token) for token in overrides])
    validate(config)

  return args, load_config(args.config, overrides, complete)


def split(parser: argparse.ArgumentParser, argv) -> tuple:
  """(verb's arguments, with .config, and the overrides as they were given).

  Raises:
    ConfigError: an argument that is neither.
  """
  parser.add_argument(
    "--config",
    required=True,
    metavar="FILE",
    help="config file, e.g. configs/bert_base.py; any option of it can be "
    "overridden: --config.model.num_layers=6",
  )
  parser.allow_abbrev = False
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
  return args, overrides


def load_config(path: str, overrides=(), validate=validate) -> ConfigDict:
  """The config of a file, with overrides like "--config.seed=1".

  validate(config) is that of pretraining by default.
  """
  if not pathlib.Path(path.partition(":")[0]).is_file():
    raise ConfigError(
      f"--config={path}: no such file; expected a config such as "
      "configs/quickstart.py."
    )
  known = _option_names(_parse(path, []))
  for token in overrides:
    name = _name(token)
    if _OPTION.match(token) and name not in known:
      near = did_you_mean(name, known)
      raise ConfigError(f"--config.{name}: {path} has no such option{near}")
  config = _parse(path, overrides)
  validate(config)
  return config


def override(config: ConfigDict, overrides) -> ConfigDict:
  """The config with overrides like "--config.task.label=stars", which it has.

  Raises:
    ConfigError: a value that isn't of the option's type, or is of none.
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
  """The option of an override: "--config.model.width=8" -> "model.width"."""
  return _OPTION.sub("", token).partition("=")[0]


def _parse(path: str, overrides) -> ConfigDict:
  """Through ml_collections, on flags of its own: no global state."""
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
  """Gives the flags their values; all of argv must be used."""
  _, *left = values(argv)
  if left:  # `--config.model.unroll False` would set it, and drop the False.
    raise ConfigError(
      f"argument {left[0]} is no option's value: write --config.OPTION=VALUE"
    )


def _raised_by_file(error: BaseException | None) -> ConfigError | None:
  """What get_config(arg) refused, which others have wrapped since; or None."""
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
