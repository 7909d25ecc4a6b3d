"""Mines hard negatives: wrong passages that a ranking takes for right ones.

All passages are ranked for each query, by the cosine of a model's vectors, by
BM25, or by both: by the sum of 1 / (60 + rank) over the two (Cormack et al.
2009). Right passages and the query itself have no rank, and texts count once.
Of those in a window of ranks, a passage is kept if

  s <= s_right - |s_right| * margin

as a nearer one may be right, too (NV-Retriever's TopK-PercPos, de Souza P.
Moreira et al. 2024, arXiv:2407.15831, here for negative scores as well). The
scores s are the teacher's, or else the model's, or else BM25's.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError, DataError
from maskedlm.data import hashing
from maskedlm.data.labelled.formats import beir
from maskedlm.finetune import data_files
from maskedlm.finetune.config import make_task
from maskedlm.inference import bm25, reranking
from maskedlm.inference.vectors import ranking, similarity, splade, vectors

QUERIES = 64  # Compared with all passages at a time.
MARGIN = 0.05
FUSION = 60  # Added to ranks.

Progress = Callable[[int, int], None]


class Source(NamedTuple):
  """What is mined."""

  passages: list[str]  # Different ones, but for spaces and capitals.
  queries: list[str]
  right: list[list[int]]  # The passages that answer each query.
  left_out: list[frozenset[int]]  # These, and those that are the query.
  copies: int  # Rows whose passage another one has.


class Mined(NamedTuple):
  """Rows as `finetune retrieval` and `finetune reranking` read them."""

  # {"query", "passage", "negatives", "scores": of the passage and of each
  # negative}, of each right passage that has a negative.
  rows: list[dict[str, Any]]
  counts: dict[str, int]  # What there was, and what was left out.


def read_source(data: str) -> Source:
  """Reads beir:FOLDER, or files of the task retrieval, with commas between.

  Raises:
    DataError: see beir.read_collection and formats/passages.py.
  """
  if data.startswith(beir.PREFIX):
    texts, queries, qrels = beir.read_collection(data)
    pairs = [
      (
        queries[q],
        [texts[p] for p, score in judged.items() if score > 0],
        texts.get(q, ""),
      )
      for q, judged in qrels.items()
    ]
    return _source(texts.values(), pairs)
  examples = data_files.read_examples(make_task("retrieval", {}), data)
  right: dict[str, list[str]] = {}
  for x in examples:
    right.setdefault(x.query, []).append(x.passages[0])
  return _source(
    itertools.chain.from_iterable(x.passages for x in examples),
    [(query, own, "") for query, own in right.items() if query],
  )


def _source(texts: Iterable[str], pairs) -> Source:
  """Returns the Source of (query, its right texts, the text of its id)."""

  def key(text: str) -> str:
    return " ".join(text.split()).casefold()

  ids: dict[str, int] = {}
  kept, copies = [], 0
  for text in filter(str.strip, texts):
    if ids.setdefault(key(text), len(kept)) == len(kept):
      kept.append(text)
    else:
      copies += 1
  right = [[*{ids[key(x)]: 0 for x in own if x.strip()}] for _, own, _ in pairs]
  return Source(
    kept,
    [query for query, _, _ in pairs],
    right,
    [
      frozenset([*own, *(ids[x] for x in (key(q), key(same)) if x in ids)])
      for own, (q, _, same) in zip(right, pairs, strict=True)
    ],
    copies,
  )


def cosines(
  checkpoint: str, source: Source, progress: Progress
) -> Iterator[np.ndarray]:
  """Yields each query's cosines [n] with all passages; 0 without a vector."""
  model = vectors.open_text_encoder(checkpoint)
  splade.require_dense(model.sentences.pool, checkpoint)

  def embed(prompt: str, texts: Sequence[str]) -> np.ndarray:
    places, found = ranking.embed(model, prompt, texts, progress)
    x = np.zeros((len(texts), found.shape[1]), np.float32)
    x[places] = similarity.scaled(found)
    return x

  q, p = embed("query", source.queries), embed("document", source.passages)
  for begin in range(0, len(q), QUERIES):
    yield from q[begin : begin + QUERIES] @ p.T


def window(
  rankings: Sequence[np.ndarray],
  floors: Sequence[float],
  left_out: frozenset[int],
  ranks: tuple[int, int],
) -> list[int]:
  """Returns the passages in a window of ranks, best first.

  Args:
    rankings: the scores [n] of all passages, of each ranking. Equals are in the
      order of the passages.
    floors: the score that a passage must exceed to have a rank in each.
    left_out: passages that have no rank.
    ranks: the first and the last rank, from 1.
  """
  points: Counter = Counter()
  for scores, floor in zip(rankings, floors, strict=True):
    k = min(ranks[1] + len(left_out), len(scores))
    best = np.argpartition(-scores, k - 1)[:k]
    best = best[np.lexsort((best, -scores[best]))]
    found = [
      i for i in best.tolist() if i not in left_out and scores[i] > floor
    ]
    for rank, i in enumerate(found[: ranks[1]], 1):
      points[i] += 1 / (FUSION + rank)
  order = sorted(points, key=lambda i: (-points[i], i))
  return order[ranks[0] - 1 : ranks[1]]


