"""Computes vectors of tokens, words or texts.

Layers are selected and combined on the device; units are pooled on the host
(pooling.py). Everything is streamed, so memory doesn't grow with the length of
the input or of one of its texts.
"""

import functools
import hashlib
import operator
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse

from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError, check_name
from maskedlm.core.task import Params
from maskedlm.data.labelled.text_lines import Text
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune import predict
from maskedlm.inference import rows
from maskedlm.inference.batch_tokens import BATCH_TOKENS
from maskedlm.inference.vectors import pooling, splade
from maskedlm.inference.vectors.rows import make_row_cutter, number_units
from maskedlm.inference.vectors.units import UNITS
from maskedlm.modeling import masked_lm
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.runtime import console
from maskedlm.training.checkpoints import load

# Rows are sorted by length within this many batches, or fewer if the vectors
# yielded at a time would have more than MAX_NUMBERS numbers.
BATCHES_AT_ONCE = 64
MAX_NUMBERS = 1 << 24


class SentencePooling(NamedTuple):
  """A model's way of making sentence vectors: meta["task"]["sentences"]."""

  pool: str = "mean"  # See VectorOptions.
  normalize: bool = False
  length: int = 0  # The most positions in a row; 0 = the encoder's.
  # Name, such as "query" -> text that users put before such texts.
  prompts: Mapping[str, str] = {}
  # Name of the prompt that sentence-transformers' `encode` adds; "" = none.
  default_prompt: str = ""
  truncate_dim: int = 0  # How many first numbers of a vector count; 0 = all.


class TextEncoder(NamedTuple):
  """An encoder that is ready to compute vectors."""

  params: Params  # {"encoder": ...}, on the device.
  cfg: EncoderConfig
  tokenizer: Tokenizer
  sentences: SentencePooling
  length: int  # The most positions in a row, if units are not sentences.
  batch_tokens: int = BATCH_TOKENS  # About how many positions a batch has.


class VectorOptions(NamedTuple):
  """Which vectors to compute."""

  unit: str = "token"  # token | word | sentence.
  # How a unit's tokens are pooled: mean | max | cls ([CLS]; sentences only), or
  # splade, of models that were trained so: the values are then sparse.
  pool: str = "mean"
  # 0 is the embeddings, N or -1 the last layer.
  layers: Sequence[int] = (-1,)
  combine: str = "mean"  # How layers are combined: mean | sum | concat | stack.
  normalize: bool = False  # Whether to scale each vector to length 1.
  truncate_dim: int = 0  # How many first numbers to keep; 0 = all.
  # Whether to scale whole vectors, too, as sentence-transformers does.
  normalize_whole: bool = False


class Vectors(NamedTuple):
  """Vectors of n units, in the order of the input.

  C is the encoder's width D, or k D for k concatenated layers; stacked values
  are [n, k, D].
  """

  values: np.ndarray  # [n, C] float32; of splade a sparse.csr_array [n, V].
  texts: np.ndarray  # [n] int64: the text's index among those with vectors.
  offsets: np.ndarray  # [n, 2] int64: the unit's characters in its text.
  ids: np.ndarray  # [n] int32: the id if units are tokens, else -1.
  sources: tuple[Text, ...]  # [n]: the Text of each unit.


COMBINE = {  # [k, B, L, D] -> [B, L, C]
  "mean": lambda x: jnp.mean(x, axis=0),
  "sum": lambda x: jnp.sum(x, axis=0),
  "concat": lambda x: jnp.concatenate(x, axis=-1),
  "stack": lambda x: jnp.moveaxis(x, 0, 2),
}


def open_text_encoder(
  path: str | pathlib.Path, *, length: int = 0, batch_tokens: int = BATCH_TOKENS
) -> TextEncoder:
  """Opens a workdir (its best checkpoint if fine-tuned) or a checkpoint.

  For ELECTRA, the encoder is the discriminator's. A length of 0 is that of the
  encoder's positions, and for sentences as the model was trained or imported.
  """
  opened = load.open_best(path)
  return make_text_encoder(opened, length=length, batch_tokens=batch_tokens)


def make_text_encoder(
  opened: load.LoadedCheckpoint,
  *,
  length: int = 0,
  batch_tokens: int = BATCH_TOKENS,
) -> TextEncoder:
  """Returns the TextEncoder of a loaded checkpoint; see open_text_encoder."""
  cfg = opened.cfg
  predict.check_length(length, cfg.max_positions)
  sentences = sentence_pooling(opened.meta["task"], cfg)
  parts = ["encoder", *["mlm_head"] * (sentences.pool == splade.POOL)]
  params = jax.device_put({name: opened.params[name] for name in parts})
  sentences = sentences._replace(length=length or sentences.length)
  L = length or cfg.max_positions
  return TextEncoder(params, cfg, opened.tokenizer, sentences, L, batch_tokens)


