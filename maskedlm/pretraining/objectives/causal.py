"""The causal baseline: each token is predicted from those before it.

Bidirectional models are compared with it, as with GPT in table 1 of BERT's
paper and "LTR & No NSP" in table 5 (arXiv:1810.04805). It has the same encoder,
under a causal mask, the same head, and RoBERTa's full rows. It may also read
from right to left: a token is then predicted from those after it. Read
top-down: options -> targets -> loss. Every position predicts, so a
row's logits are computed for a chunk of positions at a time, and again in the
backward pass: all at once would take L / P times the memory of a masked
model's.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp

from maskedlm.core.options import copy_option, frozen_option
from maskedlm.core.task import Batch, Key, Metrics, Params, Task
from maskedlm.data.batches import text_rows
from maskedlm.modeling import losses, masked_lm, reports, vocabulary_softmax
from maskedlm.modeling.architecture import encoder_config
from maskedlm.modeling.encoder import EncoderConfig
from maskedlm.modeling.masking.masking import Masking
from maskedlm.pretraining import frame
from maskedlm.pretraining.objectives import roberta

# Positions of a row whose logits exist at once: with fewer, matmuls are small.
CHUNK = 64


@dataclasses.dataclass(frozen=True)
class Options:
  """Options of config.objective for causal."""

  direction: str = frozen_option(
    "left_to_right",
    "How a row is read: a token is predicted from those to its left, or from "
    "those to its right.",
    choices=("left_to_right", "right_to_left"),
  )
  isolate_documents: bool = copy_option(
    roberta.Options, "isolate_documents", needs={}
  )


def make_task(config, corpus, shard: tuple[int, int], options: Options) -> Task:
  """Returns the Task of a causal model; arguments as in __init__.py.

  The encoder is causal whatever config.model.causal is, and the checkpoint
  records that and the direction.
  """
  length = config.data.length
  cfg = encoder_config(config.model, corpus.tokenizer.vocab_size, length)
  from_right = options.direction == "right_to_left"
  cfg = dataclasses.replace(cfg, causal=True, right_to_left=from_right)
  read = functools.partial(targets, direction=options.direction)
  parts = cfg, read, roberta.init, loss
  return task_of("causal", config, corpus, shard, options, *parts)


def task_of(name, config, corpus, shard, options, cfg, targets, init, loss):
  """Returns the Task of a language model whose labels are its own tokens."""
  isolated = options.isolate_documents
  return frame.make_task(
    name,
    config,
    cfg,
    text_rows.full_sentence_batches(
      config, corpus, shard, isolate_documents=isolated
    ),
    Masking(config.data.length, lambda batch, key: targets(batch)),
    init=functools.partial(init, cfg),
    loss=functools.partial(loss, cfg),
    packed=isolated,
  )


# Direction -> a function from x [B, L] to x of the token that is read next.
NEXT = {
  "left_to_right": lambda x: jnp.pad(x[:, 1:], ((0, 0), (0, 1))),
  "right_to_left": lambda x: jnp.pad(x[:, :-1], ((0, 0), (1, 0))),
}


def targets(batch: Batch, direction: str) -> Batch:
  """Adds next_labels (int32) and next_weights (float32), [B, L]; masks nothing.

  The label of a position is the token that is read next, to its right or, with
  direction "right_to_left", to its left. The weight is 0 if that is padding or
  belongs to another segment, and in filler rows.
  """
  ids, segments = batch["input_ids"], batch["segment_ids"]
  next_of = NEXT[direction]
  followed = (segments > 0) & (next_of(segments) == segments)
  return {
    **batch,
    "next_labels": next_of(ids),
    "next_weights": followed * batch["example_weights"][:, None],
  }


def loss(
  cfg: EncoderConfig, params: Params, batch: Batch, key: Key, train: bool
) -> tuple[Metrics, Metrics]:
  """Returns (terms, metrics) of a batch with its targets; see Task.loss."""
  hidden = masked_lm.encode(cfg, params, batch, key, train)
  loss, correct, count = row_sums(cfg, params, batch, hidden)
  terms = {"lm": (loss, count)}
  return terms, {"lm_loss": (loss, count), "lm_accuracy": (correct, count)}


def row_sums(cfg: EncoderConfig, params: Params, batch: Batch, hidden):
  """Returns (loss, correct, count) [B] of the rows' targets; hidden [B, L, D].

  next_labels and next_weights [B, L] of the batch are read.
  """
  head = functools.partial(masked_lm.predict_tokens, cfg, params)

  def predict(hidden, labels):
    output = functools.partial(
      vocabulary_softmax.loss_and_correct, labels=labels
    )
    return head(hidden, output)

  labels, weights = batch["next_labels"], batch["next_weights"]
  reports.report_places(hidden, weights, head)
  sums = sum_by_chunks(predict, hidden, labels, weights)
  return *sums, losses.sum_rows(weights)


def sum_by_chunks(predict, hidden, labels, weights):
  """Returns (loss, correct) [B], the weighted sums over the rows' positions.

  Args:
    predict: (hidden [B, C, ...], labels [B, C]) -> (loss, correct) [B, C]; it
      is computed again in the backward pass.
    hidden: [B, L, ...].
    labels, weights: [B, L].
  """

  @jax.checkpoint
  def add_chunk(sums, arrays):
    hidden, labels, weights = arrays
    scores = predict(hidden, labels)
    loss, correct = (losses.sum_rows(x * weights) for x in scores)
    return (sums[0] + loss, sums[1] + correct), None

  arrays = jax.tree.map(lambda x: chunks(x, CHUNK), (hidden, labels, weights))
  zeros = jnp.zeros(len(weights))
  sums, _ = jax.lax.scan(add_chunk, (zeros, zeros), arrays)
  return sums


def chunks(x, size: int):
  """Splits x [B, L, ...] into [n, B, size, ...], padded with zeros."""
  B, L, *rest = x.shape
  size = min(size, L)
  n = -(-L // size)
  x = jnp.pad(x, ((0, 0), (0, n * size - L), *((0, 0) for _ in rest)))
  return jnp.swapaxes(x.reshape(B, n, size, *rest), 0, 1)
