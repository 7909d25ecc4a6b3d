"""`maskedlm fill-mask`: the most probable words for each mask of a text."""

import math
import pathlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.core.errors import ConfigError
from maskedlm.data.tokenizers import tokenizer as tokenizers
from maskedlm.modeling import encoder, heads, masked_lm
from maskedlm.modeling.architecture import restored
from maskedlm.runtime import console
from maskedlm.training.checkpoints import load as opening

# What pretrain shows at its end: a test of syntax, of agreement, of sense.
EXAMPLES = (
  "The function returns a [MASK] of the input.",
  "If the file does not [MASK], an error is raised.",
  "Return True if all elements are [MASK].",
)
ROWS = 16  # Texts in a batch, at most.


class Model(NamedTuple):
  """A checkpoint made ready to fill masks."""

  tokenizer: tokenizers.Tokenizer
  mask_token: str
  max_length: int
  # (input_ids [B, L], segment_ids [B, L], positions [B, P]) -> [B, P, V]; of
  # special tokens and of rows without a token 0.
  probabilities: Callable


class Filled(NamedTuple):
  """A text and, for each of its masks, [(word, probability)], best first."""

  text: str
  masks: list[list[tuple[str, float]]]


def load(path: pathlib.Path) -> Model:
  """Reads the newest checkpoint of a workdir (or the checkpoint given).

  Raises:
    CheckpointError: there is none that can be read.
    ConfigError: it has no MLM head, or the tokenizer is not the checkpoint's.
  """
  return make_model(opening.open_checkpoint(path), path)


def make_model(opened: opening.Opened, path: str | pathlib.Path) -> Model:
  """As `load`, of what is open; path is for the error.

  Raises:
    ConfigError: it has no MLM head.
  """
  made = opened.tokenizer
  params, config = _masked_model(opened.params, opened.meta["task"], path)
  params = jax.device_put(params)

  @jax.jit
  def probabilities(input_ids, segment_ids, positions):
    batch = {
      "input_ids": input_ids,
      "token_type_ids": jnp.zeros_like(input_ids),
      "segment_ids": segment_ids,
    }
    logits = heads.mlm_logits(params, config, batch, positions)
    # No training ever asks for these, so nothing keeps them down.
    logits = logits.at[..., made.special_ids].set(-jnp.inf)
    return jax.nn.softmax(logits)

  return Model(
    tokenizer=made,
    mask_token=made.tokens(made.special.mask),
    max_length=config.max_positions,
    probabilities=probabilities,
  )


def _masked_model(params, task, path) -> tuple[dict, encoder.EncoderConfig]:
  """(encoder and mlm_head, architecture): of ELECTRA, the generator's."""
  if "mlm_head" not in params:
    raise ConfigError(
      f"{path} was trained by objective.name={task['objective']!r}, which has "
      "no masked language model: it can't fill masks."
    )
  if "generator" in params:
    generator = restored(task["generator"])
    return masked_lm.with_generator(params), generator
  parts = {name: params[name] for name in ("encoder", "mlm_head")}
  return parts, restored(task["encoder"])


def fill(model: Model, texts: Sequence[str], *, top_k: int) -> list[Filled]:
  """The top_k words of each mask of each text, in one batch.

  Raises:
    ConfigError: a text without a mask, or longer than the model's positions.
  """
  special = model.tokenizer.special
  words = np.delete(
    np.arange(model.tokenizer.vocab_size), model.tokenizer.special_ids
  )
  rows = []
  for text in texts:
    ids = model.tokenizer.encode(text, specials=True).ids
    rows.append(np.concatenate([[special.cls], ids, [special.sep]]))
    if special.mask not in rows[-1]:
      raise ConfigError(
        f"no {model.mask_token} in {text[:60]!r}: write it where a word is "
        "to be filled in."
      )
    if len(rows[-1]) > model.max_length:
      raise ConfigError(
        f"{text[:60]!r}... has {len(rows[-1])} tokens, the model takes "
        f"{model.max_length}: cut it."
      )
  # A few padded shapes, so that many texts share few compilations.
  length = min(_ceil_power(max(map(len, rows))), model.max_length)
  num_masks = [int(np.sum(row == special.mask)) for row in rows]
  slots = _ceil_power(max(num_masks))
  input_ids = np.full((_ceil_power(len(rows)), length), special.pad, np.int32)
  segment_ids = np.zeros_like(input_ids)
  positions = np.zeros((len(input_ids), slots), np.int32)
  for i, row in enumerate(rows):
    input_ids[i, : len(row)] = row
    segment_ids[i, : len(row)] = 1
    positions[i, : num_masks[i]] = np.flatnonzero(row == special.mask)
  table = np.asarray(model.probabilities(input_ids, segment_ids, positions))
  filled = []
  for i, text in enumerate(texts):
    masks = []
    for p in table[i, : num_masks[i]]:
      best = words[np.argsort(-p[words], kind="stable")[:top_k]]
      masks.append([(_word(model.tokenizer, k), float(p[k])) for k in best])
    filled.append(Filled(text, masks))
  return filled


def format_filled(filled: Filled) -> str:
  """The text, then a line for each mask."""
  lines = [filled.text]
  for words in filled.masks:
    shares = (f"{console.isolate(word)} {p:.1%}" for word, p in words)
    lines.append("  " + "  ".join(shares))
  return "\n".join(lines)


def _word(tokenizer: tokenizers.Tokenizer, token_id: int) -> str:
  """The token as a person reads it; WordPiece's ## shows it is a part.

  One of whitespace, or of a part of a character, is as the vocabulary has it.
  """
  text = tokenizer.decode([int(token_id)]).strip()
  if text and text.isprintable() and "\ufffd" not in text:
    return text
  return tokenizer.tokens(int(token_id))


def _ceil_power(n: int) -> int:
  return 1 << math.ceil(math.log2(max(n, 1)))
