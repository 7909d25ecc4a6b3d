"""Predicts the most probable words for each mask of a text.

A causal model fills masks from left to right, each from the text before it, in
which earlier masks have become their most probable token. Masks at the end of a
text are therefore its greedy continuation. One that reads from right to left
does the same from the other end.
"""

import functools
import math
import pathlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.core.errors import ConfigError
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.modeling import encoder, heads, masked_lm
from maskedlm.modeling.architecture import restored
from maskedlm.runtime import console
from maskedlm.training.checkpoints import load

# pretrain fills these at its end: they need syntax, agreement and meaning.
EXAMPLES = (
  "The function returns a [MASK] of the input.",
  "If the file does not [MASK], an error is raised.",
  "Return True if all elements are [MASK].",
)
MAX_TEXTS = 16  # The most in a batch.


class MaskFiller(NamedTuple):
  """A checkpoint that is ready to fill masks."""

  tokenizer: Tokenizer
  mask_token: str
  max_length: int
  reads: str  # The side of a mask: left, right or both.
  # (input_ids [B, L], segment_ids [B, L], positions [B, P]) -> [B, P, V]; 0 for
  # special tokens and for ids without a token.
  probabilities: Callable


class FilledText(NamedTuple):
  """A text and, for each of its masks, (word, probability), best first."""

  text: str
  masks: list[list[tuple[str, float]]]


def load_mask_filler(path: pathlib.Path) -> MaskFiller:
  """Loads the newest checkpoint of a workdir, or the checkpoint at `path`.

  Raises:
    CheckpointError: no checkpoint can be read.
    ConfigError: it has no head that predicts tokens, or its tokenizer belongs
      to another run.
  """
  return make_mask_filler(load.open_checkpoint(path), path)


def make_mask_filler(
  opened: load.LoadedCheckpoint, path: str | pathlib.Path
) -> MaskFiller:
  """Returns a MaskFiller for a loaded checkpoint; errors name `path`.

  Raises:
    ConfigError: the checkpoint has no head that predicts tokens.
  """
  made = opened.tokenizer
  params, config = token_model(opened.params, opened.meta["task"], path)
  params = jax.device_put(params)

  # The parameters are an argument: jit would make constants of an array that
  # it finds in a closure, and compile anew for each checkpoint.
  def at_once(params, input_ids, segment_ids, positions):
    batch = {
      "input_ids": input_ids,
      "token_type_ids": jnp.zeros_like(input_ids),
      "segment_ids": segment_ids,
    }
    logits = heads.mlm_logits(params, config, batch, positions)
    # Training never predicts these, so their logits are arbitrary.
    logits = logits.at[..., made.special_ids].set(-jnp.inf)
    return jax.nn.softmax(logits)

  def one_by_one(params, input_ids, segment_ids, positions):
    before = {"left": -1, "right": 1}[config.reads]

    def fill(input_ids, position):  # [B, L], [B]
      places = position[:, None] + before
      p = at_once(params, input_ids, segment_ids, places)[:, 0]
      rows = jnp.arange(len(input_ids))
      return input_ids.at[rows, position].set(jnp.argmax(p, axis=-1)), p

    # Places after a row's masks are 0. From the left they are filled last; from
    # the right nothing reads place 0. So they change nothing.
    reverse = config.reads == "right"
    _, filled = jax.lax.scan(fill, input_ids, positions.T, reverse=reverse)
    return jnp.swapaxes(filled, 0, 1)

  return MaskFiller(
    tokenizer=made,
    mask_token=made.tokens(made.special.mask),
    max_length=config.max_positions,
    reads=config.reads,
    probabilities=functools.partial(
      jax.jit(at_once if config.reads == "both" else one_by_one), params
    ),
  )


def token_model(params, task, path) -> tuple[dict, encoder.EncoderConfig]:
  """Returns params of encoder and head, config, of any model of tokens.

  Arguments and errors are those of `masked_model`. The head of a causal model
  is named "mlm_head", as it is the same module.
  """
  if "lm_head" not in params:
    return masked_model(params, task, path)
  parts = {"encoder": params["encoder"], "mlm_head": params["lm_head"]}
  return parts, restored(task["encoder"])


