"""Right-to-left text in a printed line: kept apart from what is beside it."""

import unicodedata

# First strong isolate, and its end (Unicode Standard Annex 9): what is between
# them is laid out by itself, and doesn't reorder what stands beside it.
FSI, PDI = "\u2068", "\u2069"
_RIGHT_TO_LEFT = {"R", "AL", "AN"}  # Hebrew, Arabic, Arabic digits.


def isolate(text: str) -> str:
  """The text, between isolate marks if some of it is right-to-left."""
  if any(unicodedata.bidirectional(char) in _RIGHT_TO_LEFT for char in text):
    return f"{FSI}{text}{PDI}"
  return text
