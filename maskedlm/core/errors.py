"""Errors that a user can fix, and the checks that raise most of them.

Each carries the exit code of the command as `exit_code`.
"""

import difflib


class ConfigError(ValueError):
  """An option that is wrong: its name, its value, what is expected."""

  exit_code = 2


def check_name(option: str, value: str, known, error=ConfigError) -> None:
  """Raises an error (ConfigError) for a value that is none of the names."""
  if value not in known:
    raise error(
      f"{option}={value!r} is unknown{did_you_mean(value, known)}; known: "
      f"{', '.join(known)}."
    )


def did_you_mean(name: str, known) -> str:
  """Returns '; did you mean "x"?' for the nearest known name, else ''."""
  near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
  return f'; did you mean "{near[0]}"?' if near else ""


class DataError(ValueError):
  """Labelled data that can't be used: file, line, what was expected."""

  exit_code = 2


class CheckpointError(RuntimeError):
  """A checkpoint that can't be used, or must not be written: what to do."""

  exit_code = 2


class StorageError(RuntimeError):
  """Storage that can't be written or reached now: what, where, what to do."""

  exit_code = 74  # EX_IOERR


class CorpusError(ValueError):
  """A corpus, source or tokenizer that can't be used: what, why, what to do."""

  exit_code = 2


class InteropError(ValueError):
  """A model that can't be imported or exported: what, why, what to do."""

  exit_code = 2
