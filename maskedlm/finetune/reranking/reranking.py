"""Reranking: how well a passage answers a query, read together.

A pair is a row [CLS] query [SEP] passage [SEP], and its score w z_CLS (Nogueira
& Cho 2019, arXiv:1901.04085). An example is the list of a right passage and
wrong ones, such as `maskedlm mine` writes. Dimensions: B examples, C passages
in each, the first of which is right. data/labelled/formats/passages.py reads
the files.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax

from maskedlm.core.errors import DataError
from maskedlm.core.options import copy_option
from maskedlm.core.task import Batch, Key, Params
from maskedlm.data.labelled.formats.passages import Example
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.common import multi_sequence, ranked_passages
from maskedlm.finetune.common.head import make_row_head
from maskedlm.finetune.common.options import Shared
from maskedlm.finetune.common.text_pairs import row_maker
from maskedlm.finetune.contract import (
  Application,
  FinetuneTask,
  Outputs,
  Prediction,
  Rows,
  Setup,
  task_option,
)
from maskedlm.modeling import losses, reports
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.task_heads import ensemble


@dataclasses.dataclass(frozen=True)
class Options(ranked_passages.Passages):
  """config.task: the files' columns, the loss, and what the head reads."""

  loss: str = task_option(
    "list",
    "list: the right passage among those of its list, by a softmax; pair: "
    "whether each is right, by a logistic loss.",
    choices=("list", "pair"),
  )
  pooler: bool = copy_option(Shared, "pooler")


def describe_labels(examples: Sequence[Example]) -> dict[str, Any]:
  """Returns {}; raises as check_lists, and if an example has no query."""
  check_lists(examples)
  return ranked_passages.describe_labels(examples)


def check_lists(examples: Sequence[Example]) -> None:
  """Raises DataError if no query's right passage is known among others."""
  ranked_passages.check_gold(examples)
  if not any(map(_is_ranked, examples)):
    raise DataError(
      f"{examples[0].where}: no example has a query and a wrong passage; "
      "expected negatives, which `maskedlm mine` finds."
    )


def _is_ranked(example: Example) -> bool:
  return example.is_gold and bool(example.query) and len(example.passages) > 1


def loss_and_metrics(kind: str, logits, batch: Batch):
  """Returns (terms, metrics) as Task.loss, of logits [B, C].

  A list without a wrong passage has no loss of the kind "list". The accuracy
  is the share of lists in which the right passage has the largest logit.
  """
  is_there = jnp.arange(logits.shape[1]) < batch["counts"][:, None]
  is_list = batch["example_weights"] * (batch["counts"] > 1)
  of_list = jnp.where(is_there, logits, -1e9)
  right = jnp.zeros(len(logits), jnp.int32)
  nll, correct = losses.loss_and_correct(of_list, right)
  terms = losses.weighted_sum(nll, is_list)
  if kind == "list":
    reports.report(of_list, is_list)
  else:
    labels = (jnp.arange(logits.shape[1]) == 0).astype(jnp.float32)
    weights = is_there * batch["example_weights"][:, None]
    reports.report_binary(logits, weights)
    terms = losses.weighted_sum(
      optax.sigmoid_binary_cross_entropy(logits, labels), weights
    )
  metrics = {"first_is_right": losses.weighted_sum(correct, is_list)}
  return {"reranking": terms}, metrics


def make_application(setup: Setup, options: Options) -> Application:
  """Returns the Application."""
  tokenizer, cfg, _, length = setup
  row_head = make_row_head(cfg, 1, pooler=options.pooler)
  head = multi_sequence.head_of_each(row_head)

  def loss(params: Params, batch: Batch, key: Key, train: bool):
    logits = head.logits(params, batch, key, train)
    return loss_and_metrics(options.loss, logits, batch)

  return Application(
    make_rows=lambda x: make_rows(x, tokenizer, cfg, length=length),
    init=head.init,
    loss=loss,
    outputs=lambda params, batch, every=ensemble.alone: {
      "scores": ensemble.mean(every(head.logits(params, batch, None, False)))
    },
    decode=decode,
    score=ranked_passages.evaluate_ranks,
    best="mrr@10",
    require_labels=check_lists,
  )


def make_rows(
  examples: Sequence[Example],
  tokenizer: Tokenizer,
  cfg: EncoderConfig,
  *,
  length: int,
) -> Rows:
  """Returns a row of C pairs for each example (multi_sequence.py).

  Rows.values has counts [n], the passages of each; the other pairs are empty.
  """
  counts = [len(example.passages) for example in examples]
  texts = [*{x: 0 for e in examples for x in (e.query, *e.passages, "")}]
  ids = dict(zip(texts, tokenizer.encode_batch(texts), strict=True))
  row = row_maker(tokenizer, cfg, length)
  empty = [row(ids[""], ids[""])]
  rows = [
    [row(ids[e.query], ids[passage]) for passage in e.passages]
    + empty * (max(counts) - len(e.passages))
    for e in examples
  ]
  return multi_sequence.stack_rows(
    rows, tokenizer.special.pad, counts=np.array(counts, np.int32)
  )


def decode(
  examples: Sequence[Example], rows: Rows, outputs: Outputs, tuned
) -> list[Prediction]:
  """Returns the best passage, its score, and those of the example's passages.

  The rank, from 1, is that of the right passage in its list, where ties count
  against it; None without a query or wrong passages, or where no passage is
  known to be right.
  """
  predictions = []
  for i, example in enumerate(examples):
    scores = outputs["scores"][i][: len(example.passages)]
    rank = int(np.sum(scores >= scores[0])) if _is_ranked(example) else None
    best = int(np.argmax(scores))
    chosen = {"passage": example.passages[best], "score": float(scores[best])}
    predictions.append({"rank": rank, **chosen, "scores": scores.tolist()})
  return predictions


def format_prediction(prediction: Prediction) -> str:
  """Returns the score of the best passage, and its text."""
  return f"{prediction['score']:.3f}\t{' '.join(prediction['passage'].split())}"


def make_task(options: Options) -> FinetuneTask:
  return ranked_passages.make_task(
    "reranking",
    options,
    describe_labels=describe_labels,
    make_application=functools.partial(make_application, options=options),
    format_prediction=format_prediction,
  )
