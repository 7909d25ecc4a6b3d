"""Trains word vectors by word2vec's CBOW, with gensim.

Mikolov et al. 2013, "Efficient Estimation of Word Representations in Vector
Space" (https://arxiv.org/abs/1301.3781, section 3.1): the mean of the vectors
around a word predicts it. gensim is an optional dependency.
"""

import pathlib
import tempfile
from collections import Counter
from collections.abc import Iterable

from maskedlm.core.errors import ConfigError, CorpusError
from maskedlm.data.word_vectors import words
from maskedlm.data.word_vectors.files import WordVectors

_LINE = 10_000  # Words; gensim drops the rest of a longer line.


def train_cbow(
  documents: Iterable[Iterable[str]],
  *,
  lowercase: bool,
  min_count: int,
  **options: int,
) -> tuple[WordVectors, Counter]:
  """Returns the vectors of a text's words, and counts of all, rare ones too.

  The most frequent words are first; the same text gives the same vectors: one
  thread trains, as several would race. The text is held on disk.

  Args:
    documents: lines of text; words predict each other within a line.
    options: vector_size, window, epochs and seed of gensim's Word2Vec.

  Raises:
    ConfigError: gensim is missing.
    CorpusError: no word is as frequent as min_count.
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
          words_of_line = words.split_text(line, lowercase=lowercase)
          forms = [form for form, _, _ in words_of_line]
          counts.update(forms)
          for begin in range(0, len(forms), _LINE):
            file.write(" ".join(forms[begin : begin + _LINE]) + "\n")
    if max(counts.values(), default=0) < min_count:
      raise CorpusError(
        f"no word occurs {min_count} times (--min_count); expected "
        "more text, or a lower number."
      )
    model = Word2Vec(
      corpus_file=str(path),
      sg=0,
      min_count=min_count,
      workers=1,
      **options,
    )
  return WordVectors(tuple(model.wv.index_to_key), model.wv.vectors), counts
