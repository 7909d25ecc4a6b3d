"""`maskedlm prepare`: text -> a corpus on disk, or --verify one."""

import argparse
import pathlib
import sys
from collections.abc import Sequence

from maskedlm import cli, flags
from maskedlm.corpus import prepare, store
from maskedlm.corpus.errors import CorpusError


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog="maskedlm prepare",
    description="Reads --config.corpus.source, trains or loads the tokenizer "
    "and writes a corpus. --verify checks a finished one instead.",
  )
  parser.add_argument(
    "--out", help="the corpus's directory; default: config.corpus.path"
  )
  parser.add_argument(
    "--verify",
    metavar="CORPUS",
    help="check every file of this corpus against its checksums",
  )
  if any(token.partition("=")[0] == "--verify" for token in argv):
    return _verify(parser.parse_args(argv).verify)
  args, config = flags.parse(parser, argv)
  path = args.out or config.corpus.path
  if not path:
    raise CorpusError(
      "no place for the corpus: give --out DIR or --config.corpus.path=DIR."
    )
  corpus = prepare.prepare(config, pathlib.Path(path), log=print)
  print(f"corpus {corpus.fingerprint[:12]} is ready in {path}")
  return 0


def _verify(path: str) -> int:
  problems = store.verify(pathlib.Path(path))
  for problem in problems:
    print(f"error: {problem}", file=sys.stderr)
  if not problems:
    print(f"{path}: every file matches its checksum")
  return cli.EXIT_ERROR if problems else 0


if __name__ == "__main__":
  sys.exit(cli.run(main))