def mine(
  data: str,
  checkpoint: str = "",
  *,
  use_bm25: bool = False,
  teacher: str = "",
  ranks: tuple[int, int] = (1, 50),
  negatives: int = 4,
  margin: float | None = None,
  seed: int | None = None,
  progress: Progress = lambda done, count: None,
) -> Mined:
  """Returns the hard negatives of each query's right passages.

  Args:
    data: see read_source.
    checkpoint: a model whose vectors rank the passages; "" for none.
    use_bm25: whether BM25 ranks them, too, or alone.
    teacher: a reranker, or another model of vectors, whose scores decide and
      are written; "" for those of the ranking.
    ranks: the first and the last rank of negatives, from 1.
    negatives: how many a row has at most.
    margin: see above; None for MARGIN, or for no limit by BM25's scores.
    seed: draws a row's negatives from those that may be; None takes the first.
    progress: called with (texts or batches done, their number).

  Raises:
    ConfigError: nothing ranks, the ranks are not in order, or a model can't be
      used.
    DataError: see read_source; no query has a negative.
  """
  if not checkpoint and not use_bm25:
    raise ConfigError("give --checkpoint, --bm25 or both: they rank.")
  if not 1 <= ranks[0] <= ranks[1]:
    raise ConfigError(
      f"ranks={ranks[0]}:{ranks[1]}: expected FIRST:LAST, such as 1:50."
    )
  if margin is None and (checkpoint or teacher):
    margin = MARGIN
  source = read_source(data)
  rankings = []
  if checkpoint:
    rankings.append((cosines(checkpoint, source, progress), -np.inf))
  if use_bm25:  # Without a word of the query, a passage has no rank.
    rankings.append((bm25.scores(source.queries, source.passages), 0.0))
  rows, dropped = [], Counter()
  for i, s in enumerate(_scored(source, rankings, ranks, teacher, progress)):
    own = np.array([j for j in s if j not in source.left_out[i]], np.int64)
    if seed is not None:
      own = own[np.argsort(hashing.bits(seed, "mine", i, own))]
    for right in source.right[i]:
      limit = (
        s[right] - abs(s[right]) * margin if margin is not None else np.inf
      )
      near = [j for j in own.tolist() if s[j] <= limit]
      dropped["too_near"] += len(own) - len(near)
      dropped["fewer"] += 0 < len(near) < negatives
      dropped["without"] += not near
      if near:
        rows.append(_row(source, i, [right, *near[:negatives]], s))
  if not rows:
    raise DataError(
      f"{data}: no query has a negative at the ranks {ranks[0]} to {ranks[1]} "
      f"of {counted(len(source.passages), 'different passage')}; "
      f"{dropped['too_near']:,} were too near to a right one; lower the first "
      "rank or the margin."
    )
  counts = {
    "queries": len(source.queries),
    "passages": len(source.passages),
    "right": sum(map(len, source.left_out)),
    "copies": source.copies,
    "rows": len(rows),
    "negatives": sum(len(row["negatives"]) for row in rows),
  }
  return Mined(
    rows, counts | {x: dropped[x] for x in ("too_near", "fewer", "without")}
  )


def _scored(source, rankings, ranks, teacher, progress):
  """Returns {passage: score} of each query: its right ones, then the window's.

  The rankings are (scores [n] of each query, the score that a passage must
  exceed to have a rank).
  """
  lists, floors = zip(*rankings, strict=True)
  reranker = reranking.open_if_reranker(teacher) if teacher else None
  if teacher and not reranker:
    lists = (*lists, cosines(teacher, source, progress))
  judge = -1 if teacher and not reranker else 0
  made = []
  for i, scores in enumerate(zip(*lists, strict=True)):
    found = window(scores[: len(floors)], floors, source.left_out[i], ranks)
    made.append({j: float(scores[judge][j]) for j in source.right[i] + found})
  if reranker:
    pairs = [
      (source.queries[i], source.passages[j])
      for i, found in enumerate(made)
      for j in found
    ]
    scores = iter(reranking.scores(reranker, pairs, progress).tolist())
    made = [{j: next(scores) for j in found} for found in made]
  return made


def _row(source: Source, i: int, passages: Sequence[int], scores):
  right, *negatives = (source.passages[j] for j in passages)
  return {
    "query": source.queries[i],
    "passage": right,
    "negatives": negatives,
    "scores": [round(scores[j], 6) for j in passages],
  }
