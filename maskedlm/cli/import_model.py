"""`maskedlm import`: a model of transformers becomes a workdir."""

import argparse
import pathlib
from collections.abc import Sequence

from maskedlm.core.errors import ConfigError
from maskedlm.runtime import console


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog="maskedlm import",
    description="Reads a model that transformers saved: BERT, RoBERTa, XLM-R, "
    "CamemBERT, DistilBERT, ELECTRA, ModernBERT; of sentence-transformers with "
    "its pooling. No internet, no pickle, no remote code.",
    allow_abbrev=False,
  )
  parser.add_argument(
    "--from", dest="format", required=True, help="hf: a Hugging Face directory"
  )
  parser.add_argument(
    "directory", help="has config.json, model.safetensors and a tokenizer"
  )
  parser.add_argument("--out", required=True, help="the workdir to make")
  parser.add_argument(
    "--part", default="", help="encoder: without heads; default: everything"
  )
  args = parser.parse_args(argv)
  if args.format != "hf":
    raise ConfigError(f"--from={args.format!r} is unknown; known: hf.")

  import jax  # Not before it is needed: --help answers at once.

  from maskedlm.interop.huggingface import importer

  if args.part not in importer.PARTS:
    raise ConfigError(f"--part={args.part!r} is unknown; known: encoder.")
  out = pathlib.Path(args.out)
  model = importer.import_model(
    pathlib.Path(args.directory), out, part=args.part, log=console.log
  )
  count = sum(x.size for x in jax.tree.leaves(model.params))
  print(f"{out}: {', '.join(model.params)}; {count:,} parameters")
  return 0
