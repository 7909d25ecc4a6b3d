"""Computes the attention of every head on a text, before and after softmax."""

import functools
from typing import NamedTuple

import jax
import numpy as np

from maskedlm.core.errors import ConfigError
from maskedlm.data.batches.text_pairs import text_row
from maskedlm.inference import rows
from maskedlm.inference.vectors import vectors
from maskedlm.modeling import masked_lm


class Attention(NamedTuple):
  """The attention on a text of l tokens, including [CLS] and [SEP]."""

  tokens: tuple[str, ...]  # [l], readable.
  weights: np.ndarray  # [N, H, l, l] float32: layer, head, from, to.
  # [N, H, l, l] float32: q·k / sqrt(K), whose softmax the weights are; -inf
  # where a token may not attend.
  scores: np.ndarray


def attend(
  model: vectors.TextEncoder, text: str, *, limit: int | None = None
) -> Attention:
  """Returns the Attention of all layers and heads.

  Args:
    text: a text that fits one row; [MASK] in it is a mask.
    limit: the largest number of tokens; None = the encoder's positions.

  Raises:
    ConfigError: the text has no token, or too many, or the encoder has no
      attention.
  """
  if model.cfg.family != "transformer":
    raise ConfigError(
      f"the encoder's family is {model.cfg.family!r}, which has no attention: "
      "expected a transformer."
    )
  tokenizer, special = model.tokenizer, model.tokenizer.special
  encoding = tokenizer.encode(text, specials=True)
  count = len(encoding.ids)
  if not count:
    raise ConfigError(f"{text[:60]!r} has no token: expected a sentence.")
  most = min(limit or model.cfg.max_positions, model.cfg.max_positions)
  if count + 2 > most:
    raise ConfigError(
      f"{text[:40]!r}... has {count + 2} tokens with "
      f"{tokenizer.tokens(special.cls)} and {tokenizer.tokens(special.sep)}; "
      f"expected at most {most}: shorten it."
    )
  L = next(
    n for n in rows.bucket_lengths(model.cfg.max_positions) if n >= count + 2
  )
  row = rows.Row(text_row(tokenizer, encoding.ids))
  batch = rows.pad_rows([row], 1, L, pad=special.pad)
  weights, scores = (
    np.asarray(x)[:, 0, :, : count + 2, : count + 2]
    for x in _make_attention(model.cfg)(model.params, batch)
  )
  pairs = zip(encoding.ids, encoding.offsets, strict=True)
  labels = (
    tokenizer.tokens(special.cls),
    *(_label_token(tokenizer, text, *pair) for pair in pairs),
    tokenizer.tokens(special.sep),
  )
  return Attention(labels, weights, np.where(scores > -1e8, scores, -np.inf))


@functools.lru_cache(maxsize=8)  # So that a second call compiles nothing.
def _make_attention(cfg):
  def weights_and_scores(params, batch):
    scores = masked_lm.attention_scores(cfg, params, batch)
    return jax.nn.softmax(scores, axis=-1), scores

  return jax.jit(weights_and_scores)


def _label_token(tokenizer, text: str, token_id: int, offsets) -> str:
  """Returns the characters of a token; ## marks the continuation of a word."""
  if token_id in tokenizer.special_ids:
    return tokenizer.tokens(int(token_id))
  form = text[slice(*offsets)].strip() or "␣"  # Whitespace only.
  goes_on = not tokenizer.starts_word[token_id] and form[0].isalnum()
  return f"##{form}" if goes_on else form
