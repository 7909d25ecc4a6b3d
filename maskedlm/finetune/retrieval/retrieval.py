"""Retrieval: finds the passages that answer a query, by one vector per text.

One encoder reads queries and passages. The vector of a text is the mean of its
tokens' vectors or the vector of [CLS], scaled to length 1 (Reimers & Gurevych
2019, arXiv:1908.10084). Training distinguishes a query's passage from all
others in the batch, and from hard negatives if there are any (Karpukhin et al.
2020, arXiv:2004.04906, section 3.2): see contrastive.py.

Dimensions: B examples, C texts in each: a query and K passages, the first of
which is correct. data/labelled/formats/passages.py reads the files.
"""

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy import sparse

from maskedlm.core.errors import ConfigError
from maskedlm.core.task import Batch, Key, Params
from maskedlm.data.labelled.formats.passages import Example
from maskedlm.finetune.common import multi_sequence, ranked_passages
from maskedlm.finetune.contract import (
  Application,
  FinetuneTask,
  Outputs,
  Prediction,
  Rows,
  Setup,
  task_option,
)
from maskedlm.finetune.retrieval import contrastive, distilled
from maskedlm.finetune.retrieval.contrastive import NONE
from maskedlm.finetune.retrieval.rows import make_rows
from maskedlm.modeling import masked_lm
from maskedlm.modeling.heads import ROW_POOLS
from maskedlm.modeling.task_heads import ensemble

BLOCK = 256  # Queries compared with all passages at a time.


@dataclasses.dataclass(frozen=True)
class Options(ranked_passages.Passages):
  """config.task: the files' columns, and how a text becomes a vector."""

  query_prefix: str = task_option(
    "", "Written before each query, such as 'query: ' for E5."
  )
  passage_prefix: str = task_option("", "Written before each passage.")
  pool: str = task_option(
    "mean",
    "The vector of a text: the mean of its tokens' or that of [CLS].",
    choices=tuple(ROW_POOLS),
  )
  loss: str = task_option(
    "contrastive",
    "contrastive: the right passage among those of the batch; margin_mse, kl: "
    "a teacher's scores of the query's own passages, in the column scores.",
    choices=("contrastive", *distilled.KINDS),
  )
  temperature: float = task_option(0.05, "Cosines are divided by it.", above=0)
  teacher_temperature: float = task_option(
    0.05,
    "The teacher's scores are divided by it: for cosines as task.temperature, "
    "1 for a reranker's scores.",
    above=0,
    needs={"task.loss": distilled.KINDS},
  )
  hardness: float = task_option(
    0.0,
    "A wrong passage's cosine times this is added to its logit as a constant: "
    "the nearer, the more it counts; 0 for no difference, 9 in LLaVE.",
    low=0,
    needs={"task.loss": ("contrastive",)},
  )
  symmetric: bool = task_option(
    False,
    "Half of the loss finds the query of a passage among those of the batch.",
    needs={"task.loss": ("contrastive",)},
  )
  delete: float = task_option(
    0.0,
    "Share of its tokens that a text loses where it is to find itself: where "
    "task.query and task.passage are the same column (TSDAE: 0.6).",
    low=0,
    below=1,
  )
  widths: tuple[int, ...] = task_option(
    (),
    "Train the first numbers of the vectors, too, as many as each of these, so "
    "that vectors can be cut (Matryoshka).",
  )


def checked_widths(widths: Sequence[int], width: int) -> tuple[int, ...]:
  """Returns task.widths below the encoder's, each once, in increasing order.

  Raises:
    ConfigError: one is not from 1 to below it.
  """
  for d in widths:
    if not 1 <= d < width:
      raise ConfigError(
        f"task.widths contains {d}; expected numbers from 1 to below {width}, "
        "the width of the model, which is always trained."
      )
  return tuple(sorted({*widths}))


def describe(examples: Sequence[Example], options: Options) -> dict[str, Any]:
  """Returns {}; raises DataError without a query, or scores that are needed."""
  if options.loss in distilled.KINDS:
    distilled.check_scores(examples, options.loss)
  return ranked_passages.describe_labels(examples)


def sentence_pooling(options: Options) -> dict[str, Any]:
  """Returns the fields of SentencePooling for `embed` and exports."""
  # Names used by encode_query and encode_document in sentence-transformers.
  prompts = {"query": options.query_prefix, "document": options.passage_prefix}
  prompts = {name: text for name, text in prompts.items() if text}
  pooling = {"pool": options.pool, "normalize": True, "truncate_dim": 0}
  return {**pooling, "prompts": prompts}


