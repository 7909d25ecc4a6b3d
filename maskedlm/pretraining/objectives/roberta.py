"""RoBERTa's objective: masked language model on full rows of running text.

Paper: arXiv:1907.11692, section 4. Read top-down: options -> corruption ->
rows -> loss. Unlike BERT's, rows are running text of any documents, there is no
next-sentence prediction, and batches have 2,048 rows or more, which
train.accumulate splits to fit the devices. Masks are new in every epoch
("dynamic"), as in all objectives here.
"""

import dataclasses
import functools
from typing import Any

import jax

from maskedlm.core.errors import ConfigError
from maskedlm.core.options import frozen_option
from maskedlm.core.task import (
  NOTHING,
  OBSERVED,
  Batch,
  Key,
  Metrics,
  Params,
  Task,
)
from maskedlm.data.batches import text_rows
from maskedlm.data.batches.batching import Batches
from maskedlm.modeling import masked_lm
from maskedlm.modeling.encoder import EncoderConfig
from maskedlm.modeling.masking import adaptive, masking
from maskedlm.modeling.masking.options import CorruptionOptions
from maskedlm.pretraining import frame

_ACROSS = {"objective.documents": False}


@dataclasses.dataclass(frozen=True)
class Options(CorruptionOptions):
  """Options of config.objective for roberta."""

  isolate_documents: bool = frozen_option(
    False,
    "The documents in a row do not attend to each other, and positions restart "
    "in each.",
    needs=_ACROSS,
  )
  whole_sentences: bool = frozen_option(
    False,
    "Rows end where a sentence ends, with padding; False fills them to the "
    "last position, wherever that cuts a sentence.",
    needs=_ACROSS,
  )
  documents: str = frozen_option(
    "",
    "Each document in rows of its own, short ones packed: windows (long ones "
    "are cut at fixed places) or crops (their rows begin anywhere, anew in "
    "each epoch); '' for rows across documents, cut anew in each epoch.",
    choices=("", "windows", "crops"),
  )
  adapt_every: int = frozen_option(
    0,
    "Steps after which each type of token is masked more or less often, by how "
    "often it was predicted wrong in them (AMLM); 0 for equal chances.",
    low=0,
  )


def make_task(config, corpus, shard: tuple[int, int], options: Options) -> Task:
  """Returns the Task of RoBERTa's pretraining; arguments as in __init__.py."""
  length, every = config.data.length, options.adapt_every
  if every:
    _check_adaptive(options, corpus.tokenizer)
  cfg = frame.make_encoder_config(config, corpus)
  masks, heldout = masking.train_and_heldout(
    corpus.tokenizer, length, options, token_counts=corpus.token_counts
  )

  return frame.make_task(
    "roberta",
    config,
    cfg,
    _batches(config, corpus, shard, options),
    masks,
    heldout=heldout,
    init=functools.partial(init, cfg),
    loss=functools.partial(adaptive_loss if every else loss, cfg),
    packed=options.isolate_documents or bool(options.documents),
  )._replace(
    carried=adaptive.carry(
      masks, cfg.vocab_size, every=every, mask_rate=options.mask_rate
    )
    if every
    else NOTHING
  )


def _check_adaptive(options: Options, tokenizer) -> None:
  """Raises ConfigError if adapt_every does not go with the other options."""
  how = options.choose, options.corruption
  if how[0] != "tokens" or how[1] not in ("mask", "substitute"):
    raise ConfigError(
      f"objective.adapt_every={options.adapt_every} weighs single tokens: set "
      f"choose='tokens' (it is {how[0]!r}) and corruption='mask' or "
      f"'substitute' (it is {how[1]!r})."
    )
  if tokenizer.overlap > 1:
    raise ConfigError(
      f"objective.adapt_every={options.adapt_every} weighs single tokens, and "
      "overlapping k-mers are masked in a row: set it to 0."
    )


def _batches(config, corpus, shard, options: Options) -> Batches:
  if options.documents:
    how = {"pack": True, "crop": options.documents == "crops"}
    return text_rows.document_batches(config, corpus, shard, **how)
  make_batches = text_rows.full_sentence_batches
  if options.whole_sentences:
    make_batches = text_rows.whole_sentence_batches
  return make_batches(
    config, corpus, shard, isolate_documents=options.isolate_documents
  )


def init(cfg: EncoderConfig, key: Key) -> Params:
  """Returns fresh parameters: encoder, mlm_head."""
  return masked_lm.init(cfg, *jax.random.split(key))


def loss(
  cfg: EncoderConfig, params: Params, batch: Batch, key: Key, train: bool
) -> tuple[Metrics, Metrics]:
  """Returns (terms, metrics) of a corrupted batch; see Task.loss."""
  hidden = masked_lm.encode(cfg, params, batch, key, train)
  return masked_lm.loss(cfg, params, batch, hidden)


def adaptive_loss(
  cfg: EncoderConfig, params: Params, batch: Batch, key: Key, train: bool
) -> tuple[Metrics, Metrics]:
  """Returns `loss`, and in training which types of tokens were right."""
  hidden = masked_lm.encode(cfg, params, batch, key, train)
  scores = masked_lm.loss_and_correct(cfg, params, batch, hidden)
  terms, metrics = masked_lm.terms_and_metrics(scores, batch)
  if not train:
    return terms, metrics
  seen: Any = adaptive.observe(scores[1], batch, cfg.vocab_size)
  return terms, {**metrics, OBSERVED: seen}
