"""Ranks the passages of a collection for its queries, and measures the ranking.

The measures are those of trec_eval, as BEIR and MTEB use it: passages of equal
score are in descending order of their ids, gains are the scores of the qrels,
and a passage that the qrels don't name is wrong.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from maskedlm.data.labelled.formats.beir import Collection
from maskedlm.data.labelled.text_lines import Text
from maskedlm.inference import bm25, fusion
from maskedlm.inference.vectors import search, vectors

DEPTH = 1000  # Passages of a ranking.
CUTOFF = 10  # Of nDCG and MRR.
RECALLS = (10, 100)

Run = dict[str, dict[str, float]]  # Query -> passage -> score.


def rank(
  model: vectors.TextEncoder | None,
  collection: Collection,
  *,
  by_words: bool = False,
  depth: int = DEPTH,
  progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Run]:
  """Returns {"BM25": run, "vectors": run, "both": run}, or those asked for.

  A passage of score 0 by words or by vectors alone has no rank in that run. One
  of the query's own id is left out: in collections in which queries are
  passages, it is the query. `depth` is the number of passages for each query;
  the rest is as in `cosines`.
  """
  passages, texts = zip(*collection.passages.items(), strict=True)
  query_texts = [*collection.queries.values()]
  scores: dict[str, Iterator[np.ndarray]] = {}
  if by_words:
    scores["BM25"] = map(bm25.index(texts), query_texts)
  if model:
    scores["vectors"] = cosines(model, query_texts, texts, progress)
  runs: dict[str, Run] = {}
  for query, *lists in zip(collection.queries, *scores.values(), strict=True):
    by_column = dict(zip(scores, lists, strict=True))
    if len(lists) > 1 and np.any(lists):
      by_column["both"] = fusion.fused(lists)
    for column, x in by_column.items():
      best = search.best(x, depth + 1)
      if column != "both":  # Where 0 is the mean.
        best = best[x[best] != 0]
      kept = [i for i in best.tolist() if passages[i] != query][:depth]
      run = runs.setdefault(column, {})
      run[query] = {passages[i]: float(x[i]) for i in kept}
  return runs


def cosines(
  model: vectors.TextEncoder,
  queries: Sequence[str],
  passages: Sequence[str],
  progress: Callable[[int, int], None] = lambda done, total: None,
) -> Iterator[np.ndarray]:
  """Returns each query's cosines [n] with the passages; 0 without a vector.

  They are embedded after the model's prompts for them, pooled as it was
  trained. `progress` gets (texts done, texts), of queries, then of passages.
  """
  options = vectors.resolve_options(
    vectors.VectorOptions(unit="sentence", pool=""), model
  )

  def embed(prompt: str, texts: Sequence[str]):
    before = model.sentences.prompts.get(prompt, "")
    lines = (Text(before + text, line=i) for i, text in enumerate(texts))
    parts, indices = [], []
    for part in vectors.embed(model, lines, options):
      parts.append(part)
      indices += [text.line for text in part.sources]
      progress(indices[-1] + 1, len(texts))
    m = len(indices)
    at = np.ones(m, np.float32), (indices, np.arange(m))
    return sparse.csr_array(at, (len(texts), m)) @ vectors.collect(parts).values

  return search.cosines(embed("query", queries), embed("document", passages))


def in_order(scores: Mapping[str, float]) -> list[str]:
  """Returns passages, best first; equals in descending order of their ids."""
  return sorted(scores, key=lambda name: (scores[name], name), reverse=True)


class Ranking(NamedTuple):
  """The gains of a query's passages, best first, and of all that it has."""

  gains: np.ndarray  # Of the passages as they are ranked.
  ideal: np.ndarray  # Of all right ones, the largest first.


def ranking(scores: Mapping[str, float], right: Mapping[str, int]) -> Ranking:
  """Returns the Ranking of a query with these scores and these qrels."""
  gains = [max(right.get(name, 0), 0) for name in in_order(scores)]
  ideal = sorted((gain for gain in right.values() if gain > 0), reverse=True)
  return Ranking(np.array(gains, float), np.array(ideal, float))


def ndcg(ranked: Ranking, k: int) -> float:
  """Returns nDCG@k with linear gains (Järvelin & Kekäläinen 2002)."""

  def dcg(gains):
    return float(np.sum(gains[:k] / np.log2(np.arange(len(gains[:k])) + 2)))

  return dcg(ranked.gains) / dcg(ranked.ideal)


def reciprocal_rank(ranked: Ranking, k: int) -> float:
  """Returns 1 / the rank of the first right passage, 0 beyond the k-th."""
  places = np.flatnonzero(ranked.gains[:k])
  return 1 / (1 + int(places[0])) if len(places) else 0.0


def recall(ranked: Ranking, k: int) -> float:
  """Returns the share of the right passages that are among the first k."""
  return np.count_nonzero(ranked.gains[:k]) / len(ranked.ideal)


def average_precision(ranked: Ranking) -> float:
  """Returns the mean precision at the right passages; 0 if not found."""
  places = np.flatnonzero(ranked.gains)
  precisions = np.arange(1, len(places) + 1) / (places + 1)
  return float(np.sum(precisions)) / len(ranked.ideal)


def measure(run: Run, collection: Collection) -> dict[str, float]:
  """Returns {metric: mean over the queries of the collection}.

  A query that the run lacks counts as one without passages.
  """
  rankings = [
    ranking(run.get(query, {}), right)
    for query, right in collection.qrels.items()
  ]

  def mean(metric: Callable[..., float], *k: int) -> float:
    return float(np.mean([metric(x, *k) for x in rankings]))

  return {
    f"ndcg@{CUTOFF}": mean(ndcg, CUTOFF),
    f"mrr@{CUTOFF}": mean(reciprocal_rank, CUTOFF),
    **{f"recall@{k}": mean(recall, k) for k in RECALLS},
    "map": mean(average_precision),
  }


def format_run(run: Run) -> str:
  """Returns the lines of a run file: query Q0 passage rank score tag."""
  lines = []
  for query, scores in run.items():
    lines += [
      f"{query} Q0 {name} {i} {scores[name]!r} maskedlm\n"
      for i, name in enumerate(in_order(scores), 1)
    ]
  return "".join(lines)
