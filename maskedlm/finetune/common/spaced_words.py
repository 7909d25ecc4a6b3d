"""Reads the words of a line of input of predict, for tasks that parse."""

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import objects, tables
from maskedlm.data.tokenizers.training import replace_surrogates


def spaced_words(line: str) -> tuple[str, ...]:
  """Returns the words between spaces, or those of a JSON object.

  They are {"tokens": [words]}, or {"text": "..."} for words between spaces.

  Raises:
    DataError: there are no words; the JSON has neither field.
  """
  words = line.split()
  if tables.is_object(line):
    such_as = (
      '{"tokens": ["a", "word", "each"]}, or {"text": "..."} for words between '
      "spaces"
    )
    where = f"input {line[:60]!r}"
    fields = objects.parse_object(line, where, such_as=such_as)
    words, text = fields.get("tokens"), fields.get("text")
    if words is None and isinstance(text, str):
      words = text.split()
    if not isinstance(words, list) or not all(
      isinstance(word, str) and word.strip() for word in words
    ):
      raise DataError(f"{where} has no words; expected {such_as}.")
  if not words:
    raise DataError(f"input {line[:60]!r} has no words; expected a sentence.")
  return tuple(map(replace_surrogates, words))
