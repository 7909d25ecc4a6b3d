"""Measures whether cosines underestimate the similarity of frequent words.

Zhou, Ethayarajh, Card & Jurafsky (ACL 2022, "Problems with Cosine as a Measure
of Embedding Similarity for High Frequency Words") find that they do, even where
people judge pairs equally similar. Here it is a rank correlation of cosines and
log frequencies, with human scores held constant.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from maskedlm.data.labelled.text_lines import Text
from maskedlm.data.labelled.words import split_words


def words_of(text: str) -> list[str]:
  """Returns the words with a letter or digit, in lower case."""
  words = (text[begin:end] for begin, end in split_words(text))
  return [w.casefold() for w in words if any(map(str.isalnum, w))]


def count_words(texts: Iterable[Text], counts: Counter) -> Iterator[Text]:
  """Yields the texts; adds the words of each to `counts`."""
  for text in texts:
    counts.update(words_of(text.text))
    yield text


def log_frequencies(
  texts: Sequence[str], counts: Mapping[str, int]
) -> np.ndarray:
  """Returns the mean of log(1 + count) over the words of each text, [n]."""
  means = []
  for text in texts:
    words = words_of(text)
    total = sum(np.log1p(counts.get(word, 0)) for word in words)
    means.append(total / max(len(words), 1))
  return np.array(means, np.float64)


def frequency_effect(
  cosines: ArrayLike, scores: ArrayLike, frequent: ArrayLike
) -> float:
  """Returns the partial rank correlation of cosines and frequencies, -1 to 1.

  It is Pearson's correlation of the residuals of both ranks after linear
  regression on the ranks of the scores; all have [n] values. Below 0, frequent
  words are underestimated. NaN if one has no variance beyond the scores.
  """
  x, y, control = (stats.rankdata(v) for v in (cosines, frequent, scores))
  design = np.stack([np.ones_like(control), control], axis=1)
  residuals = []
  for ranks in (x, y):
    fit, *_ = np.linalg.lstsq(design, ranks, rcond=None)
    residuals.append(ranks - design @ fit)
  lengths = [np.linalg.norm(v) for v in residuals]
  if min(lengths) < 1e-9 * len(x):
    return float("nan")
  return float(residuals[0] @ residuals[1] / (lengths[0] * lengths[1]))
