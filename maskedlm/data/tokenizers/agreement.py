"""Compares a tokenizer's file with what is stated beside it.

A tokenizer.json and its tokenizer_config.json may differ in case, accents,
spaces and special tokens. Where transformers builds a step from the latter, so
does maskedlm; else the tokenizer.json counts. A difference is noted; it is an
error if it makes another token [CLS], [SEP] or [MASK].
"""

import json
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from maskedlm.core.errors import CorpusError
from maskedlm.core.parse_json import parse_json
from maskedlm.data.tokenizers import companions
from maskedlm.data.tokenizers.libraries import (
  CONFIG_NAME,
  SPECIAL_NAMES,
  Backend,
)


class _Step(NamedTuple):
  """A step of tokenizer.json that transformers builds from its config."""

  step: str
  type: str
  classes: tuple[str, ...]  # Prefixes of the classes that do, in lower case.
  # Option in tokenizer_config.json -> (its name in the step, its default).
  options: dict[str, tuple[str, Any]]


_STEPS = (
  _Step(
    "normalizer",
    "BertNormalizer",
    ("bert", "distilbert", "electra"),
    {
      "do_lower_case": ("lowercase", True),
      "strip_accents": ("strip_accents", None),
      "tokenize_chinese_chars": ("handle_chinese_chars", True),
    },
  ),
  _Step(
    "pre_tokenizer",
    "ByteLevel",
    ("roberta", "gpt2", "bart", "longformer"),
    {"add_prefix_space": ("add_prefix_space", False)},
  ),
)


def follow(
  content: str | bytes, stated: Mapping[str, Any], path: pathlib.Path
) -> tuple[str | bytes, list[str]]:
  """Returns a tokenizer.json with the options stated beside it, and notes.

  For options that are not stated, transformers uses its defaults, but maskedlm
  keeps the file's values.

  Args:
    content: the tokenizer.json, or one made of a vocab.txt.
    stated: companions.read_stated of the folder.
    path: the file, for the notes.
  """
  if not stated:
    return content, []
  try:
    definition = parse_json(content)
    steps = [(step, {**(definition.get(step.step) or {})}) for step in _STEPS]
  except (ValueError, AttributeError, TypeError):  # Its reader says so.
    return content, []
  name = stated["tokenizer_class"]
  notes, changed = [], {}
  for step, found in steps:
    if found.get("type") != step.type:
      continue
    differ, unstated = {}, {}
    for theirs, (ours, default) in step.options.items():
      # null is a value of strip_accents, which means to follow lowercase.
      if theirs in stated and (
        stated[theirs] is not None or theirs == "strip_accents"
      ):
        if stated[theirs] != found.get(ours):
          differ[ours] = stated[theirs]
      elif found.get(ours) != default:
        unstated[theirs] = (default, found.get(ours))
    follows = name.lower().startswith(step.classes)
    if differ and follows:
      changed[step.step] = found | differ
      notes.append(
        f"{CONFIG_NAME} and {path.name} disagree; used as in transformers: "
        f"{_list(differ)} of the former"
      )
    elif differ:
      kept = {ours: found.get(ours) for ours in differ}
      notes.append(
        f"{CONFIG_NAME} and {path.name} disagree; used as in transformers for "
        f"tokenizer_class={name!r}: {_list(kept)} of the latter"
      )
    if unstated and follows:
      theirs, ours = (
        _list({key: pair[i] for key, pair in unstated.items()}) for i in (0, 1)
      )
      notes.append(
        f"{CONFIG_NAME} doesn't state {', '.join(unstated)}, so transformers "
        f"uses {theirs}; maskedlm uses {ours}, as in {path.name}: if the model "
        f"was trained otherwise, state it in {CONFIG_NAME}"
      )
  return json.dumps(definition | changed) if changed else content, notes


def compare(
  library: Backend, stated: Mapping[str, Any], path: pathlib.Path
) -> list[str]:
  """Returns notes on what a file states otherwise than those beside it.

  Args:
    library: the tokenizer.
    stated: companions.read_stated of the folder.
    path: the tokenizer's file.

  Raises:
    CorpusError: they state another [CLS], [SEP] or [MASK]; or another case than
      that of a sentencepiece model, which can't be changed.
  """
  is_json = library.file == "tokenizer.json"
  notes = []
  for role, index in library.special._asdict().items():
    token = companions.content_of(stated.get(f"{role}_token"))
    found = library.tokens[index]
    if not token or token == found:
      continue
    differs = (
      f"the {role}_token is {token!r} in the files beside it, but maskedlm "
      f"uses {found!r}"
    )
    # load_tokenizer appends those that a sentencepiece model lacks.
    if is_json and role in ("cls", "sep", "mask"):
      raise CorpusError(
        f"tokenizer {path}: {differs}, the first of "
        f"{', '.join(getattr(SPECIAL_NAMES, role))} in the vocabulary: rename "
        "the tokens in the tokenizer's files."
      )
    notes.append(differs)
  lowercases, asked = "A" not in library.normalize("A"), stated.get(_CASE)
  if not is_json and asked not in (None, lowercases):
    raise CorpusError(
      f"tokenizer {path}: {CONFIG_NAME} beside it states {_CASE}="
      f"{json.dumps(asked)}, but the model {_case(lowercases)}; if that is "
      f"meant, change {CONFIG_NAME}; else "
      f"{companions.convert_command(path.parent)}."
    )
  has_step = is_json and b'"BertNormalizer"' in library.content  # See `follow`.
  if not has_step and asked not in (None, lowercases):
    notes.append(
      f"{CONFIG_NAME} states {_CASE}={json.dumps(asked)}, but {path.name} "
      f"{_case(lowercases)}; used is the latter"
    )
  vocab = path.with_name("vocab.txt")
  if is_json and vocab.is_file() and (note := _compare_vocab(library, vocab)):
    notes.append(f"{note}; used is {path.name}")
  return notes


_CASE = "do_lower_case"


def _case(lowercases: bool) -> str:
  return "lowercases text" if lowercases else "keeps capitals"


def _compare_vocab(library: Backend, vocab: pathlib.Path) -> str:
  """Returns a clause on the first token that has another id, or ""."""
  lines = vocab.read_text("utf-8", errors="replace").split("\n")
  # The last of equal lines counts.
  ids = {line.rstrip(): index for index, line in enumerate(lines)}
  for token, index in ids.items():
    found = library.tokens[index] if index < len(library.tokens) else ""
    if token and token != found:
      return (
        f"{vocab.name} beside it has {token!r} at id {index}, where the "
        f"tokenizer has {found!r}"
      )
  return ""


def _list(options: Mapping[str, Any]) -> str:
  return ", ".join(f"{name}={x}" for name, x in options.items())
