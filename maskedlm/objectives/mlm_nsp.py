"""BERT's objective: masked language model + next-sentence prediction.

Paper: arXiv:1810.04805, sections 3.1 and A.1-A.2. Read top-down: options ->
init -> corrupt -> loss. The loss is the mean cross-entropy over the chosen
tokens plus the mean cross-entropy over the pairs.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.config import ConfigError, did_you_mean
from maskedlm.corpus import batches
from maskedlm.modeling import corruption, flops
from maskedlm.modeling.encoder import Encoder, EncoderConfig, encoder_config
from maskedlm.modeling.heads import MlmHead, NspHead, Pooler, gather_positions
from maskedlm.modeling.losses import accuracy, cross_entropy
from maskedlm.task import Batch, Key, Metrics, Params, Task

RANDOM_TOKENS = ("unigram", "uniform")


def make(
  config,
  corpus,
  shard: tuple[int, int],
  *,
  # Share of a row's tokens that is predicted; specials count but stay.
  mask_rate: float = 0.15,
  # P, prediction slots in a row; 0 = mask_rate * length, rounded up.
  max_predictions: int = 0,
  # Of the chosen tokens: share that [MASK] replaces.
  mask_share: float = 0.8,
  # Share that a random token replaces; the rest is kept as it is.
  random_share: float = 0.1,
  # How random tokens are drawn: unigram (as in the corpus) | uniform.
  random_tokens: str = "unigram",
  # Share of the rows that are cut to a random shorter length.
  short_share: float = 0.1,
) -> Task:
  """The Task of pretraining as BERT was.

  Args:
    config: the whole config (config.py).
    corpus: corpus.store.Corpus.
    shard: (index, count) of the equal part of each batch that this host reads.

  Raises:
    ConfigError: an option that is wrong, before anything is computed.
    CorpusError: a corpus that has no pairs.
  """
  data = config.data
  lengths = [data.length]
  if data.long_share > 0:
    lengths.append(data.long_length)
  cfg = encoder_config(config.model, corpus.tokenizer.vocab_size, max(lengths))
  corruption.check_shares(mask_share, random_share)

  slots = {
    length: corruption.count_slots(
      mask_rate, length, max_predictions=max_predictions
    )
    for length in lengths
  }
  is_special = np.zeros(cfg.vocab_size, bool)
  is_special[np.asarray(corpus.tokenizer.special_ids)] = True
  table = corruption.token_table(_counts(random_tokens, corpus) * ~is_special)
  rows = batches.nsp(
    corpus,
    data,
    seed=config.seed,
    num_steps=config.train.num_steps,
    eval_rows=config.train.eval_rows,
    short_share=short_share,
    shard=shard,
  )

  def corrupt(batch: Batch, key: Key) -> Batch:
    input_ids, segment_ids = batch["input_ids"], batch["segment_ids"]
    choose_key, replace_key = jax.random.split(key)
    positions, weights = corruption.choose_tokens(
      choose_key,
      segment_ids,
      corruption.maskable(input_ids, segment_ids, is_special),
      rate=mask_rate,
      num_slots=slots[input_ids.shape[1]],
    )
    corrupted, labels = corruption.replace_tokens(
      replace_key,
      input_ids,
      positions,
      weights,
      mask_id=corpus.tokenizer.special.mask,
      mask_share=mask_share,
      random_share=random_share,
      random_tokens=table,
    )
    return {
      **batch,
      "input_ids": corrupted,
      "masked_positions": positions,
      "masked_labels": labels,
      # A filler row of the held-out set counts nothing.
      "masked_weights": weights * batch["example_weights"][:, None],
    }

  def train_flops(step: int) -> float:
    phase, _ = batches.phase_at(step, config.train.num_steps, data.long_share)
    length = (data.length, data.long_length)[phase]
    num_rows = (data.batch_size, data.long_batch_size)[phase]
    return num_rows * flops.train_flops(cfg, length, num_slots=slots[length])

  return Task(
    batch_at=rows.batch_at,
    row_ids=rows.row_ids,
    num_heldout_batches=rows.num_heldout_batches,
    init=lambda key: init(cfg, key),
    corrupt=corrupt,
    loss=lambda *args: loss(cfg, *args),
    flops=train_flops,
    describe={"objective": "mlm_nsp", "encoder": dataclasses.asdict(cfg)},
  )


def init(cfg: EncoderConfig, key: Key) -> Params:
  """Fresh parameters: encoder, pooler, mlm_head, nsp_head."""
  encoder_key, pooler_key, mlm_key, nsp_key = jax.random.split(key, 4)
  # Parameters' shapes don't depend on the batch's: one row of one token.
  ids = jnp.zeros((1, 1), jnp.int32)
  hidden = jnp.zeros((1, 1, cfg.width))
  encoder = Encoder(cfg).init(encoder_key, ids, ids, ids, train=False)
  table = _token_embedding(encoder["params"])
  made = {
    "encoder": encoder,
    "pooler": Pooler(cfg).init(pooler_key, hidden),
    "mlm_head": MlmHead(cfg).init(mlm_key, hidden, table),
    "nsp_head": NspHead(cfg).init(nsp_key, hidden[:, 0]),
  }
  return {name: variables["params"] for name, variables in made.items()}


def loss(
  cfg: EncoderConfig, params: Params, batch: Batch, key: Key, train: bool
) -> tuple[Metrics, Metrics]:
  """(terms, metrics) of a corrupted batch; see Task.loss."""
  hidden = Encoder(cfg).apply(
    {"params": params["encoder"]},
    batch["input_ids"],
    batch["token_type_ids"],
    batch["segment_ids"],
    train=train,
    rngs={"dropout": key} if train else {},
  )
  mlm = MlmHead(cfg).apply(
    {"params": params["mlm_head"]},
    gather_positions(hidden, batch["masked_positions"]),
    _token_embedding(params["encoder"]),
  )
  pooled = Pooler(cfg).apply({"params": params["pooler"]}, hidden)
  nsp = NspHead(cfg).apply({"params": params["nsp_head"]}, pooled)

  masked = (mlm, batch["masked_labels"])
  pairs = (nsp, batch["nsp_labels"])
  weights = batch["masked_weights"], batch["example_weights"]
  terms = {
    "mlm": cross_entropy(*masked, weights=weights[0]),
    "nsp": cross_entropy(*pairs, weights=weights[1]),
  }
  metrics = {
    "mlm_loss": terms["mlm"],
    "mlm_accuracy": accuracy(*masked, weights=weights[0]),
    "nsp_loss": terms["nsp"],
    "nsp_accuracy": accuracy(*pairs, weights=weights[1]),
  }
  return terms, metrics


def _token_embedding(encoder_params):
  return encoder_params["embeddings"]["token"]["embedding"]


def _counts(random_tokens: str, corpus):
  """How often each token [V] is drawn, relative to the others."""
  if random_tokens not in RANDOM_TOKENS:
    raise ConfigError(
      f"objective.random_tokens={random_tokens!r} is unknown"
      f"{did_you_mean(random_tokens, RANDOM_TOKENS)}; known: "
      f"{', '.join(RANDOM_TOKENS)}."
    )
  if random_tokens == "uniform":
    return np.ones_like(corpus.token_counts)
  return corpus.token_counts
