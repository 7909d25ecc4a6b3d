"""The public API: a checkpoint as a small object with pure functions.

`maskedlm.load` is this module's `load`. The verbs fill-mask, embed and predict
call the same functions, so they print the same results. An invalid argument
raises a one-line ConfigError or DataError, both of which are ValueErrors; a
damaged checkpoint raises a CheckpointError.
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
from maskedlm.finetune import predict
from maskedlm.finetune.contract import Prediction
from maskedlm.finetune.predict import FineTunedModel
from maskedlm.inference import fill_mask
from maskedlm.inference.fill_mask import MaskFiller
from maskedlm.inference.pretrained import evaluate as pretrained
from maskedlm.inference.vectors import attention_maps, search, vectors
from maskedlm.inference.vectors.attention_maps import Attention
from maskedlm.inference.vectors.search import Hit
from maskedlm.inference.vectors.vectors import TextEncoder, Vectors
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.training.checkpoints.load import LoadedCheckpoint, open_best

_LENGTH = "maskedlm.load(..., length={})"  # For log lines.


def load(path: str | pathlib.Path, *, length: int = 0) -> "Model":
  """Opens a checkpoint for inference.

  Args:
    path: a workdir of pretraining, of fine-tuning (its best checkpoint is
      used) or of an import; or a single checkpoint of a workdir.
    length: the most tokens, special ones included, that `predict` and the
      vectors of texts read at once, from 8 to cfg.max_positions; 0 = as trained
      or imported. `predict` cuts a longer text or reads it in windows, as the
      task can, and logs how many were cut; vectors are made in windows.

  Raises:
    CheckpointError: there is no checkpoint, or it is damaged.
    ConfigError: the folder doesn't exist, the checkpoint has no encoder, the
      tokenizer belongs to another run, or the length is out of range.
  """
  opened = open_best(path)
  predict.check_length(length, opened.cfg.max_positions)
  opened = opened._replace(params=jax.device_put(opened.params))
  return Model(str(path), opened, length)


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
  """A checkpoint, as returned by `load`; immutable.

  A method's first call prepares what it needs, and every new batch shape is
  compiled once. All methods share a single copy of the parameters on the
  device.
  """

  path: str
  opened: LoadedCheckpoint = dataclasses.field(repr=False)
  length: int = 0  # As given to `load`.

  @property
  def cfg(self) -> EncoderConfig:
    """The architecture: cfg.num_layers, cfg.width, cfg.max_positions, ..."""
    return self.opened.cfg

  @property
  def tokenizer(self) -> Tokenizer:
    """The tokenizer; tokenizer.tokens(id) is a token's spelling."""
    return self.opened.tokenizer

  @property
  def meta(self) -> Mapping[str, Any]:
    """The metadata of the checkpoint: step, task, heldout, ..."""
    return self.opened.meta

  def tokenize(self, text: str, *, specials: bool = False) -> Encoding:
    """Returns the n tokens of a text, without [CLS] and [SEP].

    Args:
      text: any string.
      specials: whether "[MASK]", "[SEP]" and so on in the text become special
        tokens, as in fill_mask, rather than ordinary text.

    Returns:
      ids [n], offsets [n, 2] (characters of the text), word_ids [n].

    Raises:
      ConfigError: the text is not a string.
    """
    return self.tokenizer.encode(_text(text), specials=specials)

  def fill_mask(
    self, text: str, *, top: int = 5
  ) -> list[list[tuple[str, float]]]:
    """Returns the `top` most probable candidates for each mask of a text.

    Args:
      text: contains one or more [MASK], or the tokenizer's own mask token.
      top: the number of candidates.

    Returns:
      For each mask a list of (word, probability), most probable first.
      Subwords are spelt as in the tokenizer (##ing). Special tokens are never
      candidates. Of a text that is too long, the tokens around its masks are
      read, which is logged.

    Raises:
      ConfigError: top is below 1; the model has no masked language modeling
        head; the text has no mask, or its masks are further apart than the
        model has positions.
    """
    if top < 1:
      raise ConfigError(f"top={top}: expected at least 1.")
    return fill_mask.fill_masks(self._filler, [_text(text)], top_k=top)[0].masks

  def encode(
    self,
    texts: Sequence[str],
    *,
    layers: Sequence[int] = (-1,),
    combine: str = "mean",
  ) -> list[np.ndarray]:
    """Returns the contextual vector of every token of each text.

    Row j of an array belongs to token j of `tokenize(text)`: there are no rows
    for [CLS] or padding. A text may be longer than the encoder's positions
    (docs/guides/use/embeddings.md).

    Args:
      texts: a list of any length.
      layers: see `vectors`.
      combine: see `vectors`.

    Returns:
      An array [n_i, C] float32 for each text of n_i tokens; C as in `vectors`.

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
    """Returns vectors [n, C] float32; by default row i belongs to texts[i].

    The arguments and errors are those of `vectors`, which also returns the
    position of each unit.
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
    """Returns the vectors and the positions of the units of texts.

    Args:
      texts: a list of any length, of texts of any length.
      unit: token | word | sentence (the whole text).
      pool: how the tokens of a unit are pooled: mean | max | cls (sentences
        only). "" pools sentences as the model was imported or trained, and
        other units by the mean.
      layers: 0 is the embeddings, N or -1 the last layer.
      combine: how several layers are combined: mean | sum | concat | stack.
      normalize: whether to scale each vector to length 1.

    Returns:
      values [n, C] float32; texts [n], the index of each unit's text in
      `texts`; offsets [n, 2], its characters there; ids [n], its token id if
      units are tokens. C is the width D, or k D for k concatenated layers;
      stacked values are [n, k, D].

    Raises:
      ConfigError: an unknown option or layer; a string instead of a list.
    """
    texts = _each("texts", texts, str)
    try:
      layers = tuple(map(operator.index, layers))
    except TypeError:
      raise ConfigError(
        f"layers={layers!r:.40}: expected numbers such as (-1,) or "
        "(-1, -2, -3, -4)."
      ) from None
    options = vectors.resolve_options(
      vectors.VectorOptions(unit, pool, layers, combine, normalize),
      self._encoder,
    )
    lines = (Text(text, line=i + 1) for i, text in enumerate(texts))
    long: list[int] = []
    made = list(vectors.embed(self._encoder, lines, options, long=long))
    vectors.log_windows(self._encoder, options, long, option=_LENGTH)
    if not made:
      return vectors.empty_vectors(options, self.cfg)
    made = vectors.collect(made)
    places = np.array([text.line - 1 for text in made.sources], np.int64)
    return made._replace(texts=places)

  def search(
    self, queries: Sequence[str], path: str | pathlib.Path, *, top: int = 5
  ) -> list[list[Hit]]:
    """Returns the nearest sentences of a file to each query, nearest first.

    Args:
      queries: a list of any length.
      path: the .npz file that `maskedlm embed --unit=sentence` wrote with this
        checkpoint; queries are embedded as its sentences were.
      top: the number of sentences.

    Returns:
      For each query a list of (cosine, text, file, line). All sentences are
      compared.

    Raises:
      ConfigError: top is below 1, or the file holds something else or is of
        another encoder.
    """
    queries = _each("queries", queries, str)
    if not queries:
      return []
    if top < 1:
      raise ConfigError(f"top={top}: expected at least 1.")
    index = search.open_index(path, self._encoder)
    return search.search(self._encoder, index, queries, top=top)

  def predict(
    self, examples: Sequence[str | Mapping[str, Any]], *, batch_size: int = 32
  ) -> list[Prediction]:
    """Returns the predictions of a fine-tuned model.

    Args:
      examples: each is a line of `maskedlm predict`'s input or a dict with the
        same fields: {"text": ...}, {"question": ..., "context": ...},
        {"tokens": [...]}. The guide to each task lists its fields.
      batch_size: rows in a batch.

    Returns:
      A dict for each example, as printed by `maskedlm predict --json`.

    Raises:
      ConfigError: the model is not fine-tuned, batch_size is below 1, or an
        example is neither a string nor a dict.
      DataError: an example lacks a field that the task needs.
    """
    examples = _each("examples", examples, (str, Mapping))
    model = self._predictor
    parsed = [
      model.task.parse_line(
        example if isinstance(example, str) else _json(example), model.options
      )
      for example in examples
    ]
    cut: list[int] = []
    made = predict.predict(model, parsed, batch_size=batch_size, cut=cut)
    predict.log_cut(model, cut, option=_LENGTH)
    return made

  def evaluate(
    self,
    texts: Sequence[str],
    *,
    mask_rate: float = pretrained.MASK_RATE,
    seed: int = 0,
    batch_size: int = 32,
  ) -> dict[str, Any]:
    """Returns how well a pretrained model predicts masked tokens of texts.

    `maskedlm evaluate` prints the same.

    Args:
      texts: a list of documents.
      mask_rate: share of the tokens that is masked, all by the mask token.
      seed: decides which tokens are masked.
      batch_size: rows in a batch; it changes no result.

    Returns:
      mlm_loss, mlm_accuracy, ...; see inference/pretrained/evaluate.py.

    Raises:
      ConfigError: the model has no masked language modeling head, or an
        argument is out of range.
      DataError: the texts have nothing that can be masked.
    """
    texts = _each("texts", texts, str)
    if batch_size < 1:
      raise ConfigError(f"batch_size={batch_size}: expected at least 1.")
    documents = (
      [line for line in map(str.strip, text.splitlines()) if line]
      for text in texts
    )
    return pretrained.evaluate(
      self._pretrained,
      documents,
      mask_rate=mask_rate,
      seed=seed,
      batch_size=batch_size,
    )

  def attend(self, text: str) -> Attention:
    """Returns the attention weights of every layer and head.

    Args:
      text: any string that fits one row; [MASK] in it is a mask.

    Returns:
      tokens [l], including [CLS] and [SEP]; weights [N, H, l, l] float32:
      layer, head, from, to. The weights from a token sum to 1.

    Raises:
      ConfigError: the text has no token, or too many.
    """
    return attention_maps.attend(self._encoder, _text(text))

  @functools.cached_property
  def _filler(self) -> MaskFiller:
    return fill_mask.make_mask_filler(self.opened, self.path)

  @functools.cached_property
  def _pretrained(self) -> pretrained.PretrainedModel:
    return pretrained.make_model(self.opened, self.path, length=self.length)

  @functools.cached_property
  def _encoder(self) -> TextEncoder:
    return vectors.make_text_encoder(self.opened, length=self.length)

  @functools.cached_property
  def _predictor(self) -> FineTunedModel:
    return predict.make_model(self.opened, self.path, length=self.length)


def _text(value: str) -> str:
  """Returns the value if it is a string, and raises ConfigError otherwise."""
  if not isinstance(value, str):
    raise ConfigError(f"text is {value!r:.40}: expected a string.")
  return value


def _json(example: Mapping[str, Any]) -> str:
  """Returns the example as JSON; raises ConfigError if that is impossible."""
  try:
    return json.dumps(dict(example), default=lambda x: x.tolist())  # NumPy.
  except (TypeError, ValueError, AttributeError, RecursionError):
    raise ConfigError(
      f"the example {example!r:.60} can't be written as JSON: expected "
      "strings, numbers and lists of them."
    ) from None


def _each(name: str, values: Sequence, kinds) -> list:
  """Returns the values as a list; raises ConfigError for a wrong type."""
  if isinstance(values, str):  # A sequence of characters, surely by mistake.
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
