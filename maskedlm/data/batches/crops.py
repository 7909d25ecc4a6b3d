"""Draws where the rows of documents longer than a row begin in each epoch."""

from collections.abc import Callable

import numpy as np

from maskedlm.data import hashing
from maskedlm.data.corpus import concat, store

Rows = tuple[np.ndarray, np.ndarray]  # First token, and number of tokens.


def make_crops(
  split: store.Split, *, capacity: int, seed: int
) -> Callable[[np.ndarray, np.ndarray | int, np.ndarray | int], Rows]:
  """Returns (token, row, epoch) -> the Rows of these rows in that epoch.

  `token` is any token of the row's document, [b]. A document that fits in the
  `capacity` of a row is whole; of others, the place is a hash.
  """
  sentences = concat.take_all(split.documents)
  bounds = concat.take(split.sentences, sentences)

  def crop(token, row, epoch) -> Rows:
    document = np.searchsorted(bounds, token, side="right") - 1
    first = bounds[document]
    size = bounds[document + 1] - first
    num = np.minimum(size, capacity)
    begin = hashing.randint(size - num + 1, seed, "crop", epoch, row)
    return first + begin, num

  return crop
