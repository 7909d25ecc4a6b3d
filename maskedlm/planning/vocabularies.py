"""Measures how well vocabularies fit languages.

Those that a config would train, with alpha = 1 and with its tokenizer.alpha,
are measured on held-out text; saved ones on the text of --parts.
"""

import collections
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from maskedlm.core.errors import ConfigError
from maskedlm.data import sampling
from maskedlm.data.options import CorpusOptions, TextConfig
from maskedlm.data.prepare import local, vocabulary_sample
from maskedlm.data.prepare.documents import show_progress
from maskedlm.data.sources import domains, reader
from maskedlm.data.sources.domains import Domain
from maskedlm.data.sources.sentences import stripped
from maskedlm.data.tokenizers import lost_text, tokenizer, training
from maskedlm.runtime import console

MEASURED_BYTES = 1 << 20  # Bytes measured, from the start of each text.
# Characters; if words are longer on average, the script has no spaces.
LONGEST_WORD = 20
# measure -> (heading, format).
COLUMNS = {
  "share_of_sample": ("of the sample", "{:.2%}"),
  "tokens_per_word": ("tokens/word", "{:.2f}"),
  "characters_per_token": ("characters/token", "{:.2f}"),
  "lost_share": ("lost", "{:.2%}"),
  "byte_share": ("bytes", "{:.2%}"),
}
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")


class Vocabulary(NamedTuple):
  """A vocabulary to compare."""

  label: str
  tokenizer: tokenizer.Tokenizer
  shares: Mapping[str, float]  # Language -> share of training text; {} unknown.


def train_both(
  config: TextConfig,
) -> tuple[list[Vocabulary], dict[str, list[str]]]:
  """Trains a config's vocabularies; returns them and language -> held-out text.

  Raises:
    ConfigError: the config has no parts, or names a saved tokenizer.
    CorpusError: the text is wrong, or none of it is held out.
  """
  if not config.corpus.parts or config.tokenizer.path:
    raise ConfigError(
      f"corpus.parts={config.corpus.parts!r}, tokenizer.path="
      f"{config.tokenizer.path!r}: the report trains a vocabulary on several "
      "parts; give them, or give --tokenizer and --parts."
    )
  if config.corpus.heldout_share <= 0:
    raise ConfigError(
      "corpus.heldout_share=0: the report is measured on held-out text; "
      "expected a share such as 0.05."
    )
  texts: dict[str, list[str]] = {}
  sizes: collections.Counter = collections.Counter()

  def heldout(document):
    part = document.domain.name
    if sizes[part] < MEASURED_BYTES:
      text = "\n".join(stripped(document.lines))[:MEASURED_BYTES]
      texts.setdefault(part, []).append(text)
      sizes[part] += training.utf8_length(text)

  documents = show_progress(
    local.document_reader(config, collections.Counter())(),
    "reading",
    lambda d: (1, d.num_bytes),
  )
  alphas = sorted({1.0, float(config.tokenizer.alpha)}, reverse=True)
  samples = vocabulary_sample.collect_samples(
    vocabulary_sample.training_sentences(config, documents, heldout=heldout),
    max_bytes=vocabulary_sample.max_sample_bytes(config),
    alphas=alphas,
  )
  names = [sample.name for sample in samples]
  counts = [sample.num_sentences for sample in samples]
  return [
    Vocabulary(
      f"alpha={alpha:g}",
      vocabulary_sample.train_on_sentences(
        vocabulary_sample.draw_sentences(samples, config, alpha=alpha), config
      ),
      dict(
        zip(
          names, sampling.sampling_shares(counts, alpha).tolist(), strict=True
        )
      ),
    )
    for alpha in alphas
  ], texts


