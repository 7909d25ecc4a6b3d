"""`maskedlm fill-mask`: prints the most probable words for each mask."""

import argparse
import pathlib
from collections.abc import Sequence

from maskedlm.cli import options
from maskedlm.data.labelled import text_lines
from maskedlm.inference.fill_mask import (
  MAX_TEXTS,
  fill_masks,
  format_filled,
  load_mask_filler,
)
from maskedlm.runtime import console, startup


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog="maskedlm fill-mask",
    description="Prints the most probable words for each mask of each text.",
    allow_abbrev=False,
  )
  options.add_checkpoint(parser)
  parser.add_argument(
    "--top_k", type=int, default=5, help="words for each mask; default: 5"
  )
  options.add_json(parser, "print a JSON line for each text")
  parser.add_argument("text", nargs="*", help="texts; none = lines of stdin")
  args = parser.parse_args(argv)
  options.check_at_least(args, top_k=1)
  startup.enable_compile_cache()
  model = load_mask_filler(pathlib.Path(args.checkpoint))
  requests = text_lines.given_texts(args.text, text_lines.STDIN)
  for some in text_lines.request_groups(
    requests, MAX_TEXTS, args.text, [text_lines.STDIN]
  ):
    lines, texts = zip(*some, strict=True)
    made = fill_masks(model, texts, top_k=args.top_k)
    for line, filled in zip(lines, made, strict=True):
      if args.json:
        masks = [
          [{"token": w, "probability": p} for w, p in words]
          for words in filled.masks
        ]
        where = {"line": line} if line else {}
        console.print_json({**where, "text": filled.text, "masks": masks})
      else:
        print(format_filled(filled), flush=True)
  return 0
