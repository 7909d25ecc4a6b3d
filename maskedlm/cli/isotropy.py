"""`maskedlm isotropy`: how alike are a model's vectors, layer by layer?"""

import argparse
import json
from collections import Counter
from collections.abc import Sequence

from maskedlm.cli import options
from maskedlm.core.errors import ConfigError
from maskedlm.runtime import console, output_options


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog="maskedlm isotropy",
    description="Prints for each layer the expected cosine of two vectors, the "
    "dimensions it comes from, and what it is without those or standardised; "
    "docs/guides/use/embeddings.md explains the table.",
    allow_abbrev=False,
  )
  options.add_input(parser)
  parser.add_argument("--unit", default="word", help="word (default) | token")
  parser.add_argument(
    "--sample",
    type=int,
    default=10_000,
    help="vectors that are compared; default: 10,000",
  )
  parser.add_argument("--seed", type=int, default=0, help="of the sample")
  parser.add_argument(
    "--sts", metavar="FILE", help="pairs with scores, as dev.tsv of STS-B"
  )
  parser.add_argument("--json", metavar="FILE", help="where to write the table")
  args = parser.parse_args(argv)
  options.check_input(args)
  if args.sample < 2:
    raise ConfigError(f"--sample={args.sample}: expected 2 or more.")
  if args.json:
    output_options.check_file(args.json, option="--json")

  from maskedlm.data.labelled import text_lines
  from maskedlm.inference.vectors import isotropy, vectors
  from maskedlm.runtime import startup

  pairs = isotropy.read_pairs(args.sts) if args.sts else []
  startup.enable_compile_cache()
  model = vectors.open_text_encoder(args.checkpoint)
  seen = Counter()
  texts = text_lines.read_texts(
    args.input, form=args.format, field=args.field, seen=seen
  )
  drawn = isotropy.sample_vectors(
    model,
    texts,
    unit=args.unit,
    count=args.sample,
    seed=args.seed,
    progress=options.progress(text_lines.total_bytes(args.input), seen),
    batch_tokens=args.batch_tokens,
  )
  layers = isotropy.measure_layers(drawn)
  if pairs:
    layers = isotropy.correlate_with_scores(
      model, pairs, drawn, layers, batch_tokens=args.batch_tokens
    )
  console.clear_progress()
  print(
    f"{len(drawn.x):,} of {drawn.moments.count:,} {args.unit}s of "
    f"{seen['texts']:,} texts"
    + (f"; Spearman of {len(pairs):,} pairs of {args.sts}" if pairs else "")
  )
  print(format_table(layers))
  if args.json:
    table = [layer._asdict() for layer in layers]
    text = json.dumps(table, indent=2) + "\n"
    output_options.write_text(args.json, text, option="--json")
  return 0


def format_table(layers) -> str:
  """Formats inference.vectors.isotropy's rows as text; layer 0 = embeddings."""
  names = list(layers[0].anisotropy)[1:]  # After the vectors as they are.
  columns = ["layer", "anisotropy", *names]
  if layers[0].spearman:
    columns += ["Spearman", *names]
  rows = []
  for layer in layers:
    values = (*layer.anisotropy.values(), *(layer.spearman or {}).values())
    rogue = ", ".join(f"{d} ({share:.1%})" for d, share in layer.rogue)
    rows.append((layer.layer, *(f"{value:z.3f}" for value in values), rogue))
  columns.append("rogue dimensions and their shares")
  align = ">" * (len(columns) - 1) + "<"
  return "\n".join(console.table(columns, rows, align=align))
