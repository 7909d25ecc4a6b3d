"""Finds the tokens that begin a word, from a tokenizer's definition.

Words are masked and counted by these tokens, so a wrong answer would mask 1% of
a text instead of 15%. A tokenizer that marks words otherwise is refused.
"""

from collections.abc import Callable, Sequence

import numpy as np

from maskedlm.core.errors import CorpusError
from maskedlm.data.tokenizers.definition import find_steps

# Tokens of byte-level BPE that begin a word: space, newline, return, tab.
BYTE_LEVEL_MARKS = ("Ġ", "Ċ", "č", "ĉ")
SPACE = "▁"  # sentencepiece's mark for a space.
_PROBED = 32  # Words that check_word_starts encodes.


def from_definition(
  definition: dict, tokens: Sequence[str], path
) -> np.ndarray:
  """Returns which tokens begin a word by a tokenizer.json: bool [V].

  Raises:
    CorpusError: the tokenizer doesn't mark the beginnings of words.
  """
  model = definition["model"]
  steps = find_steps(
    [definition.get("normalizer"), definition.get("pre_tokenizer")]
  )
  if suffix := model.get("end_of_word_suffix"):
    raise _unknown_starts(path, f"it marks the ends of words ({suffix})")
  if prefix := model.get("continuing_subword_prefix"):
    return np.array([not token.startswith(prefix) for token in tokens])
  if model.get("type") == "WordPiece":
    raise _unknown_starts(path, "its continuing_subword_prefix is empty")
  marks = {s["replacement"] for s in steps if s["type"] == "Metaspace"}
  marks |= {
    SPACE for s in steps if s["type"] == "Replace" and s["content"] == SPACE
  }
  if any(step["type"] == "ByteLevel" for step in steps):
    marks |= {*BYTE_LEVEL_MARKS}
  if not marks:
    raise _unknown_starts(path, "no step marks the spaces")
  return np.array([token.startswith(tuple(marks)) for token in tokens])


def check_word_starts(
  starts_word: np.ndarray,
  tokens: Sequence[str],
  encode: Callable[[str], Sequence[int]],
  path,
) -> None:
  """Raises CorpusError if words between spaces don't begin with such a token.

  Args:
    starts_word: bool [V].
    tokens: the V tokens; words are made of their letters.
    encode: text -> ids.
    path: the file, for the error.
  """
  marks = "".join((SPACE, *BYTE_LEVEL_MARKS))
  letters = (token.strip(marks) for token in tokens)
  words = [word for word in letters if word.isascii() and word.isalpha()]
  words = words or [token for token in tokens if token.isalpha()]
  words = words[:: max(len(words) // _PROBED, 1)]
  found = starts_word[np.array(encode(" ".join(words)), np.intp)].sum()
  if 2 * (found + 1) < len(words):  # The first may have no space before it.
    raise _unknown_starts(
      path, f"of {len(words)} words between spaces, it marks {found}"
    )


def _unknown_starts(path, reason: str) -> CorpusError:
  return CorpusError(
    f"tokenizer {path}: can't tell which tokens begin a word, since {reason}; "
    "expected WordPiece (##), byte-level BPE (Ġ) or sentencepiece's marks "
    "before a word (▁)."
  )
