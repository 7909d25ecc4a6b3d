"""Measures a pretrained model on any text: loss, accuracy, bits per character.

The result is that of a plain loop over the same masks, whatever trained the
model: runs of `maskedlm pretrain` and imported models can be compared before
and after more training, on the same text. A document is encoded whole and cut
into rows, which don't mix documents. What is masked in a row depends on the
seed, the row's number and its tokens, not on the batch size or the weights.
"""

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from maskedlm.core import measured
from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.core.task import Batch
from maskedlm.data.batches.text_pairs import text_row
from maskedlm.data.repair import repair
from maskedlm.data.tokenizers import lost_text
from maskedlm.data.tokenizers.document_text import make_text
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.inference import token_model
from maskedlm.inference.pretrained import sentence_pairs
from maskedlm.inference.rows import Row, pad_rows, power_of_2
from maskedlm.inference.score import next_sentence
from maskedlm.inference.token_model import TokenModel
from maskedlm.modeling import masked_lm
from maskedlm.modeling.masking import masking
from maskedlm.modeling.masking.options import CorruptionOptions
from maskedlm.training.checkpoints import load

MASK_RATE = 0.15
ROWS = 128  # Masked at a time.
_DOCUMENTS = 256  # Encoded, and paired with each other, at a time.


class PretrainedModel(NamedTuple):
  """A pretrained checkpoint that is ready to be measured."""

  tokenizer: Tokenizer
  length: int  # L, the most tokens of a row.
  corruption: Callable  # mask_rate -> make_corruption.
  scores: Callable  # Batch of rows.pad_rows -> loss, correct [B, P].
  pairs: TokenModel | None  # None if the model has no NSP head.
  swaps: bool  # Whether label 1 of a pair means that it is swapped (ALBERT).


def make_model(
  opened: load.LoadedCheckpoint, path, *, length: int = 0
) -> PretrainedModel:
  """Returns a PretrainedModel of a loaded checkpoint; errors name `path`.

  Rows have at most `length` tokens; 0 = see token_model.row_length.

  Raises:
    ConfigError: the model has no MLM head or is causal, or the length is out
      of range.
  """
  task = opened.meta["task"]
  params, cfg = token_model.token_model(opened.params, task, path)
  token_model.check_reads_masks(path, cfg)
  length = token_model.row_length(opened, cfg, length)

  @jax.jit
  def scores(params, batch):
    hidden = masked_lm.encode(cfg, params, batch, None, False)
    return masked_lm.loss_and_correct(cfg, params, batch, hidden)

  corruption = functools.partial(make_corruption, opened.tokenizer, length)
  pairs = None
  if next_sentence.has_nsp_head(opened):
    pairs = next_sentence.make_pair_scorer(opened, path)._replace(length=length)
  config = token_model.training_config(opened)
  return PretrainedModel(
    tokenizer=opened.tokenizer,
    length=length,
    # A second evaluation compiles nothing.
    corruption=functools.lru_cache(maxsize=8)(corruption),
    scores=functools.partial(scores, jax.device_put(params)),
    pairs=pairs,
    swaps=config.get("objective", {}).get("pairs") == "sop",
  )


