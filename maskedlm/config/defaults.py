"""Every shared option, with its meaning and unit; each default lives here.

A config file (configs/*.py) starts from `default()` and sets what differs.
The options of an objective are the keyword-only arguments of its `make`, and
stand in `config.objective` beside its name.
"""

import functools
import inspect

from ml_collections import ConfigDict, config_dict

from maskedlm.config import presets
from maskedlm.core.errors import ConfigError, did_you_mean
from maskedlm.objectives import load


def default(objective: str = "mlm_nsp") -> ConfigDict:
  """The default config for an objective, a module of maskedlm/objectives."""
  config = ConfigDict()
  config.name = "maskedlm"  # Default workdir: runs/<name>.
  config.seed = 0  # Every random choice derives from it.
  config.profile = (
    0  # Steps to trace, early in the run (docs/guides/pretrain/profiling.md).
  )
  # A run or an import to start from: weights, architecture, tokenizer.
  config.init_from = ""
  config.objective = ConfigDict({"name": objective, **_options(objective)})

  config.corpus = corpus = ConfigDict()
  corpus.path = ""  # A prepared corpus; "" = WORKDIR/corpus, made if need be.
  # What prepare reads: text:GLOB (a blank line ends a document) | lines:GLOB
  # (every line does) | jsonl:GLOB | parquet:GLOB | tfds:NAME | docstrings:
  corpus.source = "docstrings:"
  # Several languages instead: NAME:SOURCE,... or folders of de.txt, fr.txt ...
  corpus.parts = ""
  corpus.text_field = "text"  # Of JSONL, Parquet and TFDS.
  # split: sentencex cuts each line into sentences; lines: a line is one.
  corpus.sentences = "split"
  corpus.language = "en"  # ISO 639-1, for sentence splitting.
  corpus.deduplicate = False  # Drop documents that equal an earlier one.
  # And those about as similar to one as this (Jaccard, of 5 words); 0 = keep.
  corpus.near_duplicates = 0.0
  corpus.heldout_share = 0.01  # Share of the documents held out.
  corpus.max_sentence_tokens = 128  # A longer sentence is stored as several.
  corpus.shard_tokens = 1 << 26  # Tokens in a shard, about.
  corpus.num_workers = 0  # Processes of prepare; 0 = one a core.

  config.tokenizer = tokenizer = ConfigDict()
  # vocab.txt, tokenizer.json or .model, or its folder, also gs://...; "" =
  # train one.
  tokenizer.path = ""
  tokenizer.kind = "wordpiece"  # To train: wordpiece | bpe | unigram.
  tokenizer.vocab_size = 30_522
  tokenizer.lowercase = True  # And strip accents, as uncased BERT does.
  tokenizer.sample_bytes = 1 << 28  # At most this much text is trained on.
  # nfc | nfkc | none (as written); "" = nfkc for unigram, none for the others.
  tokenizer.normalization = ""
  # Share of the text's characters that the vocabulary covers, at least.
  tokenizer.character_coverage = 0.9999
  tokenizer.byte_fallback = False  # Unigram: spell the others as bytes.
  # Of corpus.parts: sentences are drawn by (share of the text)^alpha.
  tokenizer.alpha = 0.3

  config.model = model = ConfigDict()
  model.num_layers = 12
  model.width = 768
  model.num_heads = 12
  model.mlp_width = 3072
  model.max_positions = 512
  model.activation = "gelu"  # gelu (erf) | gelu_tanh (Google's BERT).
  model.dropout = 0.1  # After embeddings, attention and MLP.
  model.attention_dropout = 0.1  # On attention probabilities.
  model.norm_epsilon = 1e-12
  model.init_stddev = 0.02  # Truncated normal.
  model.dtype = "float32"  # Of activations: float32 | bfloat16.
  # What backward recomputes: none | dots (all but matmuls) | full.
  model.remat = "none"
  # Unroll the loop over layers in training: as a loop it copies what each layer
  # keeps for backward (docs/guides/pretrain/scaling.md). Many layers take longer to compile.
  model.unroll = True
  # auto | xla | blockwise | triton | cudnn | tokamax | splash
  # (docs/guides/pretrain/attention.md).
  model.attention = "auto"
  # A larger vocabulary's logits are made in blocks of about so many words, and
  # again in backward, to save memory; the loss is the same.
  model.vocab_block = 65_536
  # What later encoders changed; as set here, each is BERT's.
  model.type_vocab_size = 2  # Token types (segments A and B); 0 = none.
  model.embedding_width = 0  # Projected to width (ELECTRA-small); 0 = width.
  model.embedding_norm = True
  model.position = "learned"  # learned | rope | alibi.
  model.rope_theta = 10_000.0  # Base of the wavelengths.
  model.local_rope_theta = 10_000.0  # The same, in layers with a window.
  model.local_window = 0  # Tokens seen, both sides together; 0 = all.
  model.global_every = 3  # With a window: layers 0, k, 2k, ... see all.
  model.causal = False  # A token sees what is left of it only.
  model.norm_order = "post"  # post (after each sum) | pre (before each part).
  model.norm_kind = "layer"  # layer | rms.
  model.skip_first_norm = False  # pre: none before the first attention.
  model.mlp = "plain"  # plain | gated (GeGLU).
  model.biases = True  # Of dense layers and norms.
  model.scaled_init = False  # out, down: init_stddev / sqrt(2 num_layers).

  config.data = data = ConfigDict()
  data.length = 128  # L, tokens in a row, specials included.
  data.batch_size = 256  # Rows in a step, over all devices.
  # Of corpus.parts: rows are drawn by (share of all rows)^alpha; 1 = as is.
  data.alpha = 0.3
  data.shares = ""  # Or by these: en-web=0.7,en-code=0.3, of every part.
  # A second phase on longer rows: the last long_share of the steps.
  data.long_share = 0.0
  data.long_length = 512
  data.long_batch_size = 256

  config.optimizer = presets.adamw()

  config.train = train = ConfigDict()
  train.num_steps = 100_000
  train.accumulate = 1  # Microbatches in a step; the update is the same.
  train.log_every = 100  # Steps; what a checkpoint ends is logged, too.
  train.eval_every = 5_000  # Steps between held-out evaluations.
  train.eval_rows = 2_048  # Held-out rows, at most; 0 = no evaluation.
  train.checkpoint_every = 1_000  # Steps.
  train.keep_last = 2  # Newest checkpoints kept.
  # Best ones by held-out loss, kept besides; then what is evaluated is saved.
  train.keep_best = 1
  train.nonfinite_limit = 10  # Non-finite steps in a row before it stops.
  train.prefetch = 4  # Batches made ahead by background threads.

  config.mesh = mesh = ConfigDict()
  mesh.data = -1  # Data parallel; -1 = the devices that remain.
  mesh.fsdp = 1  # Data parallel with sharded parameters.
  mesh.tensor = 1  # Heads, MLP and vocabulary split.
  return config.lock()  # A misspelt option in a config file is an error.


