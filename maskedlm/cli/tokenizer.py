"""`maskedlm tokenizer`: trains a tokenizer, or shows how one splits a text.

`maskedlm tokenizer report` is in tokenizer_report.py.
"""

import argparse
from collections.abc import Sequence

from maskedlm.cli import options
from maskedlm.config import overrides
from maskedlm.core.errors import ConfigError, CorpusError
from maskedlm.data.prepare import prepare
from maskedlm.data.tokenizers import tokenizer
from maskedlm.runtime import buckets, console


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  if argv[:1] == ["report"]:
    from maskedlm.cli import tokenizer_report

    return tokenizer_report.main(argv[1:])
  parser = argparse.ArgumentParser(
    prog="maskedlm tokenizer",
    description="Trains a tokenizer on --config.corpus.source and saves it to "
    "--out; or, with --try instead of --config, shows how a saved one splits a "
    "text. `maskedlm tokenizer report` measures how well vocabularies fit each "
    "language.",
  )
  options.add_out(parser, "directory to save the tokenizer to", metavar="DIR")
  parser.add_argument(
    "--try",
    metavar="TOKENIZER",
    help="a saved directory, vocab.txt, tokenizer.json or .model",
  )
  parser.add_argument("text", nargs="*", help="the text for --try")
  args, config = overrides.parse_config(parser, argv, instead="try")
  if config is None:
    path = getattr(args, "try")
    if args.out:
      raise ConfigError(
        "--out has no effect with --try, which only shows a tokenizer: leave "
        "it out."
      )
    made = tokenizer.load_tokenizer(path)
    for note in made.notes:
      console.warn(f"tokenizer {path}: {note}")
    print_tokens(made, " ".join(args.text))
    return 0
  if args.text:
    raise ConfigError(
      f"the text {' '.join(args.text)[:40]!r} has no effect with --config: "
      "show a saved tokenizer with --try=DIR."
    )
  if not args.out:
    raise CorpusError(
      "--out is missing: give the directory to save the tokenizer to."
    )
  made = prepare.train_tokenizer(config, buckets.folder(args.out), log=print)
  print(
    f"{made.kind} tokenizer with {made.vocab_size:,} tokens "
    f"({made.sha256[:12]}) is ready in {args.out}"
  )
  return 0


def print_tokens(made: tokenizer.Tokenizer, text: str) -> None:
  """Prints a line for each token: id, token, span, characters of the text."""
  encoding = made.encode(text)
  for i, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
    token, span = map(console.isolate, (made.tokens(int(i)), text[start:end]))
    print(f"{i}\t{token}\t{start}:{end}\t{span!r}")
