"""The public API: a checkpoint as a small object of pure functions.

`maskedlm.load` is this file's `load`. The verbs fill-mask, embed and predict
call the same functions, so what they print is what these return. A wrong
argument raises a ValueError of one line (config.ConfigError, DataError of
finetune/contract.py), a damaged checkpoint a CheckpointError.
"""

import dataclasses
import functools
import itertools
import json
import operator
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from maskedlm.core.errors import ConfigError
from maskedlm.data.labelled.text_lines import Text
from maskedlm.data.tokenizers.tokenizer import Encoding, Tokenizer
from maskedlm.finetune import predict as inference
from maskedlm.finetune.contract import Prediction
from maskedlm.inference import fill_mask as filling
from maskedlm.inference.vectors import attention_maps as attention_lib
from maskedlm.inference.vectors import vectors as vectors_lib
from maskedlm.inference.vectors.attention_maps import Attention
from maskedlm.inference.vectors.vectors import Vectors
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.training.checkpoints import load as opening


def load(path: str | pathlib.Path) -> "Model":
  """Opens a checkpoint to be used.

  Args:
    path: a workdir of pretraining, of fine-tuning (its best checkpoint is
      taken) or of an import; or one of its checkpoints.

  Raises:
    CheckpointError: no checkpoint, or a damaged one.
    ConfigError: no such folder, no encoder, another run's tokenizer.
  """
  opened = opening.open_best(path)
  opened = opened._replace(params=jax.device_put(opened.params))
  return Model(str(path), opened)


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
  """What `load` opened. Its functions change nothing.

  Whatever a function needs is made when it is first called, and compiled for
  each new shape of a batch; the parameters are on the device once.
  """

  path: str
  opened: opening.Opened = dataclasses.field(repr=False)

  @property
  def cfg(self) -> EncoderConfig:
    """The architecture: cfg.num_layers, cfg.width, cfg.max_positions, ..."""
    return self.opened.cfg

  @property
  def tokenizer(self) -> Tokenizer:
    """The tokenizer; tokenizer.tokens(id) is a token as it is spelt."""
    return self.opened.tokenizer

  @property
  def meta(self) -> Mapping[str, Any]:
    """What the checkpoint says of itself: step, task, heldout, ..."""
    return self.opened.meta

  def tokenize(self, text: str, *, specials: bool = False) -> Encoding:
    """The n tokens of a text, without [CLS] and [SEP] around them.

    Args:
      text: any.
      specials: whether "[MASK]", "[SEP]" and so on in it are those tokens,
        as they are to fill_mask, or ordinary text.

    Returns:
      ids [n], offsets [n, 2] (characters of the text), word_ids [n].
    """
    return self.tokenizer.encode(_text(text), specials=specials)

  def fill_mask(
    self, text: str, *, top: int = 5
  ) -> list[list[tuple[str, float]]]:
    """For each mask of a text its `top` candidates, the most probable first.

    Args:
      text: with one [MASK] or more, or the tokenizer's own spelling of it.
      top: how many candidates.

    Returns:
      [(word, probability)] of each mask; a part of a word is spelt as the
      tokenizer does (##ing). No special token is among them.

    Raises:
      ConfigError: the model has no masked language model's head, the text no
        mask or more tokens than the model has positions.
    """
    if top < 1:
      raise ConfigError(f"top={top}: expected at least 1.")
    return filling.fill(self._filler, [_text(text)], top_k=top)[0].masks

  def encode(
    self,
    texts: Sequence[str],
    *,
    layers: Sequence[int] = (-1,),
    combine: str = "mean",
  ) -> list[np.ndarray]:
    """The contextual vectors of every token of each text.

    Row j of an array belongs to token j of `tokenize(text)`: no [CLS], no
    padding. A text may be longer than the encoder (docs/guides/use/embeddings.md).

    Args:
      texts: any number.
      layers, combine: see `vectors`.

    Returns:
      [n_i, C] float32 for each text of n_i tokens; C as in `vectors`.

    Raises:
      ConfigError: see `vectors`.
    """
    texts = _each("texts", texts, str)
    made = self.vectors(texts, unit="token", layers=layers, combine=combine)
    bounds = np.searchsorted(made.texts, np.arange(len(texts) + 1))
    return [made.values[a:b] for a, b in itertools.pairwise(bounds)]

  def embed(
    self,
    texts: Sequence[str],
    *,
    unit: str = "sentence",
    pool: str = "",
    layers: Sequence[int] = (-1,),
    combine: str = "mean",
    normalize: bool = False,
  ) -> np.ndarray:
    """The vectors [n, C] float32 of texts: by default row i is texts[i]'s.

    Arguments and errors are those of `vectors`, which also tells of other
    units whose they are.
    """
    made = self.vectors(
      texts,
      unit=unit,
      pool=pool,
      layers=layers,
      combine=combine,
      normalize=normalize,
    )
    return made.values

  def vectors(
    self,
    texts: Sequence[str],
    *,
    unit: str = "word",
    pool: str = "",
    layers: Sequence[int] = (-1,),
    combine: str = "mean",
    normalize: bool = False,
  ) -> Vectors:
    """The vectors of the units of texts, and whose each is.

    Args:
      texts: any number, of any length.
      unit: token | word | sentence (a text as a whole).
      pool: of a unit's tokens: mean | max | cls, the last of sentences. "" is
        of sentences as the model was imported or trained, else mean.
      layers: 0 is the embeddings, N or -1 the last layer.
      combine: of several layers: mean | sum | concat | stack.
      normalize: each vector to length 1.

    Returns:
      values [n, C] float32; texts [n], the place in `texts` of each; offsets
      [n, 2], its characters there; ids [n], of tokens. C is the width D, of k
      layers with concat k D; with stack values are [n, k, D].

    Raises:
      ConfigError: an unknown option or layer; one string for a list.
    """
    texts = _each("texts", texts, str)
    try:
      layers = tuple(map(operator.index, layers))
    except TypeError:
      raise ConfigError(
        f"layers={layers!r:.40}: expected numbers such as (-1,) or "
        "(-1, -2, -3, -4)."
      ) from None
    options = vectors_lib.as_made(
      vectors_lib.Options(unit, pool, layers, combine, normalize),
      self._encoder,
    )
    lines = (Text(text, line=i + 1) for i, text in enumerate(texts))
    made = list(vectors_lib.embed(self._encoder, lines, options))
    if not made:
      return vectors_lib.none(options, self.cfg)
    made = vectors_lib.collect(made)
    places = np.array([text.line - 1 for text in made.sources], np.int64)
    return made._replace(texts=places)

  def predict(
    self, examples: Sequence[str | Mapping[str, Any]], *, batch_size: int = 32
  ) -> list[Prediction]:
    """What a fine-tuned model says of each example.

    Args:
      examples: each a line of `maskedlm predict`'s input, or the JSON object
        of one: {"text": ...}, {"question": ..., "context": ...}, {"tokens":
        [...]}; the tutorial of each kind says which.
      batch_size: rows that the model sees at once.

    Returns:
      An object each, as `maskedlm predict --json` prints it.

    Raises:
      ConfigError: the model is not fine-tuned.
      DataError: an example is not of the model's kind.
    """
    examples = _each("examples", examples, (str, Mapping))
    model = self._predictor
    parsed = [
      model.kind.parse(
        example if isinstance(example, str) else _json(example), model.options
      )
      for example in examples
    ]
    return inference.predict(model, parsed, batch_size=batch_size)

  def attend(self, text: str) -> Attention:
    """Which token of a text attends to which, in every layer and head.

    Args:
      text: a [MASK] in it is one, as for fill_mask.

    Returns:
      tokens [l], [CLS] and [SEP] among them; weights [N, H, l, l] float32:
      layer, head, from, to. A row sums to 1.

    Raises:
      ConfigError: a text without a token, or with too many.
    """
    return attention_lib.attend(self._encoder, _text(text))

  @functools.cached_property
  def _filler(self) -> filling.Model:
    return filling.make_model(self.opened, self.path)

  @functools.cached_property
  def _encoder(self) -> vectors_lib.Model:
    return vectors_lib.make_model(self.opened)

  @functools.cached_property
  def _predictor(self) -> inference.Model:
    return inference.make_model(self.opened, self.path)