def load_saved(
  paths: Sequence[str],
  labels: Sequence[str],
  option: str,
  *,
  text_field: str = "text",
) -> tuple[list[Vocabulary], dict[str, list[str]]]:
  """Loads saved tokenizers, and the beginning of each language's text.

  Args:
    paths: the tokenizers.
    labels: what they are called in the table.
    option: the value of --parts.
    text_field: the field of the parts that holds the text.

  Raises:
    ConfigError: `option` (--parts) is empty.
    CorpusError: a tokenizer or a text can't be read.
  """
  if not option:
    raise ConfigError(
      "--tokenizer needs text: give --parts, as de:/data/de.txt,fr:/data/fr.txt"
      " or a folder of such files."
    )
  texts = {}
  parts = domains.parse_domains(CorpusOptions(parts=option))
  if text_field != "text" and not any(
    part.source.partition(":")[0] in reader.FIELD_TYPES for part in parts
  ):
    raise ConfigError(
      f"--text_field={text_field} has no effect: no part of --parts={option} "
      f"has fields; expected {', '.join(reader.FIELD_TYPES)}, as "
      "de:jsonl:FILE, or leave it out."
    )
  for part in parts:
    with domains.errors_of_domain(part.name):
      texts[part.name] = list(_beginning(part, text_field))
  tokenizers = list(map(tokenizer.load_tokenizer, paths))
  for path, saved in zip(paths, tokenizers, strict=True):
    for note in saved.notes:
      console.log(f"tokenizer {path}: {note}")
  return [
    Vocabulary(label, saved, {})
    for label, saved in zip(labels, tokenizers, strict=True)
  ], texts


def _beginning(part: Domain, text_field: str) -> Iterable[str]:
  report: collections.Counter = collections.Counter()
  size = 0
  for lines in reader.read_documents(
    part.source, text_field=text_field, report=report
  ):
    text = "\n".join(stripped(lines))[:MEASURED_BYTES]
    yield text
    size += training.utf8_length(text)
    if size >= MEASURED_BYTES:
      return


def measure_vocabularies(
  vocabularies: Sequence[Vocabulary], texts: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, Any]]:
  """Returns language -> characters and, by vocabulary, the values of COLUMNS.

  tokens_per_word ("fertility") is None if the script has no spaces.
  lost_share is of the characters (lost_text.py), byte_share of the tokens; byte
  tokens are those of a unigram model, or in BPE those that are only part of a
  character.
  """
  byte_masks = [_byte_tokens(v) for v in vocabularies]
  table: dict[str, dict[str, Any]] = {}
  for name, documents in texts.items():
    words = sum(len(text.split()) for text in documents)
    characters = sum(map(len, documents))
    spaced = characters <= LONGEST_WORD * words
    row = table[name] = {"characters": characters, "vocabularies": {}}
    for v, is_byte in zip(vocabularies, byte_masks, strict=True):
      separator = v.tokenizer.line_separator
      joined = [text.replace("\n", separator) for text in documents]
      ids = np.concatenate(v.tokenizer.encode_batch(joined))
      lost = lost_text.total(lost_text.count_texts(v.tokenizer, joined))
      tokens = max(len(ids), 1)
      row["vocabularies"][v.label] = {
        "share_of_sample": v.shares.get(name),
        "tokens_per_word": tokens / words if spaced else None,
        "characters_per_token": characters / tokens,
        "lost_share": lost / max(characters, 1),
        "byte_share": np.mean(is_byte[ids]).item(),
      }
  return table


def _byte_tokens(v: Vocabulary) -> np.ndarray:
  """Returns which tokens are not whole characters, bool [V]."""
  ids = range(v.tokenizer.vocab_size)
  if v.tokenizer.kind == "bpe":
    return np.array(["\ufffd" in v.tokenizer.decode([i]) for i in ids])
  return np.array([bool(_BYTE.fullmatch(v.tokenizer.tokens(i))) for i in ids])


def format_report(table: Mapping[str, Mapping[str, Any]]) -> list[str]:
  """Formats the table, a line for each language and vocabulary, in order.

  Columns without any value are left out.
  """
  columns = {
    name: column
    for name, column in COLUMNS.items()
    if any(
      values[name] is not None
      for row in table.values()
      for values in row["vocabularies"].values()
    )
  }
  headings = ("part", "vocabulary", *(title for title, _ in columns.values()))
  rows = [
    (name, label, *(_cell(values[c], form) for c, (_, form) in columns.items()))
    for name, row in table.items()
    for label, values in row["vocabularies"].items()
  ]
  return console.table(headings, rows, align="<<")


def _cell(value: float | None, form: str) -> str | None:
  return None if value is None else form.format(value)
