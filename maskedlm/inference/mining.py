"""Mines hard negatives: wrong passages that a ranking takes for right ones.

All passages are ranked for each query, by the cosine of a model's vectors, by
BM25, or by both (fusion.py). Right passages and the query itself have no rank,
and texts count once. Of those in a window of ranks, a passage is kept if

  s <= s_right - |s_right| * margin

as a nearer one may be right, too (NV-Retriever's TopK-PercPos, de Souza P.
Moreira et al. 2024, arXiv:2407.15831, here for negative scores as well). The
scores s are the teacher's, or else the model's, or else BM25's.
"""

from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any, NamedTuple

import numpy as np

from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError, DataError
from maskedlm.data import hashing
from maskedlm.data.labelled.formats import beir
from maskedlm.finetune import data_files
from maskedlm.inference import bm25, fusion, reranking
from maskedlm.inference.vectors import ranking, search, vectors

MARGIN = 0.05

Progress = Callable[[int, int], None]


class Source(NamedTuple):
  """The queries and passages of a data set."""

  passages: list[str]  # Distinct, ignoring spaces and capitals.
  queries: list[str]
  right: list[list[int]]  # The passages that answer each query.
  # The passages that answer the query or a copy of it, or are the query.
  left_out: list[frozenset[int]]
  copies: int  # Rows that repeat the passage of another one.


class Mined(NamedTuple):
  """Rows as `finetune retrieval` and `finetune reranking` read them."""

  # {"query", "passage", "negatives", "scores": of the passage and of each
  # negative}, of each right passage that has a negative.
  rows: list[dict[str, Any]]
  counts: dict[str, int]  # What there was, and what was left out.


def read_source(data: str, overrides: Sequence[str] = ()) -> Source:
  """Reads beir:FOLDER, or files of the task retrieval, with commas between.

  Args:
    data: their names.
    overrides: tokens --config.task.NAME=VALUE, the columns of such files.

  Raises:
    ConfigError: an override names no option of the task, or has no effect.
    DataError: a file can't be read, or has no query.
  """
  if data.startswith(beir.PREFIX):
    if overrides:
      raise ConfigError(
        f"{overrides[0]} has no effect on {data}: leave it out."
      )
    of_id, queries, qrels = beir.read_collection(data)
    texts = [*of_id.values()]
    right = [[of_id[p] for p in x if x[p] > 0] for x in qrels.values()]
    # (text of a query, the passage of the same id or "").
    query_texts = [(queries[q], of_id.get(q, "")) for q in qrels]
  else:
    task = data_files.with_overrides("retrieval", {}, overrides)
    examples = data_files.read_examples(task, data)
    texts = [text for x in examples for text in x.passages]
    answers: dict[str, list[str]] = {}
    for x in examples:
      if x.query:
        answers.setdefault(x.query, []).append(x.passages[0])
    if not answers:
      raise DataError(f"{data}: no row has a query; expected at least one.")
    right, query_texts = [*answers.values()], [(query, "") for query in answers]
  distinct: dict[str, str] = {}  # Key -> the first of its copies.
  texts = [text for text in texts if text.strip()]
  for text in texts:
    distinct.setdefault(_key(text), text)
  ids = {key: i for i, key in enumerate(distinct)}

  def indices(*texts: str) -> list[int]:
    return [*{ids[x]: 0 for x in map(_key, texts) if x in ids}]

  of_query: dict[str, set[int]] = {}  # The right ones of all copies of a query.
  for answer_texts, (query, _) in zip(right, query_texts, strict=True):
    of_query.setdefault(_key(query), set()).update(indices(*answer_texts))
  return Source(
    passages=[*distinct.values()],
    queries=[query for query, _ in query_texts],
    right=[indices(*answer_texts) for answer_texts in right],
    left_out=[
      frozenset(of_query[_key(query)].union(indices(query, passage)))
      for query, passage in query_texts
    ],
    copies=len(texts) - len(distinct),
  )


def _key(text: str) -> str:
  return " ".join(text.split()).casefold()


