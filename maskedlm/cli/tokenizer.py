"""`maskedlm tokenizer`: trains a tokenizer, or shows the row of a text.

`maskedlm tokenizer report` is in tokenizer_report.py.
"""

import argparse
import sys
from collections.abc import Sequence

from maskedlm.cli import options
from maskedlm.config import overrides
from maskedlm.core.errors import ConfigError, CorpusError
from maskedlm.data.prepare import prepare
from maskedlm.data.tokenizers import tokenizer
from maskedlm.finetune.common import text_pairs
from maskedlm.runtime import buckets, console


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  if argv[:1] == ["report"]:
    from maskedlm.cli import tokenizer_report

    return tokenizer_report.main(argv[1:])
  parser = argparse.ArgumentParser(
    prog="maskedlm tokenizer",
    description="Trains a tokenizer on --config.corpus.source and saves it to "
    "--out; or, with --try instead of --config, shows the row that a model "
    "such as BERT reads: of a text, or of a pair. `maskedlm tokenizer report` "
    "measures how well vocabularies fit each language.",
  )
  options.add_out(parser, "directory to save the tokenizer to", metavar="DIR")
  parser.add_argument(
    "--try",
    metavar="TOKENIZER",
    help="a saved directory, vocab.txt, tokenizer.json or .model",
  )
  parser.add_argument(
    "text",
    nargs="*",
    help="the text for --try; a tab between two makes them a pair",
  )
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
    print_row(made, " ".join(args.text))
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


def print_row(made: tokenizer.Tokenizer, text: str) -> None:
  """Prints the row of a text, or of two with a tab between them, as a table.

  It is [CLS] A [SEP] or [CLS] A [SEP] B [SEP]. A line has a token's position,
  its segment, its id, the token, and the characters of the text that it is.

  Raises:
    ConfigError: there are three texts or more.
  """
  texts = text.split("\t")
  if len(texts) > 2:
    raise ConfigError(
      f"the text {text[:40]!r} has {len(texts) - 1} tabs; expected one text, "
      "or a pair with a tab between its texts."
    )
  encodings = [made.encode(text) for text in texts]
  a, b = [x.ids for x in encodings] + [None] * (2 - len(texts))
  row = text_pairs.pair_row(made, a, b, length=sys.maxsize)
  places = [""]  # Of [CLS].
  for encoding, each in zip(encodings, texts, strict=True):
    for start, end in encoding.offsets:
      places.append(f"{start}:{end}\t{console.isolate(each[start:end])!r}")
    places.append("")  # Of [SEP].
  print("position\tsegment\tid\ttoken\tcharacters\ttext")
  rows = zip(row.input_ids, row.token_type_ids, places, strict=True)
  for position, (i, segment, place) in enumerate(rows):
    token = console.isolate(made.tokens(int(i)))
    line = f"{position}\t{'AB'[segment]}\t{i}\t{token}\t{place}"
    print(line.rstrip("\t"))
