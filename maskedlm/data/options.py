"""The options of text and rows: config.corpus, .tokenizer and .data."""

import dataclasses
import math

from maskedlm.core.options import frozen_option, option
from maskedlm.data.sources import reader
from maskedlm.runtime import buckets


def _has_fields(config, source: str) -> bool:
  """Returns whether a source has records, whose text is in a field."""
  return bool(config.corpus.path) or any(
    f"{kind}:" in source for kind in reader.FIELD_TYPES
  )


def _has_sequences(config) -> bool:
  corpus = config.corpus
  return bool(corpus.path) or "fasta:" in corpus.source + corpus.parts


def _has_sentences(config) -> bool:
  corpus = config.corpus
  is_fasta = corpus.source.startswith("fasta:") and not corpus.parts
  return bool(corpus.path) or not is_fasta


def _has_parts(config) -> bool:
  """Returns whether the text may have parts; a prepared corpus may."""
  return bool(config.corpus.parts or config.corpus.path)


def _is_streamed(config) -> bool:
  """Returns whether the run, or a phase of it, reads a corpus at an address."""
  phase_paths = [phase.get("corpus.path", "") for phase in config.phases]
  return any(map(buckets.is_address, [config.corpus.path, *phase_paths]))


@dataclasses.dataclass(frozen=True)
class CorpusOptions:
  """Options of config.corpus: what `maskedlm prepare` reads and writes."""

  path: str = option(
    "",
    "A prepared corpus; '' for WORKDIR/corpus, prepared if necessary.",
    phase=True,
  )
  cache_gb: float | None = option(
    None,
    "GB (10^9 bytes) of the tokens of a corpus at an address (gs://..., "
    "https://...) that each host's disk holds, at most; the others are read "
    "when needed (docs/guides/pretrain/many-hosts.md). None to copy it whole.",
    low=0.001,
    below=math.inf,
    needs={"corpus.path": _is_streamed},
    machine=True,
  )
  source: str = option(
    "docstrings:",
    "The text: text:GLOB (a blank line ends a document), lines:GLOB (every "
    "line is a document), jsonl:GLOB, parquet:GLOB, fasta:GLOB, tfds:NAME or "
    "docstrings:. A GLOB may be hf://datasets/NAME/GLOB.",
    needs={"corpus.parts": False},
  )
  parts: str = option(
    "",
    "Several languages, instead of source: NAME:SOURCE,... or folders of "
    "de.txt, fr.txt, and so on.",
  )
  text_field: str = option(
    "text",
    "Field of the text in JSONL, Parquet and TFDS.",
    needs={
      "corpus.source": lambda config: (
        config.corpus.parts or _has_fields(config, config.corpus.source)
      ),
      "corpus.parts": lambda config: (
        not config.corpus.parts or _has_fields(config, config.corpus.parts)
      ),
    },
  )
  letters: str = option(
    "upper",
    "Of FASTA: upper (capitals; N and other letters stay), keep (as the file "
    "has them) or drop (capitals of bases only: no N, R, Y, ...).",
    choices=("upper", "keep", "drop"),
    needs={"corpus.source": _has_sequences},
  )
  sentences: str = option(
    "split",
    "split: sentencex cuts each line into sentences; lines: a line is a "
    "sentence.",
    choices=("split", "lines"),
    needs={"corpus.source": _has_sentences},
  )
  language: str = option(
    "en",
    "ISO 639-1 code, for splitting sentences and for keep_language.",
    needs={
      "corpus.parts": False,
      "corpus.sentences": lambda config: (
        config.corpus.sentences == "split" or config.corpus.keep_language
      ),
      "corpus.source": _has_sentences,
    },
  )
  keep_language: float = option(
    0.0,
    "Leave out documents that py3langid does not identify as of the language, "
    "or their part's, with at least this probability; 0 to keep them.",
    low=0.0,
    high=1.0,
  )
  min_words: int = option(0, "Leave out documents of fewer words.", low=0)
  max_words: int = option(
    0, "Leave out documents of more words; 0 to keep them.", low=0
  )
  max_repetition: float = option(
    1.0,
    "Leave out documents of whose runs of 5 words a larger share occurred "
    "before in them.",
    low=0.0,
    high=1.0,
  )
  unique_lines: bool = option(
    False, "Leave out lines that equal an earlier one, in any document."
  )
  deduplicate: bool = option(False, "Drop documents that equal an earlier one.")
  near_duplicates: float = option(
    0.0,
    "Also drop documents whose similarity to an earlier one (Jaccard index "
    "of 5-word sequences) is at least this; 0 to keep them.",
    low=0.0,
    high=1.0,
  )
  heldout_share: float = option(
    0.01,
    "Share of the documents that is held out; of fewer than 200, of windows.",
    low=0.0,
    high=0.9,
  )
  max_lost: float = option(
    0.2,
    "Share of the characters that may be lost, in unknown tokens or dropped by "
    "the tokenizer; more is refused.",
    low=0.0,
    high=1.0,
  )
  max_sentence_tokens: int = option(
    128,
    "Tokens in a sentence, at most; a longer one is stored as several.",
    low=1,
    needs={"corpus.source": _has_sentences},
  )
  shard_tokens: int = option(
    1 << 26,
    "Approximate number of tokens in a shard.",
    low=1,
    high=1 << 32,  # shards.MAX_TOKENS
  )
  num_workers: int = option(
    0,
    "Processes of prepare; 0 for one per core.",
    low=0,
    high=4_096,
    machine=True,
  )


