"""Measures and formats rows for `maskedlm inspect`: what is masked, and how.

It works on (plain, masked) batches, on the host, for any objective: it uses
only the names that batches have in common (docs/design/add-an-objective.md).
"""

import collections
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from maskedlm.runtime import console

COLOURS = {
  "mask": "\033[31m",
  "random": "\033[33m",
  "keep": "\033[32m",
  "label": "\033[36m",
}
# Label where no token is missing; its id is [PAD]'s
# (docs/guides/pretrain/masking.md).
NOTHING = "NOTHING"


class Token(NamedTuple):
  """A token of a sample row."""

  text: str  # The original token; in a row with edits, what the model sees.
  shown: str  # What the model sees; in a row with edits, the label.
  treatment: str  # "" | mask | random | keep; in a row with edits, "" | label.


def measure_rows(batches: Sequence[tuple], tokenizer) -> dict[str, Any]:
  """Returns shares over (plain, masked) batches; None for what a task lacks.

  mask_rate is a share of the real tokens that the model sees, with [CLS] and
  [SEP]; the treatments are shares of the predicted tokens. A random token that
  happens to equal the original counts as kept. span_length_mean is the mean
  number of words in a run of adjacent predicted tokens. If tokens were deleted
  or inserted (edits.py), treatments and spans are unknown, and nothing_share is
  a share of the predictions.
  """
  count: collections.Counter = collections.Counter()
  special = tokenizer.special
  for plain, masked in batches:
    ids, real = plain["input_ids"], plain["segment_ids"] > 0
    count["rows"] += len(ids)
    count["real"] += real.sum()
    count["positions"] += real.size
    count["text"] += (real & (ids != special.cls) & (ids != special.sep)).sum()
    count["unk"] += (ids[real] == special.unk).sum()
    if "masked_positions" in masked and np.shape(masked["input_ids"]) == (
      ids.shape
    ):
      _count_predictions(count, plain, masked, tokenizer)
    if "nsp_labels" in plain:
      weight = np.broadcast_to(
        plain.get("segment_weights", np.ones_like(plain["nsp_labels"])),
        plain["nsp_labels"].shape,
      )
      count["pairs"] += weight.sum()
      count["random"] += (weight * plain["nsp_labels"]).sum()

  def share(part, whole):
    return float(count[part] / count[whole]) if count[whole] else None

  mask, keep = share("mask", "in_place"), share("keep", "in_place")
  real = share("real", "positions")
  return {
    "mask_rate": share("chosen", "seen") if count["chosen"] else None,
    "mask_share": mask,
    "random_share": None if mask is None else 1 - mask - keep,
    "keep_share": keep,
    "nothing_share": share("nothing", "labels"),
    "span_length_mean": share("words", "runs"),
    "nsp_random_share": share("random", "pairs"),
    "padding_share": 1 - real,
    "unk_share": share("unk", "real"),
    "real_tokens_per_row": share("real", "rows"),
    "text_tokens_per_row": share("text", "rows"),
    "rows_measured": int(count["rows"]),
  }


def _count_predictions(count, plain, masked, tokenizer) -> None:
  ids, seen = plain["input_ids"], masked["input_ids"]
  special = tokenizer.special
  chosen = chosen_mask(masked)
  count["chosen"] += chosen.sum()
  count["seen"] += (masked["segment_ids"] > 0).sum()
  if is_moved(plain, masked):
    labels = masked["masked_labels"][masked["masked_weights"] > 0]
    count["labels"] += labels.size
    count["nothing"] += (labels == special.pad).sum()
    return
  count["in_place"] += chosen.sum()
  count["mask"] += (chosen & (seen == special.mask)).sum()
  count["keep"] += (chosen & (seen == ids)).sum()
  starts = chosen & ~np.pad(chosen, ((0, 0), (1, 0)))[:, :-1]
  begins = np.asarray(tokenizer.starts_word)[ids]
  count["runs"] += starts.sum()
  count["words"] += (chosen & (starts | begins)).sum()


def is_moved(plain: Mapping[str, Any], masked: Mapping[str, Any]) -> bool:
  """Returns whether tokens of a batch were moved (edits.py).

  If so, the input also differs where nothing is predicted.
  """
  differs = masked["input_ids"] != plain["input_ids"]
  return bool((differs & ~chosen_mask(masked)).any())


def chosen_mask(masked: Mapping[str, Any]) -> np.ndarray:
  """Returns the predicted positions, bool [B, L]."""
  chosen = np.zeros(masked["input_ids"].shape, bool)
  row, prediction = np.nonzero(masked["masked_weights"] > 0)
  chosen[row, masked["masked_positions"][row, prediction]] = True
  return chosen


def sample_row(plain, masked, index: int, tokenizer) -> list[Token]:
  """Returns a row's real tokens, with the treatment of each.

  If tokens were moved, returns those that the model sees, with the labels of
  the predicted positions.
  """
  if "masked_positions" in masked and is_moved(plain, masked):
    return _moved_row({k: v[index] for k, v in masked.items()}, tokenizer)
  ids, seen = plain["input_ids"][index], masked["input_ids"][index]
  chosen = np.zeros(len(ids), bool)
  if "masked_positions" in masked and len(seen) == len(ids):
    chosen = chosen_mask(masked)[index]
  row = []
  for i in np.flatnonzero(plain["segment_ids"][index] > 0):
    treatment = ""
    if chosen[i]:
      treatment = "random"
      if seen[i] == tokenizer.special.mask:
        treatment = "mask"
      elif seen[i] == ids[i]:
        treatment = "keep"
    text = _piece(tokenizer, ids[i])
    row.append(Token(text, _piece(tokenizer, seen[i]).strip(), treatment))
  return row


def _moved_row(masked, tokenizer) -> list[Token]:
  is_used = masked["masked_weights"] > 0
  pairs = masked["masked_positions"][is_used], masked["masked_labels"][is_used]
  labels = dict(zip(*map(np.ndarray.tolist, pairs), strict=True))

  def label(i):
    if labels[i] == tokenizer.special.pad:
      return NOTHING
    return _piece(tokenizer, labels[i]).strip()

  row = []
  for i in np.flatnonzero(masked["segment_ids"] > 0).tolist():
    text = _piece(tokenizer, masked["input_ids"][i])
    shown = (label(i), "label") if i in labels else (text.strip(), "")
    row.append(Token(text, *shown))
  return row


def format_row(row: Sequence[Token], coloured: bool) -> str:
  """Formats a row: {original>what the model sees} at predicted positions.

  If tokens were moved, formats {what the model sees:its label} instead.
  """
  parts = []
  for token in row:
    if not token.treatment:
      parts.append(token.text)
      continue
    space = " " if token.text.startswith(" ") else ""
    text, shown = (
      console.isolate(token.text.strip()),
      console.isolate(token.shown),
    )
    piece = f"{{{text}{':' if token.treatment == 'label' else '>'}{shown}}}"
    if coloured:
      piece = f"{COLOURS[token.treatment]}{piece}\033[0m"
    parts.append(space + piece)
  return "".join(parts).strip()


def _piece(tokenizer, token_id) -> str:
  """Returns a token as in running text, with a space where a word begins."""
  token_id = int(token_id)
  if token_id in tokenizer.special_ids:
    return f" {tokenizer.tokens(token_id)}"
  text = tokenizer.decode([token_id]).strip() or tokenizer.tokens(token_id)
  if tokenizer.follows_space[token_id]:
    return f" {text}"
  return text.removeprefix("##")
