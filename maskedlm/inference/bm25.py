"""BM25: scores passages by the words that they share with a query.

Words are runs of two or more letters or digits, in lower case, of any language:
none is left out as frequent, and none is reduced to a stem. The scores are
those of the package bm25s (Lù 2024, arXiv:2407.03618) with k1 = 1.5, b = 0.75.
"""

import logging
from collections.abc import Callable, Sequence

import numpy as np

from maskedlm.runtime import extras


def index(passages: Sequence[str]) -> Callable[[str], np.ndarray]:
  """Returns the function query -> the scores [n] of the n passages.

  Raises:
    ConfigError: bm25s is not installed.
  """
  bm25s = extras.load("bm25s", "bm25", "BM25")
  logging.getLogger("bm25s").setLevel(logging.WARNING)
  options = {"stopwords": None, "show_progress": False, "return_ids": False}
  tokens, retriever = bm25s.tokenize([*passages], **options), bm25s.BM25()
  if has_words := any(tokens):
    retriever.index(tokens, show_progress=False)
  no_scores = np.zeros(len(passages), np.float32)

  def scores(query: str) -> np.ndarray:
    (words,) = bm25s.tokenize([query], **options)
    return retriever.get_scores(words) if words and has_words else no_scores

  return scores
