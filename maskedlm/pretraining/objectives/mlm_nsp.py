"""BERT's objective: masked language model and next-sentence prediction.

Paper: arXiv:1810.04805, sections 3.1 and A.1-A.2. Read top-down: options ->
corruption -> rows -> init -> loss. The loss is the mean cross-entropy over the
masked tokens plus the mean cross-entropy over the pairs.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp

from maskedlm.core.options import frozen_option
from maskedlm.core.task import Batch, Key, Metrics, Params, Task
from maskedlm.data.batches import batching, pair_rows
from maskedlm.modeling import masked_lm
from maskedlm.modeling.encoder import EncoderConfig
from maskedlm.modeling.heads import (
  NspHead,
  Pooler,
  gather_positions,
  nsp_logits,
)
from maskedlm.modeling.losses import loss_and_accuracy
from maskedlm.modeling.masking import masking
from maskedlm.modeling.masking.options import CorruptionOptions
from maskedlm.pretraining import auto_pack, frame


@dataclasses.dataclass(frozen=True)
class Options(CorruptionOptions):
  """Options of config.objective for mlm_nsp."""

  pairs: str = frozen_option(
    "nsp",
    "The question about a pair: nsp (is B the next text, or random?) or sop "
    "(are A and B in order, or swapped? as in ALBERT). Labels and metrics are "
    "called nsp in both.",
    choices=("nsp", "sop"),
  )
  short_share: float = frozen_option(
    0.1,
    "Share of the rows that are cut to a random shorter length.",
    low=0,
    high=1,
  )
  pooler: bool = frozen_option(
    True,
    "The question is answered from the pooler's vector; False: from the raw "
    "vector of [CLS], as in Jurafsky & Martin.",
  )
  pack: bool | None = auto_pack.pack_option()


def make_task(config, corpus, shard: tuple[int, int], options: Options) -> Task:
  """Returns the Task of BERT's pretraining; arguments as in __init__.py."""
  length = config.data.length
  cfg = frame.make_encoder_config(config, corpus)
  masks, heldout = masking.train_and_heldout(
    corpus.tokenizer, length, options, token_counts=corpus.token_counts
  )
  return frame.make_task(
    "mlm_nsp",
    config,
    cfg,
    make_batches(config, corpus, shard, options),
    masks,
    heldout=heldout,
    init=functools.partial(init, cfg, options.pooler),
    loss=functools.partial(loss, cfg),
    packed=options.pack,
  )


def make_batches(config, corpus, shard, options: Options) -> batching.Batches:
  """Returns the batches of the Task; arguments as in __init__.py."""
  sop, nsp = pair_rows.sop_batches, pair_rows.nsp_batches
  make = sop if options.pairs == "sop" else nsp
  return make(
    config, corpus, shard, short_share=options.short_share, pack=options.pack
  )


def init(cfg: EncoderConfig, pooler: bool, key: Key) -> Params:
  """Returns fresh parameters: encoder, pooler if any, mlm_head, nsp_head."""
  encoder_key, pooler_key, mlm_key, nsp_key = jax.random.split(key, 4)
  hidden = jnp.zeros((1, 1, cfg.width))
  params = {**masked_lm.init(cfg, encoder_key, mlm_key)}
  if pooler:
    params["pooler"] = Pooler(cfg).init(pooler_key, hidden)["params"]
  nsp = NspHead(cfg).init(nsp_key, hidden[:, 0])["params"]
  return {**params, "nsp_head": nsp}


def loss(
  cfg: EncoderConfig, params: Params, batch: Batch, key: Key, train: bool
) -> tuple[Metrics, Metrics]:
  """Returns (terms, metrics) of a corrupted batch; see Task.loss."""
  hidden = masked_lm.encode(cfg, params, batch, key, train)
  terms, metrics = masked_lm.loss(cfg, params, batch, hidden)
  texts, labels, weights = _pairs(hidden, batch)
  logits = nsp_logits(cfg, params, texts).reshape(*labels.shape, -1)
  nsp, correct = loss_and_accuracy(logits, labels, weights=weights)
  return (
    {**terms, "nsp": nsp},
    {**metrics, "nsp_loss": nsp, "nsp_accuracy": correct},
  )


def _pairs(hidden, batch: Batch):
  """Returns (vectors, labels, weights) of the pairs in a batch.

  Vectors are [B, L, D], labels and weights [B]. In packed rows of up to G pairs
  (data/batches/packed_rows.py), vectors are [B * G, 1, D], labels and weights
  [B, G]. The first vector of each pair is its [CLS] vector.
  """
  weights = batch["example_weights"]
  if "cls_positions" not in batch:
    return hidden, batch["nsp_labels"], weights
  firsts = gather_positions(hidden, batch["cls_positions"])
  weights = batch["segment_weights"] * weights[:, None]
  return firsts.reshape(-1, 1, firsts.shape[-1]), batch["nsp_labels"], weights
