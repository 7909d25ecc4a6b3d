"""What a ranking loses by codes of vectors, or by vectors that are cut.

  python benchmarks/codes.py --checkpoint runs/minilm --data beir:scifact

A row of the table is a way to keep vectors; its columns are nDCG@10 by the
codes alone, and after comparing 20 and 100 candidates in full.
"""

import argparse

import numpy as np

from maskedlm.data.labelled.formats import beir
from maskedlm.inference.vectors import codes, ranking, search, vectors

CANDIDATES = (20, 100)
TOP = 10


def embedded(model, prompt, texts):
  """Returns float32 [n, C] of texts by their ids, after a prompt."""
  before = model.sentences.prompts.get(prompt, "")
  options = vectors.VectorOptions(unit="sentence", pool="")
  made = [before + text for text in texts.values()]
  return vectors.embed_list(model, made, options, length_option="").values


def ndcg(collection, found) -> float:
  """Returns nDCG@10 of (rows, cosines) for each query."""
  passages, queries = [*collection.passages], [*collection.queries]
  run = {
    query: {
      passages[row]: float(x) for row, x in zip(rows, cosines, strict=True)
    }
    for query, (rows, cosines) in zip(queries, found, strict=True)
  }
  return ranking.measure(run, collection)[f"ndcg@{TOP}"]


def rows_of_table(q, p, widths):
  """Yields (name, bytes of a vector, what finds the best for a number)."""
  for width in (p.shape[1], *widths):
    x, y = q[:, :width], np.ascontiguousarray(p[:, :width])
    yield (
      f"float32, {width}",
      4 * width,
      lambda n, x=x, y=y: search.nearest(x, y, top=n),
    )
    for kind in codes.KINDS:
      coded = codes.encode(y, kind)

      def by_codes(n, x=x, coded=coded, width=width):
        def decode(part):
          return codes.decode(part, width)

        return search.nearest(x, coded, top=n, decode=decode)

      yield f"{kind}, {width}", coded.nbytes // len(coded), by_codes


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--checkpoint", required=True)
  parser.add_argument("--data", required=True, help="beir:FOLDER")
  parser.add_argument("--widths", nargs="*", type=int, default=[])
  args = parser.parse_args()
  collection = beir.read_collection(args.data)
  model = vectors.open_text_encoder(args.checkpoint)
  q = embedded(model, "query", collection.queries)
  p = embedded(model, "document", collection.passages)
  more = [f"{n} in full" for n in CANDIDATES]
  print("|", " | ".join(["kept", "bytes", "alone", *more]), "|")
  print("|---" * (3 + len(more)) + "|")
  for name, size, best in rows_of_table(q, p, args.widths):
    values = [ndcg(collection, best(TOP))]
    for n in CANDIDATES:
      found = []
      for query, (rows, _) in zip(q, best(n), strict=True):
        rows = np.sort(rows)
        ((at, cosines),) = search.nearest(query[None], p[rows], top=TOP)
        found.append((rows[at], cosines))
      values.append(ndcg(collection, found))
    print(
      "|", name, "|", size, "|", " | ".join(f"{x:.4f}" for x in values), "|"
    )


if __name__ == "__main__":
  main()