def cosines(
  checkpoint: str, source: Source, progress: Progress
) -> Iterator[np.ndarray]:
  """Returns each query's cosines [n] with all passages; 0 without a vector."""
  model = vectors.open_text_encoder(checkpoint)
  return ranking.cosines(model, source.queries, source.passages, progress)


def window(
  scores: np.ndarray, floor: float, left_out: Set[int], ranks: tuple[int, int]
) -> list[int]:
  """Returns the passages from the first to the last of `ranks`, best first.

  Ranks are from 1, by the scores [n]; those left out, and those of a score that
  does not exceed the floor, have none. Equals are in order.
  """
  best = search.best(scores, ranks[1] + len(left_out)).tolist()
  best = [i for i in best if i not in left_out and scores[i] > floor]
  return best[ranks[0] - 1 : ranks[1]]


def mine(
  data: str,
  checkpoint: str = "",
  *,
  overrides: Sequence[str] = (),
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
    data, overrides: see read_source.
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
    ConfigError: neither checkpoint nor use_bm25 is given, ranks are not in
      order, or a model has no vectors.
    DataError: the data can't be read, or no query has a negative.
  """
  if not checkpoint and not use_bm25:
    raise ConfigError("give --checkpoint, --bm25 or both: they rank.")
  if not 1 <= ranks[0] <= ranks[1]:
    raise ConfigError(
      f"ranks={ranks[0]}:{ranks[1]}: expected FIRST:LAST, such as 1:50."
    )
  if margin is None and (checkpoint or teacher):
    margin = MARGIN
  source = read_source(data, overrides)
  lists = [cosines(checkpoint, source, progress)] if checkpoint else []
  if use_bm25:
    lists.append(map(bm25.index(source.passages), source.queries))
  # Without a word of the query, a passage has no rank by BM25 alone.
  num_rankings, floor = len(lists), -np.inf if checkpoint else 0.0
  reranker = reranking.open_if_reranker(teacher) if teacher else None
  if teacher and not reranker:
    lists.insert(0, cosines(teacher, source, progress))
  # Of each query, {passage: score}: its right ones, then the window's.
  scored: list[dict[int, float]] = []
  for i, scores in enumerate(zip(*lists, strict=True)):
    x = scores[-1] if num_rankings == 1 else fusion.fused(scores[-2:])
    mined = window(x, floor, source.left_out[i], ranks)
    scored.append({j: float(scores[0][j]) for j in source.right[i] + mined})
  if reranker:
    pairs = [
      (query, source.passages[j])
      for query, passages in zip(source.queries, scored, strict=True)
      for j in passages
    ]
    new_scores = iter(reranking.scores(reranker, pairs, progress).tolist())
    scored = [{j: next(new_scores) for j in passages} for passages in scored]
  rows, dropped = _make_rows(source, scored, negatives, margin, seed)
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
  return Mined(rows, counts | dropped)


def _make_rows(source: Source, scored, negatives: int, margin, seed):
  """Returns (rows, counts of what was dropped); arguments as of `mine`."""
  rows, dropped = [], {"too_near": 0, "fewer": 0, "without": 0}
  for i, s in enumerate(scored):
    wrong = np.array([j for j in s if j not in source.left_out[i]], np.int64)
    if seed is not None:
      wrong = wrong[np.argsort(hashing.bits(seed, "mine", i, wrong))]
    for right in source.right[i]:
      limit = np.inf if margin is None else s[right] - abs(s[right]) * margin
      allowed = [j for j in wrong.tolist() if s[j] <= limit]
      dropped["too_near"] += len(wrong) - len(allowed)
      dropped["fewer"] += 0 < len(allowed) < negatives
      dropped["without"] += not allowed
      if allowed:
        allowed = allowed[:negatives]
        rows.append(
          {
            "query": source.queries[i],
            "passage": source.passages[right],
            "negatives": [source.passages[j] for j in allowed],
            "scores": [round(s[j], 6) for j in (right, *allowed)],
          }
        )
  return rows, dropped
