"""Scores texts: log-likelihood, or pseudo-log-likelihood of a masked model.

The rows of many texts (rows.py) are sorted by length and computed in batches of
about batch_tokens positions, so that a device computes hundreds of masks at
once. Everything is streamed, in bounded memory.
"""

import collections
import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import jax
import numpy as np

from maskedlm.core import measured
from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError
from maskedlm.data.tokenizers.tokenizer import Encoding, Tokenizer
from maskedlm.inference import fill_mask
from maskedlm.inference.batch_tokens import BATCH_TOKENS
from maskedlm.inference.pretrained import evaluate
from maskedlm.inference.score.rows import Row, make_row_cutter
from maskedlm.inference.vectors.rows import bucket_lengths, plan_batches
from maskedlm.modeling import masked_lm
from maskedlm.runtime import console
from maskedlm.training.checkpoints import load

_BATCHES = 64  # Rows are sorted by length within this many batches.
# A causal model predicts at every position: logits of so many tokens at once.
_VOCAB_BLOCK = 8192


class TextScorer(NamedTuple):
  """A pretrained checkpoint that is ready to score texts."""

  path: str
  tokenizer: Tokenizer
  length: int  # The most tokens in a row.
  positions: int  # The most that the model has.
  reads: str  # EncoderConfig.reads.
  # Batch of _make_batch -> log-probabilities of the labels, [B, P].
  log_probabilities: Callable

  @property
  def causal(self) -> bool:
    """Whether a token is predicted from one side only."""
    return self.reads != "both"


class TextScore(NamedTuple):
  """The score of a text of n tokens, in nats.

  The text's figures are those of its log_probabilities: their sum, and exp of
  minus their mean (nan without a token). Of a masked model they are the
  pseudo-log-likelihood and the pseudo-perplexity.
  """

  text: str
  log_likelihood: float
  perplexity: float
  tokens: tuple[str, ...]  # [n], as the vocabulary spells them.
  log_probabilities: np.ndarray  # [n] float32.
  ids: np.ndarray  # [n] int32.
  offsets: np.ndarray  # [n, 2] int32: characters of the text.


def make_scorer(
  opened: load.LoadedCheckpoint, path, *, length: int = 0
) -> TextScorer:
  """Returns the TextScorer of a loaded checkpoint; errors name `path`.

  ELECTRA's texts are scored by its generator.

  Args:
    opened: the checkpoint.
    path: where it is.
    length: the most tokens in a row; 0 = see evaluate.row_length.

  Raises:
    ConfigError: the model has no head that predicts tokens, or the length is
      out of range.
  """
  params, cfg = fill_mask.token_model(opened.params, opened.meta["task"], path)
  if cfg.causal:
    block = min(cfg.vocab_block, _VOCAB_BLOCK)
    cfg = dataclasses.replace(cfg, vocab_block=block)

  @jax.jit
  def log_probabilities(params, batch):
    hidden = masked_lm.encode(cfg, params, batch, None, False)
    return -masked_lm.loss_and_correct(cfg, params, batch, hidden)[0]

  return TextScorer(
    path=str(path),
    tokenizer=opened.tokenizer,
    length=evaluate.row_length(opened, cfg, length),
    positions=cfg.max_positions,
    reads=cfg.reads,
    log_probabilities=functools.partial(
      log_probabilities, jax.device_put(params)
    ),
  )


def score(
  model: TextScorer,
  texts: Iterable[str],
  *,
  pll: str = "original",
  batch_tokens: int = BATCH_TOKENS,
  seen: Counter | None = None,
) -> Iterator[TextScore]:
  """Yields the scores of texts, in their order, several at a time.

  A score doesn't depend on the other texts, except for rounding.

  Args:
    model: see make_scorer.
    texts: consumed as needed.
    pll: what a masked model's rows hide, a key of rows.PLL.
    batch_tokens: about how many positions a batch has.
    seen: counts for log_summary.

  Raises:
    ConfigError: pll is unknown, or the model is causal and hides nothing.
  """
  if model.causal and pll != "original":
    raise ConfigError(
      f"pll={pll!r}: {model.path} is a causal model, which masks nothing: "
      "leave pll out."
    )
  seen = Counter() if seen is None else seen
  cut = make_row_cutter(
    model.tokenizer, length=model.length, reads=model.reads, pll=pll
  )
  waiting: collections.deque = collections.deque()

  def read() -> Iterator[tuple[Row, np.ndarray]]:
    for text in texts:
      encoding = model.tokenizer.encode(text)
      values = np.zeros(len(encoding.ids), np.float32)
      waiting.append((text, encoding, values))
      yield from ((row, values) for row in cut(text, encoding))

  def finished(count: int) -> Iterator[TextScore]:
    for _ in range(count):
      made = _text_score(model, *waiting.popleft())
      _count(model, made, seen)
      yield made

  rows = read()
  while chunk := _take(rows, _BATCHES * batch_tokens):
    _compute(model, chunk, batch_tokens)
    yield from finished(len(waiting) - 1)  # The last may have more rows.
  yield from finished(len(waiting))


