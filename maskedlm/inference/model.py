"""The public API: a checkpoint as a small object with pure functions.

`maskedlm.load` is this module's `load`. The verbs call the same functions. A
wrong argument raises a one-line ConfigError or DataError, both ValueErrors; a
damaged checkpoint raises a CheckpointError.
"""

import dataclasses
import functools
import itertools
import pathlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from maskedlm.data.tokenizers.tokenizer import Encoding, Tokenizer
from maskedlm.finetune import predict
from maskedlm.finetune.contract import Prediction
from maskedlm.finetune.predict import FineTunedModel
from maskedlm.inference import arguments, fill_mask, labelling, token_model
from maskedlm.inference.pretrained import evaluate as pretrained
from maskedlm.inference.score import next_sentence
from maskedlm.inference.score import texts as text_scores
from maskedlm.inference.token_model import TokenModel
from maskedlm.inference.vectors import attention_maps, search, vectors
from maskedlm.inference.vectors.vectors import TextEncoder, Vectors
from maskedlm.inference.words_in_context import compare
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

  >>> maskedlm.load("runs/own").cfg.num_layers
  2
  """
  opened = open_best(path)
  predict.check_length(length, opened.cfg.max_positions)
  opened = opened._replace(params=jax.device_put(opened.params))
  return Model(str(path), opened, length)


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
  """A checkpoint, as returned by `load`; immutable.

  A method's first call, and every new batch shape, compiles once. All methods
  share a single copy of the parameters on the device.
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

    >>> model.tokenize("the sea").offsets.tolist()
    [[0, 3], [4, 5], [5, 6], [6, 7]]
    """
    return self.tokenizer.encode(arguments.text(text), specials=specials)

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
      read, which is logged. A causal model fills the masks in the order in
      which it reads, and reads only what is before them.

    Raises:
      ConfigError: top is below 1; the model has no head that predicts tokens;
        the text has no mask, or its masks are further apart than the model has
        positions.

    >>> [len(mask) for mask in model.fill_mask("the [MASK] [MASK].", top=3)]
    [3, 3]
    """
    arguments.check_positive("top", top)
    texts = [arguments.text(text)]
    return fill_mask.fill_masks(self._token_model, texts, top_k=top)[0].masks

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
      layers, combine: see `vectors`, which also has the errors.

    Returns:
      An array [n_i, C] float32 for each text of n_i tokens; C as in `vectors`.

    >>> [rows.shape for rows in model.encode(["the sea", "blue"])]
    [(4, 24), (4, 24)]
    """
    texts = arguments.list_of("texts", texts, str)
    tokens = self.vectors(texts, unit="token", layers=layers, combine=combine)
    bounds = np.searchsorted(tokens.texts, np.arange(len(texts) + 1))
    return [tokens.values[a:b] for a, b in itertools.pairwise(bounds)]

  def embed(
    self, texts: Sequence[str], *, unit: str = "sentence", **options: Any
  ) -> np.ndarray:
    """Returns vectors [n, C] float32; by default row i belongs to texts[i].

    The arguments and errors are those of `vectors`, which also returns the
    position of each unit.

    >>> model.embed(["Two texts.", "A row each."]).shape
    (2, 24)
    """
    return self.vectors(texts, unit=unit, **options).values

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

    >>> words = model.vectors(["the sea", "blue"])
    >>> words.values.shape, words.texts.tolist(), words.offsets.tolist()
    ((3, 24), [0, 0, 1], [[0, 3], [4, 7], [0, 4]])
    """
    texts = arguments.list_of("texts", texts, str)
    return vectors.embed_list(
      self._encoder,
      texts,
      vectors.VectorOptions(unit, pool, layers, combine, normalize),
      length_option=_LENGTH,
    )

  def search(
    self, queries: Sequence[str], path: str | pathlib.Path, **options: Any
  ) -> list[list[search.Hit]]:
    """Returns the nearest sentences of a file to each query, nearest first.

    Args:
      queries: a list of any length.
      path: the .npz file that `maskedlm embed --unit=sentence` wrote with this
        checkpoint; queries are embedded as its sentences were.
      **options: `top`, the number of sentences, 5, and of a file with codes
        (embed --codes) `candidates`; see search.search.

    Returns:
      For each query a list of (cosine, text, file, line).

    Raises:
      ConfigError: top is below 1, or the file holds something else or is of
        another encoder.
    """
    queries = arguments.list_of("queries", queries, str)
    if not queries:
      return []
    arguments.check_positive("top", options.get("top", 1))
    index = search.open_index(path, self._encoder)
    return search.search(self._encoder, index, queries, **options)

  def similarity(
    self, pairs: Sequence[tuple[str, str]], **options: Any
  ) -> list[compare.Similarity]:
    """Returns cosines of marked words in context; see compare.compare_texts."""
    pairs = arguments.pairs("pairs", pairs)
    return compare.compare_texts(self._encoder, pairs, **options)

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

    >>> [x["label"] for x in mood.predict(["the sea", {"text": "blue"}])]
    [..., ...]
    """
    return labelling.label(
      self._predictor, examples, batch_size=batch_size, length_option=_LENGTH
    )

  def evaluate(
    self,
    texts: Sequence[str],
    *,
    mask_rate: float = pretrained.MASK_RATE,
    seed: int = 0,
    batch_size: int = 32,
  ) -> dict[str, Any]:
    """Returns how well a pretrained model predicts masked tokens of texts.

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
    arguments.check_positive("batch_size", batch_size)
    return pretrained.evaluate(
      self._pretrained,
      map(pretrained.lines_of, arguments.list_of("texts", texts, str)),
      mask_rate=mask_rate,
      seed=seed,
      batch_size=batch_size,
    )

  def score(
    self, texts: Sequence[str], *, pll: str = "original"
  ) -> list[text_scores.TextScore]:
    """Returns how probable the model finds each text.

    Args:
      texts: a list of any length, of texts of any length.
      pll: what a masked model doesn't see when it predicts a token: "original",
        that token (Salazar et al. 2020); "l2r", also the rest of its word
        (Kauf & Ivanova 2023).

    Returns:
      For each text its log_likelihood in nats (pseudo-log-likelihood, unless
      the model is causal), its perplexity, and the log_probabilities of its
      tokens; see TextScore.

    Raises:
      ConfigError: the model has no head that predicts tokens, or pll is unknown
        or given for a causal model.

    >>> (score,) = model.score(["the sea"])
    >>> score.log_likelihood < 0 < score.perplexity
    True
    """
    texts, model = arguments.list_of("texts", texts, str), self._token_model
    seen: Counter = Counter()
    scores = list(text_scores.score(model, texts, pll=pll, seen=seen))
    text_scores.log_summary(model, seen, option=_LENGTH)
    return scores

  def next_sentence(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
    """Returns the probability that B follows A for each pair: [n] float32.

    It is that of the pretrained NSP head; of a model trained with sentence
    order prediction, that A and B are in their order.

    Args:
      pairs: a list of any length. Of a pair that is longer than a row, the
        longer text loses its last tokens, which is logged.

    Raises:
      ConfigError: the model has no such head, or a pair is not two texts.
    """
    pairs, scorer = arguments.pairs("pairs", pairs), self._pair_scorer
    cut: list[int] = []
    probabilities = next_sentence.next_sentence(scorer, pairs, cut=cut)
    next_sentence.log_cut(scorer, cut, option=_LENGTH)
    return probabilities

  def attend(self, text: str) -> attention_maps.Attention:
    """Returns the attention of every layer and head.

    Args:
      text: any string that fits one row; [MASK] in it is a mask.

    Returns:
      tokens [l], including [CLS] and [SEP]; weights [N, H, l, l] float32:
      layer, head, from, to. They are the softmax of scores, of the same shape.

    Raises:
      ConfigError: the text has no token, or too many.

    >>> model.attend("the sea").weights.shape
    (2, 3, 6, 6)
    """
    return attention_maps.attend(self._encoder, arguments.text(text))

  @functools.cached_property
  def _token_model(self) -> TokenModel:
    length = self.length
    return token_model.make_token_model(self.opened, self.path, length=length)

  @functools.cached_property
  def _pretrained(self) -> pretrained.PretrainedModel:
    return pretrained.make_model(self.opened, self.path, length=self.length)

  @functools.cached_property
  def _pair_scorer(self) -> TokenModel:
    length = self.length
    return next_sentence.make_pair_scorer(self.opened, self.path, length=length)

  @functools.cached_property
  def _encoder(self) -> TextEncoder:
    return vectors.make_text_encoder(self.opened, length=self.length)

  @functools.cached_property
  def _predictor(self) -> FineTunedModel:
    return predict.make_model(self.opened, self.path, length=self.length)
