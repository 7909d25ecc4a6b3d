"""Predicts the words that a text hides: its masks, or its marked words.

A causal model fills masks from left to right, each from the text before it, in
which earlier masks have become their most probable token. Masks at the end of a
text are therefore its greedy continuation. One that reads from right to left
does the same from the other end. For two language models (ELMo's), each of
which reads one side, the answer is the geometric mean of their probabilities.

Of a marked text, `predict_masked` measures how probable a masked model finds
the words that it hides: the example of masked language modelling in Jurafsky &
Martin, Figure 11.4. Words between asterisks are masked, or another word stands
in their place, and the loss is -log P of the true tokens.
"""

import functools
import pathlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.core.errors import ConfigError, DataError
from maskedlm.data.batches.text_pairs import text_row
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.inference import span_boundary, token_model
from maskedlm.inference.rows import Row, pad_rows, power_of_2
from maskedlm.inference.token_model import TokenModel
from maskedlm.inference.word_senses.inputs import split_marks
from maskedlm.modeling import masked_lm
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.runtime import console
from maskedlm.training.checkpoints import load

MAX_TEXTS = 16  # The most in a batch.
_HOW = (
  "expected the hidden words between asterisks, such as: Return *True* if all "
  "of the *list|table* are equal"
)


class FilledText(NamedTuple):
  """A text and, for each of its masks, (word, probability), best first."""

  text: str
  masks: list[list[tuple[str, float]]]


def load_mask_filler(path: str | pathlib.Path) -> TokenModel:
  """Loads the newest checkpoint of a workdir, or the checkpoint at `path`.

  Raises:
    CheckpointError: no checkpoint can be read.
    ConfigError: it has no head that predicts tokens, or its tokenizer belongs
      to another run.
  """
  return token_model.make_token_model(load.open_checkpoint(path), path)


def fill_masks(
  model: TokenModel, texts: Sequence[str], *, top_k: int
) -> list[FilledText]:
  """Returns the top_k words for each mask of each text, in one batch.

  Of a text with more tokens than the model's positions, those around its masks
  are read, which is logged. A causal model reads nothing after the last mask
  (before the first, from right to left), which is logged as well.

  Raises:
    ConfigError: a text has no mask, its masks are further apart than the
      model's positions, or it has several for two language models.
  """
  tokenizer, special = model.tokenizer, model.tokenizer.special
  ordinary = np.delete(np.arange(tokenizer.vocab_size), tokenizer.special_ids)
  length, reads = model.cfg.max_positions, model.cfg.reads
  rows = []
  for text in texts:
    ids = mask_row(tokenizer, text, length=length, reads=reads)
    rows.append(Row(ids, np.flatnonzero(ids == special.mask)))
  # Padding to a few shapes lets many texts share a compilation.
  B, L = map(power_of_2, (len(rows), max(len(row.ids) for row in rows)))
  batch = pad_rows(rows, B, min(L, length), pad=special.pad)
  probabilities = make_probabilities(model.cfg, (*tokenizer.special_ids,))
  table = np.asarray(probabilities(model.params, batch))
  filled = []
  for text, row, of_masks in zip(texts, rows, table, strict=False):
    masks = []
    for p in of_masks[: len(row.positions)]:
      best = ordinary[np.argsort(-p[ordinary], kind="stable")[:top_k]]
      masks.append([(token_text(tokenizer, k), float(p[k])) for k in best])
    filled.append(FilledText(text, masks))
  return filled


@functools.lru_cache(maxsize=8)  # So that a second call compiles nothing.
def make_probabilities(cfg: EncoderConfig, special_ids: tuple) -> Callable:
  """Returns a function (params, batch) -> [B, P, V]; 0 for special tokens."""

  def at_once(params, batch, positions):
    hidden = masked_lm.encode(cfg, params, batch, None, False)
    masked = {"masked_positions": positions}
    logits = masked_lm.predict(cfg, params, masked, hidden)
    # Training never predicts these, so their logits are arbitrary.
    logits = logits.at[..., special_ids].set(-jnp.inf)
    return jax.nn.softmax(logits[..., : cfg.vocab_size])

  def one_by_one(params, batch, positions):
    neighbour = {"left": -1, "right": 1}[cfg.reads]

    def fill(input_ids, position):  # [B, L], [B]
      places = position[:, None] + neighbour
      p = at_once(params, {**batch, "input_ids": input_ids}, places)[:, 0]
      rows = jnp.arange(len(input_ids))
      return input_ids.at[rows, position].set(jnp.argmax(p, axis=-1)), p

    # Places after a row's masks are 0. From the left they are filled last; from
    # the right nothing reads place 0. So they change nothing.
    reverse = cfg.reads == "right"
    input_ids = batch["input_ids"]
    _, filled = jax.lax.scan(fill, input_ids, positions.T, reverse=reverse)
    return jnp.swapaxes(filled, 0, 1)

  fill = one_by_one if cfg.causal else at_once
  return jax.jit(
    lambda params, batch: fill(params, batch, batch["masked_positions"])
  )


