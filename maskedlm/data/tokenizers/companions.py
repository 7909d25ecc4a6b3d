"""Reads the files that transformers writes beside a tokenizer's file.

| file | holds |
|---|---|
| tokenizer_config.json | case, accents; added_tokens_decoder: tokens by id |
| special_tokens_map.json | the special tokens, and additional ones |
| added_tokens.json | token -> id, of older releases |
| config.json | the model's: tokenizer_class or model_type |
"""

import json
import pathlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from maskedlm.core.errors import CorpusError
from maskedlm.data.tokenizers.libraries import CONFIG_NAME, parse_object

MAP_NAME, ADDED_NAME = "special_tokens_map.json", "added_tokens.json"
MODEL_NAME = "config.json"
NAMES = (CONFIG_NAME, MAP_NAME, ADDED_NAME, MODEL_NAME)
_FLAGS = ("do_lower_case", "strip_accents", "tokenize_chinese_chars")
_FLAGS += ("add_prefix_space",)


class AddedToken(NamedTuple):
  """A token that is added to a vocabulary."""

  content: str
  index: int | None  # Its id; None: the next one.
  flags: dict[str, bool]  # Arguments of tokenizers.AddedToken.


def read_stated(folder: pathlib.Path) -> dict[str, Any]:
  """Returns the content of tokenizer_config.json and special_tokens_map.json.

  Its tokenizer_class is "" where none is stated, or the model_type in
  config.json, from which transformers infers the class. Without files, the dict
  is empty.

  Raises:
    CorpusError: a file is broken, or an option is not true, false or null.
  """
  model = _read(folder / MODEL_NAME)
  stated = _read(folder / MAP_NAME) | _read(folder / CONFIG_NAME)
  if not stated and not model:
    return {}
  names = (stated, "tokenizer_class"), (model, "tokenizer_class")
  names = [file.get(key) for file, key in (*names, (model, "model_type"))]
  for flag in _FLAGS:
    if not isinstance(stated.get(flag), bool | None):
      raise CorpusError(
        f"{folder / CONFIG_NAME}: {flag}={json.dumps(stated[flag])}; expected "
        "true, false or null."
      )
  return stated | {"tokenizer_class": str(next(filter(None, names), ""))}


def read_added(folder: pathlib.Path) -> list[AddedToken]:
  """Returns the tokens that the files add or make special, as in transformers.

  Those with an id come first, in its order.

  Raises:
    CorpusError: a file is broken.
  """
  stated = read_stated(folder)
  found: dict[str, AddedToken] = {}
  by_id = stated.get("added_tokens_decoder") or {}
  if not isinstance(by_id, dict):
    given = f"added_tokens_decoder={json.dumps(by_id)}"
    raise _unexpected(folder, given, "tokens by id")
  for index, token in by_id.items():
    content, flags = _content_and_flags(token, folder, special=False)
    found[content] = AddedToken(content, _id(index, folder, content), flags)
  for content, index in _read(folder / ADDED_NAME).items():
    flags = {"special": False, "normalized": True}
    token = AddedToken(content, _id(index, folder, content), flags)
    found.setdefault(content, token)
  found = {
    token.content: token
    for token in sorted(found.values(), key=lambda token: token.index)
  }
  for key in ("additional_special_tokens", "extra_special_tokens"):
    extra = stated.get(key) or []
    if not isinstance(extra, dict | list):
      raise _unexpected(folder, f"{key}={json.dumps(extra)}", "a list")
    for token in extra.values() if isinstance(extra, dict) else extra:
      content, flags = _content_and_flags(token, folder, special=True)
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
  """Returns how transformers makes a tokenizer.json of all files."""
  return (
    f'python -c "from transformers import AutoTokenizer as T; '
    f"T.from_pretrained('{folder}').save_pretrained('{folder}')\" makes a "
    "tokenizer.json of all files"
  )


def _read(path: pathlib.Path) -> dict[str, Any]:
  return parse_object(path.read_bytes(), path) if path.is_file() else {}


def content_of(token: Any) -> Any:
  """Returns the text of a token, which is a string or a dict with options."""
  return token.get("content") if isinstance(token, dict) else token


def _content_and_flags(
  token: Any, folder: pathlib.Path, *, special: bool
) -> tuple[str, dict]:
  content = content_of(token)
  if not (isinstance(content, str) and content):
    raise _unexpected(folder, f"added token {json.dumps(token)}", "its text")
  flags = {"special": special, "normalized": not special}
  if isinstance(token, dict):
    names = ("special", "normalized", "lstrip", "rstrip", "single_word")
    flags |= {name: bool(token[name]) for name in names if name in token}
  return content, flags


def _id(value: Any, folder: pathlib.Path, token: str) -> int:
  try:
    return int(value)
  except (TypeError, ValueError) as error:
    given = f"the id of the added token {token!r} is {json.dumps(value)}"
    raise _unexpected(folder, given, "a whole number") from error


def _unexpected(folder: pathlib.Path, given: str, expected: str) -> CorpusError:
  files = ", ".join((CONFIG_NAME, MAP_NAME, ADDED_NAME))
  return CorpusError(
    f"{folder}: {given} in one of {files}; expected {expected}: correct it, or "
    "leave it out."
  )
