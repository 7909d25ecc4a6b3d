"""Reads BERT's vocab.txt, which says nothing of case and accents itself.

They are stated in tokenizer_config.json beside it, given by tokenizer.lowercase
or guessed from the tokens.
"""

import json
import pathlib
import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple

import tokenizers

from maskedlm.core.errors import CorpusError
from maskedlm.data.sources import encodings
from maskedlm.data.tokenizers import agreement, companions, training
from maskedlm.data.tokenizers.libraries import (
  CONFIG_NAME,
  SPECIAL_NAMES,
  Backend,
  Special,
  find_special,
  read_tokenizer_json,
)

# Classes of transformers that read the file as BERT does.
_CLASSES = [
  f"{name}Tokenizer"
  for name in (
    *("Bert", "DistilBert", "Electra", "ConvBert", "MobileBert"),
    *("SqueezeBert", "LayoutLM", "Lxmert"),
  )
]


class Reading(NamedTuple):
  """How text is normalized for a vocab.txt."""

  lowercase: bool
  strip_accents: bool | None  # None: if lowercase.
  reason: str  # Where that comes from.


def read(
  content: bytes, path: pathlib.Path, *, lowercase: bool | None
) -> Backend:
  """Reads BERT's vocab.txt, in which the token on line i has id i.

  Args:
    content: the file's.
    path: the file's; the files beside it (companions.py) are read, too.
    lowercase: as for tokenizer.load_tokenizer.

  Raises:
    CorpusError: the file is not UTF-8 or lacks special tokens, a file next to
      it is broken or contradicts `lowercase`, or adds tokens that don't follow
      the vocabulary.
  """
  stated = companions.read_stated(path.parent)
  _check_class(stated.get("tokenizer_class", ""), path)
  lines = _lines(content, path)
  # As in BERT, the last of equal lines counts; the others only keep their ids.
  ids = {line: index for index, line in enumerate(lines)}
  tokens = [
    line if line and ids[line] == index else f"[unused line {index}]"
    for index, line in enumerate(lines)
  ]
  find_special(ids, path, Special(*(names[:1] for names in SPECIAL_NAMES)))
  _check_roles(stated, path)
  reading = _choose_reading(tokens, stated, path, lowercase)
  definition = training.bert_json(
    tokens,
    lowercase=reading.lowercase,
    strip_accents=reading.strip_accents,
    handle_chinese_chars=stated.get("tokenize_chinese_chars") is not False,
  )
  _, differences = agreement.follow(definition, stated, path)
  added = companions.read_added(path.parent)
  made = read_tokenizer_json(_with_added(definition, added, path), path)
  strips = reading.strip_accents is not False and reading.lowercase
  notes = [
    f"read as {'uncased' if reading.lowercase else 'cased'}, accents "
    f"{'stripped' if strips or reading.strip_accents else 'kept'}: "
    f"{reading.reason}"
  ]
  if new := [token.content for token in added if token.content not in ids]:
    notes.append(f"added by files beside it: {', '.join(new)}")
  return made._replace(notes=(*notes, *differences, *made.notes))


def _lines(content: bytes, path: pathlib.Path) -> list[str]:
  try:
    text = content.decode("utf-8-sig")
  except UnicodeDecodeError as error:
    raise CorpusError(
      f"tokenizer {path}: not UTF-8 ({error}); expected one token per line; "
      f"{encodings.remedy_for_invalid()}."
    ) from error
  return [line.rstrip() for line in text.removesuffix("\n").split("\n")]


def _check_class(name: str, path: pathlib.Path) -> None:
  """Raises CorpusError if the tokenizer's class isn't known to be BERT's."""
  if "Tokenizer" in name and name.removesuffix("Fast") not in _CLASSES:
    raise CorpusError(
      f"tokenizer {path}: tokenizer_class={name!r} adds its own rules to "
      f"{path.name}: if possible, {companions.convert_command(path.parent)}."
    )


def _check_roles(stated: dict[str, Any], path: pathlib.Path) -> None:
  """Raises CorpusError if files beside it name other special tokens."""
  for role, names in SPECIAL_NAMES._asdict().items():
    token = stated.get(f"{role}_token")
    token = token.get("content") if isinstance(token, dict) else token
    if token and token != names[0]:
      raise CorpusError(
        f"tokenizer {path}: the {role}_token in {CONFIG_NAME} or "
        f"{companions.MAP_NAME} beside it is {token!r}; expected {names[0]!r}, "
        f"as in a vocab.txt of BERT; {companions.convert_command(path.parent)}."
      )


def _choose_reading(
  tokens: Sequence[str],
  stated: dict[str, Any],
  path: pathlib.Path,
  lowercase: bool | None,
) -> Reading:
  states = stated.get("do_lower_case")
  if None not in (lowercase, states) and lowercase != states:
    raise CorpusError(
      f"tokenizer.lowercase={lowercase}, but {path.parent / CONFIG_NAME} says "
      f"do_lower_case={json.dumps(states)}: leave the former out, or change "
      "the latter."
    )
  words = [token for token in tokens if not token.startswith("[")]
  words.sort(key=len, reverse=True)  # A whole word is the better example.
  capital = next((word for word in words if word != word.lower()), None)
  accent = next((word for word in words if word != _without_marks(word)), None)
  if states is not None:
    reason = f"do_lower_case in {CONFIG_NAME}"
    return Reading(bool(states), stated.get("strip_accents"), reason)
  if lowercase is not None:
    is_lower, reason = lowercase, "tokenizer.lowercase"
  else:
    is_lower = capital is None
    seen = "no token with a capital or an accent"
    if word := capital or accent:
      seen = repr(word)
    reason = (
      f"it has {seen} (a guess: if wrong, set tokenizer.lowercase, or "
      "do_lower_case in "
      f"{CONFIG_NAME} beside it)"
    )
  if stated.get("strip_accents") is not None:
    return Reading(is_lower, stated["strip_accents"], reason)
  keeps = is_lower and accent is not None
  return Reading(is_lower, False if keeps else None, reason)


def _without_marks(word: str) -> str:
  """Returns a word as BERT strips its accents, vowel signs included."""
  parts = unicodedata.normalize("NFD", word)
  return "".join(char for char in parts if unicodedata.category(char) != "Mn")


def _with_added(
  definition: str, added: Sequence[companions.AddedToken], path: pathlib.Path
) -> str:
  """Returns a tokenizer.json with further tokens, at the ids they state."""
  library = tokenizers.Tokenizer.from_str(definition)
  for content, index, flags in added:
    library.add_tokens([tokenizers.AddedToken(content, **flags)])
    found = library.token_to_id(content)
    if index is not None and found != index:
      raise CorpusError(
        f"tokenizer {path}: files beside it give {content!r} the id {index}, "
        f"but it would be {found}; {companions.convert_command(path.parent)}."
      )
  return library.to_str()