def mask_row(
  tokenizer: Tokenizer, text: str, *, length: int, reads: str
) -> np.ndarray:
  """Returns [CLS] text [SEP] as ids [l], cut around the masks if too long.

  `reads` is EncoderConfig.reads of the model.

  Raises:
    ConfigError: the text has no mask, or some that don't fit one row or that
      two language models can't read.
  """
  special = tokenizer.special
  mask_token = tokenizer.tokens(special.mask)
  ids = np.asarray(tokenizer.encode(text, specials=True).ids)
  masks = np.flatnonzero(ids == special.mask)
  if not len(masks):
    raise ConfigError(
      f"no {mask_token} in {text[:60]!r}: write it where a word is "
      "to be filled in."
    )
  if reads == "apart" and len(masks) > 1:
    raise ConfigError(
      f"{text[:60]!r} has {len(masks)} times {mask_token}, which neither of "
      "two language models can read: write the words of all but one."
    )
  visible = {
    "both": slice(None),
    "apart": slice(None),
    "left": slice(masks[-1] + 1),
    "right": slice(masks[0], None),
  }[reads]
  if len(ids[visible]) < len(ids):
    ids = ids[visible]
    masks = np.flatnonzero(ids == special.mask)
    console.log(
      f"{text[:60]!r}: the model is causal and read only what is to the "
      f"{reads} of {mask_token}"
    )
  size, capacity = len(ids), length - 2
  if size > capacity:
    needed = int(masks[-1] - masks[0]) + 1
    if needed > capacity:
      raise ConfigError(
        f"{text[:60]!r}... has {size + 2:,} tokens, and {needed + 2:,} from its"
        f" first {mask_token} to its last; the model takes "
        f"{length:,}: cut it, or fill the masks one by one."
      )
    # As much on either side; at an end of the text, more on the other.
    start = int(masks[0]) - (capacity - needed) // 2
    start = min(max(start, 0), size - capacity)
    ids = ids[start : start + capacity]
    console.log(
      f"{text[:60]!r}... has {size + 2:,} tokens: the model read "
      f"{length:,} around {mask_token}, as it has no more "
      "positions"
    )
  return text_row(tokenizer, ids)


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


class MaskedToken(NamedTuple):
  """A token that the model has to find."""

  position: int  # In MaskedText.tokens.
  token: str  # The true one.
  probability: float
  loss: float  # -log of the probability, in nats.
  best: list[tuple[str, float]]  # The most probable tokens, best first.
  sbo_loss: float | None  # -log P from its span's boundary, of a SpanBERT.

  def format_loss(self) -> str:
    """Returns the loss, or both terms and their sum."""
    if self.sbo_loss is None:
      return f"{self.loss:.3f}"
    total = self.loss + self.sbo_loss
    return f"{self.loss:.3f} + {self.sbo_loss:.3f} = {total:.3f}"


class MaskedText(NamedTuple):
  """A text of l tokens, some of which are hidden."""

  tokens: tuple[str, ...]  # [l], as the model reads them, [CLS] and [SEP] too.
  masked: list[MaskedToken]
  loss: float  # Mean of -log P(true token), in nats.


class _Word(NamedTuple):
  """A marked word, by (begin, end) of its characters."""

  true: tuple[int, int]  # In the text.
  shown: tuple[int, int]  # In the text that the model reads, before masking.
  is_masked: bool


