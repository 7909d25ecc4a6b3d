"""Reports examples that are longer than a row, and therefore lost tokens."""

from collections.abc import Sequence

from maskedlm.core.counts import counted


def cut_count(cut: Sequence[int]) -> str:
  """Returns "2 examples were cut to", which the length follows."""
  verb = "was" if len(cut) == 1 else "were"
  return f"{counted(len(cut), 'example')} {verb} cut to"


def cut_note(
  cut: Sequence[int], *, length: int, positions: int, option: str
) -> str:
  """Returns how many examples were cut, how long they are, and the remedy.

  Args:
    cut: Rows.cut of all examples; at least one.
    length: the largest number of tokens in a row.
    positions: the largest length that the encoder supports.
    option: the option that sets the length, such as "--length={}".
  """
  longest = max(cut)
  if length >= positions:
    remedy = "the encoder has no more positions"
  elif longest <= positions:
    remedy = f"{option.format(longest)} reads all of them"
  else:
    most = option.format(positions)
    remedy = f"{most}, all positions of the encoder, reads more"
  return (
    f"{cut_count(cut)} {length:,} tokens (the longest has {longest:,}); "
    f"{remedy}"
  )
