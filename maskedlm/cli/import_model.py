"""`maskedlm import`: turns a model of transformers into a workdir."""

import argparse
import pathlib
from collections.abc import Sequence

from maskedlm.cli import options
from maskedlm.core.errors import check_name
from maskedlm.runtime import console


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog="maskedlm import",
    description="Reads a model that transformers saved (BERT, RoBERTa, XLM-R, "
    "CamemBERT, DistilBERT, ELECTRA, ModernBERT), or sentence-transformers, "
    "with its pooling. It needs no internet, and runs no pickle and no remote "
    "code.",
    allow_abbrev=False,
  )
  parser.add_argument(
    "--from", dest="format", required=True, help="hf: a Hugging Face directory"
  )
  parser.add_argument(
    "directory",
    help="with config.json, model.safetensors and the tokenizer's files",
  )
  options.add_out(parser, "the workdir to create", metavar="DIR", required=True)
  parser.add_argument(
    "--part",
    default="",
    help="encoder = without the heads; default: everything",
  )
  args = parser.parse_args(argv)
  check_name("--from", args.format, ("hf",))

  import jax  # Imported late, so that --help answers at once.

  from maskedlm.interop.huggingface import importer

  if args.part:
    check_name("--part", args.part, importer.PARTS[1:])
  out = pathlib.Path(args.out)
  model = importer.import_model(
    pathlib.Path(args.directory), out, part=args.part, log=console.log
  )
  count = sum(x.size for x in jax.tree.leaves(model.params))
  print(
    f"{out}: {', '.join(model.params)}; {count:,} parameters; rows of up to "
    f"{model.length:,} tokens"
  )
  return 0