def predict_masked(model: TokenModel, text: str, *, top_k: int) -> MaskedText:
  """Returns the probabilities of the words that a text hides.

  Args:
    model: a masked one; the text may have as many tokens as it has positions.
    text: its marked words are masked: "So *long*"; or replaced: "*the|apricot*"
      is the word "the", where the model reads "apricot", or "*the|the*" as it
      is. An asterisk of the text is written "\\*".
    top_k: the number of tokens in `best`.

  Raises:
    ConfigError: the model reads no masks, or has too few positions.
    DataError: no word is marked, a marked word has no token, or what replaces
      it doesn't have as many.
  """
  cfg, tokenizer = model.cfg, model.tokenizer
  token_model.check_reads_masks(model.path, cfg)
  row = _make_hidden_row(tokenizer, text)
  if len(row.ids) > cfg.max_positions:
    raise ConfigError(
      f"{text[:40]!r}... has {len(row.ids)} tokens with "
      f"{tokenizer.tokens(tokenizer.special.cls)} and "
      f"{tokenizer.tokens(tokenizer.special.sep)}; expected at most "
      f"{cfg.max_positions}: shorten it."
    )
  batch = {
    "input_ids": row.ids[None],
    "token_type_ids": np.zeros_like(row.ids)[None],
    "segment_ids": np.ones_like(row.ids)[None],
    "masked_positions": row.positions[None],
    "masked_labels": row.labels[None],
  }

  @jax.jit
  def log_probabilities(params, batch):
    hidden = masked_lm.encode(cfg, params, batch, None, False)
    logits = masked_lm.predict(cfg, params, batch, hidden)
    return jax.nn.log_softmax(logits[..., : cfg.vocab_size])

  table = np.asarray(log_probabilities(model.params, batch))[0]
  masked = []
  boundary = span_boundary.boundary_losses(model, batch)
  for position, label, p, from_boundary in zip(
    row.positions, row.labels, table, boundary, strict=True
  ):
    best = np.argsort(-p, kind="stable")[:top_k]
    masked.append(
      MaskedToken(
        int(position),
        token_text(tokenizer, label),
        float(np.exp(p[label])),
        float(-p[label]),
        [(token_text(tokenizer, k), float(np.exp(p[k]))) for k in best],
        from_boundary,
      )
    )
  return MaskedText(
    tuple(token_text(tokenizer, i) for i in row.ids),
    masked,
    float(np.mean([token.loss for token in masked])),
  )


def _make_hidden_row(tokenizer: Tokenizer, text: str) -> Row:
  """Returns a marked text as the model reads it, with the true tokens."""
  true, shown, words = _parse_marked(text)
  special = tokenizer.special
  true_encoding, shown_encoding = (
    tokenizer.encode(x, specials=True) for x in (true, shown)
  )
  ids, positions, labels = shown_encoding.ids.copy(), [], []
  for word in words:
    true_tokens = _tokens_within(true_encoding.offsets, word.true)
    shown_tokens = _tokens_within(shown_encoding.offsets, word.shown)
    true_form, shown_form = true[slice(*word.true)], shown[slice(*word.shown)]
    if not len(true_tokens):
      raise DataError(f"{true_form!r:.40} of {text!r:.60} has no token.")
    if len(true_tokens) != len(shown_tokens):
      raise DataError(
        f"{shown_form!r:.40} has {len(shown_tokens)} tokens and "
        f"{true_form!r:.40}, whose place it takes, {len(true_tokens)}; "
        "expected as many."
      )
    if word.is_masked:
      ids[shown_tokens] = special.mask
    positions += (shown_tokens + 1).tolist()
    labels += true_encoding.ids[true_tokens].tolist()
  places, true_ids = (np.array(x, np.int32) for x in (positions, labels))
  return Row(text_row(tokenizer, ids), places, true_ids)


def _parse_marked(text: str) -> tuple[str, str, list[_Word]]:
  """Returns (the text, the text that the model reads before masking, words)."""
  true = shown = ""
  words = []
  for i, part in enumerate(split_marks(text, "", how=_HOW)):
    form, *replacements = part.split("|") if i % 2 else [part]
    if i % 2 and (not form.strip() or len(replacements) > 1):
      raise DataError(f"*{part}* is not a marked word; {_HOW}.")
    shown_form = replacements[0] if replacements else form
    if i % 2:
      words.append(
        _Word(
          (len(true), len(true) + len(form)),
          (len(shown), len(shown) + len(shown_form)),
          not replacements,
        )
      )
    true, shown = true + form, shown + shown_form
  return true, shown, words


def _tokens_within(offsets: np.ndarray, span: tuple[int, int]) -> np.ndarray:
  """Returns the indices of tokens that share a character with a span."""
  return np.flatnonzero((offsets[:, 0] < span[1]) & (offsets[:, 1] > span[0]))


def format_masked(masked_text: MaskedText) -> list[str]:
  """Returns a line for each hidden token, and one for the loss."""
  lines = [
    f"  {x.token}  {x.probability:.1%}  loss {x.format_loss()}  "
    f"(most probable: {', '.join(f'{w} {p:.1%}' for w, p in x.best)})"
    for x in masked_text.masked
  ]
  return [*lines, f"  mean loss {masked_text.loss:.3f} nats"]
