"""Makes the text of a document, from its lines, as a tokenizer reads it.

A tokenizer that has tokens for line ends and indentation reads them as they
are; to the others, a document is its stripped lines.
"""

from collections.abc import Sequence

from maskedlm.data.sources.sentences import find_sentences, stripped
from maskedlm.data.tokenizers.documents import Text
from maskedlm.data.tokenizers.tokenizer import Tokenizer


def read_lines(lines: Sequence[str], *, spells_lines: bool) -> Sequence[str]:
  """Returns the lines that Tokenizer.line_separator joins."""
  return lines if spells_lines else stripped(lines)


def make_text(lines: Sequence[str], tokenizer: Tokenizer, **options) -> Text:
  """Returns the text of a document, with its sentences (`find_sentences`)."""
  lines = read_lines(lines, spells_lines=tokenizer.spells_lines)
  text = tokenizer.line_separator.join(lines)
  return Text(text, find_sentences(lines, **options))
