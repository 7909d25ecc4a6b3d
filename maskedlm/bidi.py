"""Right-to-left text in lines that have more than it: for what prints."""

import unicodedata

# First strong isolate, and its end (Unicode Standard Annex 9): what is between
# them is laid out for itself, and doesn't turn round what stands beside it.
FSI, PDI = "\u2068", "\u2069"
_RIGHT_TO_LEFT = {"R", "AL", "AN"}  # Hebrew, Arabic, Arabic digits.


def isolate(text: str) -> str:
  """The text, between isolate marks if some of it is right-to-left."""
  if any(unicodedata.bidirectional(char) in _RIGHT_TO_LEFT for char in text):
    return f"{FSI}{text}{PDI}"
  return text
