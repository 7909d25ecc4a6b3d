"""Finds which bytes of a text each token spells, and which begin a word.

Libraries write tokens in different ways (##ing, Ġthe, ▁the, <0xC3>); here a
token is the bytes of normalized text, with the space before a word.
"""

import re
import unicodedata

import numpy as np

from maskedlm.data.tokenizers import word_starts
from maskedlm.data.tokenizers.libraries import Backend

# Byte-level BPE writes a byte as the character with that code point if it is
# printable, and the others as code points from 256 on.
_PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
_UNPRINTABLE = [byte for byte in range(256) if byte not in _PRINTABLE]
_LETTERS = {chr(byte): byte for byte in _PRINTABLE}
_LETTERS |= {chr(256 + i): byte for i, byte in enumerate(_UNPRINTABLE)}
_NAMES = {byte: letter for letter, byte in _LETTERS.items()}
_BYTE = re.compile("<0x([0-9A-F]{2})>")

# Scripts written without spaces between words, as ranges of code points.
_UNSPACED = (
  (0x0E00, 0x0FFF),  # Thai, Lao, Tibetan.
  (0x1000, 0x109F),  # Myanmar.
  (0x1780, 0x17FF),  # Khmer.
  (0x1950, 0x19FF),  # Tai Le, New Tai Lue.
  (0x1A20, 0x1AAF),  # Tai Tham.
  (0x2E80, 0x2FDF),  # Radicals.
  (0x3005, 0x3007),
  (0x3021, 0x3029),
  (0x3040, 0x30FF),  # Hiragana, Katakana.
  (0x3100, 0x312F),  # Bopomofo.
  (0x31A0, 0x31BF),
  (0x31F0, 0x31FF),
  (0x3400, 0x9FFF),  # Han.
  (0xA9E0, 0xA9FF),
  (0xAA60, 0xAADF),  # Myanmar, Tai Viet.
  (0xF900, 0xFAFF),
  (0xFF66, 0xFF9D),
  (0x1B000, 0x1B16F),
  (0x20000, 0x3FFFF),
)


def byte_level_bytes(token: str) -> bytes:
  """Returns the bytes of a token of byte-level BPE; b"" for others."""
  if set(token) <= _LETTERS.keys():
    return bytes(_LETTERS[letter] for letter in token)
  return b""


def readable(token: str) -> str:
  """Returns a token of byte-level BPE with its characters: Ġfür for ĠfÃ¼r.

  Spaces, controls and parts of characters stay as the vocabulary writes them.
  """
  spelled = byte_level_bytes(token).decode("utf-8", "surrogateescape")
  return "".join(
    c
    if c.isprintable() and c != " "
    else "".join(_NAMES[byte] for byte in c.encode("utf-8", "surrogateescape"))
    for c in spelled or token
  )


def named_byte(token: str) -> bytes:
  """Returns the byte of a token such as <0xC3>; b"" for others."""
  match = _BYTE.fullmatch(token)
  return bytes.fromhex(match[1]) if match else b""


def token_bytes(library: Backend) -> list[bytes]:
  """Returns the bytes that each token spells, [V]; a space for Ġ and ▁.

  Joined, the tokens of a text spell it as `library.normalize` returns it, with
  ▁ as a space. This doesn't hold for WordPiece, which drops spaces, nor for
  unknown and special tokens.
  """
  if not has_step(library, "ByteLevel"):
    return [
      named_byte(token) or token.replace("▁", " ").encode()
      for token in library.tokens
    ]
  added = {x["content"] for x in library.definition.get("added_tokens", ())}
  return [
    (b"" if token in added else byte_level_bytes(token)) or token.encode()
    for token in library.tokens
  ]


def has_step(library: Backend, name: str) -> bool:
  """Returns whether a tokenizer.json has such a normalizer or pre-tokenizer."""
  return any(
    s["type"] == name for s in word_starts.steps_of(library.definition)
  )


def line_separator(library: Backend) -> tuple[str, bool]:
  """Returns Tokenizer.line_separator and Tokenizer.spells_lines."""
  newline, space = (library.encode(f"a{mark}b")[0] for mark in "\n ")
  if newline == space:
    return "\n", False
  spelled = token_bytes(library)
  spells_lines = any(b"\n" in spelled[index] for index in newline)
  return "\n" if spells_lines else " ", spells_lines


def begins_word(library: Backend) -> np.ndarray:
  """Returns which tokens begin a word without a space before it, bool [V].

  These are newlines and tabs, and letters of scripts that are written without
  spaces between words (Han, Kana, Thai, Lao, Khmer, Myanmar, Tibetan). There
  each token that begins with a letter counts as a word, since a whole paragraph
  would be one otherwise. In WordPiece, which marks the pieces that continue a
  word, there are none. If no token has a space, as in a vocabulary of DNA or
  proteins, each token is a word.
  """
  if library.kind == "wordpiece":
    return np.zeros(len(library.tokens), bool)
  spelled = token_bytes(library)
  if not any(b" " in token for token in spelled):
    return np.ones(len(spelled), bool)
  return np.array([_begins(token) for token in spelled], bool)


def _begins(spelled: bytes) -> bool:
  if spelled[:1] in (b"\n", b"\r", b"\t"):
    return True
  size = _character_size(spelled[:1])
  if not size:
    return False
  first = spelled[:size]
  if len(first) < size:  # Part of a character: are all of them letters?
    low, high = (
      first + fill * (size - len(first)) for fill in (b"\x80", b"\xbf")
    )
    ranges = [_range_of(end.decode(errors="replace")) for end in (low, high)]
    return ranges[0] is not None and ranges[0] == ranges[1]
  letter = first.decode(errors="replace")
  is_letter = unicodedata.category(letter[0]) in ("Lo", "Nl")
  return is_letter and _range_of(letter) is not None


def _character_size(first: bytes) -> int:
  """Returns the size of the UTF-8 character beginning with a byte; 0: ASCII."""
  if not first or first[0] < 0xC2:
    return 0
  return 2 + (first[0] >= 0xE0) + (first[0] >= 0xF0)


def _range_of(text: str) -> tuple[int, int] | None:
  point = ord(text[0])
  return next((r for r in _UNSPACED if r[0] <= point <= r[1]), None)
