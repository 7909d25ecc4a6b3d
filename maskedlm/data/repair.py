"""Repairs what no tokenizer should see, wherever a text is read.

The readers of a corpus count the repairs; a tokenizer makes the same ones in
any text that it is given, so that a model reads what it was trained on.
"""

import re
from collections import Counter

# Surrogates come from invalid bytes (files.read_text) and from lone \\ud800
# escapes in JSON.
_ODD = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\ufeff\ud800-\udfff]")
_REMOVED = re.compile("\0|\ufeff|\r(?=\n)")
_SURROGATES = "invalid UTF-8 bytes or lone surrogates replaced by U+FFFD"
_CONTROL = "control characters replaced by a space"
_NAMES = {"\0": "NUL characters removed", "\ufeff": "byte order marks removed"}


def repair(text: str, report: Counter | None = None) -> str:
  """Returns the text with line ends "\\n", and no control characters.

  The report counts the repairs but those of line ends, by names for the user.
  """
  if not _ODD.search(text):
    return text
  counts: Counter = Counter()

  def replace(match: re.Match) -> str:
    char = match[0]
    if char == "\r":
      return "\n"
    is_surrogate = "\ud800" <= char <= "\udfff"
    name = _SURROGATES if is_surrogate else _CONTROL
    counts[_NAMES.get(char, name)] += 1
    return "" if char in _NAMES else "\ufffd" if is_surrogate else " "

  text = _ODD.sub(replace, text.replace("\r\n", "\n"))
  if report is not None:
    report.update(counts)
  return text


def kept_places(text: str) -> list[int]:
  """Returns where each character of repair(text) stands, and the end."""
  removed = {match.start() for match in _REMOVED.finditer(text)}
  return [i for i in range(len(text) + 1) if i not in removed]