def make_application(setup: Setup, options: Options) -> Application:
  """Returns the Application."""
  tokenizer, cfg, _, length = setup

  def vectors(params: Params, batch: Batch, key: Key, train: bool):
    """Returns float32 [B, C, D]."""
    B, C, _ = batch["input_ids"].shape
    rows = multi_sequence.flatten_sequences(batch)
    hidden = masked_lm.encode(cfg, params, rows, key, train)
    x = ROW_POOLS[options.pool](cfg, hidden, rows["segment_ids"])
    return x.astype(jnp.float32).reshape(B, C, -1)

  def rows_of(examples: Sequence[Example]) -> Rows:
    rows = make_rows(
      examples,
      tokenizer,
      length=length,
      query_prefix=options.query_prefix,
      passage_prefix=options.passage_prefix,
      delete=options.delete,
    )
    is_distilled = options.loss in distilled.KINDS
    return distilled.with_scores(rows, examples) if is_distilled else rows

  widths = checked_widths(options.widths, cfg.width)
  if options.loss == "contrastive":
    loss_of_vectors = functools.partial(
      contrastive.loss_and_metrics,
      temperature=options.temperature,
      hardness=options.hardness,
      symmetric=options.symmetric,
      widths=widths,
    )
  else:
    loss_of_vectors = functools.partial(
      distilled.loss_and_metrics,
      options.loss,
      temperature=options.temperature,
      teacher_temperature=options.teacher_temperature,
      widths=widths,
    )

  def outputs(params: Params, batch: Batch, every=ensemble.alone):
    members = every(contrastive.normalise(vectors(params, batch, None, False)))
    # Their cosines are the means of the members' cosines.
    joined = ensemble.side_by_side(members)
    return {"vectors": joined / math.sqrt(len(members))}

  return Application(
    make_rows=rows_of,
    init=lambda key: {},  # There is no head: only the encoder is trained.
    loss=lambda params, batch, key, train: loss_of_vectors(
      vectors(params, batch, key, train), batch
    ),
    vectors=vectors,
    loss_of_vectors=loss_of_vectors,
    outputs=outputs,
    decode=decode_ranks,
    score=ranked_passages.evaluate_ranks,
    best="mrr@10",
    require_labels=ranked_passages.check_gold,
  )


def decode_ranks(
  examples: Sequence[Example], rows: Rows, outputs: Outputs, tuned
) -> list[Prediction]:
  """Returns the best passage, its cosine, and those of the example's passages.

  For examples from a file, the best is chosen from all passages of the file,
  and rank, from 1, is that of the correct passage among them, where other
  correct passages of the same query are left out and ties count against the
  correct one. Without a query, rank is None.
  """
  if not examples:
    return []
  x = np.concatenate(outputs["vectors"])  # From [C, D] of each row.
  return rank_rows(examples, rows, x)


def rank_rows(
  examples: Sequence[Example], rows: Rows, x: np.ndarray | sparse.csr_array
) -> list[Prediction]:
  """Returns what decode_ranks does, of vectors [n C, D], perhaps sparse."""
  ids, query_ids = (rows.values[n] for n in ("passage_ids", "query_ids"))
  K = ids.shape[1]
  at = np.arange(len(ids)) * (K + 1)  # Of each query, before its passages.
  queries, places = x[at], at[:, None] + np.arange(1, K + 1)
  products = (x[np.repeat(at, K)] * x[places.ravel()]).sum(axis=1)
  pairs = zip(examples, products.reshape(-1, K), strict=True)
  own_cosines = [row[: len(example.passages)] for example, row in pairs]
  if not all(example.is_gold for example in examples):
    pairs = zip(examples, own_cosines, strict=True)
    return [_prediction(example.passages, x, x) for example, x in pairs]
  unique_ids, first = np.unique(ids, return_index=True)
  n, k = np.divmod(first[unique_ids != NONE], K)  # Each passage once.
  pool = x[places[n, k]]
  texts = [examples[i].passages[j] for i, j in zip(n, k, strict=True)]
  predictions: list[Prediction] = []
  for begin in range(0, len(examples), BLOCK):
    products = queries[begin : begin + BLOCK] @ pool.T
    products = products.toarray() if sparse.issparse(products) else products
    for i, cosines in enumerate(products, begin):
      if query_ids[i] == NONE:
        predictions.append({"rank": None, "passage": "", "cosine": None})
        continue
      right = ids[query_ids == query_ids[i], 0]
      wrong = np.delete(cosines, right)
      rank = 1 + int(np.sum(wrong >= cosines[ids[i, 0]]))
      predictions.append(
        {"rank": rank, **_prediction(texts, cosines, own_cosines[i])}
      )
  return predictions


def _prediction(texts: Sequence[str], cosines, own_cosines) -> Prediction:
  """Returns the best text by cosines [n], its cosine, and the example's own."""
  best = int(np.argmax(cosines))
  chosen = {"passage": texts[best], "cosine": float(cosines[best])}
  return {**chosen, "cosines": own_cosines.tolist()}


def format_prediction(prediction: Prediction) -> str:
  """Returns the cosine of the best passage, and its text."""
  if prediction["cosine"] is None:
    return "(no query)"
  text = " ".join(prediction["passage"].split())
  return f"{prediction['cosine']:.3f}\t{text}"


def make_task(options: Options) -> FinetuneTask:
  return ranked_passages.make_task(
    "retrieval",
    options,
    describe_labels=functools.partial(describe, options=options),
    make_application=functools.partial(make_application, options=options),
    format_prediction=format_prediction,
    sentence_pooling=sentence_pooling(options),
  )
