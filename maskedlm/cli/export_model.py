"""`maskedlm export`: a checkpoint for transformers, or for serving."""

import argparse
import pathlib
from collections.abc import Sequence

from maskedlm.cli import options
from maskedlm.core.errors import ConfigError
from maskedlm.runtime import console


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog="maskedlm export",
    description="Writes a checkpoint in another form.",
    allow_abbrev=False,
  )
  options.add_checkpoint(parser)
  parser.add_argument(
    "--to",
    required=True,
    help="hf: a directory that transformers loads | stablehlo: a program with "
    "its weights, which runs without maskedlm",
  )
  parser.add_argument("--out", required=True, help="the directory to make")
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
    "--platforms",
    default="cpu,cuda,tpu",
    help="stablehlo: where it can run; default: cpu,cuda,tpu",
  )
  args = parser.parse_args(argv)
  path, out = pathlib.Path(args.checkpoint), pathlib.Path(args.out)
  if args.to == "onnx":
    raise ConfigError(
      f"--to=onnx goes over --to=hf: `maskedlm export --checkpoint {path} "
      f"--to hf --out {out}-hf`, then "
      f"`optimum-cli export onnx --model {out}-hf --task feature-extraction "
      f"{out}` (or fill-mask, ...: docs/guides/use/import-export.md)."
    )
  if args.to not in ("hf", "stablehlo"):
    raise ConfigError(f"--to={args.to!r} is unknown; known: hf, stablehlo.")

  if args.to == "hf":
    from maskedlm.interop.huggingface import exporter

    made = exporter.export_huggingface(
      path, out, part=args.part, architecture=args.architecture, log=console.log
    )
    print(f"{out}: {made}.from_pretrained({str(out)!r}) loads it")
  else:
    from maskedlm.interop import stablehlo

    platforms = tuple(p.strip() for p in args.platforms.split(","))
    made = stablehlo.export_stablehlo(
      path, out, part=args.part, platforms=platforms, log=console.log
    )
    print(f"{out}: {', '.join(made['outputs'])}; README.md says how to run it")
  return 0
