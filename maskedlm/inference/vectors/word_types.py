"""Makes one vector for each word out of a model's contextual vectors.

The vector of a word is the mean over its n instances in a text, each of which
is the mean of its tokens: e_w = 1/n sum_i h_i. These type-level vectors are
what Bommasani et al. 2020 (https://aclanthology.org/2020.acl-main.431, section
3, "mean" of subwords and of contexts) compare with word2vec and GloVe, and
Ethayarajh 2019 with the first principal component of the instances.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np

from maskedlm.core.errors import DataError
from maskedlm.data.labelled.text_lines import Text
from maskedlm.data.word_vectors import words
from maskedlm.data.word_vectors.files import WordVectors
from maskedlm.inference.vectors import vectors
from maskedlm.inference.word_senses import word_instances
from maskedlm.inference.word_senses.word_instances import Instance

TEXTS_AT_ONCE = 2048  # Held in memory.


def average_instances(
  model: vectors.TextEncoder,
  texts: Iterable[Text],
  options: vectors.VectorOptions,
  *,
  lowercase: bool,
  min_count: int,
  progress: Callable[[int], None],
) -> tuple[WordVectors, Counter]:
  """Returns the mean vector of each word, and counts of all, rare ones too.

  The most frequent words are first. The texts are read once, and memory grows
  only with the number of different words. Of the options, `unit` and `pool` are
  ignored. If `lowercase`, Bank and bank are one word; words rarer than
  min_count have no vector. `progress` gets the number of instances so far.

  Raises:
    DataError: no word is as frequent as min_count.
    ConfigError: see vectors.resolve_layers.
  """
  sums: dict[str, np.ndarray] = {}
  counts: Counter = Counter()
  texts = iter(texts)
  while chunk := list(itertools.islice(texts, TEXTS_AT_ONCE)):
    instances = [
      Instance(text, begin, end, form)
      for text in chunk
      for form, begin, end in words.split_text(text.text, lowercase=lowercase)
    ]
    embedded, x = word_instances.embed_instances(model, instances, options)
    for instance, value in zip(embedded, x.astype(np.float64), strict=True):
      sums[instance.word] = sums.get(instance.word, 0.0) + value
      counts[instance.word] += 1
    progress(counts.total())
  frequent = [word for word, n in counts.most_common() if n >= min_count]
  if not frequent:
    raise DataError(
      f"no word occurs {min_count} times (--min_count); expected more text, or "
      "a lower number."
    )
  means = [sums[word] / counts[word] for word in frequent]
  return WordVectors(tuple(frequent), np.array(means, np.float32)), counts
