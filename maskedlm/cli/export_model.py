"""`maskedlm export`: writes a checkpoint for transformers, or for serving."""

import argparse
import pathlib
from collections.abc import Sequence

from maskedlm.cli import options
from maskedlm.core.errors import ConfigError, check_name
from maskedlm.runtime import console


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog="maskedlm export",
    description="Converts a checkpoint for use outside of maskedlm.",
    allow_abbrev=False,
  )
  options.add_checkpoint(parser)
  parser.add_argument(
    "--to",
    required=True,
    help="hf: a directory that transformers loads | onnx: a graph for "
    "onnxruntime and others | stablehlo: a program with its weights, which "
    "runs without maskedlm",
  )
  options.add_out(
    parser, "the directory to create", metavar="DIR", required=True
  )
  parser.add_argument(
    "--part",
    default="",
    help="encoder | discriminator | generator; default: everything, or the "
    "discriminator of ELECTRA",
  )
  parser.add_argument(
    "--architecture",
    default="",
    help="hf: bert | roberta | xlm-roberta | camembert | distilbert | "
    "electra | modernbert; default: the one that fits",
  )
  parser.add_argument(
    "--int8",
    action="store_true",
    help="onnx: write a second graph, with the dense layers in 8-bit integers",
  )
  parser.add_argument(
    "--platforms",
    default="",
    help="stablehlo: where it can run; default: cpu,cuda,tpu",
  )
  args = parser.parse_args(argv)
  path, out = pathlib.Path(args.checkpoint), pathlib.Path(args.out)
  check_name("--to", args.to, ("hf", "onnx", "stablehlo"))
  for name, to in (
    ("architecture", "hf"),
    ("int8", "onnx"),
    ("platforms", "stablehlo"),
  ):
    if getattr(args, name) and args.to != to:
      raise ConfigError(
        f"--{name} has no effect with --to={args.to}: leave it out, or use "
        f"--to={to}."
      )
  if args.to == "hf":
    from maskedlm.interop.huggingface import exporter

    made = exporter.export_huggingface(
      path, out, part=args.part, architecture=args.architecture, log=console.log
    )
    print(f"{out}: {made}.from_pretrained({str(out)!r}) loads it")
  elif args.to == "onnx":
    made = _onnx().export_onnx(
      path, out, part=args.part, int8=args.int8, log=console.log
    )
    print(f"{out}: {', '.join(made)}; README.md says how to run it")
  else:
    from maskedlm.interop import stablehlo

    platforms = tuple(
      p.strip() for p in (args.platforms or "cpu,cuda,tpu").split(",")
    )
    made = stablehlo.export_stablehlo(
      path, out, part=args.part, platforms=platforms, log=console.log
    )
    print(f"{out}: {', '.join(made['outputs'])}; README.md says how to run it")
  return 0


def _onnx():
  try:
    from maskedlm.interop.onnx import exporter
  except ImportError as error:
    if error.name != "onnx":
      raise
    raise ConfigError(
      "--to=onnx needs onnx: pip install 'maskedlm[onnx]'."
    ) from None
  return exporter
