"""`maskedlm VERB ...`: the one command. Each verb is a module with a main.

`python -m maskedlm VERB` does the same. Nothing heavy is imported before the
verb is known, so that --help answers at once.
"""

import contextlib
import importlib
import sys
from collections.abc import Callable, Sequence

from maskedlm import __version__
from maskedlm.runtime import allocator, console

# verb -> (module of maskedlm.cli, what it does).
VERBS = {
  "pretrain": ("pretrain", "pretrain a masked language model on text"),
  "prepare": ("prepare", "turn text into a corpus on disk, or verify one"),
  "tokenizer": ("tokenizer", "train a tokenizer, try one, report on several"),
  "inspect": ("inspect", "show what a config will train, before it does"),
  "plan": ("plan", "does a run fit on TPUs or GPUs, and how fast at best?"),
  "finetune": ("finetune", "fine-tune an encoder on labelled data"),
  "evaluate": ("evaluate", "score a fine-tuned checkpoint on labelled data"),
  "transfer": ("transfer", "score a fine-tuned checkpoint in other languages"),
  "predict": ("predict", "label raw text with a fine-tuned checkpoint"),
  "embed": ("embed", "write vectors of tokens, words or sentences"),
  "isotropy": ("isotropy", "how alike a model's vectors are, layer by layer"),
  "wsd": ("wsd", "word senses: train, evaluate, predict"),
  "plot": ("plot", "draw instances, attention, isotropy, training curves"),
  "fill-mask": ("fill_mask", "fill the masks of a text with a checkpoint"),
  "demo": ("demo", "serve a page that shows what a model does"),
  "retokenize": ("retokenize", "give a model another vocabulary"),
  "import": ("import_model", "make a workdir of a Hugging Face model"),
  "export": (
    "export_model",
    "write a checkpoint for transformers, or for serving",
  ),
}

# Exit codes, besides 0: 2, the user's input is wrong or can't be used; 3,
# training diverged; 69 (EX_UNAVAILABLE), another host is gone; 74 (EX_IOERR),
# storage can't be written or reached now; 75 (EX_TEMPFAIL), interrupted and
# saved: the same command continues; 130, interrupted; 141, nobody reads what is
# printed, as if SIGPIPE had ended it. Errors of ours carry theirs as
# `exit_code`.
EXIT_ERROR = 2
EXIT_INTERRUPTED = 75
EXIT_BROKEN_PIPE = 141


def main(argv: Sequence[str] | None = None) -> int:
  """Runs a verb; returns the exit code."""
  if argv is None and not {"-h", "--help"} & {*sys.argv}:
    allocator.keep_freed()
  return run(_run_verb, argv)


def _run_verb(argv):
  verbs = "\n".join(f"  {v:<12}{about}" for v, (_, about) in VERBS.items())
  usage = (
    "usage: maskedlm VERB [options]\n\n"
    f"{verbs}\n\n`maskedlm VERB --help` tells more; `maskedlm --version`."
  )
  if not argv or argv[0] in ("-h", "--help", "help"):
    print(usage)
    return 0 if argv else EXIT_ERROR
  verb = argv[0]
  if verb == "--version":
    print(f"maskedlm {__version__}")
    return 0
  if verb not in VERBS:
    from maskedlm.core.errors import did_you_mean

    near = did_you_mean(verb, VERBS)
    print(f"error: unknown verb {verb!r}{near}\n\n{usage}", file=sys.stderr)
    return EXIT_ERROR
  return importlib.import_module(f"maskedlm.cli.{VERBS[verb][0]}").main(
    argv[1:]
  )


_LESS_MEMORY = (
  "Give the device less at once: data.batch_size, --batch_size or "
  "--batch_tokens; in training also train.accumulate, model.remat='dots', "
  "mesh.fsdp (maskedlm plan and inspect tell what a run takes)."
)


def run(verb_main: Callable[[Sequence[str]], int], argv=None) -> int:
  """Calls a verb's main; returns the exit code."""
  code = _told(verb_main, sys.argv[1:] if argv is None else argv)
  for stream in filter(None, (sys.stdout, sys.stderr)):
    with contextlib.suppress(OSError):  # Another error Python tells at its end.
      try:
        stream.flush()
      except BrokenPipeError:
        code = code or EXIT_BROKEN_PIPE
        stream.close()  # Or Python would try again, and end with 120.
  return code


def _told(verb_main: Callable[[Sequence[str]], int], argv) -> int:
  """The exit code; what the user can mend is told in one line."""
  try:
    return verb_main(list(argv))
  except KeyboardInterrupt:
    with contextlib.suppress(OSError):  # `2>&1 | tee log`: tee has ended, too.
      console.clear_progress()
      print("interrupted", file=sys.stderr)
    return 130
  except BrokenPipeError:  # `maskedlm ... | head`: what is left isn't done.
    return EXIT_BROKEN_PIPE
  except PermissionError as error:  # Of another user's files, mostly.
    if error.filename is None:
      raise
    console.clear_progress()
    print(
      f"error: {error.filename}: {error.strerror}; give another path, or have "
      "its owner let you in.",
      file=sys.stderr,
    )
    return EXIT_ERROR
  except (ValueError, RuntimeError) as error:
    code, line = getattr(error, "exit_code", None), str(error)
    # JAX's, of a device's memory; the second a CPU's.
    if line.startswith("RESOURCE_EXHAUSTED") or "Out of memory alloc" in line:
      code, line = EXIT_ERROR, f"{line.splitlines()[0]} {_LESS_MEMORY}"
    if code is None:
      raise  # A bug of ours: the traceback is what helps.
    console.clear_progress()
    print(f"error: {line}", file=sys.stderr)
    return code
