"""SPLADE: retrieval by weights of the words that a text says or implies.

  w_v = max over the text's tokens of log(1 + relu(logit_v))

of the head that predicted masked tokens (Formal et al. 2021, arXiv:2109.10086).
A query and a passage are compared by dot products. Most weights become 0 by

  F = sum_v (mean over the batch's texts of w_v)^2

(FLOPS, Paria et al. 2020, arXiv:2004.05665), whose weight grows with the square
of the steps in the first third of the training. All else is retrieval's.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse

from maskedlm.core.counts import counted
from maskedlm.core.options import copy_option
from maskedlm.core.task import Batch, Key, Params
from maskedlm.finetune.common import multi_sequence, ranked_passages
from maskedlm.finetune.contract import (
  Application,
  FinetuneTask,
  Setup,
  task_option,
)
from maskedlm.finetune.retrieval import contrastive, retrieval
from maskedlm.modeling import losses, masked_lm
from maskedlm.modeling.heads import MlmHead
from maskedlm.modeling.task_heads import ensemble
from maskedlm.runtime.console import log

RAMP = 1 / 3  # Of the steps, until F has its whole weight.
TERMS = 512  # The largest weights of a text, which the development set keeps.


@dataclasses.dataclass(frozen=True)
class Options(ranked_passages.Passages):
  """config.task: the files' columns, and how sparse the vectors become."""

  query_prefix: str = copy_option(retrieval.Options, "query_prefix")
  passage_prefix: str = copy_option(retrieval.Options, "passage_prefix")
  temperature: float = task_option(1.0, "Products are divided by it.", above=0)
  query_flops: float = task_option(
    5e-5, "Weight of F of queries: the larger, the fewer words.", low=0
  )
  passage_flops: float = task_option(3e-5, "Weight of F of passages.", low=0)

  def of_retrieval(self) -> retrieval.Options:
    """Returns the options that retrieval has, too."""
    shared = {n: x for n, x in vars(self).items() if not n.endswith("_flops")}
    return retrieval.Options(**shared)


def make_application(setup: Setup, options: Options) -> Application:
  cfg = setup.cfg

  def init(key: Key) -> Params:
    table = jnp.zeros((cfg.padded_vocab_size, cfg.embedding_size))
    head = MlmHead(cfg).init(key, jnp.zeros((1, 1, cfg.width)), table)
    return {"mlm_head": head.get("params", {})}

  def vectors(params: Params, batch: Batch, key: Key, train: bool):
    """Returns float32 [B, C, V]."""
    B, C, _ = batch["input_ids"].shape
    rows = multi_sequence.flatten_sequences(batch)
    hidden = masked_lm.encode(cfg, params, rows, key, train)
    logits = masked_lm.predict_tokens(cfg, params, hidden)
    real = rows["segment_ids"][..., None] > 0
    # Its logarithm is the largest of the logarithms.
    largest = jnp.max(logits, axis=1, where=real, initial=0)
    return jnp.log1p(largest).reshape(B, C, -1)

  def loss_of_vectors(x, batch: Batch):
    compared, ranks = contrastive.loss_and_metrics(
      x, batch, temperature=options.temperature, scale=lambda x: x
    )
    terms, metrics = dict(compared), dict(ranks)
    # Where nothing is compared, sparsity is not trained either.
    learns = jnp.sum(terms["retrieval"][1]) > 0
    rows = batch["example_weights"] * learns
    ramp = batch.get("ramp", jnp.ones_like(rows)) ** 2
    for name, weight, w, ids in (
      ("query", options.query_flops, x[:, :1], batch["query_ids"][:, None]),
      ("passage", options.passage_flops, x[:, 1:], batch["passage_ids"]),
    ):
      counts = (ids != contrastive.NONE) * rows[:, None]
      mean = jnp.einsum("BKV,BK->V", w, counts) / jnp.maximum(counts.sum(), 1)
      flops = weight * ramp * jnp.sum(mean**2)
      terms[f"{name}_flops"] = losses.weighted_sum(flops, rows)
      words = jnp.sum(w > 0, axis=-1)
      metrics[f"{name}_words"] = losses.weighted_sum(words, counts)
      metrics[f"{name}_empty"] = losses.weighted_sum(words == 0, counts)
    return terms, metrics

  def outputs(params: Params, batch: Batch, every=ensemble.alone):
    x = ensemble.mean(every(vectors(params, batch, None, False)))
    weights, terms = jax.lax.top_k(x, min(TERMS, x.shape[-1]))
    return {"weights": weights, "terms": terms}

  def decode(examples, rows, outputs, tuned):
    if not examples:
      return []
    weights, terms = (np.stack(outputs[n]) for n in ("weights", "terms"))
    starts = np.arange(0, weights.size + 1, weights.shape[-1])
    x = sparse.csr_array(
      (weights.ravel(), terms.ravel(), starts),
      shape=(len(starts) - 1, cfg.padded_vocab_size),
    )
    x.eliminate_zeros()
    is_passage = rows.values["passage_ids"] != contrastive.NONE
    if empty := np.sum((weights[:, 1:].max(axis=-1) <= 0) & is_passage):
      log(
        f"{counted(int(empty), 'passage')} of {int(is_passage.sum()):,} "
        "without any word: their scores are 0; lower task.passage_flops, or "
        "optimizer.learning_rate"
      )
    return retrieval.rank_rows(examples, rows, x)

  return retrieval.make_application(setup, options.of_retrieval())._replace(
    init=init,
    initial_heads=initial_heads,
    loss=lambda params, batch, key, train: loss_of_vectors(
      vectors(params, batch, key, train), batch
    ),
    vectors=vectors,
    loss_of_vectors=loss_of_vectors,
    outputs=outputs,
    decode=decode,
    ramp=RAMP,
  )


def initial_heads(pretrained: Params) -> Params:
  """Returns the pretrained head of masked tokens, or {}; logs which."""
  if "mlm_head" not in pretrained:
    log("head: mlm_head from random parameters: none is taken from init_from")
    return {}
  log("head: mlm_head from init_from, which predicted masked tokens")
  return {"mlm_head": pretrained["mlm_head"]}


def make_task(options: Options) -> FinetuneTask:
  base = retrieval.make_task(options.of_retrieval())
  pooling = {"pool": "splade", "normalize": False}
  return base._replace(
    name="splade",
    options=options,
    make_application=lambda setup: make_application(setup, options),
    sentence_pooling={**base.sentence_pooling, **pooling},
  )
