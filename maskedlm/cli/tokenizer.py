"""`maskedlm tokenizer`: train a vocabulary, try one on a text, report on some.

`maskedlm tokenizer report` is tokenizer_report.py.
"""

import argparse
from collections.abc import Sequence

from maskedlm.config import overrides
from maskedlm.core.errors import CorpusError
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
    "--out; or, with --try and no --config, shows how a saved one cuts a "
    "text. `maskedlm tokenizer report` tells how well vocabularies fit each "
    "language.",
  )
  parser.add_argument("--out", help="directory to save the tokenizer to")
  parser.add_argument(
    "--try",
    dest="path",
    metavar="TOKENIZER",
    help="a saved directory, vocab.txt, tokenizer.json or .model",
  )
  parser.add_argument("text", nargs="*", help="what --try shows")
  if any(token.partition("=")[0] == "--try" for token in argv):
    args = parser.parse_args(argv)
    print_tokens(tokenizer.load_tokenizer(args.path), " ".join(args.text))
    return 0
  args, config = overrides.parse(parser, argv)
  if not args.out:
    raise CorpusError("no place for the tokenizer: give --out DIR.")
  made = prepare.train_tokenizer(config, buckets.folder(args.out), log=print)
  print(
    f"{made.kind} tokenizer with {made.vocab_size:,} tokens "
    f"({made.sha256[:12]}) is ready in {args.out}"
  )
  return 0


def print_tokens(made: tokenizer.Tokenizer, text: str) -> None:
  """Prints a line for each token: id, token, its characters in the text."""
  encoding = made.encode(text)
  for i, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
    token, there = map(console.isolate, (made.tokens(int(i)), text[start:end]))
    print(f"{i}\t{token}\t{start}:{end}\t{there!r}")