def _options(objective: str) -> dict:
  """The keyword-only arguments of the objective's make, with defaults."""
  parameters = inspect.signature(load(objective).make).parameters
  return {  # A yes or no may be left open: None.
    name: config_dict.placeholder(bool) if p.default is None else p.default
    for name, p in parameters.items()
    if p.kind is inspect.Parameter.KEYWORD_ONLY
  }


def validate(config: ConfigDict) -> None:
  """Checks what no single module can see, or what would fail late.

  Raises:
    ConfigError: naming the option, its value and what is expected.
  """
  given = set(config.objective.keys()) - {"name"}
  known = set(_options(config.objective.name))
  if given != known:
    odd = ", ".join(sorted(given ^ known))
    raise ConfigError(
      f"objective.name={config.objective.name!r} doesn't go with this "
      f"config's objective options ({odd}); start from a config written for "
      "it: maskedlm.config.defaults.default(name)."
    )
  check_ranges(config, _RANGES)
  for name, choices in _CHOICES:
    value = option(config, name)
    if value not in choices:
      raise ConfigError(
        f"{name}={value!r}: expected one of {', '.join(choices)}"
        f"{did_you_mean(value, choices)}"
      )
  longest = config.data.length
  if config.data.long_share > 0:
    longest = max(longest, config.data.long_length)
  if longest > config.model.max_positions:
    raise ConfigError(
      f"rows of {longest} tokens don't fit model.max_positions="
      f"{config.model.max_positions}; raise it or shorten the rows."
    )


def option(config: ConfigDict, name: str):
  """The value of an option by its name, such as "train.num_steps"."""
  return functools.reduce(ConfigDict.__getitem__, name.split("."), config)


def check_ranges(config: ConfigDict, ranges) -> None:
  """Raises ConfigError for an option outside of its (name, lowest, highest)."""
  for name, low, high in ranges:
    value = option(config, name)
    if not low <= value <= high:
      most = "or more" if high == _ANY else f"to {high}"
      raise ConfigError(
        f"{name}={value} is out of range: expected {low} {most}."
      )


_ANY = float("inf")
# (option, lowest, highest): what would otherwise fail late or oddly.
_RANGES = (
  ("seed", 0, 2**32 - 1),  # JAX's keys have no more bits of it.
  ("profile", 0, _ANY),
  ("corpus.heldout_share", 0.0, 0.9),
  ("corpus.near_duplicates", 0.0, 1.0),
  ("corpus.max_sentence_tokens", 1, _ANY),
  ("corpus.shard_tokens", 1, _ANY),
  ("corpus.num_workers", 0, _ANY),
  ("tokenizer.vocab_size", 6, _ANY),  # 5 are special.
  ("tokenizer.alpha", 0.0, 1.0),
  ("tokenizer.character_coverage", 0.0, 1.0),
  ("model.norm_epsilon", 0.0, _ANY),
  ("model.init_stddev", 0.0, _ANY),
  ("data.length", 8, _ANY),
  ("data.long_length", 8, _ANY),
  ("data.batch_size", 1, _ANY),
  ("data.long_batch_size", 1, _ANY),
  ("data.long_share", 0.0, 1.0),
  ("data.alpha", 0.0, 1.0),
  ("train.num_steps", 1, _ANY),
  ("train.accumulate", 1, _ANY),
  ("train.log_every", 1, _ANY),
  ("train.eval_every", 1, _ANY),
  ("train.eval_rows", 0, _ANY),
  ("train.checkpoint_every", 1, _ANY),
  ("train.keep_last", 1, _ANY),
  ("train.keep_best", 0, _ANY),
  ("train.nonfinite_limit", 1, _ANY),
  ("train.prefetch", 1, _ANY),
)
_CHOICES = (
  ("corpus.sentences", ("split", "lines")),
  ("tokenizer.kind", ("wordpiece", "bpe", "unigram")),
  ("tokenizer.normalization", ("", "nfc", "nfkc", "none")),
)
