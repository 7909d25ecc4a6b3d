"""Maps tokens of a new vocabulary to the old tokens that spell them.

This carries a model's knowledge of words over to another vocabulary (`maskedlm
retokenize`). A token is spelled by itself if the old vocabulary has it, else by
the longest matching tokens from left to right, as WordPiece splits a word. A
spelling is text and whether it begins a word, independent of how the libraries
write tokens (##ing, Ġthe, ▁the). Bytes that are only part of a character are
lone surrogates in it: b"\\xc3" is "\\udcc3" (Python's "surrogateescape").
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from maskedlm.data.tokenizers.spelling import byte_level_bytes, named_byte
from maskedlm.data.tokenizers.tokenizer import Tokenizer


class Spelling(NamedTuple):
  """The text of a token, and whether it begins a word."""

  follows_space: bool
  text: str  # Without the space before a word.


def token_spellings(tokenizer: Tokenizer) -> dict[int, Spelling]:
  """Returns the spelling of each id that is not special."""
  special = set(tokenizer.special_ids.tolist())
  ordinary = [i for i in range(tokenizer.vocab_size) if i not in special]
  # A token after another one is decoded as it is within a text.
  first = tokenizer.special.unk
  prefix = tokenizer.decode([first])

  def text_of(index: int) -> str:
    text, token = tokenizer.decode([first, index]), tokenizer.tokens(index)
    text = text.removeprefix(prefix)
    spelled = named_byte(token) or byte_level_bytes(token)
    if "\ufffd" in text and spelled:
      text = spelled.decode("utf-8", "surrogateescape")
    return text.strip() or text or token

  return {
    i: Spelling(bool(tokenizer.follows_space[i]), text_of(i)) for i in ordinary
  }


def map_vocabulary(old: Tokenizer, new: Tokenizer) -> list[tuple[int, ...]]:
  """Returns, for each id of `new`, the ids of `old` that spell it, in order.

  The five special tokens map to the old ones, however they are written. A token
  that `old` can't spell, such as one of another script, maps to ().
  """
  old_spellings, new_spellings = token_spellings(old), token_spellings(new)
  # The last of equal ones, since the byte of a letter may precede the letter.
  by_spelling = {spelling: i for i, spelling in old_spellings.items()}
  names = ((old.tokens(i), old_spellings.get(i)) for i in range(old.vocab_size))
  by_name = {name: i for i, name in enumerate(names)}
  longest = max((len(text) for _, text in by_spelling), default=0)

  def spell(index: int) -> tuple[int, ...]:
    spelling = new_spellings.get(index)
    same = by_name.get((new.tokens(index), spelling))
    if same is None and spelling is not None:
      same = by_spelling.get(spelling)
    if same is not None:
      return (same,)
    if spelling is None:
      return ()
    text = spelling.text
    if not _BYTE.search(text):  # The libraries don't accept bytes.
      text = old.normalize(text).strip()
    return tuple(_match_ids(spelling._replace(text=text), by_spelling, longest))

  spelled = [spell(i) for i in range(new.vocab_size)]
  for old_id, new_id in zip(old.special, new.special, strict=True):
    spelled[new_id] = (old_id,)
  return spelled


_BYTE = re.compile("[\udc80-\udcff]")


def _match_ids(
  spelling: Spelling, ids: Mapping[Spelling, int], longest: int
) -> Iterator[int]:
  """Yields the ids of the longest tokens that spell it, from left to right.

  A token that begins a word may stand for one within it, and vice versa, if
  there is no better one. A character without a token is spelled by its bytes,
  or skipped.
  """
  text, begin, starts = spelling.text, 0, spelling.follows_space
  while begin < len(text):
    for follows_space in (starts, not starts):
      ends = range(min(len(text), begin + longest), begin, -1)
      pieces = (Spelling(follows_space, text[begin:end]) for end in ends)
      piece = next((piece for piece in pieces if piece in ids), None)
      if piece:
        yield ids[piece]
        break
    if not piece:
      character = text[begin].encode("utf-8", "surrogateescape")
      escaped = character.decode("ascii", "surrogateescape")
      if escaped != text[begin]:
        text = text[:begin] + escaped + text[begin + 1 :]
        continue
    begin += len(piece.text) if piece else 1
    starts = text[begin - 1].isspace()
