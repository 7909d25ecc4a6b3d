"""`maskedlm import`: turns another library's model into a workdir."""

import argparse
import pathlib
from collections.abc import Sequence

from maskedlm.cli import options
from maskedlm.core.errors import ConfigError, check_name
from maskedlm.runtime import console


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog="maskedlm import",
    description="Reads a model that transformers saved (BERT, RoBERTa, XLM-R, "
    "CamemBERT, DistilBERT, ELECTRA, ModernBERT), or sentence-transformers, "
    "with its pooling; or the word vectors of word2vec and GloVe. It needs no "
    "internet, and runs no pickle and no remote code.",
    allow_abbrev=False,
  )
  parser.add_argument(
    "--from",
    dest="format",
    required=True,
    help="hf: a Hugging Face directory; word2vec: a file of word vectors, text "
    "or binary, of word2vec, GloVe or fastText (.vec)",
  )
  parser.add_argument(
    "path",
    help="the file, or the directory with config.json, model.safetensors and "
    "the tokenizer's files",
  )
  options.add_out(parser, "the workdir to create", metavar="DIR", required=True)
  parser.add_argument(
    "--part",
    default="",
    help="hf: encoder = without the heads; default: everything",
  )
  parser.add_argument(
    "--words",
    type=int,
    default=0,
    help="word2vec: read only the first N words, usually the most frequent "
    "ones; default: 0, all",
  )
  args = parser.parse_args(argv)
  check_name("--from", args.format, FORMATS)
  options.check_at_least(args, words=0)
  for name, own in (("part", "hf"), ("words", "word2vec")):
    if getattr(args, name) and args.format != own:
      raise ConfigError(
        f"--{name}={getattr(args, name)} is for --from={own}: leave it out."
      )
  return FORMATS[args.format](args, pathlib.Path(args.out))


def _hugging_face(args: argparse.Namespace, out: pathlib.Path) -> int:
  import jax  # Imported late, so that --help answers at once.

  from maskedlm.interop.huggingface import importer

  if args.part:
    check_name("--part", args.part, importer.PARTS[1:])
  model = importer.import_model(
    pathlib.Path(args.path), out, part=args.part, log=console.log
  )
  count = sum(x.size for x in jax.tree.leaves(model.params))
  print(
    f"{out}: {', '.join(model.params)}; {count:,} parameters; rows of up to "
    f"{model.length:,} tokens"
  )
  return 0


def _word_vectors(args: argparse.Namespace, out: pathlib.Path) -> int:
  from maskedlm.interop import word_vectors

  made = word_vectors.import_word_vectors(
    args.path, out, most=args.words, log=console.log
  )
  print(
    f"{out}: {made.words:,} words, {made.width} numbers each; text is "
    f"{'lowercased' if made.lowercase else 'read with its capitals'}"
  )
  return 0


FORMATS = {"hf": _hugging_face, "word2vec": _word_vectors}
