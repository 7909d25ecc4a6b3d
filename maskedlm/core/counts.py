"""Writes numbers of things: 1 example, 2,000 batches, 1.5 MB, 7 more."""

from collections.abc import Sequence


def counted(count: int, noun: str) -> str:
  """Returns "1 example", "0 queries" or "2,000 batches".

  Args:
    noun: the singular, whose last word forms the plural by -s, -es or -ies:
      "whole word".

  >>> counted(1, "example"), counted(0, "query"), counted(2000, "batch")
  ('1 example', '0 queries', '2,000 batches')
  """
  return f"{count:,} {noun if count == 1 else _plural(noun)}"


def sized(count: float) -> str:
  """Returns a number of bytes, to three digits.

  >>> sized(40), sized(1.5e6), sized(89.66e9), sized(2e12)
  ('40 bytes', '1.5 MB', '89.7 GB', '2 TB')
  """
  units = ["bytes", "kB", "MB", "GB", "TB"]
  while round(count) >= 1000 and len(units) > 1:
    count, units = count / 1000, units[1:]
  return f"{count:.3g} {units[0]}"


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
