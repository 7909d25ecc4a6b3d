"""Reads BERT's vocab.txt, which says nothing of case and accents.

Those of ESM, whose tokens are letters, and of DNABERT, whose tokens are all
k-mers of bases, are recognised by their tokens.
"""

import pathlib
import re
import unicodedata
from collections.abc import Mapping

from maskedlm.core.errors import CorpusError
from maskedlm.data.sources import encodings
from maskedlm.data.tokenizers import letters, libraries, training


def to_json(
  content: bytes,
  path: pathlib.Path,
  lowercase: bool | None,
  stated: bool | None,
  roles: Mapping[str, str] = {},
) -> tuple[str, str, dict[str, str]]:
  """Returns the tokenizer.json of a vocab.txt, a note on it, renamed tokens.

  The token on line i has id i. Case and accents are guessed from the tokens if
  nothing says them: text is lowercased if no token has a capital, and keeps its
  accents if it isn't or a token has one.

  `stated`, do_lower_case in tokenizer_config.json, counts before `lowercase`,
  that of config.tokenizer; either may be None. `roles` has pad, unk, ... -> the
  token named there.

  Raises:
    CorpusError: the file is not UTF-8, or lacks special tokens.
  """
  lines = _lines(content, path)
  # As in BERT, the last of equal lines counts; the others only keep their ids.
  ids = {line: index for index, line in enumerate(lines)}
  if "[UNK]" not in ids and all(
    len(line) == 1 or _NAMED.fullmatch(line) for line in lines
  ):
    definition = letters.characters_json(ids, _specials(ids, path))
    return definition, "each letter is a token", {}
  if k := _kmer_size(lines):
    specials = _specials(ids, path)
    definition = letters.kmers_json(ids, specials, "ACGT", k=k, stride=1)
    return definition, f"its tokens are {k}-mers, one from each base on", {}
  first = {role: x[:1] for role, x in libraries.SPECIAL_NAMES.items()}
  renamed = libraries.usual_names(ids, roles, first)
  lines = [renamed.get(line, line) for line in lines]
  ids = {line: index for index, line in enumerate(lines)}
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
  note = (
    f"read as {'uncased' if lowercase else 'cased'}, accents "
    f"{'stripped' if strips else 'kept'}: {reason}"
  )
  return definition, note, renamed


_NAMED = re.compile(r"<\w+>")
_BASES = re.compile("[ACGT]+")
_SPECIAL = re.compile(r"\[[A-Z]+\]|<\w+>")


def _kmer_size(lines: list[str]) -> int:
  """Returns k if the tokens are all k-mers and special ones; 0 if not."""
  words = {line for line in lines if not _SPECIAL.fullmatch(line)}
  k = len(next(iter(words), ""))
  are_kmers = all(len(word) == k and _BASES.fullmatch(word) for word in words)
  return k if k and are_kmers and len(words) == 4**k else 0


def _specials(ids: dict[str, int], path: pathlib.Path) -> list[str]:
  """Returns the five special tokens by their roles, and then the others."""
  tokens = {index: token for token, index in ids.items()}
  needed = [tokens[index] for index in libraries.find_special(ids, path)]
  special = [token for token in ids if _SPECIAL.fullmatch(token)]
  return list(dict.fromkeys([*needed, *special]))


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
