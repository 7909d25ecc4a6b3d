"""`maskedlm VERB ...`: finds the verb's module and calls its main.

`python -m maskedlm VERB` does the same. Nothing heavy is imported before the
verb is known, so that --help answers at once.
"""

import contextlib
import importlib
import io
import os
import sys
from collections.abc import Callable, Sequence

from maskedlm import __version__
from maskedlm.cli import exit_codes
from maskedlm.core.errors import did_you_mean
from maskedlm.runtime import allocator, console

# verb -> (module of maskedlm.cli, description).
VERBS = {
  "pretrain": ("pretrain", "pretrain a masked language model on text"),
  "prepare": ("prepare", "turn text into a corpus on disk, or verify one"),
  "tokenizer": ("tokenizer", "train a tokenizer, try one, report on several"),
  "inspect": ("inspect", "show what a config will train, before it does"),
  "plan": ("plan", "predict a run's memory and speed on TPUs or GPUs"),
  "status": ("status", "show how far runs are, from their workdirs"),
  "finetune": ("finetune", "fine-tune an encoder on labelled data"),
  "evaluate": ("evaluate", "score a fine-tuned checkpoint on labelled data"),
  "transfer": ("transfer", "score a fine-tuned checkpoint in other languages"),
  "predict": ("predict", "label raw text with a fine-tuned checkpoint"),
  "embed": ("embed", "write vectors of tokens, words or sentences"),
  "search": ("search", "find the nearest sentences to a query"),
  "isotropy": ("isotropy", "measure how alike a model's vectors are, by layer"),
  "word-senses": ("word_senses", "word senses: train, evaluate, predict"),
  "plot": ("plot", "draw instances, attention, isotropy, training curves"),
  "fill-mask": ("fill_mask", "fill the masks of a text with a checkpoint"),
  "demo": ("demo", "serve a page that shows what a model does"),
  "retokenize": ("retokenize", "give a model another vocabulary"),
  "import": ("import_model", "turn a Hugging Face model into a workdir"),
  "export": (
    "export_model",
    "write a checkpoint for transformers, or for serving",
  ),
}
ALIASES = {"wsd": "word-senses"}

_LESS_MEMORY = (
  "Give the device less at once: data.batch_size, --batch_size or "
  "--batch_tokens; in training also train.accumulate, model.remat='dots', "
  "mesh.fsdp (maskedlm plan and inspect print what a run needs)."
)


def main(argv: Sequence[str] | None = None) -> int:
  """Runs a verb; returns the exit code."""
  if argv is None and not {"-h", "--help"} & {*sys.argv}:
    allocator.keep_freed()
  return run(_run_verb, argv)


def _run_verb(argv: Sequence[str]) -> int:
  verbs = "\n".join(f"  {v:<12}{about}" for v, (_, about) in VERBS.items())
  usage = (
    "usage: maskedlm VERB [options]\n\n"
    f"{verbs}\n\n`maskedlm VERB --help` prints its options; "
    "`maskedlm --version`."
  )
  if not argv or argv[0] in ("-h", "--help", "help"):
    print(usage)
    return 0 if argv else exit_codes.ERROR
  verb = ALIASES.get(argv[0], argv[0])
  if verb == "--version":
    print(f"maskedlm {__version__}")
    return 0
  if verb not in VERBS:
    near = did_you_mean(verb, VERBS)
    print(f"error: unknown verb {verb!r}{near}\n\n{usage}", file=sys.stderr)
    return exit_codes.ERROR
  module = importlib.import_module(f"maskedlm.cli.{VERBS[verb][0]}")
  return module.main(argv[1:])


def run(verb_main: Callable[[Sequence[str]], int], argv=None) -> int:
  """Calls a verb's main and flushes its output; returns the exit code."""
  for stream in (sys.stdout, sys.stderr):
    if isinstance(stream, io.TextIOWrapper):  # Not in a notebook.
      # A letter that the terminal's encoding lacks is shown as its code.
      stream.reconfigure(errors="backslashreplace")
  code = _run_with_errors(verb_main, sys.argv[1:] if argv is None else argv)
  for stream in filter(None, (sys.stdout, sys.stderr)):
    with contextlib.suppress(OSError):  # Python reports others when it ends.
      try:
        stream.flush()
      except BrokenPipeError:
        code = code or exit_codes.BROKEN_PIPE
        stream.close()  # Else Python would flush again, and exit with 120.
  return code


def _run_with_errors(
  verb_main: Callable[[Sequence[str]], int], argv: Sequence[str]
) -> int:
  """Calls a verb's main; prints errors that the user can fix as one line."""
  try:
    os.getcwd()
  except FileNotFoundError:
    print(
      "error: the current folder was deleted or replaced: cd to another.",
      file=sys.stderr,
    )
    return exit_codes.ERROR
  try:
    return verb_main(list(argv))
  except KeyboardInterrupt:
    with contextlib.suppress(OSError):  # `2>&1 | tee log`: tee has ended, too.
      console.clear_progress()
      print("interrupted", file=sys.stderr)
    return 130
  except BrokenPipeError:  # `maskedlm ... | head`: the rest isn't computed.
    return exit_codes.BROKEN_PIPE
  except PermissionError as error:  # Mostly on another user's files.
    if error.filename is None:
      raise
    console.clear_progress()
    print(
      f"error: {error.filename}: {error.strerror}; give another path, or ask "
      "its owner for access.",
      file=sys.stderr,
    )
    return exit_codes.ERROR
  except (ValueError, RuntimeError) as error:
    code, line = getattr(error, "exit_code", None), str(error)
    # JAX's errors when a device is out of memory; the second is a CPU's.
    if line.startswith("RESOURCE_EXHAUSTED") or "Out of memory alloc" in line:
      code, line = exit_codes.ERROR, f"{line.splitlines()[0]} {_LESS_MEMORY}"
    if code is None:
      raise  # A bug in maskedlm, where the traceback helps.
    console.clear_progress()
    print(f"error: {line}", file=sys.stderr)
    return code