def evaluate(
  model: PretrainedModel,
  documents: Iterable[Sequence[str]],
  *,
  mask_rate: float = MASK_RATE,
  seed: int = 0,
  batch_size: int = 32,
) -> dict[str, Any]:
  """Returns how well the model predicts the masked tokens of documents.

  Args:
    model: see `make_model`.
    documents: each is a list of its lines.
    mask_rate: share of the tokens that is masked.
    seed: decides which tokens, and which sentences make pairs.
    batch_size: rows at a time; it changes no result.

  Returns:
    documents, sentences, tokens, characters, rows, masked_tokens; mlm_loss
    (nats per masked token), perplexity, mlm_accuracy; bits_per_character, the
    loss in bits times the tokens per character, which makes models with
    different tokenizers comparable, unless much is lost; lost_share, the share
    of the characters that no token covers; nsp_pairs, nsp_loss and nsp_accuracy
    if the model has that head and a document has two sentences; and mask_rate,
    seed and length, the most tokens of a row.

  Raises:
    ConfigError: mask_rate is out of range.
    DataError: the documents have no token that can be masked.

  >>> result = model.evaluate(["the sea is blue", "a good film"], mask_rate=0.5)
  >>> result["documents"], result["perplexity"] > 1
  (2, True)
  """
  counts: Counter = Counter()
  rng = np.random.default_rng(seed)
  sums = np.zeros(2)
  nsp = np.zeros(2)

  def encoded() -> Iterator[np.ndarray]:
    for chunk in encode_chunks(model.tokenizer, documents, counts):
      if model.pairs:
        pairs = sentence_pairs.make_pairs(
          chunk, length=model.length, swap=model.swaps, rng=rng
        )
        counts["pairs"] += len(pairs)
        nsp[:] += _pair_sums(model.pairs, pairs, batch_size)
      yield from (ids for ids, _ in chunk)

  rows = mask_rows(
    model.tokenizer,
    cut_rows(model.tokenizer, encoded(), model.length),
    model.corruption(mask_rate),
    length=model.length,
    seed=seed,
  )
  for group in _batched(rows, 8 * batch_size):
    group.sort(key=lambda row: len(row.ids))  # So that batches need no padding.
    for batch_rows in _batched(group, batch_size):
      batch = _pad_batch(batch_rows, batch_size, model)
      weights = batch["masked_weights"]
      scores = jax.device_get(model.scores(batch))
      sums += [np.sum(x * weights, dtype=np.float64) for x in scores]
      counts["rows"] += len(batch_rows)
      counts["masked"] += int(weights.sum())
  if not counts["masked"]:
    raise DataError(
      f"nothing can be masked in {counted(counts['documents'], 'document')} "
      f"with {counted(counts['tokens'], 'token')}: give more text."
    )
  settings = {"mask_rate": mask_rate, "seed": seed, "length": model.length}
  return {**_compute_result(counts, sums, nsp), **settings}


def cut_rows(
  tokenizer: Tokenizer, documents: Iterable[np.ndarray], length: int
) -> Iterator[np.ndarray]:
  """Yields rows [l] of at most `length` tokens of documents' ids [n]."""
  for ids in documents:
    for begin in range(0, len(ids), length - 2):
      yield text_row(tokenizer, ids[begin : begin + length - 2])


def make_corruption(
  tokenizer: Tokenizer, length: int, mask_rate: float
) -> Callable:
  """Returns the compiled (batch, key) -> masked batch for `mask_rows`.

  In a row of at most `length` tokens, mask_rate of them are masked, at least
  one.

  Raises:
    ConfigError: mask_rate is out of range.
  """
  options = CorruptionOptions(mask_rate, mask_share=1.0, random_share=0.0)
  counts = np.ones(tokenizer.vocab_size, np.int64)
  masker = masking.make_masking(tokenizer, length, options, token_counts=counts)
  return jax.jit(masker.corrupt)


def mask_rows(
  tokenizer: Tokenizer,
  rows: Iterable[np.ndarray],
  corrupt: Callable,
  *,
  length: int,
  seed: int,
) -> Iterator[Row]:
  """Yields the rows int32 [l] with their masks.

  `corrupt` is from make_corruption, with this length.
  """
  for number, group in enumerate(_batched(rows, ROWS)):
    pad = tokenizer.special.pad
    padded = pad_rows([Row(row) for row in group], ROWS, length, pad=pad)
    batch = {**padded, "example_weights": np.ones(ROWS, np.float32)}
    key = jax.random.fold_in(jax.random.key(seed), number)
    masked = jax.device_get(corrupt(batch, key))
    for i, row in enumerate(group):
      used = masked["masked_weights"][i] > 0
      yield Row(
        masked["input_ids"][i, : len(row)],
        masked["masked_positions"][i][used],
        masked["masked_labels"][i][used],
      )


