"""SpanBERT's objective: predict masked spans, also from their boundaries.

Paper: Joshi et al., arXiv:1907.10529, section 3. Read top-down: options ->
corrupt -> init -> boundaries -> loss. Rows are running text of one document.
The loss is the mean cross-entropy over the masked tokens (MLM) plus that over
those whose span has text on both sides (SBO), which are predicted again from
the vectors just outside the span.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.core.options import frozen_option
from maskedlm.core.task import Batch, Key, Metrics, Params, Task
from maskedlm.data.batches import batching, text_rows
from maskedlm.modeling import flops, masked_lm, vocabulary_softmax
from maskedlm.modeling.encoder import EncoderConfig
from maskedlm.modeling.heads import SboHead, gather_positions
from maskedlm.modeling.losses import weighted_sum
from maskedlm.modeling.masking import masking, spans, tokens
from maskedlm.modeling.masking.masking import Masking
from maskedlm.modeling.masking.options import MaskOptions, single_tokens
from maskedlm.pretraining import auto_pack, frame

# The paper's: the words of a span, at most; the width of the embedding of a
# place in its span.
MAX_SPAN_WORDS, PLACE_WIDTH = 10, 200


@dataclasses.dataclass(frozen=True)
class Options(MaskOptions):
  """Options of config.objective for spanbert."""

  sbo_weight: float = frozen_option(
    1.0, "Weight of the span boundary loss; the MLM loss has weight 1.", low=0
  )
  max_span_targets: int = frozen_option(
    15,
    "Tokens of a span, from the left, that its boundary predicts, at most.",
    low=1,
    high=1_024,
    needs={"objective.sbo_weight": True},
  )
  sbo_at_edges: bool = frozen_option(
    False,
    "Spans beside [CLS] or [SEP] are predicted from their vectors, too, as in "
    "Jurafsky & Martin.",
    needs={"objective.sbo_weight": True},
  )
  pack: bool | None = auto_pack.pack_option()


def make_task(config, corpus, shard: tuple[int, int], options: Options) -> Task:
  """Returns the Task of SpanBERT's pretraining; arguments as in __init__.py."""
  length = config.data.length
  cfg = frame.make_encoder_config(config, corpus)
  sbo = SboHead(cfg, max_span=options.max_span_targets, place_width=PLACE_WIDTH)
  masks = make_masking(corpus, length, options)

  def row_flops(attended: float | None) -> float:
    P, D, E = masks.num_predictions, cfg.width, cfg.embedding_size
    head = (2 * D + PLACE_WIDTH) * D + D * E + E * cfg.vocab_size  # SboHead.
    return 6.0 * P * head + flops.train_flops(
      cfg, length, num_predictions=P, attended=attended
    )

  return frame.make_task(
    "spanbert",
    config,
    cfg,
    make_batches(config, corpus, shard, options),
    masks,
    init=functools.partial(init, cfg, sbo),
    loss=functools.partial(loss, cfg, sbo, options.sbo_weight),
    packed=options.pack,
    cost=row_flops,
    also={"sbo_at_edges": options.sbo_at_edges},
  )


def make_masking(corpus, length: int, options: Options) -> Masking:
  """Returns the masking of spans, with the targets of their boundaries."""
  masks = masking.make_masking(
    corpus.tokenizer,
    length,
    dataclasses.replace(
      single_tokens(options),
      choose="spans",
      max_span_words=min(MAX_SPAN_WORDS, length - 2),
    ),
    token_counts=corpus.token_counts,
    budget=tokens.span_budget,
  )
  special = corpus.tokenizer.special
  edges = () if options.sbo_at_edges else (special.cls, special.sep)
  outside = np.zeros(corpus.tokenizer.vocab_size, bool)
  outside[[special.pad, *edges]] = True

  def corrupt(batch: Batch, key: Key) -> Batch:
    masked = masks.corrupt(batch, key)
    positions, weights = masked["masked_positions"], masked["masked_weights"]
    targets = boundaries(
      jnp.asarray(outside)[batch["input_ids"]],
      positions,
      weights,
      *spans.span_ends(positions, weights),
      max_span_targets=options.max_span_targets,
    )
    return {**masked, **targets}

  return masks._replace(corrupt=corrupt)