def masked_model(params, task, path) -> tuple[dict, encoder.EncoderConfig]:
  """Returns params of encoder and MLM head (ELECTRA: the generator's), config.

  Args:
    params: a checkpoint's.
    task: meta["task"] of the checkpoint.
    path: where it is, for errors.

  Raises:
    ConfigError: there is no MLM head.
  """
  if "bilm_head" in params:
    raise ConfigError(
      f"{path} has two language models (bilm_head), of which each reads one "
      "side of a token: it fills no masks and scores no texts; expected a "
      "masked or causal model."
    )
  if "mlm_head" not in params:
    raise ConfigError(
      f"{path} has no MLM head (it has {', '.join(params)}): it can't fill "
      "masks until one is trained, by `maskedlm pretrain "
      f"--config=configs/continued.py --config.init_from={path}`."
    )
  if "generator" in params:
    generator = restored(task["generator"])
    return masked_lm.with_generator(params), generator
  parts = {name: params[name] for name in ("encoder", "mlm_head")}
  return parts, restored(task["encoder"])


def fill_masks(
  model: MaskFiller, texts: Sequence[str], *, top_k: int
) -> list[FilledText]:
  """Returns the top_k words for each mask of each text, in one batch.

  Of a text with more tokens than the model's positions, those around its masks
  are read, which is logged. A causal model reads nothing after the last mask
  (before the first, from right to left), which is logged as well.

  Raises:
    ConfigError: a text has no mask, or its masks are further apart than the
      model's positions.
  """
  special = model.tokenizer.special
  words = np.delete(
    np.arange(model.tokenizer.vocab_size), model.tokenizer.special_ids
  )
  rows = [_row(model, text) for text in texts]
  # Padding to a few shapes lets many texts share a compilation.
  length = min(_ceil_power(max(map(len, rows))), model.max_length)
  num_masks = [int(np.sum(row == special.mask)) for row in rows]
  num_predictions = _ceil_power(max(num_masks))
  input_ids = np.full((_ceil_power(len(rows)), length), special.pad, np.int32)
  segment_ids = np.zeros_like(input_ids)
  positions = np.zeros((len(input_ids), num_predictions), np.int32)
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
      masks.append(
        [(token_text(model.tokenizer, k), float(p[k])) for k in best]
      )
    filled.append(FilledText(text, masks))
  return filled


def _row(model: MaskFiller, text: str) -> np.ndarray:
  """Returns [CLS] text [SEP] as ids, cut around the masks if it is too long.

  Raises:
    ConfigError: see fill_masks.
  """
  special = model.tokenizer.special
  ids = np.asarray(model.tokenizer.encode(text, specials=True).ids)
  masks = np.flatnonzero(ids == special.mask)
  if not len(masks):
    raise ConfigError(
      f"no {model.mask_token} in {text[:60]!r}: write it where a word is "
      "to be filled in."
    )
  read = {
    "both": slice(None),
    "left": slice(masks[-1] + 1),
    "right": slice(masks[0], None),
  }[model.reads]
  if len(ids[read]) < len(ids):
    ids = ids[read]
    masks = np.flatnonzero(ids == special.mask)
    console.log(
      f"{text[:60]!r}: the model is causal and read only what is to the "
      f"{model.reads} of {model.mask_token}"
    )
  size, capacity = len(ids), model.max_length - 2
  if size > capacity:
    needed = int(masks[-1] - masks[0]) + 1
    if needed > capacity:
      raise ConfigError(
        f"{text[:60]!r}... has {size + 2:,} tokens, and {needed + 2:,} from its"
        f" first {model.mask_token} to its last; the model takes "
        f"{model.max_length:,}: cut it, or fill the masks one by one."
      )
    # As much on either side; at an end of the text, more on the other.
    start = int(masks[0]) - (capacity - needed) // 2
    start = min(max(start, 0), size - capacity)
    ids = ids[start : start + capacity]
    console.log(
      f"{text[:60]!r}... has {size + 2:,} tokens: the model read "
      f"{model.max_length:,} around {model.mask_token}, as it has no more "
      "positions"
    )
  return np.concatenate([[special.cls], ids, [special.sep]])


def format_filled(filled: FilledText) -> str:
  """Returns the text, followed by a line for each mask."""
  lines = [filled.text]
  for words in filled.masks:
    shares = (f"{console.isolate(word)} {p:.1%}" for word, p in words)
    lines.append("  " + "  ".join(shares))
  return "\n".join(lines)


def token_text(tokenizer: Tokenizer, token_id: int) -> str:
  """Returns a token as text; WordPiece's ## marks the continuation of a word.

  Tokens of whitespace or partial characters are returned as spelt in the
  vocabulary.
  """
  text = tokenizer.decode([int(token_id)]).strip()
  if text and text.isprintable() and "\ufffd" not in text:
    return text
  return tokenizer.tokens(int(token_id))


def _ceil_power(n: int) -> int:
  """Returns the smallest power of 2 that is at least n, and at least 1."""
  return 1 << math.ceil(math.log2(max(n, 1)))
