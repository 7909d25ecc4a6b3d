"""Which tokens of an old vocabulary spell a token of a new one?

What a model knows of words can so be carried over to another vocabulary
(retokenize.py). A token is spelt by itself where the old vocabulary has it,
else by the longest tokens that follow one another in it, as WordPiece cuts a
word. The libraries' ways to write a token (##ing, Ġthe, ▁the) are left aside:
a spelling is text, and whether a word begins with it.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from maskedlm.corpus.tokenizer import Tokenizer


class Spelling(NamedTuple):
  """What a token stands for."""

  starts_word: bool
  text: str  # Without the space before a word.


def spellings(tokenizer: Tokenizer) -> dict[int, Spelling]:
  """Of all ids but the special ones. Where a token is part of a character, or
  nothing but whitespace, it is the token as the vocabulary writes it.
  """
  special = set(tokenizer.special_ids.tolist())
  ordinary = [i for i in range(tokenizer.vocab_size) if i not in special]
  # What follows a token is decoded as what it is within a text.
  first = tokenizer.special.unk
  before = tokenizer.decode([first])

  def text_of(index: int) -> str:
    text = tokenizer.decode([first, index]).removeprefix(before).strip()
    return tokenizer.tokens(index) if "\ufffd" in text or not text else text

  return {
    i: Spelling(bool(tokenizer.starts_word[i]), text_of(i)) for i in ordinary
  }


def respell(old: Tokenizer, new: Tokenizer) -> list[tuple[int, ...]]:
  """Of each id of `new`: the ids of `old` that spell it, in order.

  The five special tokens are the five of the old one, however they are written.
  A token that `old` has none for, such as one of another script, is ().
  """
  old_spellings, new_spellings = spellings(old), spellings(new)
  # The last of equal ones: before a letter there may be its byte.
  by_spelling = {spelling: i for i, spelling in old_spellings.items()}
  by_name = {_name(old, i, old_spellings): i for i in range(old.vocab_size)}
  longest = max((len(text) for _, text in by_spelling), default=0)

  def of(index: int) -> tuple[int, ...]:
    same = by_name.get(_name(new, index, new_spellings))
    if same is not None:
      return (same,)
    if index not in new_spellings:
      return ()
    spelling = new_spellings[index]
    if spelling in by_spelling:
      return (by_spelling[spelling],)
    text = old.normalize(spelling.text).strip()
    return tuple(_cut(spelling._replace(text=text), by_spelling, longest))

  found = [of(i) for i in range(new.vocab_size)]
  for theirs, ours in zip(old.special, new.special, strict=True):
    found[ours] = (theirs,)
  return found


def _name(
  tokenizer: Tokenizer, index: int, spelt: Mapping[int, Spelling]
) -> tuple[str, bool | None]:
  """The token as it is written, and what the same may mean elsewhere."""
  starts_word = spelt[index].starts_word if index in spelt else None
  return tokenizer.tokens(index), starts_word


def _cut(
  spelling: Spelling, ids: Mapping[Spelling, int], longest: int
) -> Iterator[int]:
  """The longest tokens that spell it, from its beginning on.

  A token that begins a word stands for one within it, and the other way round,
  where there is no other. Characters that no token has are passed over.
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
    begin += len(piece.text) if piece else 1
    starts = text[begin - 1].isspace()
