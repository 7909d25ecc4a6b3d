"""Compares two words in context by the cosine of their vectors.

Jurafsky & Martin, section 11.3.2: the cosine of contextual vectors, as they are
and standardised (equations 11.10 to 11.12). For WiC, two words have the same
meaning if the cosine is above a threshold, which is the best one on the
development set (Pilehvar & Camacho-Collados 2019, section 4).
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.core.errors import DataError
from maskedlm.inference.vectors import similarity, vectors
from maskedlm.inference.vectors.standardise import (
  Standardiser,
  apply_standardiser,
  open_word_standardiser,
)
from maskedlm.inference.word_senses import word_instances
from maskedlm.inference.words_in_context.pairs import WordPair, make_pair

PAIRS_AT_ONCE = 1024  # Held in memory.


class Similarity(NamedTuple):
  """The cosine of two words' vectors, each from -1 to 1."""

  cosine: float  # As the encoder gives them.
  standardised: float | None = None  # None without a Standardiser.


class ThresholdScore(NamedTuple):
  """How well a threshold tells words of the same meaning from others."""

  threshold: float  # The same meaning, if the cosine is above it.
  dev_accuracy: float
  accuracy: float | None  # None without gold answers.


def compare(
  model: vectors.TextEncoder,
  pairs: Iterable[WordPair],
  options: vectors.VectorOptions,
  *,
  standardiser: Standardiser | None = None,
) -> Iterator[tuple[WordPair, Similarity]]:
  """Yields each pair with its Similarity, in order and in bounded memory.

  A word's vector is the mean of its tokens': `unit` and `pool` of the options
  are ignored. The standardiser is from open_word_standardiser.

  Raises:
    DataError: a word has no token.
    ConfigError: see vectors.resolve_layers.
  """
  pairs = iter(pairs)
  while chunk := list(itertools.islice(pairs, PAIRS_AT_ONCE)):
    instances = [instance for pair in chunk for instance in (pair.a, pair.b)]
    embedded, x = word_instances.embed_instances(model, instances, options)
    if len(embedded) < len(instances):
      missing = next(i for i, y in enumerate(instances) if y not in embedded)
      raise DataError(
        f"{chunk[missing // 2].where}: {instances[missing].word!r:.40} has no "
        "token; expected a word that the tokenizer can read."
      )
    raw = similarity.cosine(x[::2], x[1::2]).tolist()
    standardised = [None] * len(chunk)
    if standardiser:
      z = apply_standardiser(standardiser, x)
      standardised = similarity.cosine(z[::2], z[1::2]).tolist()
    for pair, *cosines in zip(chunk, raw, standardised, strict=True):
      yield pair, Similarity(*cosines)


def compare_texts(
  model: vectors.TextEncoder,
  texts: Sequence[tuple[str, str]],
  *,
  layers: Sequence[int] = (-1,),
  combine: str = "mean",
  standardise: str = "",
) -> list[Similarity]:
  """Returns the Similarity of the marked words of pairs of texts.

  Args:
    texts: pairs such as ("On the *bank*", "The *bank* rose").
    layers, combine: as of vectors.VectorOptions.
    standardise: the file that `maskedlm embed --unit=word --fit` wrote; "" for
      none.

  Raises:
    ConfigError: an unknown option or layer, or the file doesn't fit.
    DataError: a text has not exactly one marked word, or it has no token.

  >>> (pair,) = model.similarity([("the *sea* is blue", "the *sea* is blue")])
  >>> round(float(pair.cosine), 3)
  1.0
  """
  options = vectors.VectorOptions(layers=layers, combine=combine)
  fitted = open_word_standardiser(str(standardise), model, options)
  marked_pairs = (make_pair(*pair) for pair in texts)
  compared = compare(model, marked_pairs, options, standardiser=fitted)
  return [result for _, result in compared]


def best_threshold(
  cosines: Sequence[float], same: Sequence[bool]
) -> tuple[float, float]:
  """Returns the threshold with the highest accuracy, and that accuracy.

  Thresholds lie halfway between neighbouring cosines, or at either end beyond
  all of them (as far as -2 and 2); of equally good ones it is the lowest.

  Args:
    cosines: [n], n > 0.
    same: [n], whether a pair has the same meaning.
  """
  x, y = np.asarray(cosines, np.float64), np.asarray(same, bool)
  values, of_value = np.unique(x, return_inverse=True)
  yes = np.bincount(of_value, weights=y, minlength=len(values))
  no = np.bincount(of_value, weights=~y, minlength=len(values))
  # With the threshold above the first k values, these answers are correct.
  right = np.append(0, np.cumsum(no)) + yes.sum() - np.append(0, np.cumsum(yes))
  ends = np.concatenate([[-2.0], values, [2.0]])
  best = int(np.argmax(right))
  threshold = (ends[best] + ends[best + 1]) / 2
  return float(threshold), float(right[best] / len(x))


def score_wic(
  dev: Sequence[tuple[WordPair, Similarity]],
  test: Sequence[tuple[WordPair, Similarity]],
) -> dict[str, ThresholdScore]:
  """Returns {kind of cosine that test has: its score}.

  Args:
    dev: pairs with answers, on which the threshold is chosen.
    test: pairs to score; if one has no answer, there is no accuracy.
  """
  scores: dict[str, ThresholdScore] = {}
  for name in Similarity._fields:
    if getattr(test[0][1], name) is None:
      continue
    of_dev, of_test = (
      [getattr(result, name) for _, result in pairs] for pairs in (dev, test)
    )
    same = [bool(pair.same) for pair, _ in dev]
    threshold, share = best_threshold(of_dev, same)
    gold = [pair.same for pair, _ in test]
    accuracy = None
    if None not in gold:
      accuracy = float(np.mean((np.array(of_test) > threshold) == gold))
    scores[name] = ThresholdScore(threshold, share, accuracy)
  return scores


def require_answers(pairs: Sequence[WordPair], path: str) -> None:
  """Raises DataError unless every pair has an answer."""
  for pair in pairs:
    if pair.same is None:
      raise DataError(
        f"{path}: {pair.where} has no answer, which the threshold needs; "
        "expected NAME.data.txt with NAME.gold.txt beside it, or `label` in "
        "JSON lines."
      )


def answers(
  compared: Iterable[tuple[WordPair, Similarity]],
  scores: Mapping[str, ThresholdScore],
) -> list[bool]:
  """Returns whether each pair has the same meaning, by the last of `scores`."""
  name, score = list(scores.items())[-1]
  return [getattr(result, name) > score.threshold for _, result in compared]
