"""InteropError: a model that can't be read or written, and the remedy."""


class InteropError(ValueError):
  """The thing, its value, what was expected, what to do."""

  exit_code = 2
