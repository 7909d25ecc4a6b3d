"""Trains word vectors by word2vec's CBOW, with gensim.

Mikolov et al. 2013, "Efficient Estimation of Word Representations in Vector
Space" (https://arxiv.org/abs/1301.3781, section 3.1): the mean of the vectors
around a word predicts it. gensim is an optional dependency.
"""

import pathlib
import tempfile
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from maskedlm.core.errors import ConfigError, CorpusError
from maskedlm.data.word_vectors import words
from maskedlm.data.word_vectors.files import WordVectors

_LINE = 10_000  # Words; gensim drops the rest of a longer line.


class CbowOptions(NamedTuple):
  """How vectors are trained; defaults as in word2vec and gensim."""

  width: int = 100  # D.
  window: int = 5  # The most words on either side that predict a word.
  min_count: int = 5  # Rarer words have no vector.
  epochs: int = 5
  lowercase: bool = True
  seed: int = 0


class Trained(NamedTuple):
  """Vectors, and the text that they come from."""

  vectors: WordVectors  # The most frequent words first.
  counts: Counter  # Of all words, rare ones too.


def train_cbow(
  documents: Iterable[Iterable[str]], options: CbowOptions
) -> Trained:
  """Returns the vectors of a text's words; the same text gives the same ones.

  One thread trains, as several would race. The text is held on disk.

  Args:
    documents: lines of text; words predict each other within a line.

  Raises:
    ConfigError: gensim is missing.
    CorpusError: no word is as frequent as options.min_count.
  """
  try:
    from gensim.models import Word2Vec
  except ImportError:
    raise ConfigError(
      "training word vectors needs gensim: pip install 'maskedlm[static]'."
    ) from None
  counts: Counter = Counter()
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "words.txt"
    with path.open("w", encoding="utf-8") as file:
      for lines in documents:
        for line in lines:
          found = words.split_text(line, lowercase=options.lowercase)
          forms = [word.form for word in found]
          counts.update(forms)
          for begin in range(0, len(forms), _LINE):
            file.write(" ".join(forms[begin : begin + _LINE]) + "\n")
    if max(counts.values(), default=0) < options.min_count:
      raise CorpusError(
        f"no word occurs {options.min_count} times (--min_count); expected "
        "more text, or a lower number."
      )
    model = Word2Vec(
      corpus_file=str(path),
      sg=0,
      vector_size=options.width,
      window=options.window,
      min_count=options.min_count,
      epochs=options.epochs,
      seed=options.seed,
      workers=1,
    )
  vectors = WordVectors(tuple(model.wv.index_to_key), model.wv.vectors)
  return Trained(vectors, counts)
