"""Explains how options differ from those that a corpus was prepared with."""

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from maskedlm.data.prepare import options, vocabulary_sample
from maskedlm.data.prepare.options import TOKENIZER_HASH

# The values of options that a corpus may lack.
_USUAL = {
  "corpus.parts": "",
  **{f"corpus.{n}": v for n, v in options.LATER_OPTIONS.items()},
  **{f"tokenizer.{n}": v for n, v in vocabulary_sample.LATER_OPTIONS.items()},
}


def describe_differences(
  path: str,
  given: Mapping[str, Any],
  recorded: Mapping[str, Any],
  names: Sequence[str],
) -> str:
  """Returns an error message: what differs, and the options to give.

  Args:
    path: the corpus.
    given: the options of this command, such as {"corpus.source": "text:a"}.
    recorded: those of the corpus.
    names: the options that differ.
  """
  shown, remedy = [], {}
  given_tokenizer = TOKENIZER_HASH in (given.keys() | recorded.keys())
  for name in names:
    if name.startswith("tokenizer.") and given_tokenizer:
      continue  # How the one of the two that was trained was made.
    shown.append(f"{name}={given.get(name)!r} (there {recorded.get(name)!r})")
    remedy[name] = recorded.get(name, _USUAL.get(name))
  if recorded.get("corpus.parts"):  # It replaces them.
    remedy = {
      n: v
      for n, v in remedy.items()
      if n not in ("corpus.source", "corpus.language")
    }
  if given_tokenizer and any(name.startswith("tokenizer.") for name in names):
    folder = os.path.join(path, "tokenizer")
    mine = given.get(TOKENIZER_HASH)
    shown.append(
      f"tokenizer.path={f'(SHA-256 {mine})' if mine else repr('')} "
      f"(there that of {folder})"
    )
    remedy["tokenizer.path"] = folder
  give = (f"--config.{n}={shlex.quote(str(v))}" for n, v in remedy.items())
  return (
    f"{path} was prepared with other options: {', '.join(shown)}. To use it, "
    f"give {' '.join(give)}; to prepare another corpus, choose another path."
  )
