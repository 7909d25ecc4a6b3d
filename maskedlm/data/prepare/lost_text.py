"""Counts text that a tokenizer reads otherwise than it is written.

The spelling of a special token in a text is ordinary text, also that of a
special token of one's own ([DRUG]). A tokenizer that strips accents also strips
the vowel signs of Hindi or Thai, so that different words become the same.
"""

import functools
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable

from maskedlm.data.tokenizers.tokenizer import Tokenizer

SPELT = "spellings of special tokens, read as ordinary text"
SIGNS = "vowel signs and other marks stripped by the tokenizer"
MAX_SHARE = 0.01  # Share of the characters or tokens; more is warned of.


def own_specials(tokenizer: Tokenizer) -> list[str]:
  """Returns the special tokens of a file beyond the five that are needed.

  [unusedN] and rows without a token are left out.
  """
  found = (
    tokenizer.tokens(index)
    for index in tokenizer.special_ids.tolist()
    if index not in tokenizer.special
  )
  return [name for name in found if name and not name.startswith("[unused")]


def make_counter(tokenizer: Tokenizer) -> Callable[[Iterable[str]], Counter]:
  """Returns a function from texts to their counts of SPELT and SIGNS."""
  names = [*map(tokenizer.tokens, tokenizer.special), *own_specials(tokenizer)]
  longest_first = sorted(names, key=len, reverse=True)
  spelt = re.compile("|".join(map(re.escape, longest_first)))
  # Some special token in a text begins so; a search for it is much faster.
  beginnings = {name[0] for name in names}
  strips = "\u0947" not in tokenizer.normalize("\u0915\u0947")  # Hindi "ke".

  def count(texts: Iterable[str]) -> Counter:
    counts = Counter()
    text = "\n".join(texts)  # A search in all of them at once is fast.
    if any(char in text for char in beginnings):
      counts[SPELT] += len(spelt.findall(text))
    if strips and not text.isascii():
      counts[SIGNS] += count_signs(text)
    return counts

  return count


def count_signs(text: str) -> int:
  """Returns the characters that lose a mark if marks are stripped.

  Those of Latin, Greek and Cyrillic letters, as in "é" and "й", are not
  counted.
  """
  signs, rare_signs = _signs()
  count = len(signs.findall(text))
  # Of the rare text beyond U+FFFF only, since its pattern is 100 times slower.
  if len(text.encode("utf-16-le", "surrogatepass")) > 2 * len(text):
    count += len(rare_signs.findall(text))
  return count


# Marks of Latin, Greek or Cyrillic letters, or of any symbol.
_COMMON = (
  (0x0300, 0x036F),
  (0x0483, 0x0489),
  (0x1AB0, 0x1AFF),
  (0x1DC0, 0x1DFF),
  (0x20D0, 0x20FF),
  (0x2DE0, 0x2DFF),
  (0xA66F, 0xA69F),
  (0xFE00, 0xFE2F),
  (0xE0100, 0xE01EF),
)


@functools.cache
def _signs() -> tuple[re.Pattern, re.Pattern]:
  """Returns patterns of one character that is or has a mark of a script.

  The first is of those up to U+FFFF, the second of the others.
  """

  def is_sign(char: str) -> bool:
    return unicodedata.category(char) == "Mn" and not any(
      low <= ord(char) <= high for low, high in _COMMON
    )

  found = [
    char
    for char in map(chr, range(0x590, min(sys.maxunicode, 0x1F000)))
    if not "\u3400" <= char <= "\u9fff" and not "\uac00" <= char <= "\udfff"
    if any(map(is_sign, unicodedata.normalize("NFD", char)))
  ]
  common = "".join(char for char in found if char <= "\uffff")
  rare = "".join(char for char in found if char > "\uffff")
  return re.compile(f"[{common}]"), re.compile(f"[{rare}]")
