"""Lists the options that a corpus records, and explains how others differ."""

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from maskedlm.core.options import value_of
from maskedlm.data.options import TextConfig
from maskedlm.data.prepare import vocabulary_sample
from maskedlm.data.tokenizers.tokenizer import Tokenizer

# Options of config.corpus that determine the content of a corpus.
OPTIONS = (
  "source",
  "text_field",
  "sentences",
  "language",
  "heldout_share",
  "max_sentence_tokens",
  "shard_tokens",
)
# Options added later, and their values in corpora that don't record them.
LATER_OPTIONS = {
  "corpus.keep_language": 0.0,
  "corpus.min_words": 0,
  "corpus.max_words": 0,
  "corpus.max_repetition": 1.0,
  "corpus.unique_lines": False,
  "corpus.deduplicate": False,
  "corpus.near_duplicates": 0.0,
  "corpus.letters": "upper",
  **{f"tokenizer.{n}": v for n, v in vocabulary_sample.LATER_OPTIONS.items()},
}
# Recorded instead of the tokenizer's options if tokenizer.path is set.
TOKENIZER_HASH = "tokenizer.path (its SHA-256)"


def recorded_options(
  config: TextConfig, tokenizer: Tokenizer | None, *, domains: bool
) -> dict[str, Any]:
  """Returns the options that determine a corpus's content, for its meta.json.

  Options added later are included only if they differ from their earlier value,
  so that a corpus prepared by an older version still matches. The hash of the
  tokenizer, which is needed with tokenizer.path alone, is recorded instead of
  it. `domains` is whether the corpus has them (corpus.parts).
  """
  names = [f"corpus.{name}" for name in OPTIONS]
  names += [f"tokenizer.{name}" for name in vocabulary_sample.OPTIONS]
  recorded = {name: value_of(config, name) for name in names}
  for name, before in LATER_OPTIONS.items():
    if (value := value_of(config, name)) != before:
      recorded[name] = value
  lowercases = vocabulary_sample.lowercases(config.tokenizer)
  recorded["tokenizer.lowercase"] = lowercases
  if domains:
    recorded["tokenizer.alpha"] = config.tokenizer.alpha
  if config.corpus.parts:
    recorded["corpus.parts"] = config.corpus.parts
    del recorded["corpus.source"], recorded["corpus.language"]
  if config.tokenizer.path:
    recorded = {n: v for n, v in recorded.items() if n.startswith("corpus.")}
    recorded[TOKENIZER_HASH] = tokenizer.sha256
  return recorded


def describe_differences(
  path: str,
  given: Mapping[str, Any],
  recorded: Mapping[str, Any],
  names: Sequence[str],
) -> str:
  """Returns an error message: what differs, and the options to give.

  `given` are this command's, such as {"corpus.source": "text:a"}, `recorded`
  those of the corpus at `path`, and `names` those that differ.
  """
  usual = {"corpus.parts": "", **LATER_OPTIONS}
  shown, remedy = [], {}
  given_tokenizer = TOKENIZER_HASH in (given.keys() | recorded.keys())
  for name in names:
    if name.startswith("tokenizer.") and given_tokenizer:
      continue  # How the one of the two that was trained was made.
    shown.append(f"{name}={given.get(name)!r} (there {recorded.get(name)!r})")
    remedy[name] = recorded.get(name, usual.get(name))
  if recorded.get("corpus.parts"):  # It replaces them.
    for name in ("corpus.source", "corpus.language"):
      remedy.pop(name, None)
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