def log_summary(model: TextScorer, seen: Counter, *, option: str) -> None:
  """Logs what a reader of the scores should know, a line for each kind.

  Args:
    model: the scorer.
    seen: filled by `score`.
    option: the option that sets the length, such as "--length={}".
  """
  if seen["long"]:
    wanted = min(seen["longest"], model.positions)
    console.log(
      f"{counted(seen['long'], 'text')} of more than {model.length:,} tokens "
      f"(the longest has {seen['longest']:,}): each token was predicted in a "
      f"window of {model.length:,}"
      + (
        f"; {option.format(wanted)} makes longer ones"
        if wanted > model.length
        else ""
      )
    )
  if seen["unknown"]:
    unk = model.tokenizer.tokens(model.tokenizer.special.unk)
    console.log(
      f"{seen['unknown']:,} of {counted(seen['tokens'], 'token')} are {unk}, "
      "which stands for any characters that the vocabulary lacks: scores of "
      "such texts can't be compared"
    )


def perplexity(log_likelihood: float, tokens: int) -> float:
  """Returns exp(-log_likelihood / tokens), nan without a token."""
  if not tokens:
    return math.nan
  return measured.perplexity(-log_likelihood / tokens)


def _take(rows: Iterator, num_tokens: int) -> list:
  """Returns the next rows, of at least num_tokens in total if there are."""
  taken, held = [], 0
  for row in rows:
    taken.append(row)
    held += len(row[0].ids)
    if held >= num_tokens:
      break
  return taken


def _compute(
  model: TextScorer, chunk: Sequence[tuple[Row, np.ndarray]], batch_tokens: int
) -> None:
  """Writes the log-probabilities of rows into the arrays that go with them."""
  ahead: list = []

  def store(which, made) -> None:
    for i, found in zip(which, jax.device_get(made), strict=True):
      if i >= 0:
        row, values = chunk[i]
        values[row.places] = found[: len(row.labels)]

  lengths = [len(row.ids) for row, _ in chunk]
  buckets = bucket_lengths(model.length)
  for which, L in plan_batches(lengths, buckets, batch_tokens=batch_tokens):
    rows = [chunk[i][0] for i in which if i >= 0]
    batch = _make_batch(rows, len(which), L, model.tokenizer.special.pad)
    ahead.append((which, model.log_probabilities(batch)))
    if len(ahead) > 1:  # The device computes the next batch meanwhile.
      store(*ahead.pop(0))
  for made in ahead:
    store(*made)


def _make_batch(
  rows: Sequence[Row], B: int, L: int, pad: int
) -> dict[str, np.ndarray]:
  """Returns a batch for masked_lm.loss_and_correct; rows of padding fill it."""
  most = max(len(row.labels) for row in rows)
  P = 1 << (most - 1).bit_length()  # A few shapes are compiled.
  input_ids, is_token = _stack([row.ids for row in rows], (B, L), pad)
  # A filler attends to its first [PAD]: no softmax is over an empty set.
  is_token[len(rows) :, 0] = True
  return {
    "input_ids": input_ids,
    "token_type_ids": np.zeros_like(input_ids),
    "segment_ids": is_token.astype(np.int32),
    "masked_positions": _stack([row.positions for row in rows], (B, P), 0)[0],
    "masked_labels": _stack([row.labels for row in rows], (B, P), 0)[0],
  }


def _stack(
  arrays: Sequence[np.ndarray], shape: tuple[int, int], fill: int
) -> tuple[np.ndarray, np.ndarray]:
  """Returns int32 arrays as rows of one, and where it isn't filled, both."""
  sizes = np.zeros(shape[0], np.int64)
  sizes[: len(arrays)] = [len(array) for array in arrays]
  used = np.arange(shape[1]) < sizes[:, None]
  made = np.full(shape, fill, np.int32)
  made[used] = np.concatenate(arrays)
  return made, used


def _text_score(
  model: TextScorer, text: str, encoding: Encoding, values: np.ndarray
) -> TextScore:
  total = float(values.sum(dtype=np.float64))
  return TextScore(
    text=text,
    log_likelihood=total,
    perplexity=perplexity(total, len(values)),
    tokens=tuple(model.tokenizer.tokens(int(i)) for i in encoding.ids),
    log_probabilities=values,
    ids=encoding.ids,
    offsets=encoding.offsets,
  )


def _count(model: TextScorer, made: TextScore, seen: Counter) -> None:
  count, specials = len(made.ids), 1 if model.reads == "left" else 2
  seen["scored"] += 1
  seen["tokens"] += count
  seen["log_likelihood"] += made.log_likelihood
  seen["unknown"] += int(np.sum(made.ids == model.tokenizer.special.unk))
  if count + specials > model.length:
    seen["long"] += 1
    seen["longest"] = max(seen["longest"], count + specials)
