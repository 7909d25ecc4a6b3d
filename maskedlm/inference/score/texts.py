"""Scores texts: log-likelihood, or pseudo-log-likelihood of a masked model.

Of two language models, it is the mean of both log-likelihoods.

The rows of many texts (rows.py) are sorted by length and computed in batches of
about batch_tokens positions, so that a device computes hundreds of masks at
once. Everything is streamed, in bounded memory.
"""

import collections
import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import jax
import numpy as np

from maskedlm.core import measured
from maskedlm.core.errors import ConfigError
from maskedlm.data.tokenizers import lost_text
from maskedlm.data.tokenizers.tokenizer import Encoding
from maskedlm.inference import rows
from maskedlm.inference.score.rows import make_row_cutter
from maskedlm.inference.token_model import TokenModel
from maskedlm.modeling import masked_lm
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.runtime import console

_BATCHES = 64  # Rows are sorted by length within this many batches.
# Without masks every position predicts: logits of so many tokens at once.
_VOCAB_BLOCK = 8192


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


def score(
  model: TokenModel,
  texts: Iterable[str],
  *,
  pll: str = "original",
  seen: Counter | None = None,
) -> Iterator[TextScore]:
  """Yields the scores of texts, in their order, several at a time.

  A score doesn't depend on the other texts, except for rounding.

  Args:
    model: see token_model.make_token_model.
    texts: consumed as needed.
    pll: what a masked model's rows hide, a key of rows.PLL.
    seen: counts for log_summary.

  Raises:
    ConfigError: pll is unknown, or the model hides nothing.
  """
  seen = Counter() if seen is None else seen
  reads = model.cfg.reads
  if reads != "both" and pll != "original":
    raise ConfigError(
      f"pll={pll!r}: {model.path} predicts a token from one side, and masks "
      "nothing: leave pll out."
    )
  cut = make_row_cutter(
    model.tokenizer, length=model.length, reads=reads, pll=pll
  )
  log_probabilities = functools.partial(
    make_log_probabilities(model.cfg), model.params
  )
  count_lost = lost_text.make_counter(model.tokenizer)
  waiting: collections.deque = collections.deque()

  def read() -> Iterator[tuple[rows.Row, slice, np.ndarray]]:
    for text in texts:
      encoding = model.tokenizer.encode(text)
      values = np.zeros(len(encoding.ids), np.float32)
      waiting.append((text, encoding, values))
      yield from ((*placed, values) for placed in cut(text, encoding))

  def finish(count: int) -> Iterator[TextScore]:
    for _ in range(count):
      scored = _make_score(model, *waiting.popleft())
      _count_text(model, scored, seen, count_lost)
      yield scored

  size = _BATCHES * model.batch_tokens
  for chunk in rows.chunk_rows(read(), size, lambda item: len(item[0].ids)):
    for i, result in rows.compute_padded(
      log_probabilities,
      [row for row, _, _ in chunk],
      length=model.length,
      batch_tokens=model.batch_tokens,
      pad=model.tokenizer.special.pad,
    ):
      row, places, values = chunk[i]
      values[places] = result[: len(row.labels)]
    yield from finish(len(waiting) - 1)  # The last may have more rows.
  yield from finish(len(waiting))


def log_summary(model: TokenModel, seen: Counter, *, option: str) -> None:
  """Logs what a reader of the scores should know, a line for each kind.

  `score` has filled `seen`; the option sets the length, such as "--length={}".
  """
  if seen["long"]:
    note = rows.long_note(
      seen["long"],
      seen["longest"],
      "each token was predicted in a window",
      length=model.length,
      positions=model.cfg.max_positions,
      option=option,
    )
    console.log(note)
  for cause, share in lost_text.shares(seen, seen["characters"]):
    console.log(
      f"{share:.1%} of the characters {cause.what}: scores of such texts can't "
      "be compared"
    )


def perplexity(log_likelihood: float, tokens: int) -> float:
  """Returns exp(-log_likelihood / tokens), nan without a token."""
  if not tokens:
    return math.nan
  return measured.perplexity(-log_likelihood / tokens)


@functools.lru_cache(maxsize=8)  # So that a second call compiles nothing.
def make_log_probabilities(cfg: EncoderConfig) -> Callable:
  """Returns a jitted (params, batch) -> log P of masked_labels, [B, P].

  The batch is one of rows.pad_rows.
  """
  if cfg.reads != "both":
    block = min(cfg.vocab_block, _VOCAB_BLOCK)
    cfg = dataclasses.replace(cfg, vocab_block=block)

  @jax.jit
  def log_probabilities(params, batch):
    hidden = masked_lm.encode(cfg, params, batch, None, False)
    return -masked_lm.loss_and_correct(cfg, params, batch, hidden)[0]

  return log_probabilities


def _make_score(
  model: TokenModel, text: str, encoding: Encoding, values: np.ndarray
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


def _count_text(
  model: TokenModel, scored: TextScore, seen: Counter, count_lost: Callable
) -> None:
  count, specials = len(scored.ids), 1 if model.cfg.reads == "left" else 2
  seen["scored"] += 1
  seen["tokens"] += count
  # The only one of the counts that is not whole.
  seen["log_likelihood"] += scored.log_likelihood  # type: ignore[assignment]
  seen["characters"] += len(scored.text)
  is_unknown = model.tokenizer.special.unk in scored.ids
  seen.update(count_lost([scored.text], [scored.text] * is_unknown))
  if count + specials > model.length:
    seen["long"] += 1
    seen["longest"] = max(seen["longest"], count + specials)