def _compute_result(counts: Counter, sums, nsp) -> dict[str, Any]:
  """Returns the means, from the sums [2] of losses and of hits."""
  loss, accuracy = (float(x) / counts["masked"] for x in sums)
  values = {
    **{n: counts[n] for n in ("documents", "sentences", "tokens")},
    "characters": counts["characters"],
    "rows": counts["rows"],
    "masked_tokens": counts["masked"],
    "mlm_loss": loss,
    "perplexity": measured.perplexity(loss),
    "bits_per_character": (
      loss / math.log(2) * counts["tokens"] / counts["characters"]
    ),
    "mlm_accuracy": accuracy,
    "lost_share": lost_text.total(counts) / counts["characters"],
  }
  if pairs := counts["pairs"]:
    values["nsp_pairs"] = pairs
    values["nsp_loss"], values["nsp_accuracy"] = map(float, nsp / pairs)
  return values


def lines_of(text: str) -> list[str]:
  """Returns the lines of a document, as a corpus has them."""
  return repair(text).strip("\n").split("\n")


def encode_chunks(
  tokenizer: Tokenizer, documents: Iterable[Sequence[str]], counts: Counter
) -> Iterator[list[tuple[np.ndarray, np.ndarray]]]:
  """Yields (ids, tokens of each sentence) of the documents, some at a time."""
  count_lost = lost_text.make_counter(tokenizer)
  for group in _batched(documents, _DOCUMENTS):
    options = {"mode": "split", "language": "en", "report": Counter()}
    texts = [make_text(lines, tokenizer, **options) for lines in group]
    counts["characters"] += sum(len(text.text) for text in texts)
    counts["sentences"] += sum(len(text.spans) for text in texts)
    chunk = tokenizer.encode_documents(texts, Counter())
    unk = tokenizer.special.unk
    unknown = lost_text.unknown_sentences(texts, chunk, unk)
    counts.update(count_lost([text.text for text in texts], unknown))
    counts["documents"] += len(chunk)
    counts["tokens"] += sum(len(ids) for ids, _ in chunk)
    yield chunk


def _pad_batch(rows: Sequence[Row], batch_size: int, model) -> Batch:
  """Returns a batch as long as its longest row, rounded up to a power of 2."""
  longest = power_of_2(max(len(row.ids) for row in rows), least=8)
  length, pad = min(longest, model.length), model.tokenizer.special.pad
  return pad_rows(rows, batch_size, length, pad=pad, least=8)


def _pair_sums(
  model: TokenModel, pairs: list[sentence_pairs.Pair], batch_size: int
) -> np.ndarray:
  """Returns the sums of the loss and of right answers over pairs, [2]."""
  compute_logits = next_sentence.make_logits(model.cfg)
  sums = np.zeros(2)
  for chunk in _batched(pairs, batch_size):
    pair_rows = [next_sentence.pair_row(model, a, b) for a, b, _ in chunk]
    rows = [Row(row.input_ids, types=row.token_type_ids) for row in pair_rows]
    batch = _pad_batch(rows, batch_size, model)
    logits = jax.device_get(compute_logits(model.params, batch))
    logits, labels = logits[: len(chunk)], np.array([x.label for x in chunk])
    top = logits.max(axis=1, keepdims=True)
    normaliser = top[:, 0] + np.log(np.exp(logits - top).sum(axis=1))
    picked = np.take_along_axis(logits, labels[:, None], axis=1)[:, 0]
    sums += [
      np.sum(normaliser - picked, dtype=np.float64),
      np.sum(logits.argmax(axis=1) == labels),
    ]
  return sums


def _batched(items: Iterable, size: int) -> Iterator[list]:
  items = iter(items)
  while group := list(itertools.islice(items, size)):
    yield group
