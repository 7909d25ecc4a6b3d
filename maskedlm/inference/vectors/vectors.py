"""Texts -> vectors of their tokens, of their words, or of the texts.

Layers are chosen and combined on the device; units are pooled on the host
(pooling.py). Everything streams: no more is in memory than some rows, however
long the input, or one text of it, is.
"""

import functools
import hashlib
import itertools
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.core.errors import ConfigError, check_name
from maskedlm.core.task import Params
from maskedlm.data.labelled.text_lines import Text
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.common import batching
from maskedlm.finetune.contract import Rows
from maskedlm.inference.vectors import pooling
from maskedlm.inference.vectors import rows as rows_lib
from maskedlm.inference.vectors.rows import Row
from maskedlm.inference.vectors.units import UNITS
from maskedlm.modeling import masked_lm
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.training.checkpoints import load

BATCH_TOKENS = 4096  # Positions of a batch, padding included.
# Rows are sorted by length within so many batches, or within fewer where the
# vectors given out at once would be more numbers than HELD.
BATCHES = 16
HELD = 1 << 24


class Sentences(NamedTuple):
  """How a model makes a sentence's vector; in meta["task"], where it says."""

  pool: str = "mean"  # As of Options.
  normalize: bool = False
  length: int = 0  # Positions of a row at most; 0 = all of the encoder's.
  # What whoever embeds writes before each text, by what that is: a query, ...
  prompts: Mapping[str, str] = {}


class Model(NamedTuple):
  """An encoder made ready."""

  params: Params  # "encoder"; on the device.
  cfg: EncoderConfig
  tokenizer: Tokenizer
  sentences: Sentences


class Options(NamedTuple):
  """Which vectors."""

  unit: str = "token"  # token | word | sentence
  # Of the tokens of a unit: mean | max | cls, which is [CLS], for sentences.
  pool: str = "mean"
  # Of the N + 1 layers: 0 the embeddings, N or -1 the last.
  layers: tuple[int, ...] = (-1,)
  combine: str = "mean"  # Of the layers: mean | sum | concat | stack.
  normalize: bool = False  # Each vector to length 1.


class Vectors(NamedTuple):
  """Vectors of n units, in the order of the input.

  C is D, the encoder's width; with combine="concat" it is k D for k layers;
  with "stack" values are [n, k, D].
  """

  values: np.ndarray  # [n, C] float32.
  texts: np.ndarray  # [n] int64: 0, 1, ... of the texts that have vectors.
  offsets: np.ndarray  # [n, 2] int64: the unit's characters in its text.
  ids: np.ndarray  # [n] int32: of a token its id, else -1.
  sources: tuple[Text, ...]  # [n]: the text of each.


COMBINE = {  # [k, B, L, D] -> [B, L, C]
  "mean": lambda x: jnp.mean(x, axis=0),
  "sum": lambda x: jnp.sum(x, axis=0),
  "concat": lambda x: jnp.concatenate(x, axis=-1),
  "stack": lambda x: jnp.moveaxis(x, 0, 2),
}


def open_model(path: str | pathlib.Path) -> Model:
  """Opens a workdir (if fine-tuned, its best checkpoint) or a checkpoint.

  Of ELECTRA it is the discriminator's encoder.

  Raises:
    CheckpointError, ConfigError: see opening.py.
  """
  return make_model(load.open_best(path))


def make_model(opened: load.Opened) -> Model:
  """As open_model, of what is open."""
  params = jax.device_put({"encoder": opened.params["encoder"]})
  sentences = sentences_of(opened.meta["task"], opened.cfg)
  return Model(params, opened.cfg, opened.tokenizer, sentences)


def sentences_of(task: Mapping[str, Any], cfg: EncoderConfig) -> Sentences:
  """What meta["task"] says of sentences; length is the encoder's at most."""
  made, most = Sentences(**task.get("sentences", {})), cfg.max_positions
  return made._replace(length=min(made.length or most, most))


def as_made(options: Options, model: Model) -> Options:
  """Options whose pool is chosen: "" is the model's own, of sentences.

  A vector of its own pooling is normalized if it says so.
  """
  if options.pool:
    return options
  if options.unit != "sentence":
    return options._replace(pool="mean")
  own = model.sentences
  normalize = options.normalize or own.normalize
  return options._replace(pool=own.pool, normalize=normalize)


