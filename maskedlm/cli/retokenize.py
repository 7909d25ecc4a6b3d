"""`maskedlm retokenize`: a model with another vocabulary.

Each new token begins with the mean of the vectors of the old tokens that spell
it, and so it does with the biases of the heads that predict tokens: Gee et al.
2022, "Fast Vocabulary Transfer for Language Model Compression"
(https://arxiv.org/abs/2402.09977). All else stays as it is.
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
    description="Gives a model another vocabulary: one of your domain or "
    "language, a smaller one, or its own with more words. Tokens that both "
    "have keep their vectors, a new one begins with the mean of those that "
    "spell it. Pretrain what comes out further: --config.init_from=OUT.",
    allow_abbrev=False,
  )
  options.add_checkpoint(parser)
  parser.add_argument(
    "--tokenizer",
    required=True,
    help="a saved directory, vocab.txt, tokenizer.json or .model",
  )
  parser.add_argument("--out", required=True, help="the workdir to make")
  args = parser.parse_args(argv)
  retokenize(args.checkpoint, args.tokenizer, pathlib.Path(args.out))
  return 0
