"""Which token of a text attends to which: the attention of every head."""

import functools
from typing import NamedTuple

import jax
import numpy as np

from maskedlm.core.errors import ConfigError
from maskedlm.inference.vectors import rows, vectors
from maskedlm.modeling import masked_lm


class Attention(NamedTuple):
  """Of a text of l tokens, [CLS] and [SEP] among them."""

  tokens: tuple[str, ...]  # [l], as a person reads them.
  weights: np.ndarray  # [N, H, l, l] float32: layer, head, from, to.


def attend(
  model: vectors.Model, text: str, *, limit: int | None = None
) -> Attention:
  """The attention of all layers and heads; [MASK] in the text is one.

  Args:
    model: from vectors.open_model.
    text: of one row: it is not cut.
    limit: the most tokens; None = what the encoder reads.

  Raises:
    ConfigError: no token in it, or too many.
  """
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
      f"expected {most} at most: shorten it."
    )
  L = next(
    n for n in rows.bucket_lengths(model.cfg.max_positions) if n >= count + 2
  )
  ids = np.full((1, L), special.pad, np.int32)
  ids[0, : count + 2] = [special.cls, *encoding.ids, special.sep]
  batch = {
    "input_ids": ids,
    "token_type_ids": np.zeros_like(ids),
    "segment_ids": np.int32(np.arange(L) < count + 2)[None],
  }
  weights = np.asarray(_attend(model.cfg)(model.params, batch))[:, 0]
  pairs = zip(encoding.ids, encoding.offsets, strict=True)
  labels = (
    tokenizer.tokens(special.cls),
    *(_label(tokenizer, text, *pair) for pair in pairs),
    tokenizer.tokens(special.sep),
  )
  return Attention(labels, weights[:, :, : count + 2, : count + 2])


@functools.lru_cache(maxsize=8)  # So that a second call compiles nothing.
def _attend(cfg):
  return jax.jit(functools.partial(masked_lm.attend, cfg))


def _label(tokenizer, text: str, token_id: int, offsets) -> str:
  """What the token is of in the text; ## before what goes on with a word."""
  if token_id in tokenizer.special_ids:
    return tokenizer.tokens(int(token_id))
  form = text[slice(*offsets)].strip() or "␣"  # A token of whitespace alone.
  goes_on = not tokenizer.starts_word[token_id] and form[0].isalnum()
  return f"##{form}" if goes_on else form
