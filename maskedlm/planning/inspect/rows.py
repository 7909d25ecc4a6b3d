"""Measures and shows rows for `maskedlm inspect`: what was hidden, and how.

From (plain, corrupted) batches, on the host; knows no objective: it reads the
names that batches share (docs/design/add-an-objective.md).
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
NOTHING = (
  "NOTHING"  # As docs/guides/pretrain/masking.md calls it; its id is [PAD]'s.
)


class Token(NamedTuple):
  """A token of a sample row."""

  text: str  # What stood there; of a row whose tokens were moved, what is seen.
  shown: str  # What the model sees there; of a moved row, the label.
  treatment: str  # "" | mask | random | keep; of a moved row, "" | label.


def measure_rows(batches: Sequence[tuple], tokenizer) -> dict[str, Any]:
  """Shares over (plain, corrupted) batches; None for what a task hasn't.

  mask_rate is of the real tokens that are seen, specials included; the three
  treatments are of the predicted tokens. A random token that happens to be the
  one that stood there counts as kept. span_length_mean is in words: of adjacent
  predicted tokens, how many words they touch. Where tokens were moved (deleted,
  inserted) neither can be told; then nothing_share is of the predictions.
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
      _count_predictions(count, plain, hidden, tokenizer)
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


def _count_predictions(count, plain, hidden, tokenizer) -> None:
  ids, seen = plain["input_ids"], hidden["input_ids"]
  special = tokenizer.special
  chosen = chosen_mask(hidden)
  count["chosen"] += chosen.sum()
  count["seen"] += (hidden["segment_ids"] > 0).sum()
  if is_moved(plain, hidden):
    labels = hidden["masked_labels"][hidden["masked_weights"] > 0]
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


def is_moved(plain: Mapping[str, Any], hidden: Mapping[str, Any]) -> bool:
  """Do tokens of a batch stand elsewhere than they did (edits.py)?

  Then what is seen differs where nothing is predicted, too.
  """
  differs = hidden["input_ids"] != plain["input_ids"]
  return bool((differs & ~chosen_mask(hidden)).any())


def chosen_mask(hidden: Mapping[str, Any]) -> np.ndarray:
  """[B, L] bool: which positions are predicted."""
  chosen = np.zeros(hidden["input_ids"].shape, bool)
  row, slot = np.nonzero(hidden["masked_weights"] > 0)
  chosen[row, hidden["masked_positions"][row, slot]] = True
  return chosen


def sample_row(plain, hidden, index: int, tokenizer) -> list[Token]:
  """A row's real tokens, with what became of each.

  Where tokens were moved, those that are seen, with the labels of those that
  something is predicted at.
  """
  if "masked_positions" in hidden and is_moved(plain, hidden):
    return _moved_row({k: v[index] for k, v in hidden.items()}, tokenizer)
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


def _moved_row(hidden, tokenizer) -> list[Token]:
  used = hidden["masked_weights"] > 0
  slots = hidden["masked_positions"][used], hidden["masked_labels"][used]
  labels = dict(zip(*map(np.ndarray.tolist, slots), strict=True))

  def label(i):
    if labels[i] == tokenizer.special.pad:
      return NOTHING
    return _piece(tokenizer, labels[i]).strip()

  row = []
  for i in np.flatnonzero(hidden["segment_ids"] > 0).tolist():
    text = _piece(tokenizer, hidden["input_ids"][i])
    predicted = i in labels
    row.append(
      Token(text, *((label(i), "label") if predicted else (text.strip(), "")))
    )
  return row


def format_row(row: Sequence[Token], coloured: bool) -> str:
  """A row as text: {what stood there>what is seen} where it is predicted.

  Of a row whose tokens were moved: {what is seen:its label}.
  """
  parts = []
  for token in row:
    if not token.treatment:
      parts.append(token.text)
      continue
    space = " " if token.text.startswith(" ") else ""
    there, shown = (
      console.isolate(token.text.strip()),
      console.isolate(token.shown),
    )
    text = f"{{{there}{':' if token.treatment == 'label' else '>'}{shown}}}"
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
