"""`maskedlm VERB ...`: finds the verb, parses its flags and runs it.

`python -m maskedlm VERB` does the same. Nothing heavy is imported before the
verb is known, so that --help answers at once.
"""

import contextlib
import io
import os
import sys
import threading
from collections.abc import Callable, Sequence

from maskedlm import __version__
from maskedlm.cli import exit_codes, verbs
from maskedlm.core.errors import cut_values
from maskedlm.runtime import allocator, console, interrupts, storage_errors

_PATIENCE = 15  # Seconds.
_LESS_MEMORY = (
  "Give the device less at once: data.batch_size, --batch_size or "
  "--batch_tokens; in training also train.accumulate, model.remat='dots', "
  "mesh.fsdp (maskedlm plan and inspect print what a run needs)."
)


def main(argv: Sequence[str] | None = None) -> int:
  """Runs a verb; returns the exit code."""
  if argv is not None:  # Called by a program, whose signals these are.
    return run(call, argv)
  if not {"-h", "--help"} & {*sys.argv}:
    allocator.keep_freed()
  interrupts.is_command.set()
  if sys.stderr:
    # As by `python -u`: a buffer would keep what a full disk refused, and make
    # the next flush fail, wherever that is.
    sys.stderr = io.TextIOWrapper(
      io.FileIO(sys.stderr.fileno(), "w", closefd=False),
      encoding=sys.stderr.encoding,
      write_through=True,
    )
  try:
    code = run(call)
  except KeyboardInterrupt:  # A second one, while the first was handled.
    code = exit_codes.INTERRUPTED
  finally:
    interrupts.ignore_further()  # Until the process is gone.
  if code:
    _leave_within(_PATIENCE, code)
  return code


def _leave_within(seconds: float, code: int) -> None:
  """Ends the process after `seconds`, if threads keep it from ending.

  Orbax's wait five minutes for the rest of a save that failed.
  """
  timer = threading.Timer(seconds, os._exit, [code])
  timer.daemon = True
  timer.start()


def call(argv: Sequence[str]) -> int:
  """Runs a verb; returns the exit code, and raises what went wrong."""
  if not argv or argv[0] in ("-h", "--help", "help"):
    print(verbs.usage(""))
    return 0 if argv else exit_codes.ERROR
  if argv[0] == "--version":
    from maskedlm.runtime import startup

    lines = [f"maskedlm {__version__}", *startup.describe_versions()]
    print("\n".join(lines))
    return 0
  if argv[0] == "--print-completion":
    from maskedlm.cli import completion

    print(completion.script(" ".join(argv[1:])), end="")
    return 0
  called, argv = verbs.find(argv)
  if called in verbs.GROUPS:
    print(verbs.usage(called))
    return 0 if argv else exit_codes.ERROR
  from maskedlm.cli import frame

  return frame.parse(verbs.load(called), called, argv).run() or 0


def run(verb_main: Callable[[Sequence[str]], int], argv=None) -> int:
  """Calls a verb's main and flushes its output; returns the exit code."""
  _open_closed_streams()
  for stream in (sys.stdout, sys.stderr):
    if isinstance(stream, io.TextIOWrapper):  # Not in a notebook.
      # A letter that the terminal's encoding lacks is shown as its code.
      stream.reconfigure(errors="backslashreplace")
  code = _run_with_errors(verb_main, sys.argv[1:] if argv is None else argv)
  if error := _flush(sys.stdout):
    code = code or _report(error, place="stdout") or exit_codes.ERROR
  _flush(sys.stderr)
  return code


def _open_closed_streams() -> None:
  """Opens /dev/null where stdin, stdout or stderr is closed, as by `>&-`.

  Else the next files to be opened would get their numbers, and what libraries
  print would be written to these files.
  """
  for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
    if getattr(sys, name) is None:
      stream = open(os.devnull, mode)  # noqa: SIM115
      os.set_inheritable(stream.fileno(), True)  # Worker processes need it too.
      setattr(sys, name, stream)


def _flush(stream) -> OSError | None:
  """Flushes a stream; one that fails is closed, and its error returned."""
  try:
    stream.flush()
  except OSError as error:
    with contextlib.suppress(OSError):
      stream.close()  # Else Python would flush again, and exit with 120.
    return error
  except ValueError:
    pass  # It was closed after an error.
  return None


def _report(error: OSError, *, place: str = "") -> int | None:
  """Prints the line of an error of storage; returns its exit code or None."""
  if isinstance(error, BrokenPipeError):
    return exit_codes.BROKEN_PIPE  # `maskedlm ... | head`
  known = storage_errors.unusable(error, place=place)
  if not known:
    return None
  console.warn(f"error: {known}")
  return known.exit_code


def _run_with_errors(
  verb_main: Callable[[Sequence[str]], int], argv: Sequence[str]
) -> int:
  """Calls a verb's main; prints errors that the user can fix as one line."""
  try:
    os.getcwd()
  except FileNotFoundError:
    console.warn(
      "error: the current folder was deleted or replaced: cd to another."
    )
    return exit_codes.ERROR
  try:
    return verb_main(list(argv))
  except KeyboardInterrupt:
    interrupts.ignore_further()
    console.warn("interrupted")
    return exit_codes.INTERRUPTED
  except OSError as error:  # Of stdout, or of a file that no code expected.
    stdout = _flush(sys.stdout)
    code = _report(stdout or error, place="stdout" if stdout else "")
    if code is None:
      raise  # A bug in maskedlm, where the traceback helps.
    return code
  except (ValueError, RuntimeError) as error:
    code, line = getattr(error, "exit_code", None), str(error)
    # JAX's errors when a device is out of memory; the second is a CPU's.
    if line.startswith("RESOURCE_EXHAUSTED") or "Out of memory alloc" in line:
      code, line = exit_codes.ERROR, f"{line.splitlines()[0]} {_LESS_MEMORY}"
    if code is None:
      raise  # A bug in maskedlm, where the traceback helps.
    console.warn(f"error: {cut_values(line)}")
    return code
