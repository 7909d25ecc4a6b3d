"""Lists the options that a corpus records, and explains how others differ."""

import dataclasses
import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from maskedlm.core.options import value_of
from maskedlm.data.options import CorpusOptions, TextConfig, TokenizerOptions
from maskedlm.data.tokenizers.tokenizer import Tokenizer

# Options that a corpus doesn't record, or records in another way.
_NOT_COMPARED = (
  *("corpus.path", "corpus.cache_gb", "corpus.num_workers", "corpus.max_lost"),
  *("corpus.parts", "tokenizer.path", "tokenizer.alpha"),
)
# The options that determine the content of a corpus, and their defaults, with
# which corpora were prepared that don't record an option: none may change.
DEFAULTS = {
  name: field.default
  for section, cls in (
    ("corpus", CorpusOptions),
    ("tokenizer", TokenizerOptions),
  )
  for field in dataclasses.fields(cls)
  if (name := f"{section}.{field.name}") not in _NOT_COMPARED
}
# Recorded even if they are the default. Those that were added later are not, so
# that a corpus prepared by an older version still matches.
_ALWAYS = (
  *("corpus.source", "corpus.text_field", "corpus.sentences"),
  *("corpus.language", "corpus.heldout_share", "corpus.max_sentence_tokens"),
  *("corpus.shard_tokens", "tokenizer.kind", "tokenizer.vocab_size"),
  *("tokenizer.lowercase", "tokenizer.sample_bytes"),
)
# Recorded instead of the tokenizer's options if tokenizer.path is set.
TOKENIZER_HASH = "tokenizer.path (its SHA-256)"


def recorded_options(
  config: TextConfig, tokenizer: Tokenizer | None, *, domains: bool
) -> dict[str, Any]:
  """Returns the options that determine a corpus's content, for its meta.json.

  The hash of the tokenizer, which is needed with tokenizer.path alone, is
  recorded instead of it. `domains` is whether the corpus has them
  (corpus.parts).
  """
  recorded = {
    name: value
    for name, default in DEFAULTS.items()
    if (value := value_of(config, name)) != default or name in _ALWAYS
  }
  recorded["tokenizer.lowercase"] = config.tokenizer.lowercase is not False
  if domains:
    recorded["tokenizer.alpha"] = config.tokenizer.alpha
  if config.corpus.parts:
    recorded["corpus.parts"] = config.corpus.parts
    del recorded["corpus.source"], recorded["corpus.language"]
  if config.tokenizer.path:
    recorded = {n: v for n, v in recorded.items() if n.startswith("corpus.")}
    assert tokenizer is not None  # Needed with a path.
    recorded[TOKENIZER_HASH] = tokenizer.sha256
  return recorded


def describe_differences(
  path: str,
  requested: Mapping[str, Any],
  recorded: Mapping[str, Any],
  names: Sequence[str],
) -> str:
  """Returns an error message: what differs, and the options to give.

  `requested` are this command's options, such as {"corpus.source": "text:a"},
  `recorded` those of the corpus at `path`, and `names` those that differ.
  """
  usual = {"corpus.parts": "", **DEFAULTS}
  shown, remedy = [], {}
  given_tokenizer = TOKENIZER_HASH in (requested.keys() | recorded.keys())
  for name in names:
    if name.startswith("tokenizer.") and given_tokenizer:
      continue  # Those of the two that was trained, not given.
    shown.append(
      f"{name}={requested.get(name)!r} (there {recorded.get(name)!r})"
    )
    remedy[name] = recorded.get(name, usual.get(name))
  if recorded.get("corpus.parts"):  # It replaces them.
    for name in ("corpus.source", "corpus.language"):
      remedy.pop(name, None)
  if given_tokenizer and any(name.startswith("tokenizer.") for name in names):
    folder = os.path.join(path, "tokenizer")
    digest = requested.get(TOKENIZER_HASH)
    shown.append(
      f"tokenizer.path={f'(SHA-256 {digest})' if digest else repr('')} "
      f"(there that of {folder})"
    )
    remedy["tokenizer.path"] = folder
  give = (f"--config.{n}={shlex.quote(str(v))}" for n, v in remedy.items())
  return (
    f"{path} was prepared with other options: {', '.join(shown)}. To use it, "
    f"give {' '.join(give)}; to prepare another corpus, choose another path."
  )