def fingerprint(model: Model) -> str:
  """SHA-256 of the encoder's parameters and its tokenizer."""
  digest = hashlib.sha256(model.tokenizer.sha256.encode())
  leaves = jax.tree_util.tree_leaves_with_path(model.params["encoder"])
  for path, leaf in leaves:
    digest.update(jax.tree_util.keystr(path).encode())
    digest.update(np.asarray(leaf).tobytes())
  return digest.hexdigest()


def find_layers(options: Options, cfg: EncoderConfig) -> tuple[int, ...]:
  """options.layers as numbers from 0 to N.

  Raises:
    ConfigError: an option that is unknown, or that doesn't fit.
  """
  check_name("unit", options.unit, UNITS)
  check_name("pool", options.pool, pooling.REDUCE)
  check_name("combine", options.combine, COMBINE)
  if options.pool == "cls" and options.unit != "sentence":
    raise ConfigError(
      f"pool='cls' is the vector of a sentence, a {options.unit} has no "
      "[CLS]: set unit='sentence', or pool to 'mean' or 'max'."
    )
  if not options.layers:
    raise ConfigError("layers is empty: expected one at least, such as -1.")
  N = cfg.num_layers
  for layer in options.layers:
    if not -N - 1 <= layer <= N:
      raise ConfigError(
        f"layers has {layer}: the encoder has {N} layers; expected 0 (its "
        f"embeddings) to {N}, or counted from the end -1 to {-N - 1}."
      )
  return tuple(layer % (N + 1) for layer in options.layers)


