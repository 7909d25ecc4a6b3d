"""Reads BERT's vocab.txt, which says nothing of case and accents itself."""

import pathlib
import unicodedata

from maskedlm.core.errors import CorpusError
from maskedlm.data.sources import encodings
from maskedlm.data.tokenizers import libraries, training


def to_json(
  content: bytes,
  path: pathlib.Path,
  lowercase: bool | None,
  stated: bool | None,
) -> tuple[str, str]:
  """Returns the tokenizer.json of a vocab.txt, and a note on how it is read.

  The token on line i has id i. Case and accents are guessed from the tokens if
  nothing says them: text is lowercased if no token has a capital, and keeps its
  accents if it isn't or a token has one.

  Args:
    content: the file's.
    path: the file, for errors.
    lowercase: tokenizer.lowercase, or None.
    stated: do_lower_case in tokenizer_config.json, or None; it counts.

  Raises:
    CorpusError: the file is not UTF-8, or lacks special tokens.
  """
  lines = _lines(content, path)
  # As in BERT, the last of equal lines counts; the others only keep their ids.
  ids = {line: index for index, line in enumerate(lines)}
  first = libraries.Special(*(names[:1] for names in libraries.SPECIAL_NAMES))
  libraries.find_special(ids, path, first)
  words = [line for line in lines if not line.startswith("[")]
  words.sort(key=len, reverse=True)  # A whole word is the better example.
  capital = next((word for word in words if word != word.lower()), None)
  accent = next((word for word in words if word != _without_marks(word)), None)
  reason = "tokenizer.lowercase"
  if stated is not None:
    lowercase, accent = stated, None
    reason = "do_lower_case in tokenizer_config.json"
  elif lowercase is None:
    lowercase, word = capital is None, capital or accent
    reason = (
      f"it has {repr(word) if word else 'no token with a capital or an accent'}"
      " (a guess: if wrong, set tokenizer.lowercase)"
    )
  strips = lowercase and not accent
  definition = training.bert_json(
    [
      line if line and ids[line] == index else f"[unused line {index}]"
      for index, line in enumerate(lines)
    ],
    lowercase=lowercase,
    strip_accents=None if strips or not lowercase else False,
  )
  return definition, (
    f"read as {'uncased' if lowercase else 'cased'}, accents "
    f"{'stripped' if strips else 'kept'}: {reason}"
  )


def _lines(content: bytes, path: pathlib.Path) -> list[str]:
  try:
    text = content.decode("utf-8-sig")
  except UnicodeDecodeError as error:
    raise CorpusError(
      f"tokenizer {path}: not UTF-8 ({error}); expected one token per line; "
      f"{encodings.remedy_for_invalid()}."
    ) from error
  return [line.rstrip() for line in text.removesuffix("\n").split("\n")]


def _without_marks(word: str) -> str:
  """Returns a word as BERT strips its accents, vowel signs included."""
  parts = unicodedata.normalize("NFD", word)
  return "".join(char for char in parts if unicodedata.category(char) != "Mn")