def sentence_pooling(
  task: Mapping[str, Any], cfg: EncoderConfig
) -> SentencePooling:
  """Returns the pooling in meta["task"], with a length the encoder supports."""
  sentences = SentencePooling(**task.get("sentences", {}))
  limit = cfg.max_positions
  return sentences._replace(length=min(sentences.length or limit, limit))


def resolve_options(
  options: VectorOptions, model: TextEncoder
) -> VectorOptions:
  """Returns the options with an empty `pool` replaced by the model's own.

  The model's own pooling of sentences includes its normalization, and the
  number of dimensions. Other units are pooled by the mean.
  """
  if options.pool:
    return options
  if options.unit != "sentence":
    return options._replace(pool="mean")
  sentences = model.sentences
  dim = options.truncate_dim or sentences.truncate_dim
  return options._replace(
    pool=sentences.pool,
    normalize=options.normalize or (sentences.normalize and not dim),
    truncate_dim=dim,
    normalize_whole=sentences.normalize and dim > 0,
  )


def fingerprint(model: TextEncoder) -> str:
  """Returns the SHA-256 of the encoder's parameters and its tokenizer."""
  digest = hashlib.sha256(model.tokenizer.sha256.encode())
  encoder = model.params["encoder"]
  for path, leaf in jax.tree_util.tree_leaves_with_path(encoder):
    digest.update(jax.tree_util.keystr(path).encode())
    digest.update(np.asarray(leaf).tobytes())
  return digest.hexdigest()


def resolve_layers(
  options: VectorOptions, cfg: EncoderConfig
) -> tuple[int, ...]:
  """Returns options.layers as numbers from 0 to N.

  Raises:
    ConfigError: an option is unknown or not supported by the encoder.
  """
  check_name("unit", options.unit, UNITS)
  check_name("pool", options.pool, pooling.REDUCTIONS)
  check_name("combine", options.combine, COMBINE)
  if options.pool == "cls" and options.unit != "sentence":
    raise ConfigError(
      f"pool='cls' requires unit='sentence': a {options.unit} has no "
      "[CLS]; or set pool to 'mean' or 'max'."
    )
  try:
    layers = tuple(map(operator.index, options.layers))
  except TypeError:
    raise ConfigError(
      f"layers={options.layers!r:.40}: expected numbers such as (-1,) or "
      "(-1, -2, -3, -4)."
    ) from None
  if not layers:
    raise ConfigError("layers is empty: expected at least one, such as -1.")
  C = cfg.width * (len(layers) if options.combine == "concat" else 1)
  if not 0 <= options.truncate_dim <= C:
    raise ConfigError(
      f"truncate_dim={options.truncate_dim}: the vectors have {C} numbers; "
      f"expected 1 to {C}, or 0 for all of them."
    )
  N = cfg.num_layers
  for layer in layers:
    if not -N - 1 <= layer <= N:
      raise ConfigError(
        f"layers has {layer}: the encoder has {counted(N, 'layer')}; expected "
        f"0 (its embeddings) to {N}, or counted from the end -1 to {-N - 1}."
      )
  return tuple(layer % (N + 1) for layer in layers)