def _text(value: str) -> str:
  """The value; a ConfigError if it is no string."""
  if not isinstance(value, str):
    raise ConfigError(f"text is {value!r:.40}: expected a string.")
  return value


def _json(example: Mapping[str, Any]) -> str:
  """The example as JSON; a ConfigError for what has no form there."""
  try:
    return json.dumps(dict(example), default=lambda x: x.tolist())  # numpy's.
  except (TypeError, ValueError, AttributeError, RecursionError):
    raise ConfigError(
      f"the example {example!r:.60} can't be written as JSON: expected "
      "strings, numbers and lists of them."
    ) from None


def _each(name: str, values: Sequence, kinds) -> list:
  """The values in a list; a ConfigError for one of other kinds (None, nan)."""
  if isinstance(values, str):  # A sequence too, of letters: never meant.
    raise ConfigError(
      f"{name} is one string, {values[:40]!r}: expected a list; put it in [ ]."
    )
  if not isinstance(values, Iterable):
    raise ConfigError(f"{name} is {values!r:.40}: expected a list.")
  values = list(values)
  for i, value in enumerate(values):
    if not isinstance(value, kinds):
      expected = "a string" if kinds is str else "a string or a dict"
      raise ConfigError(f"{name}[{i}] is {value!r:.40}: expected {expected}.")
  return values
