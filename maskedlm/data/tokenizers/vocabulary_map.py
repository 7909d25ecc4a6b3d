"""Which tokens of an old vocabulary spell a token of a new one?

What a model knows of words can so be carried over to another vocabulary
(retokenize.py). A token is spelt by itself where the old vocabulary has it,
else by the longest tokens that follow one another in it, as WordPiece cuts a
word. The libraries' ways to write a token (##ing, Ġthe, ▁the) are left aside:
a spelling is text, and whether a word begins with it. Bytes that are no text,
parts of a character, are lone surrogates in it: b"\\xc3" is "\\udcc3", as
Python's "surrogateescape" has it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from maskedlm.data.tokenizers.tokenizer import Tokenizer


class Spelling(NamedTuple):
  """What a token stands for."""

  starts_word: bool
  text: str  # Without the space before a word.


def token_spellings(tokenizer: Tokenizer) -> dict[int, Spelling]:
  """Of all ids but the special ones."""
  special = set(tokenizer.special_ids.tolist())
  ordinary = [i for i in range(tokenizer.vocab_size) if i not in special]
  # What follows a token is decoded as what it is within a text.
  first = tokenizer.special.unk
  before = tokenizer.decode([first])

  def text_of(index: int) -> str:
    text, token = tokenizer.decode([first, index]), tokenizer.tokens(index)
    text = text.removeprefix(before)
    if "\ufffd" in text and (found := _bytes(token)):
      text = found.decode("utf-8", "surrogateescape")
    return text.strip() or text or token

  return {
    i: Spelling(bool(tokenizer.starts_word[i]), text_of(i)) for i in ordinary
  }


def map_vocabulary(old: Tokenizer, new: Tokenizer) -> list[tuple[int, ...]]:
  """Of each id of `new`: the ids of `old` that spell it, in order.

  The five special tokens are the five of the old one, however they are written.
  A token that `old` has none for, such as one of another script, is ().
  """
  old_spellings, new_spellings = token_spellings(old), token_spellings(new)
  # The last of equal ones: before a letter there may be its byte.
  by_spelling = {spelling: i for i, spelling in old_spellings.items()}
  by_name = {
    (old.tokens(i), old_spellings.get(i)): i for i in range(old.vocab_size)
  }
  longest = max((len(text) for _, text in by_spelling), default=0)

  def of(index: int) -> tuple[int, ...]:
    spelling = new_spellings.get(index)
    same = by_name.get((new.tokens(index), spelling), by_spelling.get(spelling))
    if same is not None:
      return (same,)
    if spelling is None:
      return ()
    text = spelling.text
    if not _BYTE.search(text):  # The libraries take none.
      text = old.normalize(text).strip()
    return tuple(_cut(spelling._replace(text=text), by_spelling, longest))

  found = [of(i) for i in range(new.vocab_size)]
  for theirs, ours in zip(old.special, new.special, strict=True):
    found[ours] = (theirs,)
  return found


_BYTE = re.compile("[\udc80-\udcff]")
# How byte-level BPE writes a byte: as the character of that number, where one
# sees it, the others as those from 256 on.
_SEEN = [*range(33, 127), *range(161, 173), *range(174, 256)]
_UNSEEN = [byte for byte in range(256) if byte not in _SEEN]
_LETTERS = {chr(byte): byte for byte in _SEEN}
_LETTERS |= {chr(256 + i): byte for i, byte in enumerate(_UNSEEN)}


def _bytes(token: str) -> bytes:
  """What a token of bytes (<0xC3>, or _LETTERS) stands for; b"" for others."""
  if named := re.fullmatch("<0x([0-9A-F]{2})>", token):
    return bytes.fromhex(named[1])
  if set(token) <= _LETTERS.keys():
    return bytes(_LETTERS[letter] for letter in token)
  return b""


def _cut(
  spelling: Spelling, ids: Mapping[Spelling, int], longest: int
) -> Iterator[int]:
  """The longest tokens that spell it, from its beginning on.

  A token that begins a word stands for one within it, and the other way round,
  where there is no other. A character that no token has is spelt by its bytes,
  or passed over.
  """
  text, begin, starts = spelling.text, 0, spelling.starts_word
  while begin < len(text):
    for wanted in (starts, not starts):
      ends = range(min(len(text), begin + longest), begin, -1)
      pieces = (Spelling(wanted, text[begin:end]) for end in ends)
      piece = next((piece for piece in pieces if piece in ids), None)
      if piece:
        yield ids[piece]
        break
    if not piece:
      of_bytes = text[begin].encode("utf-8", "surrogateescape")
      of_bytes = of_bytes.decode("ascii", "surrogateescape")
      if of_bytes != text[begin]:
        text = text[:begin] + of_bytes + text[begin + 1 :]
        continue
    begin += len(piece.text) if piece else 1
    starts = text[begin - 1].isspace()
