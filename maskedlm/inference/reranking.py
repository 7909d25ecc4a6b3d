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

DEPTH = 100  # Passages of the first stage that are read again, of each query.


def open_if_reranker(
  path: str, *, length: int = 0
) -> predict.FineTunedModel | None:
  """Returns the model if it is a reranker, or None; length 0 = as trained."""
  opened = load.open_best(path)
  is_one = opened.meta["task"].get("kind") == "reranking"
  return predict.make_model(opened, path, length=length) if is_one else None


def open_reranker(path: str) -> predict.FineTunedModel:
  """Returns the reranker of a workdir; raises ConfigError if it is another."""
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
  made = predict.predict(model, examples, progress=progress)
  return np.array([x["scores"][0] for x in made], np.float32)


def rerank(
  model: predict.FineTunedModel,
  run: ranking.Run,
  collection: Collection,
  progress: Callable[[int, int], None] = lambda done, count: None,
) -> ranking.Run:
  """Returns a run with the model's scores instead."""
  names = [(q, p) for q, found in run.items() for p in found]
  pairs = [(collection.queries[q], collection.passages[p]) for q, p in names]
  made = iter(scores(model, pairs, progress).tolist())
  return {q: {p: next(made) for p in found} for q, found in run.items()}


def joined(run: ranking.Run, other: ranking.Run) -> ranking.Run:
  """Returns a run by both, of the same passages (fusion.fused)."""
  made = {}
  for query, found in run.items():
    each = [np.array([x[query][p] for p in found]) for x in (run, other)]
    made[query] = dict(zip(found, fusion.fused(each), strict=True))
  return made


def rerank_hits(
  model: predict.FineTunedModel,
  queries: Sequence[str],
  hits: Sequence[Sequence[search.Hit | search.Scored]],
  *,
  top: int,
) -> list[list[search.Scored]]:
  """Returns the `top` hits of each query by the model's scores, best first.

  A first stage's scores, which are BM25's and the vectors', are joined with
  them (fusion.fused); cosines alone are not.
  """
  both = zip(queries, hits, strict=True)
  pairs = [(query, hit.text) for query, found in both for hit in found]
  made = np.split(scores(model, pairs), np.cumsum([len(x) for x in hits])[:-1])
  return [by_scores(x, own)[:top] for x, own in zip(hits, made, strict=True)]


def by_scores(
  hits: Sequence[search.Hit | search.Scored], own: np.ndarray
) -> list[search.Scored]:
  """Returns a query's hits with a reranker's scores [n], as rerank_hits."""
  first = [hit.score for hit in hits if isinstance(hit, search.Scored)]
  decide = fusion.fused([np.array(first), own]) if first else own
  scored = zip(decide.tolist(), hits, strict=True)
  made = [search.Scored(score, *hit[-4:]) for score, hit in scored]
  return sorted(made, key=lambda hit: -hit.score)
