"""RoBERTa's objective: masked language model on full rows of running text.

Paper: arXiv:1907.11692, section 4. Read top-down: options -> corruption ->
rows -> loss. Against BERT: rows full to the last position, no pairs and no
next-sentence prediction, and batches of 2,048 rows and more, which
train.accumulate splits into what fits the devices. Masks are new in every
epoch ("dynamic"), as everywhere here.
"""

import dataclasses

import jax

from maskedlm.core.task import Batch, Key, Metrics, Params, Task
from maskedlm.data.batches import batching, packing, text_rows
from maskedlm.modeling import flops, masked_lm
from maskedlm.modeling.architecture import encoder_config
from maskedlm.modeling.encoder import EncoderConfig
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
  # A row's documents don't see each other; positions begin anew in each.
  isolate_documents: bool = False,
) -> Task:
  """The Task of pretraining as RoBERTa was (arguments: __init__.py)."""
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
  rows = text_rows.full_sentences(
    config, corpus, shard, isolate_documents=isolate_documents
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
    flops=packing.step_cost(
      row_flops, rows.batch_at, config, packed=isolate_documents
    ),
    describe={"objective": "roberta", "encoder": dataclasses.asdict(cfg)},
  )


def init(cfg: EncoderConfig, key: Key) -> Params:
  """Fresh parameters: encoder, mlm_head."""
  return masked_lm.init(cfg, *jax.random.split(key))


def loss(
  cfg: EncoderConfig, params: Params, batch: Batch, key: Key, train: bool
) -> tuple[Metrics, Metrics]:
  """(terms, metrics) of a corrupted batch; see Task.loss."""
  hidden = masked_lm.encode(cfg, params, batch, key, train)
  return masked_lm.loss(cfg, params, batch, hidden)
