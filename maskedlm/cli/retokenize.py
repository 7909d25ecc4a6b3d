"""`maskedlm retokenize`: gives a model another vocabulary.

Each new token starts from the mean of the vectors of the old tokens that spell
it, and likewise for the biases of the heads that predict tokens: Gee et al.
2022, "Fast Vocabulary Transfer for Language Model Compression"
(https://arxiv.org/abs/2402.09977). Everything else is copied.
"""

import argparse
import pathlib
from collections.abc import Sequence

from maskedlm.cli import options
from maskedlm.interop.vocabulary_transfer import retokenize


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog="maskedlm retokenize",
    description="Gives a model another vocabulary: one for your domain or "
    "language, a smaller one, or its own with more words. Tokens in both "
    "keep their vectors; a new token starts from the mean of the old tokens "
    "that spell it. Pretrain the result further: --config.init_from=OUT.",
    allow_abbrev=False,
  )
  options.add_checkpoint(parser)
  parser.add_argument(
    "--tokenizer",
    required=True,
    help="a saved directory, vocab.txt, tokenizer.json or .model",
  )
  options.add_out(parser, "the workdir to create", metavar="DIR", required=True)
  args = parser.parse_args(argv)
  retokenize(args.checkpoint, args.tokenizer, pathlib.Path(args.out))
  return 0
