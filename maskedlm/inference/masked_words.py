"""Measures how probable a masked model finds the words that a text hides.

It is the example of masked language modelling in Jurafsky & Martin, Figure
11.4: words between asterisks are masked, or another word stands in their place,
and the loss is -log P of the true tokens.
"""

import pathlib
from typing import NamedTuple

import jax
import numpy as np

from maskedlm.core.errors import ConfigError, DataError
from maskedlm.inference import fill_mask
from maskedlm.inference.word_senses.inputs import split_marks
from maskedlm.modeling import heads
from maskedlm.training.checkpoints import load

_HOW = (
  "expected the hidden words between asterisks, such as: So *long* and thanks "
  "for *all|apricot* the fish"
)


class MaskedToken(NamedTuple):
  """A token that the model has to find."""

  position: int  # In MaskedText.tokens.
  token: str  # The true one.
  probability: float
  loss: float  # -log of the probability, in nats.
  best: list[tuple[str, float]]  # The most probable tokens, best first.


class MaskedText(NamedTuple):
  """A text of l tokens, some of which are hidden."""

  tokens: tuple[str, ...]  # [l], as the model reads them, [CLS] and [SEP] too.
  masked: list[MaskedToken]
  loss: float  # Mean of -log P(true token), in nats.


class _Word(NamedTuple):
  """A marked word: its characters in the text, and in the text as read."""

  true: tuple[int, int]
  shown: tuple[int, int]
  is_masked: bool


def predict_masked(
  opened: load.LoadedCheckpoint,
  path: str | pathlib.Path,
  text: str,
  *,
  top_k: int,
) -> MaskedText:
  """Returns the probabilities of the words that a text hides.

  Args:
    opened: the checkpoint.
    path: where it is, for errors.
    text: its marked words are masked: "So *long*"; or replaced: "*the|apricot*"
      is the word "the", where the model reads "apricot", or "*the|the*" as it
      is. An asterisk of the text is written "\\*".
    top_k: the number of tokens in `best`.

  Raises:
    ConfigError: the model has no head that predicts tokens, is causal, or has
      too few positions.
    DataError: no word is marked, a marked word has no token, or what replaces
      it doesn't have as many.
  """
  params, cfg = fill_mask.token_model(opened.params, opened.meta["task"], path)
  if cfg.causal:
    raise ConfigError(
      f"{path} is a causal model, which reads no masks: `maskedlm score` has "
      "the probabilities of its tokens."
    )
  tokenizer = opened.tokenizer
  row, positions, labels = _make_row(tokenizer, text)
  if len(row) > cfg.max_positions:
    raise ConfigError(
      f"{text[:40]!r}... has {len(row)} tokens with "
      f"{tokenizer.tokens(tokenizer.special.cls)} and "
      f"{tokenizer.tokens(tokenizer.special.sep)}; expected at most "
      f"{cfg.max_positions}: shorten it."
    )
  batch = {
    "input_ids": row[None],
    "token_type_ids": np.zeros_like(row)[None],
    "segment_ids": np.ones_like(row)[None],
  }

  @jax.jit
  def log_probabilities(params, batch, positions):
    return jax.nn.log_softmax(heads.mlm_logits(params, cfg, batch, positions))

  table = np.asarray(log_probabilities(params, batch, positions[None]))[0]
  masked = [
    MaskedToken(
      int(position),
      fill_mask.token_text(tokenizer, label),
      float(np.exp(p[label])),
      float(-p[label]),
      [
        (fill_mask.token_text(tokenizer, k), float(np.exp(p[k])))
        for k in np.argsort(-p, kind="stable")[:top_k]
      ],
    )
    for position, label, p in zip(positions, labels, table, strict=True)
  ]
  return MaskedText(
    tuple(fill_mask.token_text(tokenizer, i) for i in row),
    masked,
    float(np.mean([token.loss for token in masked])),
  )


def _make_row(tokenizer, text: str):
  """Returns ids [l] as the model reads them, positions and true ids, [P]."""
  true, shown, words = _parse(text)
  special = tokenizer.special
  of_true, of_shown = (
    tokenizer.encode(x, specials=True) for x in (true, shown)
  )
  ids, positions, labels = of_shown.ids.copy(), [], []
  for word in words:
    wanted = _tokens_within(of_true.offsets, word.true)
    given = _tokens_within(of_shown.offsets, word.shown)
    form, other = true[slice(*word.true)], shown[slice(*word.shown)]
    if not len(wanted):
      raise DataError(f"{form!r:.40} of {text!r:.60} has no token.")
    if len(wanted) != len(given):
      raise DataError(
        f"{other!r:.40} has {len(given)} tokens and {form!r:.40}, whose place "
        f"it takes, {len(wanted)}; expected as many."
      )
    if word.is_masked:
      ids[given] = special.mask
    positions += (given + 1).tolist()
    labels += of_true.ids[wanted].tolist()
  row = np.array([special.cls, *ids, special.sep], np.int32)
  return row, np.array(positions, np.int32), np.array(labels, np.int32)


def _parse(text: str) -> tuple[str, str, list[_Word]]:
  """Returns the text, the text as the model reads it before masking, words."""
  true = shown = ""
  words = []
  for i, part in enumerate(split_marks(text, "", how=_HOW)):
    form, *others = part.split("|") if i % 2 else [part]
    if i % 2 and (not form.strip() or len(others) > 1):
      raise DataError(f"*{part}* is not a marked word; {_HOW}.")
    other = others[0] if others else form
    if i % 2:
      words.append(
        _Word(
          (len(true), len(true) + len(form)),
          (len(shown), len(shown) + len(other)),
          not others,
        )
      )
    true, shown = true + form, shown + other
  return true, shown, words


def _tokens_within(offsets: np.ndarray, span: tuple[int, int]) -> np.ndarray:
  """Returns the indices of tokens that share a character with a span."""
  return np.flatnonzero((offsets[:, 0] < span[1]) & (offsets[:, 1] > span[0]))


def format_masked(made: MaskedText) -> list[str]:
  """Returns a line for each hidden token, and one for the loss."""
  lines = [
    f"  {x.token}  {x.probability:.1%}  loss {x.loss:.3f}  "
    f"(most probable: {', '.join(f'{w} {p:.1%}' for w, p in x.best)})"
    for x in made.masked
  ]
  return [*lines, f"  mean loss {made.loss:.3f} nats"]
