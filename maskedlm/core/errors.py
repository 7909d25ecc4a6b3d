"""Errors that a user can fix, and the check that raises most of them.

A message names the thing, its value, what is expected and the remedy, in one
line. A command that fails with one of them exits with its `exit_code`.
"""

import difflib
import itertools
import re


class ConfigError(ValueError):
  """Reports a wrong option: its name, its value, and what is expected."""

  exit_code = 2


# A command of Python, which stays whole; a word; a value in quotation marks.
_LONG = re.compile(
  r"""(-c "[^"\n]*")|[^\s'"/=]{201,}|"""
  r"""(?<=[\s=(\[])(['"])(?:\\.|(?!\2)[^\\\n]){200,}\2"""
)


def cut_values(line: str) -> str:
  """Returns a message whose values are cut at 200 characters.

  >>> len(cut_values(f"text={'a' * 5_000}: too long"))
  218

  Not the command of a remedy:

  >>> command = f'run: python -c "{"x " * 200}"'
  >>> cut_values(command) == command
  True
  """
  return _LONG.sub(lambda match: match[1] or f"{match[0][:200]} ...", line)


def check_name(option: str, value: str, known, error=ConfigError) -> None:
  """Raises `error` for an option whose value is not one of the known ones.

  >>> check_name("optimizer.rule", "lam", ["adam", "lamb"])
  Traceback (most recent call last):
  maskedlm.core.errors.ConfigError: optimizer.rule='lam' is unknown
  (did you mean "lamb"?); known: adam, lamb.
  """
  if value not in known:
    raise error(
      f"{option}={value!r} is unknown{did_you_mean(value, known)}; known: "
      f"{', '.join(name or repr(name) for name in known)}."
    )


_MOST = 1_000  # Names that are compared: a table may have a million columns.


def did_you_mean(name: str, known) -> str:
  """Returns ' (did you mean "x"?)' for the nearest known name, else "".

  >>> did_you_mean("lenght", ["length", "seed"])
  ' (did you mean "length"?)'
  """
  known = list(itertools.islice(known, _MOST))
  near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
  return f' (did you mean "{near[0]}"?)' if near else ""


class DataError(ValueError):
  """Reports unusable labelled data: file, line, and what is expected."""

  exit_code = 2


class CheckpointError(RuntimeError):
  """A checkpoint can't be used, or must not be written."""

  exit_code = 2


class StoppedError(RuntimeError):
  """A signal stopped the run, after a checkpoint was saved."""

  exit_code = 75  # EX_TEMPFAIL: the same command continues.


class StorageError(RuntimeError):
  """Storage can't be written or reached at present."""

  exit_code = 74  # EX_IOERR


class CorpusError(ValueError):
  """A corpus, source or tokenizer can't be used."""

  exit_code = 2


class InteropError(ValueError):
  """A model can't be imported or exported."""

  exit_code = 2
