"""Finds the tokens that begin a word, from a tokenizer's definition.

Words are masked and counted by these tokens, so a wrong answer would mask 1% of
a text instead of 15%. A tokenizer that marks words otherwise is refused.
"""

from collections.abc import Sequence

import numpy as np

from maskedlm.core.errors import CorpusError

# Tokens of byte-level BPE that begin a word: space, newline, return, tab.
BYTE_LEVEL_MARKS = ("Ġ", "Ċ", "č", "ĉ")
SPACE = "▁"  # sentencepiece's mark for a space.


def from_definition(
  definition: dict, tokens: Sequence[str], path
) -> np.ndarray:
  """Returns which tokens begin a word by a tokenizer.json: bool [V].

  Raises:
    CorpusError: the tokenizer doesn't mark the beginnings of words.
  """
  model, steps = definition["model"], steps_of(definition)
  if suffix := model.get("end_of_word_suffix"):
    raise unknown_starts(path, f"it marks the ends of words ({suffix})")
  if prefix := model.get("continuing_subword_prefix"):
    return np.array([not token.startswith(prefix) for token in tokens])
  if model.get("type") == "WordPiece":
    raise unknown_starts(path, "its continuing_subword_prefix is empty")
  if marks := _marks(steps):
    return np.array([token.startswith(tuple(marks)) for token in tokens])
  return np.ones(len(tokens), bool)  # As of DNA, or of whole words.


def has_no_marks(definition: dict) -> bool:
  """Returns whether each token counts as a word, as nothing marks a space."""
  prefix = definition["model"].get("continuing_subword_prefix")
  return not prefix and not _marks(steps_of(definition))


def _marks(steps: list[dict]) -> set[str]:
  marks = {s["replacement"] for s in steps if s["type"] == "Metaspace"}
  marks |= {
    SPACE for s in steps if s["type"] == "Replace" and s["content"] == SPACE
  }
  if any(step["type"] == "ByteLevel" for step in steps):
    marks |= {*BYTE_LEVEL_MARKS}
  return marks


def steps_of(definition: dict) -> list[dict]:
  """Returns the steps of normalizer and pre-tokenizer, however nested."""

  def walk(node) -> list[dict]:
    if isinstance(node, list):
      return [step for item in node for step in walk(item)]
    if not isinstance(node, dict):
      return []
    inside = [step for item in node.values() for step in walk(item)]
    return [node, *inside] if "type" in node else inside

  return walk([definition.get("normalizer"), definition.get("pre_tokenizer")])


def unknown_starts(path, reason: str) -> CorpusError:
  """Returns the error on a tokenizer that doesn't mark words."""
  return CorpusError(
    f"tokenizer {path}: can't tell which tokens begin a word, since {reason}; "
    "expected WordPiece (##), byte-level BPE (Ġ) or sentencepiece's marks "
    "before a word (▁)."
  )
