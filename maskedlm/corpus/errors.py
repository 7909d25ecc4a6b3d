"""CorpusError: text, tokenizer or corpus that can't be used, and the remedy."""


class CorpusError(ValueError):
  """One line: the thing, its value, what was expected, what to do."""

  exit_code = 2
