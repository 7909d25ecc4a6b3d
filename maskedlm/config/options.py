"""The shared options of pretraining: defaults, meanings, ranges.

The others are next to the code that reads them: config.model in
modeling/architecture.py, config.optimizer in training/optimizer.py, and
config.objective in the objective's file.
"""

import dataclasses
import math

from maskedlm.core.options import option
from maskedlm.training import trackers


@dataclasses.dataclass(frozen=True)
class RunOptions:
  """Options at the top level of any config."""

  name: str = option(
    "maskedlm", "Name of the run; the default workdir is runs/<name>."
  )
  seed: int = option(
    0,
    "All random choices derive from it.",
    low=0,
    high=2**32 - 1,  # JAX uses no more bits for keys.
    frozen=True,
  )
  profile: int = option(
    0,
    "Steps to trace, early in the run (docs/guides/pretrain/profiling.md).",
    low=0,
  )
  init_from: str = option(
    "",
    "A run or an import to start from: its weights, architecture and "
    "tokenizer.",
    frozen=True,
  )


@dataclasses.dataclass(frozen=True)
class PretrainOptions(RunOptions):
  """Options at the top level of a config of pretraining."""

  continue_from: str = option(
    "",
    "A run, or one of its checkpoints, to continue with other options: its "
    "weights, moments, step, architecture and tokenizer; train.num_steps "
    "counts its steps too.",
    frozen=True,
  )
  grow: str = option(
    "",
    "tile: start a larger model from init_from, whose layers and widths are "
    "repeated (grow.py); the sizes are then the config's own.",
    choices=("", "tile"),
    frozen=True,
  )
  phases: tuple[dict, ...] = option(
    (),
    "Parts of the run, each with a length (steps, tokens or share) and changed "
    "options, such as ({}, {'share': 0.1, 'data.length': 512}); () for one.",
    frozen=True,
  )
  init_tokens: str = option(
    "",
    "A file of word vectors (word2vec, GloVe) from which the embeddings of "
    "tokens that are whole words start; '' for random ones.",
    frozen=True,
  )


@dataclasses.dataclass(frozen=True)
class CorpusOptions:
  """Options of config.corpus: what `maskedlm prepare` reads and writes."""

  path: str = option(
    "", "A prepared corpus; '' for WORKDIR/corpus, prepared if necessary."
  )
  cache_gb: float | None = option(
    None,
    "GB (10^9 bytes) of the tokens of a corpus at an address (gs://..., "
    "https://...) that each host's disk holds, at most; the others are read "
    "when needed (docs/guides/pretrain/many-hosts.md). None to copy it whole.",
    low=0.001,
    below=math.inf,
  )
  source: str = option(
    "docstrings:",
    "The text: text:GLOB (a blank line ends a document), lines:GLOB (every "
    "line is a document), jsonl:GLOB, parquet:GLOB, tfds:NAME or docstrings:.",
  )
  parts: str = option(
    "",
    "Several languages, instead of source: NAME:SOURCE,... or folders of "
    "de.txt, fr.txt, and so on.",
  )
  text_field: str = option(
    "text", "Field of the text in JSONL, Parquet and TFDS."
  )
  sentences: str = option(
    "split",
    "split: sentencex cuts each line into sentences; lines: a line is a "
    "sentence.",
    choices=("split", "lines"),
  )
  language: str = option("en", "ISO 639-1 code, for splitting sentences.")
  deduplicate: bool = option(False, "Drop documents that equal an earlier one.")
  near_duplicates: float = option(
    0.0,
    "Also drop documents whose similarity to an earlier one (Jaccard index "
    "of 5-word sequences) is at least this; 0 to keep them.",
    low=0.0,
    high=1.0,
  )
  heldout_share: float = option(
    0.01, "Share of the documents that is held out.", low=0.0, high=0.9
  )
  max_sentence_tokens: int = option(
    128,
    "Tokens in a sentence, at most; a longer one is stored as several.",
    low=1,
  )
  shard_tokens: int = option(
    1 << 26,
    "Approximate number of tokens in a shard.",
    low=1,
    high=1 << 32,  # shards.MAX_TOKENS
  )
  num_workers: int = option(
    0, "Processes of prepare; 0 for one per core.", low=0, high=4_096
  )


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
    "The algorithm of a trained vocabulary.",
    choices=("wordpiece", "bpe", "unigram"),
  )
  vocab_size: int = option(
    30_522,
    "Tokens, the 5 special ones included.",
    low=6,
    high=16_777_216,
  )
  lowercase: bool | None = option(
    None,
    "Lowercase and strip accents, as in uncased BERT; None: True to train one, "
    "and what a given vocab.txt shows.",
  )
  sample_bytes: int = option(
    1 << 28, "Bytes of text to train on, at most.", low=1, high=1 << 40
  )
  normalization: str = option(
    "",
    "Unicode normalization; '' is nfkc for unigram and none for the others.",
    choices=("", "nfc", "nfkc", "none"),
  )
  character_coverage: float = option(
    0.9999,
    "Share of the text's characters that the vocabulary covers, at least.",
    low=0.0,
    high=1.0,
  )
  byte_fallback: bool = option(
    False, "For unigram: spell characters that are not covered as bytes."
  )
  alpha: float = option(
    0.3,
    "With corpus.parts, sentences are drawn by (share of the text)^alpha.",
    low=0.0,
    high=1.0,
  )


