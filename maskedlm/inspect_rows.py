"""Measures and shows rows for `maskedlm inspect`: what was hidden, and how.

From (plain, corrupted) batches, on the host; knows no objective: it reads the
names that batches share (docs/add_an_objective.md).
"""

import collections
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from maskedlm import bidi

COLOURS = {"mask": "\033[31m", "random": "\033[33m", "keep": "\033[32m"}


class Token(NamedTuple):
  """A token of a sample row."""

  text: str  # What stood there.
  shown: str  # What the model sees there.
  treatment: str  # "" | mask | random | keep.


def measure(batches: Sequence[tuple], tokenizer) -> dict[str, Any]:
  """Shares over (plain, corrupted) batches; None for what a task hasn't.

  mask_rate is of the real tokens, specials included; the three treatments are
  of the predicted tokens. A random token that happens to be the one that stood
  there counts as kept. span_length_mean is in words: of adjacent predicted
  tokens, how many words they touch.
  """
  count: collections.Counter = collections.Counter()
  special = tokenizer.special
  for plain, hidden in batches:
    ids, real = plain["input_ids"], plain["segment_ids"] > 0
    count["rows"] += len(ids)
    count["real"] += real.sum()
    count["positions"] += real.size
    count["text"] += (real & (ids != special.cls) & (ids != special.sep)).sum()
    count["unk"] += (ids[real] == special.unk).sum()
    if "masked_positions" in hidden and np.shape(hidden["input_ids"]) == (
      ids.shape
    ):
      chosen = chosen_mask(hidden)
      seen = hidden["input_ids"]
      count["chosen"] += chosen.sum()
      count["mask"] += (chosen & (seen == special.mask)).sum()
      count["keep"] += (chosen & (seen == ids)).sum()
      starts = chosen & ~np.pad(chosen, ((0, 0), (1, 0)))[:, :-1]
      begins = np.asarray(tokenizer.starts_word)[ids]
      count["runs"] += starts.sum()
      count["words"] += (chosen & (starts | begins)).sum()
    if "nsp_labels" in plain:
      weight = np.broadcast_to(
        plain.get("segment_weights", np.ones_like(plain["nsp_labels"])),
        plain["nsp_labels"].shape,
      )
      count["pairs"] += weight.sum()
      count["random"] += (weight * plain["nsp_labels"]).sum()

  def share(part, whole):
    return float(count[part] / count[whole]) if count[whole] else None

  mask, keep = share("mask", "chosen"), share("keep", "chosen")
  real = share("real", "positions")
  return {
    "mask_rate": share("chosen", "real") if count["chosen"] else None,
    "mask_share": mask,
    "random_share": None if mask is None else 1 - mask - keep,
    "keep_share": keep,
    "span_length_mean": share("words", "runs"),
    "nsp_random_share": share("random", "pairs"),
    "padding_share": 1 - real,
    "unk_share": share("unk", "real"),
    "real_tokens_per_row": share("real", "rows"),
    "text_tokens_per_row": share("text", "rows"),
    "rows_measured": int(count["rows"]),
  }


def chosen_mask(hidden: Mapping[str, Any]) -> np.ndarray:
  """[B, L] bool: which positions are predicted."""
  chosen = np.zeros(hidden["input_ids"].shape, bool)
  row, slot = np.nonzero(hidden["masked_weights"] > 0)
  chosen[row, hidden["masked_positions"][row, slot]] = True
  return chosen


def sample_row(plain, hidden, index: int, tokenizer) -> list[Token]:
  """A row's real tokens, with what became of each."""
  ids, seen = plain["input_ids"][index], hidden["input_ids"][index]
  chosen = np.zeros(len(ids), bool)
  if "masked_positions" in hidden and len(seen) == len(ids):
    chosen = chosen_mask(hidden)[index]
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


def format_row(row: Sequence[Token], coloured: bool) -> str:
  """A row as text: {what stood there>what is seen} where it is predicted."""
  parts = []
  for token in row:
    if not token.treatment:
      parts.append(token.text)
      continue
    space = " " if token.text.startswith(" ") else ""
    there, shown = bidi.isolate(token.text.strip()), bidi.isolate(token.shown)
    text = f"{{{there}>{shown}}}"
    if coloured:
      text = f"{COLOURS[token.treatment]}{text}\033[0m"
    parts.append(space + text)
  return "".join(parts).strip()


def _piece(tokenizer, token_id) -> str:
  """A token as it stands in running text: a space where a word begins."""
  token_id = int(token_id)
  if token_id in tokenizer.special_ids:
    return f" {tokenizer.tokens(token_id)}"
  text = tokenizer.decode([token_id]).strip() or tokenizer.tokens(token_id)
  if tokenizer.starts_word[token_id]:
    return f" {text}"
  return text.removeprefix("##")
