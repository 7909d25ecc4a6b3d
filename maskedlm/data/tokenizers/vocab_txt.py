"""Reads BERT's vocab.txt, which says nothing of case and accents itself."""

import pathlib
import re

from maskedlm.core.errors import CorpusError
from maskedlm.data.tokenizers import training
from maskedlm.data.tokenizers.libraries import (
  CONFIG_NAME,
  SPECIAL_NAMES,
  Backend,
  Special,
  find_special,
  parse_json,
  read_tokenizer_json,
)


def read(
  content: bytes, path: pathlib.Path, *, lowercase: bool | None
) -> Backend:
  """Reads BERT's vocab.txt, in which the token on line i has id i.

  Raises:
    CorpusError: the file is not UTF-8 or lacks special tokens, or the
      tokenizer_config.json next to it is broken.
  """
  try:
    lines = content.decode("utf-8-sig").removesuffix("\n").split("\n")
  except UnicodeDecodeError as error:
    raise CorpusError(
      f"tokenizer {path}: not UTF-8 ({error}); expected one token per line."
    ) from error
  lines = [line.rstrip() for line in lines]
  # As in BERT, the last of equal lines counts; the others only keep their ids.
  ids = {line: index for index, line in enumerate(lines)}
  tokens = [
    line if line and ids[line] == index else f"[unused line {index}]"
    for index, line in enumerate(lines)
  ]
  find_special(ids, path, Special(*(names[:1] for names in SPECIAL_NAMES)))
  config = path.with_name(CONFIG_NAME)
  stated = parse_json(config.read_bytes(), config) if config.exists() else {}
  if lowercase is None:
    lowercase = stated.get("do_lower_case")
  if lowercase is None:
    lowercase = not any(
      re.search("[A-Z]", token) for token in tokens if token[0] != "["
    )
  definition = training.bert_json(
    tokens,
    lowercase=bool(lowercase),
    strip_accents=stated.get("strip_accents"),
    handle_chinese_chars=stated.get("tokenize_chinese_chars") is not False,
  )
  return read_tokenizer_json(definition, path)