@dataclasses.dataclass(frozen=True)
class DataOptions:
  """Options of config.data: the rows of a step."""

  length: int = option(
    128,
    "Tokens in a row, L, special ones included.",
    low=8,
    high=1_048_576,
    frozen=True,
  )
  batch_size: int = option(
    256,
    "Rows in a step, over all devices.",
    low=1,
    high=1_048_576,
    frozen=True,
  )
  alpha: float = option(
    0.3,
    "With corpus.parts, rows are drawn by (share of all rows)^alpha; 1 leaves "
    "the shares as they are.",
    low=0.0,
    high=1.0,
    frozen=True,
  )
  shares: str = option(
    "",
    "The share of every part, instead of alpha: en-web=0.7,en-code=0.3.",
    frozen=True,
  )


@dataclasses.dataclass(frozen=True)
class TrainOptions:
  """Options of config.train: length, logs, evaluation and checkpoints."""

  num_steps: int = option(100_000, "Number of updates.", low=1)
  accumulate: int = option(
    1, "Microbatches in a step; the update is the same.", low=1
  )
  log_every: int = option(
    100,
    "Steps between log lines; the step of a checkpoint is always logged.",
    low=1,
  )
  eval_every: int = option(
    5_000, "Steps between evaluations on held-out rows.", low=1
  )
  eval_rows: int = option(
    2_048, "Held-out rows, at most; 0 for no evaluation.", low=0
  )
  checkpoint_every: int = option(1_000, "Steps between checkpoints.", low=1)
  keep_last: int = option(2, "Newest checkpoints kept.", low=1)
  keep_best: int = option(
    1,
    "Checkpoints of the lowest held-out loss that are kept too; above 0, each "
    "evaluated step is saved.",
    low=0,
  )
  keep_every: int = option(
    0,
    "Steps between checkpoints that are kept for good, the first before any "
    "training; 0 for none.",
    low=0,
  )
  ema_decay: float = option(
    0.0,
    "Decay of an exponential moving average of the weights, which is evaluated "
    "beside them (ema_loss) and saved; 0 for none.",
    low=0,
    below=1,
    frozen=True,
  )
  resume_unverified: bool = option(
    False,
    "If no checkpoint can be verified, resume from the newest one without a "
    "manifest.sha256, as it is.",
  )
  nonfinite_limit: int = option(
    10, "Consecutive non-finite steps after which the run stops.", low=1
  )
  spike_sigma: float = option(
    0.0,
    "A step whose loss is more than this many standard deviations above the "
    "mean of the last 128 is a spike, and is not applied; 6 is usual, 0 for no "
    "spikes.",
    low=0,
    below=math.inf,
  )
  on_spike: str = option(
    "skip",
    "After a spike: skip goes on with the next step, stop ends the run.",
    choices=("skip", "stop"),
  )
  prefetch: int = option(
    4, "Batches made ahead by background threads.", low=1, high=1_024
  )
  watch_every: int = option(
    0,
    "Steps between those that are measured from inside, before they are done: "
    "norms of gradients, parameters and updates by layer; attention entropy by "
    "layer, of encoders with attention; accuracy by frequency of the token, of "
    "objectives that predict tokens. 0 for none. Such a step takes several "
    "times as long.",
    low=0,
  )
  tracker: str = option(
    "",
    "Where the metrics are sent besides metrics.jsonl and TensorBoard "
    "(docs/guides/pretrain/watching.md); each needs the extra of its name.",
    choices=("", *trackers.TRACKERS),
  )


@dataclasses.dataclass(frozen=True)
class MeshOptions:
  """Options of config.mesh: the number of devices on each of its axes."""

  data: int = option(
    -1, "Data parallel; -1 for the devices that remain.", low=-1
  )
  fsdp: int = option(1, "Data parallel with sharded parameters.", low=-1)
  tensor: int = option(
    1, "Attention heads, MLP and vocabulary split over devices.", low=-1
  )