def make_batches(config, corpus, shard, options: Options) -> batching.Batches:
  """Returns the batches of the Task; arguments as in __init__.py."""
  return text_rows.document_batches(config, corpus, shard, pack=options.pack)


def init(cfg: EncoderConfig, sbo: SboHead, key: Key) -> Params:
  """Returns fresh parameters: encoder, mlm_head, sbo_head."""
  encoder_key, mlm_key, sbo_key = jax.random.split(key, 3)
  params = masked_lm.init(cfg, encoder_key, mlm_key)
  vector, place = jnp.zeros((1, 1, cfg.width)), jnp.zeros((1, 1), jnp.int32)
  table = masked_lm.token_embedding(params["encoder"])
  variables = sbo.init(sbo_key, vector, vector, place, table)
  return {**params, "sbo_head": variables["params"]}


def boundaries(
  outside, positions, weights, first, last, *, max_span_targets
) -> Batch:
  """Returns the inputs of the span boundary objective for each masked token.

  The tokens of a span (s..e) are targets if tokens s - 1 and e + 1 are text, so
  not if the span touches the edge of its row or of its segment.

  Args:
    outside: [B, L] bool, True for tokens that bound no span: padding, and
      [CLS] and [SEP] unless sbo_at_edges.
    positions, weights: [B, P], the masked tokens.
    first, last: [B, P], indices in P of the span's ends (spans.span_ends).
    max_span_targets: targets in a span, from the left; later tokens are not.

  Returns:
    [B, P] each: sbo_left = s - 1, sbo_right = e + 1 and, for the token's
    position i, sbo_place = min(i - s, max_span_targets - 1), int32; and
    sbo_weights, float32, 0 for tokens that are not targets.
  """
  L = outside.shape[1]
  start = jnp.take_along_axis(positions, first, axis=1)
  end = jnp.take_along_axis(positions, last, axis=1)
  left, right = jnp.maximum(start - 1, 0), jnp.minimum(end + 1, L - 1)
  place = positions - start
  at_edge = jnp.take_along_axis(outside, left, axis=1) | jnp.take_along_axis(
    outside, right, axis=1
  )
  return {
    "sbo_left": left,
    "sbo_right": right,
    "sbo_place": jnp.minimum(place, max_span_targets - 1),
    "sbo_weights": weights * (~at_edge & (place < max_span_targets)),
  }


def loss(
  cfg: EncoderConfig,
  sbo: SboHead,
  sbo_weight: float,
  params: Params,
  batch: Batch,
  key: Key,
  train: bool,
) -> tuple[Metrics, Metrics]:
  """Returns (terms, metrics) of a corrupted batch; see Task.loss."""
  hidden = masked_lm.encode(cfg, params, batch, key, train)
  terms, metrics = masked_lm.loss(cfg, params, batch, hidden)
  scores = boundary_scores(cfg, sbo, params, batch, hidden)
  loss, correct = (weighted_sum(x, batch["sbo_weights"]) for x in scores)
  total, count = loss
  terms = {**terms, "sbo": (sbo_weight * total, count)}
  return terms, {**metrics, "sbo_loss": loss, "sbo_accuracy": correct}


def boundary_scores(cfg: EncoderConfig, sbo: SboHead, params, batch, hidden):
  """Returns (loss, correct) [B, P] of masked tokens, from their boundaries."""
  scores: Any = sbo.apply(
    {"params": params["sbo_head"]},
    gather_positions(hidden, batch["sbo_left"]),
    gather_positions(hidden, batch["sbo_right"]),
    batch["sbo_place"],
    masked_lm.token_embedding(params["encoder"]),
    functools.partial(
      vocabulary_softmax.loss_and_correct, labels=batch["masked_labels"]
    ),
  )
  return scores
