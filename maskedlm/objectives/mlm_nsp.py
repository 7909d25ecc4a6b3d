"""BERT's objective: masked language model + next-sentence prediction.

Paper: arXiv:1810.04805, sections 3.1 and A.1-A.2. Read top-down: options ->
corruption -> rows -> init -> loss. The loss is the mean cross-entropy over the
chosen tokens plus the mean cross-entropy over the pairs.
"""

import dataclasses

import jax
import jax.numpy as jnp

from maskedlm.core.errors import ConfigError
from maskedlm.core.task import Batch, Key, Metrics, Params, Task
from maskedlm.data.batches import batching, packing, sentence_pairs
from maskedlm.modeling import flops, masked_lm
from maskedlm.modeling.architecture import encoder_config
from maskedlm.modeling.encoder import EncoderConfig
from maskedlm.modeling.heads import NspHead, Pooler, gather_positions
from maskedlm.modeling.losses import accuracy, cross_entropy
from maskedlm.modeling.masking import masking


def make(
  config,
  corpus,
  shard: tuple[int, int],
  *,
  # Share of a row's tokens that is predicted; specials count but stay.
  mask_rate: float = 0.15,
  # The same of held-out rows; 0 = mask_rate.
  heldout_mask_rate: float = 0.0,
  # P, prediction slots in a row; 0 = mask_rate * length, rounded up.
  max_predictions: int = 0,
  # Of the chosen tokens: share that [MASK] replaces.
  mask_share: float = 0.8,
  # Share that a random token replaces; the rest is kept as it is.
  random_share: float = 0.1,
  # How random tokens are drawn: unigram (as in the corpus) | uniform.
  random_tokens: str = "unigram",
  # What is chosen: tokens | words (whole words) | ngrams | spans (SpanBERT's).
  choose: str = "tokens",
  # Longest n-gram or span, in words.
  max_span_words: int = 10,
  # What is done to it: mask | substitute | shuffle | delete | insert
  # (docs/guides/pretrain/masking.md); the two shares are those of mask.
  corruption: str = "mask",
  # What is asked of a pair: nsp (is B next, or random?) | sop (ALBERT: are A
  # and B in order, or swapped?). Labels and metrics are called nsp in both.
  pairs: str = "nsp",
  # Share of the rows that are cut to a random shorter length.
  short_share: float = 0.1,
  # Put several short pairs in one row, each seeing only itself; None: where
  # that saves a tenth of the rows (auto_pack.py).
  pack: bool | None = None,
) -> Task:
  """The Task of pretraining as BERT was (arguments: __init__.py)."""
  lengths = batching.row_lengths(config.data)
  cfg = encoder_config(config.model, corpus.tokenizer.vocab_size, max(lengths))
  hidden, heldout = masking.train_and_heldout(
    corpus.tokenizer,
    lengths,
    heldout_mask_rate=heldout_mask_rate,
    token_counts=corpus.token_counts,
    random_tokens=random_tokens,
    mask_rate=mask_rate,
    max_predictions=max_predictions,
    mask_share=mask_share,
    random_share=random_share,
    corruption=corruption,
    choose=choose,
    max_span_words=max_span_words,
  )
  rows = _row_maker(pairs)(
    config, corpus, shard, short_share=short_share, pack=pack
  )

  def row_flops(length: int, attended: float | None) -> float:
    return flops.train_flops(
      cfg, length, num_slots=hidden.num_slots[length], attended=attended
    )

  return Task(
    **rows._asdict(),
    init=lambda key: init(cfg, key),
    corrupt=hidden.corrupt,
    corrupt_heldout=heldout.corrupt,
    loss=lambda *args: loss(cfg, *args),
    flops=packing.step_cost(row_flops, rows.batch_at, config, packed=pack),
    describe={"objective": "mlm_nsp", "encoder": dataclasses.asdict(cfg)},
  )


def init(cfg: EncoderConfig, key: Key) -> Params:
  """Fresh parameters: encoder, pooler, mlm_head, nsp_head."""
  encoder_key, pooler_key, mlm_key, nsp_key = jax.random.split(key, 4)
  hidden = jnp.zeros((1, 1, cfg.width))
  return {
    **masked_lm.init(cfg, encoder_key, mlm_key),
    "pooler": Pooler(cfg).init(pooler_key, hidden)["params"],
    "nsp_head": NspHead(cfg).init(nsp_key, hidden[:, 0])["params"],
  }


def loss(
  cfg: EncoderConfig, params: Params, batch: Batch, key: Key, train: bool
) -> tuple[Metrics, Metrics]:
  """(terms, metrics) of a corrupted batch; see Task.loss."""
  hidden = masked_lm.encode(cfg, params, batch, key, train)
  terms, metrics = masked_lm.loss(cfg, params, batch, hidden)
  texts, labels, weights = _pairs(hidden, batch)
  pooled = Pooler(cfg).apply({"params": params["pooler"]}, texts)
  logits = NspHead(cfg).apply({"params": params["nsp_head"]}, pooled)
  logits = logits.reshape(*labels.shape, -1)
  nsp = cross_entropy(logits, labels, weights=weights)
  hits = accuracy(logits, labels, weights=weights)
  return (
    {**terms, "nsp": nsp},
    {**metrics, "nsp_loss": nsp, "nsp_accuracy": hits},
  )


def _pairs(hidden, batch: Batch):
  """Vectors [n, ., D] that begin with [CLS]'s, and their labels and weights.

  These are [B] and n is B, or [B, G] and B * G where each row has room for G
  pairs (packing.pack).
  """
  weights = batch["example_weights"]
  if "cls_positions" not in batch:
    return hidden, batch["nsp_labels"], weights
  firsts = gather_positions(hidden, batch["cls_positions"])
  weights = batch["segment_weights"] * weights[:, None]
  return firsts.reshape(-1, 1, firsts.shape[-1]), batch["nsp_labels"], weights


def _row_maker(pairs: str):
  """The function of corpus.batches that makes these pairs."""
  makers = {"nsp": sentence_pairs.nsp, "sop": sentence_pairs.sop}
  if pairs not in makers:
    raise ConfigError(
      f"objective.pairs={pairs!r} is unknown: expected nsp or sop."
    )
  return makers[pairs]
