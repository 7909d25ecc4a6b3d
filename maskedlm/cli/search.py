"""`maskedlm search`: prints the nearest sentences to a query."""

import argparse
from collections.abc import Sequence

from maskedlm.cli import options
from maskedlm.runtime import console

CHUNK = 64  # Queries of a file that are answered at a time.


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog="maskedlm search",
    description="Prints the sentences whose vectors are nearest to a query's, "
    "by their cosine. `maskedlm embed --unit=sentence --out=FILE.npz` makes "
    "the vectors; every one is compared.",
    allow_abbrev=False,
  )
  options.add_checkpoint(parser)
  parser.add_argument(
    "--vectors",
    required=True,
    metavar="FILE.npz",
    help="vectors of sentences that the checkpoint made",
  )
  parser.add_argument(
    "--top_k", type=int, default=5, help="sentences for each query; default: 5"
  )
  options.add_json(parser, "print a JSON line for each query")
  parser.add_argument("text", nargs="*", help="queries; none = lines of stdin")
  args = parser.parse_args(argv)
  options.check_at_least(args, top_k=1)

  from maskedlm.data.labelled import text_lines
  from maskedlm.inference.vectors import search, vectors
  from maskedlm.runtime import startup

  startup.enable_compile_cache()
  model = vectors.open_text_encoder(args.checkpoint)
  index = search.open_index(args.vectors, model)
  queries = text_lines.given_texts(args.text, text_lines.STDIN)
  for some in text_lines.request_groups(
    queries, CHUNK, args.text, [text_lines.STDIN]
  ):
    lines, texts = zip(*some, strict=True)
    found = search.search(model, index, texts, top=args.top_k)
    for line, query, hits in zip(lines, texts, found, strict=True):
      if args.json:
        where = {"line": line} if line else {}
        nearest = [hit._asdict() for hit in hits]
        console.print_json({**where, "query": query, "nearest": nearest})
        continue
      print(query)
      for hit in hits:
        print(f"  {hit.cosine:.3f}  {hit.text}  ({hit.file}:{hit.line})")
  return 0