# What options need that only the training of a vocabulary reads.
_TO_TRAIN = {"tokenizer.path": False}


def _trained_as(*kinds: str) -> dict:
  """Returns the need for a vocabulary that is given, or is of these kinds."""
  return {
    "tokenizer.kind": lambda config: (
      config.tokenizer.path or config.tokenizer.kind in kinds
    )
  }


_WORDS = ("wordpiece", "bpe", "unigram")
_OF_WORDS = _trained_as(*_WORDS)


@dataclasses.dataclass(frozen=True)
class TokenizerOptions:
  """Options of config.tokenizer: a given vocabulary, or how to train one."""

  path: str = option(
    "",
    "vocab.txt, tokenizer.json or .model, or a folder with one, also gs://...; "
    "'' to train one.",
  )
  kind: str = option(
    "wordpiece",
    "The algorithm of a trained vocabulary; characters and kmers are of "
    "sequences without words (docs/guides/pretrain/sequences.md).",
    # The last is only read, not trained.
    choices=(*_WORDS, "characters", "kmers", "wordlevel"),
  )
  vocab_size: int = option(
    30_522,
    "Tokens, the 5 special ones included.",
    low=6,
    high=16_777_216,
    needs=_trained_as(*_WORDS, "characters"),
  )
  lowercase: bool | None = option(
    None,
    "Lowercase and strip accents, as in uncased BERT; None: True to train one, "
    "and what a given vocab.txt shows.",
    needs=_OF_WORDS,
  )
  sample_bytes: int = option(
    1 << 28,
    "Bytes of text to train on, at most; unigram reads no more than 32 MB.",
    low=1,
    high=1 << 40,
    needs=_TO_TRAIN,
  )
  normalization: str = option(
    "",
    "Unicode normalization; '' is nfkc for unigram and none for the others.",
    choices=("", "nfc", "nfkc", "none"),
    needs=_OF_WORDS,
  )
  character_coverage: float = option(
    0.9999,
    "Share of the text's characters that the vocabulary covers, at least.",
    low=0.0,
    high=1.0,
    needs={**_trained_as("wordpiece", "unigram", "characters"), **_TO_TRAIN},
  )
  byte_fallback: bool = option(
    False,
    "For unigram: spell characters that are not covered as bytes.",
    needs=_trained_as("unigram"),
  )
  k: int = option(
    6,
    "Letters in a k-mer; the vocabulary has all 4^k of DNA, or of RNA.",
    low=1,
    high=10,
    needs={**_trained_as("kmers"), **_TO_TRAIN},
  )
  stride: int = option(
    1,
    "Letters from a k-mer's beginning to the next one's, at most k.",
    low=1,
    high=10,
    needs={**_trained_as("kmers"), **_TO_TRAIN},
  )
  alpha: float = option(
    0.3,
    "With corpus.parts, sentences are drawn by (share of the text)^alpha.",
    low=0.0,
    high=1.0,
    needs={"corpus.parts": _has_parts, **_TO_TRAIN},
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextConfig:
  """What preparing a corpus reads of a config of pretraining."""

  seed: int
  corpus: CorpusOptions
  tokenizer: TokenizerOptions


@dataclasses.dataclass(frozen=True)
class DataOptions:
  """Options of config.data: the rows of a step."""

  length: int = frozen_option(
    128,
    "Tokens in a row, L, special ones included.",
    low=8,
    high=1_048_576,
    phase=True,
  )
  batch_size: int = frozen_option(
    256, "Rows in a step, over all devices.", low=1, high=1_048_576, phase=True
  )
  alpha: float = frozen_option(
    0.3,
    "With corpus.parts, rows are drawn by (share of all rows)^alpha; 1 leaves "
    "the shares as they are.",
    low=0.0,
    high=1.0,
    phase=True,
    needs={"corpus.parts": _has_parts, "data.shares": False},
  )
  shares: str = frozen_option(
    "",
    "The share of every part, instead of alpha: en-web=0.7,en-code=0.3.",
    phase=True,
  )
