"""`maskedlm isotropy`: measures how alike a model's vectors are, by layer."""

import argparse
from collections import Counter
from collections.abc import Sequence

from maskedlm.cli import options
from maskedlm.core.counts import counted
from maskedlm.core.measured import to_json
from maskedlm.runtime import console, output_options


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog="maskedlm isotropy",
    description="Prints for each layer the expected cosine of two vectors, "
    "the dimensions that cause it, and its value without those or after "
    "standardising; docs/guides/use/embeddings.md explains the table.",
    allow_abbrev=False,
  )
  options.add_checkpoint(parser)
  options.add_input(parser)
  options.add_batch_tokens(parser)
  parser.add_argument("--unit", default="word", help="word (default) | token")
  parser.add_argument(
    "--sample",
    type=int,
    default=10_000,
    help="vectors to compare; default: 10,000",
  )
  parser.add_argument("--seed", type=int, default=0, help="the sample's seed")
  parser.add_argument(
    "--sts", metavar="FILE", help="pairs with scores, as in STS-B's dev.tsv"
  )
  options.add_json(parser, "print the table as JSON")
  options.add_out(parser, "write the table here, as JSON")
  options.check_json_flag(argv)
  args = parser.parse_args(argv)
  options.check_input(args)
  options.check_at_least(args, sample=2, seed=0)
  if args.out:
    output_options.check_file(args.out, option="--out")

  from maskedlm.data.labelled import text_lines
  from maskedlm.inference.vectors import (
    isotropy,
    unknown_words,
    vectors,
    word_frequencies,
  )
  from maskedlm.runtime import startup

  pairs = isotropy.read_pairs(args.sts) if args.sts else []
  startup.enable_compile_cache()
  model = vectors.open_text_encoder(
    args.checkpoint, batch_tokens=args.batch_tokens
  )
  seen = Counter()
  texts = text_lines.read_texts(
    args.input, form=args.format, field=args.field, seen=seen
  )
  counts, words = Counter(), Counter()
  texts = unknown_words.count_words(texts, words)
  if pairs:
    texts = word_frequencies.count_words(texts, counts)
  drawn = isotropy.sample_vectors(
    model,
    texts,
    unit=args.unit,
    count=args.sample,
    seed=args.seed,
    progress=options.make_progress(text_lines.total_bytes(args.input), seen),
  )
  layers = isotropy.measure_layers(drawn)
  if pairs:
    layers = isotropy.correlate_with_scores(
      model,
      pairs,
      drawn,
      layers,
      counts=counts,
    )
  console.clear_progress()
  unknown_words.log_unknown(model.tokenizer, words, console.log)
  text = to_json([layer._asdict() for layer in layers], indent=2) + "\n"
  if args.out:
    output_options.write_text(args.out, text, option="--out")
  if args.json:
    print(text, end="")
    return 0
  print(
    f"{len(drawn.x):,} of {drawn.moments.count:,} {args.unit}s of "
    f"{counted(seen['texts'], 'text')}"
    + (
      f"; Spearman of {counted(len(pairs), 'pair')} of {args.sts}"
      if pairs
      else ""
    )
  )
  print(format_table(layers))
  if pairs:
    print(f"\n{format_frequency(layers)}")
  return 0


def format_frequency(layers) -> str:
  """Formats the frequency effect of the rows of format_table."""
  rows = [
    (layer.layer, *(f"{x:z.3f}" for x in layer.frequency.values()))
    for layer in layers
  ]
  return "\n".join(
    [
      "frequency effect: rank correlation of cosine and log frequency at equal "
      "human scores; below 0, frequent words are underestimated",
      *console.table(["layer", *layers[0].frequency], rows),
    ]
  )


def format_table(layers) -> str:
  """Formats inference.vectors.isotropy's rows as text; layer 0 = embeddings."""
  names = list(layers[0].anisotropy)[1:]  # The first: vectors as they are.
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
