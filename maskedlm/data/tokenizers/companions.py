"""Reads the files that transformers writes beside a tokenizer's file.

| file | holds |
|---|---|
| tokenizer_config.json | case, accents; added_tokens_decoder: tokens by id |
| special_tokens_map.json | the special tokens, and additional ones |
| added_tokens.json | token -> id, of older releases |
"""

import pathlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from maskedlm.core.errors import CorpusError
from maskedlm.data.tokenizers.libraries import CONFIG_NAME, parse_json

MAP_NAME, ADDED_NAME = "special_tokens_map.json", "added_tokens.json"
NAMES = (CONFIG_NAME, MAP_NAME, ADDED_NAME)


class AddedToken(NamedTuple):
  """A token that is added to a vocabulary."""

  content: str
  index: int | None  # Its id; None: the next one.
  flags: dict[str, bool]  # Arguments of tokenizers.AddedToken.


def read_stated(folder: pathlib.Path) -> dict[str, Any]:
  """Returns the content of tokenizer_config.json and special_tokens_map.json.

  Raises:
    CorpusError: a file is broken.
  """
  return _read(folder / MAP_NAME) | _read(folder / CONFIG_NAME)


def read_added(folder: pathlib.Path) -> list[AddedToken]:
  """Returns the tokens that the files add or make special, as in transformers.

  Those with an id come first, in its order.

  Raises:
    CorpusError: a file is broken.
  """
  stated = read_stated(folder)
  found: dict[str, AddedToken] = {}
  for index, token in _by_id(stated.get("added_tokens_decoder") or {}, folder):
    content, flags = _content_and_flags(token, special=False)
    found[content] = AddedToken(content, index, flags)
  for content, index in _read(folder / ADDED_NAME).items():
    flags = {"special": False, "normalized": True}
    found.setdefault(content, AddedToken(content, int(index), flags))
  found = {
    token.content: token
    for token in sorted(found.values(), key=lambda token: token.index)
  }
  extra = stated.get("extra_special_tokens") or ()
  for token in (
    *(stated.get("additional_special_tokens") or ()),
    *(extra.values() if isinstance(extra, dict) else extra),
  ):
    content, flags = _content_and_flags(token, special=True)
    found.setdefault(content, AddedToken(content, None, flags))
  return list(found.values())


def left_out(folder: pathlib.Path, tokens: Iterator[str]) -> str:
  """Returns a clause on tokens that files add to a vocabulary, or ""."""
  known = set(tokens)
  missing = [t.content for t in read_added(folder) if t.content not in known]
  if not missing:
    return ""
  more = f" and {len(missing) - 5} more" * (len(missing) > 5)
  return (
    f"tokens that files beside it add are left out: {', '.join(missing[:5])}"
    f"{more}; {convert_command(folder)}"
  )


def convert_command(folder: pathlib.Path) -> str:
  """Returns how transformers makes a tokenizer.json with all tokens."""
  return (
    f'python -c "from transformers import AutoTokenizer as T; '
    f"T.from_pretrained('{folder}').save_pretrained('{folder}')\" makes a "
    "tokenizer.json of all of them"
  )


def _read(path: pathlib.Path) -> dict[str, Any]:
  return parse_json(path.read_bytes(), path) if path.is_file() else {}


def _by_id(decoder: dict, folder: pathlib.Path) -> list[tuple[int, Any]]:
  try:
    return [(int(index), token) for index, token in decoder.items()]
  except ValueError as error:
    raise CorpusError(
      f"{folder / CONFIG_NAME}: added_tokens_decoder: {error}; expected ids."
    ) from error


def _content_and_flags(token: Any, *, special: bool) -> tuple[str, dict]:
  """Returns a token, which is a string or a dict, and its flags."""
  flags = {"special": special, "normalized": not special}
  if isinstance(token, str):
    return token, flags
  names = ("special", "normalized", "lstrip", "rstrip", "single_word")
  flags |= {name: bool(token[name]) for name in names if name in token}
  return token.get("content", ""), flags