def embed(
  model: TextEncoder,
  texts: Iterable[Text | str],
  options: VectorOptions = VectorOptions(),  # noqa: B008 - immutable.
  *,
  long: list[int] | None = None,
) -> Iterator[Vectors]:
  """Yields the Vectors of texts, several units at a time.

  A text without a unit (for example without a word) has no vector. A vector
  doesn't depend on the other texts, except for rounding.

  The texts are consumed as needed; the options' `pool` may not be "". `long`
  receives the number of tokens of each text longer than a row, for log_windows.
  """
  cfg, batch_tokens = model.cfg, model.batch_tokens
  layers = resolve_layers(options, cfg)
  if is_sparse := options.pool == splade.POOL:
    is_last = layers == (cfg.num_layers,)
    splade.check(model.params, is_last, options.truncate_dim)
    encoder, width = splade.make_encoder(cfg), cfg.padded_vocab_size
  else:
    encoder = make_layer_encoder(cfg, layers, options.combine)
    is_merged = options.combine in ("mean", "sum")
    width = cfg.width * (1 if is_merged else len(layers))
  num_tokens = min(
    BATCHES_AT_ONCE * batch_tokens, max(MAX_NUMBERS // width, batch_tokens)
  )
  encode = functools.partial(encoder, model.params)
  is_sentence = options.unit == "sentence"
  length = model.sentences.length if is_sentence else model.length
  buckets = rows.bucket_lengths(length)

  def encode_chunk(ids: Sequence[np.ndarray]) -> Iterator:
    plan = rows.plan_packed_batches(
      list(map(len, ids)), buckets, batch_tokens=batch_tokens
    )
    pad = model.tokenizer.special.pad
    return rows.compute_packed(encode, ids, plan, pad=pad)

  cut = make_row_cutter(model.tokenizer, options.unit, length=length)
  chunks = rows.chunk_rows(
    number_units(texts, cut, long), num_tokens, lambda pair: len(pair[0].ids)
  )

  def finish(x: np.ndarray) -> np.ndarray:
    x = _normalized(x) if options.normalize_whole else x
    x = x[:, ..., : options.truncate_dim or None]
    x = _normalized(x) if options.normalize else x
    return sparse.csr_array(x) if is_sparse else x

  units = pooling.pool_chunks(chunks, encode_chunk, options.pool, cfg)
  return (Vectors(finish(values), *fields) for values, fields in units)


def embed_list(
  model: TextEncoder,
  texts: Sequence[str],
  options: VectorOptions,
  *,
  length_option: str,
) -> Vectors:
  """Returns the vectors of the units of a list of texts; there may be none.

  Their `texts` are indices of `texts`. The options' `pool` may be ""; log lines
  name length_option, which sets the length, such as "--length={}".

  Raises:
    ConfigError: see resolve_layers.
  """
  options = resolve_options(options, model)
  lines = (Text(text, line=i + 1) for i, text in enumerate(texts))
  long: list[int] = []
  parts = list(embed(model, lines, options, long=long))
  log_windows(model, options, long, option=length_option)
  if not parts:
    return empty_vectors(options, model.cfg)
  joined = collect(parts)
  indices = np.array([text.line - 1 for text in joined.sources], np.int64)
  return joined._replace(texts=indices)


def log_windows(
  model: TextEncoder, options: VectorOptions, long: Sequence[int], option: str
) -> None:
  """Logs a line if sentences were longer than a row, and so combine windows.

  sentence-transformers cuts such texts. Tokens and words, which are read in the
  middle of a window, need no such line. `embed` got the options and has filled
  `long`; the option sets the length, such as "--length={}".
  """
  if long and options.unit == "sentence":
    note = rows.long_note(
      len(long),
      max(long),
      "vectors combine windows",
      length=model.sentences.length,
      positions=model.cfg.max_positions,
      option=option,
    )
    console.log(note)


def _normalized(x: np.ndarray) -> np.ndarray:
  """Returns vectors of length 1; divides by at least 1e-12, as PyTorch does."""
  return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12)


def collect(vectors: Iterable[Vectors]) -> Vectors:
  """Returns all Vectors that `embed` yields, concatenated.

  Raises:
    ConfigError: there is no vector.
  """
  parts = list(vectors)
  if not parts:
    raise ConfigError("no text has a vector: expected at least one.")
  return Vectors(*pooling.join_fields(parts))


def empty_vectors(options: VectorOptions, cfg: EncoderConfig) -> Vectors:
  """Returns Vectors of no units, with the shapes that `embed` yields."""
  x = np.zeros((len(resolve_layers(options, cfg)), 1, 1, cfg.width), np.float32)
  values = np.asarray(COMBINE[options.combine](x))
  values = values[0, :0, ..., : options.truncate_dim or None]
  texts, offsets = np.zeros(0, np.int64), np.zeros((0, 2), np.int64)
  return Vectors(values, texts, offsets, np.zeros(0, np.int32), ())


@functools.lru_cache(maxsize=8)  # So that a second call compiles nothing.
def make_layer_encoder(
  cfg: EncoderConfig, layers: tuple[int, ...], combine: str
) -> Callable:
  """Returns a jitted (params, batch) -> combined layers, float32 [B, L, C]."""

  @jax.jit
  def encode(params, batch):
    x = masked_lm.encode_layers(cfg, params, batch)[np.array(layers)]
    return COMBINE[combine](x.astype(jnp.float32))

  return encode
