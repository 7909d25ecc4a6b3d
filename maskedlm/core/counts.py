"""Writes numbers of things: 1 example, 2,000 batches, 1.5 MB, 7 more."""

from collections.abc import Sequence


def counted(count: int, noun: str, plural: str = "") -> str:
  """Returns "1 example", "0 queries" or "2,000 batches".

  Args:
    noun: the singular, whose last word forms the plural: "whole word".
    plural: the plural, if it is not formed by -s, -es or -ies.

  >>> counted(1, "example"), counted(0, "query"), counted(2000, "batch")
  ('1 example', '0 queries', '2,000 batches')
  """
  return f"{count:,} {noun if count == 1 else plural or _plural(noun)}"


def sized(count: float) -> str:
  """Returns "1.5 kB", "20.0 MB" or "1,000.0 GB".

  >>> sized(40), sized(1.5e6), sized(2e12)
  ('0.0 kB', '1.5 MB', '2,000.0 GB')
  """
  for unit, size in ("GB", 1e9), ("MB", 1e6):
    if count >= size:
      return f"{count / size:,.1f} {unit}"
  return f"{count / 1e3:,.1f} kB"


def first_names(names: Sequence[str]) -> str:
  """Returns the first five names, and how many more there are.

  >>> first_names([*"abcdefg"])
  'a, b, c, d, e and 2 more'
  """
  more = f" and {len(names) - 5:,} more" * (len(names) > 5)
  return ", ".join(names[:5]) + more


def _plural(noun: str) -> str:
  if noun.endswith("y") and noun[-2:-1] not in "aeiou":
    return f"{noun[:-1]}ies"
  return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"