def embed(
  model: Model,
  texts: Iterable[Text | str],
  options: Options = Options(),  # noqa: B008 - it is constant.
  *,
  batch_tokens: int = BATCH_TOKENS,
) -> Iterator[Vectors]:
  """The vectors of texts, some at a time.

  A text without such a unit (not a word in it) has no vector. A vector does
  not depend on the texts around it, but for rounding.

  Args:
    model: from open_model.
    texts: they are read as they are needed.
    options: which vectors.
    batch_tokens: about how many positions the encoder sees at once.

  Raises:
    ConfigError: see find_layers.
  """
  cfg = model.cfg
  layers = find_layers(options, cfg)
  width = cfg.width * (1 if options.combine in ("mean", "sum") else len(layers))
  num_tokens = min(BATCHES * batch_tokens, max(HELD // width, batch_tokens))
  encode = functools.partial(
    encoder(cfg, layers, options.combine), model.params
  )
  is_sentence = options.unit == "sentence"
  length = model.sentences.length if is_sentence else cfg.max_positions
  buckets = rows_lib.bucket_lengths(length)

  def encode_rows(rows: Sequence[Row]) -> Iterator[tuple[int, np.ndarray]]:
    lengths = [len(row.ids) for row in rows]
    plan = rows_lib.plan(lengths, buckets, batch_tokens=batch_tokens)
    return run(encode, rows, plan, pad=model.tokenizer.special.pad)

  cut = rows_lib.cutter(model.tokenizer, options.unit, length=length)
  chunks = _chunks(_number(texts, cut), num_tokens)
  made = _stream(chunks, encode_rows, options.pool, causal=cfg.causal)
  return map(_normalized, made) if options.normalize else made


def _normalized(vectors: Vectors) -> Vectors:
  """To length 1; but nothing is divided by less than 1e-12, as in PyTorch."""
  norms = np.linalg.norm(vectors.values, axis=-1, keepdims=True)
  return vectors._replace(values=vectors.values / np.maximum(norms, 1e-12))


def collect(vectors: Iterable[Vectors]) -> Vectors:
  """All that `embed` gives, in one.

  Raises:
    ConfigError: there is none.
  """
  made = list(vectors)
  if not made:
    raise ConfigError("there is no text with a vector: expected one at least.")
  *arrays, sources = zip(*made, strict=True)
  return Vectors(*map(np.concatenate, arrays), tuple(itertools.chain(*sources)))


def none(options: Options, cfg: EncoderConfig) -> Vectors:
  """No vector, in the shape that it would have.

  Raises:
    ConfigError: see find_layers.
  """
  x = np.zeros((len(find_layers(options, cfg)), 1, 1, cfg.width), np.float32)
  return Vectors(
    values=np.asarray(COMBINE[options.combine](x))[0, :0],
    texts=np.zeros(0, np.int64),
    offsets=np.zeros((0, 2), np.int64),
    ids=np.zeros(0, np.int32),
    sources=(),
  )


@functools.lru_cache(maxsize=8)  # So that a second call compiles nothing.
def encoder(
  cfg: EncoderConfig, layers: tuple[int, ...], combine: str
) -> Callable:
  """The function (params, batch) -> combined layers [B, L, C] float32."""

  @jax.jit
  def encode(params, batch):
    x = masked_lm.encode_layers(cfg, params, batch)[np.array(layers)]
    return COMBINE[combine](x.astype(jnp.float32))

  return encode


def run(
  encode: Callable,
  rows: Sequence[Row],
  plan: Iterable[tuple[np.ndarray, int]],
  *,
  pad: int,
) -> Iterator[tuple[int, np.ndarray]]:
  """Each row's index and vectors [l, C], as the plan has them.

  Args:
    encode: batch -> [B, L, C].
    rows: what to encode.
    plan: from rows.plan.
    pad: the id that fills input_ids.
  """
  ids = [row.ids for row in rows]
  arrays = Rows(
    tokens={"input_ids": ids, "token_type_ids": list(map(np.zeros_like, ids))},
    values={},
    example=np.arange(len(rows)),
  )
  ahead: list = []
  for which, L in plan:
    batch = batching.gather(arrays, which, L, pad)
    ahead.append((which, encode(batch)))
    if len(ahead) > 1:  # The device works on the next one meanwhile.
      yield from _by_row(ids, *ahead.pop(0))
  for made in ahead:
    yield from _by_row(ids, *made)


def _by_row(ids, which, made) -> Iterator[tuple[int, np.ndarray]]:
  for row, x in zip(which, jax.device_get(made), strict=True):
    if row >= 0:
      yield int(row), x[: len(ids[row])]


class _Waiting(NamedTuple):
  """Fields of Vectors, of units whose values are still to come."""

  texts: np.ndarray
  offsets: np.ndarray
  ids: np.ndarray
  sources: tuple[Text, ...]


def _number(
  texts: Iterable[Text | str], cut: Callable[[Text], rows_lib.Cut]
) -> Iterator[tuple[Row, _Waiting | None]]:
  """Rows, whose units are numbered over all texts.

  With the first row of a text come all of its units.
  """
  first = number = 0
  for text in texts:
    text = Text(text) if isinstance(text, str) else text
    units, rows = cut(text)
    count = len(units.offsets)
    waiting = _Waiting(
      np.full(count, number), units.offsets, units.ids, (text,) * count
    )
    for i, row in enumerate(rows):
      moved = np.where(row.units >= 0, row.units + first, row.units)
      yield row._replace(units=moved), None if i else waiting
    first, number = first + count, number + bool(rows)


def _chunks(numbered: Iterable[tuple], num_tokens: int) -> Iterator[list]:
  """Lists of what comes: rows of num_tokens positions, or a row more."""
  chunk, held = [], 0
  for row, waiting in numbered:
    chunk.append((row, waiting))
    held += len(row.ids)
    if held >= num_tokens:
      yield chunk
      chunk, held = [], 0
  if chunk:
    yield chunk


def _stream(
  chunks: Iterable[list], encode_rows: Callable, pool: str, *, causal: bool
) -> Iterator[Vectors]:
  """The vectors of the units that are whole after each chunk."""
  waiting: list[_Waiting] = []
  last: list[pooling.Parts] = []  # Of the last unit, which may go on.
  for chunk in chunks:
    rows = [row for row, _ in chunk]
    waiting += [new for _, new in chunk if new is not None]
    parts: list = [None] * len(rows)
    for i, x in encode_rows(rows):
      cls_place = len(x) - 1 if causal else 0
      parts[i] = pooling.of_row(x, rows[i], pool, cls_place=cls_place)
    made = pooling.join([*last, *parts], pool)
    last = [pooling.Parts(*(field[-1:] for field in made))]
    whole = pooling.Parts(*(field[:-1] for field in made))
    if len(whole.units):
      done, rest = _split(waiting, len(whole.units))
      waiting = [rest]
      yield Vectors(pooling.finish(whole, pool), *done)
  if waiting:
    done, _ = _split(waiting, 1)
    yield Vectors(pooling.finish(last[0], pool), *done)


def _split(waiting: list[_Waiting], count: int) -> tuple[_Waiting, _Waiting]:
  """The first `count` units, and those after them."""
  *arrays, sources = zip(*waiting, strict=True)
  fields = [*map(np.concatenate, arrays), tuple(itertools.chain(*sources))]
  return (
    _Waiting(*(field[:count] for field in fields)),
    _Waiting(*(field[count:] for field in fields)),
  )
