"""ELMo's objective: two language models of LSTMs, one from each end.

The tokens of a row are predicted from left to right by one, and from right to
left by the other; the mean of both losses is minimised (Peters et al. 2018,
arXiv:1802.05365, section 3.1). They share the token embeddings and the softmax,
which are one table here. The encoder is modeling/bilm.py's; the rows are
RoBERTa's, and the state starts anew with each document. Read top-down: options
-> init -> targets -> loss. As in causal.py, logits exist for a chunk of
positions at a time.
"""

import dataclasses

import jax
import jax.numpy as jnp

from maskedlm.core.errors import ConfigError
from maskedlm.core.options import frozen_option
from maskedlm.core.task import Batch, Key, Metrics, Params, Task
from maskedlm.modeling import losses, masked_lm, vocabulary_softmax
from maskedlm.modeling.architecture import EncoderConfig, encoder_config
from maskedlm.pretraining.objectives import causal


@dataclasses.dataclass(frozen=True)
class Options:
  """Options of config.objective for bilm."""

  isolate_documents: bool = frozen_option(
    True,
    "The LSTMs begin anew in each document of a row; False carries their state "
    "from one to the next.",
  )


def make_task(config, corpus, shard: tuple[int, int], options: Options) -> Task:
  """Returns the Task of two language models; arguments as in __init__.py.

  Of config.model, only options that an LSTM has count
  (modeling/architecture.py says which).
  """
  sizes = corpus.tokenizer.vocab_size, config.data.length
  cfg = architecture(config.model, *sizes)
  parts = cfg, targets, init, loss
  return causal.task_of("bilm", config, corpus, shard, options, *parts)


def architecture(model, vocab_size: int, max_length: int) -> EncoderConfig:
  """Returns the EncoderConfig of two LSTMs for config.model.

  Raises:
    ConfigError: as architecture.encoder_config, or the width can't be split.
  """
  cfg = encoder_config(model, vocab_size, max_length)
  if cfg.width % 2:
    raise ConfigError(
      f"model.width={cfg.width} is that of two LSTMs together: it must be "
      f"even; set it to {cfg.width + 1}."
    )
  W = cfg.width // 2
  if cfg.embedding_width not in (0, W):
    raise ConfigError(
      f"model.embedding_width={cfg.embedding_width}: either LSTM of "
      f"model.width={cfg.width} reads embeddings of {W}; leave it 0."
    )
  return dataclasses.replace(
    cfg, family="bilm", causal=False, embedding_width=W
  )


def init(cfg: EncoderConfig, key: Key) -> Params:
  """Returns fresh parameters: encoder, bilm_head (a bias of the vocabulary)."""
  bias = jnp.zeros(cfg.padded_vocab_size)
  encoder = masked_lm.init_encoder(cfg, key)
  return {"encoder": encoder, "bilm_head": {"bias": bias}}


def targets(batch: Batch) -> Batch:
  """Adds the labels and weights of both directions, [B, 2, L]; masks nothing.

  They are next_labels (int32) and next_weights (float32) as causal.targets
  makes them, from left to right and from right to left.
  """
  by_direction = [causal.targets(batch, direction) for direction in causal.NEXT]
  names = ("next_labels", "next_weights")
  both = {n: jnp.stack([x[n] for x in by_direction], axis=1) for n in names}
  return {**batch, **both}


def loss(
  cfg: EncoderConfig, params: Params, batch: Batch, key: Key, train: bool
) -> tuple[Metrics, Metrics]:
  """Returns (terms, metrics) of a batch with its targets; see Task.loss."""
  hidden = masked_lm.encode(cfg, params, batch, key, train)
  table = masked_lm.token_embedding(params["encoder"])
  bias = params["bilm_head"]["bias"]

  def predict(hidden, labels):
    return vocabulary_softmax.loss_and_correct(
      cfg, hidden, table, bias, labels=labels
    )

  labels, weights = batch["next_labels"], batch["next_weights"]
  sums = [
    causal.sum_by_chunks(predict, x, labels[:, d], weights[:, d])
    for d, x in enumerate(jnp.split(hidden, 2, axis=-1))
  ]
  counts = [losses.sum_rows(weights[:, d]) for d in range(2)]
  (loss, correct), count = jax.tree.map(jnp.add, *sums), sum(counts)
  metrics = {
    "lm_loss": (loss, count),
    "lm_accuracy": (correct, count),
    "left_to_right_loss": (sums[0][0], counts[0]),
    "right_to_left_loss": (sums[1][0], counts[1]),
  }
  return {"lm": (loss, count)}, metrics
