"""Reranks the passages that a first stage found, by a model that reads pairs.

The model is one of `finetune reranking`: it reads a query and a passage
together, so it is slower than vectors, and better.
"""

from collections.abc import Callable, Sequence

import numpy as np

from maskedlm.core.errors import ConfigError
from maskedlm.data.labelled.formats.beir import Collection
from maskedlm.data.labelled.formats.passages import Example
from maskedlm.finetune import predict
from maskedlm.inference import fusion
from maskedlm.inference.vectors import ranking, search
from maskedlm.training.checkpoints import load

DEPTH = 100  # Passages of the first stage that are reranked for each query.


def open_if_reranker(
  path: str, *, length: int = 0
) -> predict.FineTunedModel | None:
  """Returns the model if it is a reranker, or None; length 0 = as trained."""
  opened = load.open_best(path)
  is_one = opened.meta["task"].get("kind") == "reranking"
  return predict.make_model(opened, path, length=length) if is_one else None


def open_reranker(path: str) -> predict.FineTunedModel:
  """Returns a workdir's model; raises ConfigError if it is no reranker."""
  if model := open_if_reranker(path):
    return model
  raise ConfigError(
    f"--reranker={path} is no reranker; expected a workdir of `maskedlm "
    "finetune reranking`."
  )


def scores(
  model: predict.FineTunedModel,
  pairs: Sequence[tuple[str, str]],
  progress: Callable[[int, int], None] = lambda done, count: None,
) -> np.ndarray:
  """Returns the score [n] of each (query, passage): higher is better."""
  examples = [Example(q, (p,), is_gold=False) for q, p in pairs]
  predictions = predict.predict(model, examples, progress=progress)
  return np.array([x["scores"][0] for x in predictions], np.float32)


def rerank(
  model: predict.FineTunedModel,
  run: ranking.Run,
  collection: Collection,
  progress: Callable[[int, int], None] = lambda done, count: None,
) -> ranking.Run:
  """Returns the run with the model's scores in place of its own."""
  names = [(q, p) for q, passages in run.items() for p in passages]
  pairs = [(collection.queries[q], collection.passages[p]) for q, p in names]
  new_scores = iter(scores(model, pairs, progress).tolist())
  return {
    q: {p: next(new_scores) for p in passages} for q, passages in run.items()
  }


def joined(run: ranking.Run, other: ranking.Run) -> ranking.Run:
  """Joins the scores of two runs of the same passages (fusion.fused)."""
  result = {}
  for query, passages in run.items():
    rankings = [np.array([x[query][p] for p in passages]) for x in (run, other)]
    result[query] = dict(zip(passages, fusion.fused(rankings), strict=True))
  return result


def rerank_hits(
  model: predict.FineTunedModel,
  queries: Sequence[str],
  hits: Sequence[Sequence[search.Hit | search.Scored]],
  *,
  top: int,
) -> list[list[search.Scored]]:
  """Returns the `top` hits of each query by the model's scores, best first.

  Hits that are Scored, by BM25 and vectors together, have their score joined
  with the model's (fusion.fused); Hits, which have only a cosine, don't.
  """
  pairs = [
    (query, hit.text)
    for query, query_hits in zip(queries, hits, strict=True)
    for hit in query_hits
  ]
  ends = np.cumsum([len(query_hits) for query_hits in hits])
  new_scores = np.split(scores(model, pairs), ends[:-1])
  return [by_scores(*x)[:top] for x in zip(hits, new_scores, strict=True)]


def by_scores(
  hits: Sequence[search.Hit | search.Scored], new_scores: np.ndarray
) -> list[search.Scored]:
  """Returns a query's n hits by a reranker's scores [n], as rerank_hits."""
  first = [hit.score for hit in hits if isinstance(hit, search.Scored)]
  final = fusion.fused([np.array(first), new_scores]) if first else new_scores
  scored = zip(final.tolist(), hits, strict=True)
  rescored = [search.Scored(score, *hit[-4:]) for score, hit in scored]
  return sorted(rescored, key=lambda hit: -hit.score)
