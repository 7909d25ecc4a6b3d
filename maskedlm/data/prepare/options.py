"""Checks the options of `prepare`, and lists those that a corpus records."""

from typing import Any

from ml_collections import ConfigDict

from maskedlm.core.errors import ConfigError
from maskedlm.data.corpus import shards
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
LATER_OPTIONS = {"deduplicate": False, "near_duplicates": 0.0}
# Recorded instead of the tokenizer's options if tokenizer.path is set.
TOKENIZER_HASH = "tokenizer.path (its SHA-256)"


def check_options(config: ConfigDict) -> None:
  """Checks the ranges of options; sources and tokenizers check their own.

  Raises:
    ConfigError: an option is out of range.
  """
  options = config.corpus
  for name, low, high in (
    ("num_workers", 0, 1 << 12),
    ("max_sentence_tokens", 2, 1 << 20),
    ("shard_tokens", 1, shards.MAX_TOKENS - 1),
  ):
    if not low <= options[name] <= high:
      raise ConfigError(
        f"corpus.{name}={options[name]} must be within {low}..{high}."
      )
  if not 0 <= options.near_duplicates <= 1:
    raise ConfigError(
      f"corpus.near_duplicates={options.near_duplicates} is a similarity:"
      " expected 0 (keep all documents) to 1, such as 0.8."
    )
  if not 0 <= options.heldout_share < 1:
    raise ConfigError(
      f"corpus.heldout_share={options.heldout_share} must be at least 0 and"
      " below 1, such as 0.01."
    )


def recorded_options(
  config: ConfigDict,
  tokenizer: Tokenizer | None,
  *,
  domains: bool,
) -> dict[str, Any]:
  """Returns the options that determine a corpus's content, for its meta.json.

  Options added later are included only if they differ from their earlier value,
  so that a corpus prepared by an older version still matches.

  Args:
    config: `corpus` and `tokenizer` are read.
    tokenizer: needed only if tokenizer.path is set; the hash of its content is
      recorded instead of the path.
    domains: whether the corpus has domains (corpus.parts).
  """
  recorded = {f"corpus.{name}": config.corpus[name] for name in OPTIONS}
  for name, before in LATER_OPTIONS.items():
    if config.corpus[name] != before:
      recorded[f"corpus.{name}"] = config.corpus[name]
  if config.corpus.parts:
    recorded["corpus.parts"] = config.corpus.parts
    del recorded["corpus.source"], recorded["corpus.language"]
  if config.tokenizer.path:
    return {**recorded, TOKENIZER_HASH: tokenizer.sha256}
  for name in vocabulary_sample.OPTIONS:
    recorded[f"tokenizer.{name}"] = config.tokenizer[name]
  recorded["tokenizer.lowercase"] = vocabulary_sample.lowercases(
    config.tokenizer
  )
  for name, before in vocabulary_sample.LATER_OPTIONS.items():
    if config.tokenizer[name] != before:
      recorded[f"tokenizer.{name}"] = config.tokenizer[name]
  if domains:
    recorded["tokenizer.alpha"] = config.tokenizer.alpha
  return recorded
