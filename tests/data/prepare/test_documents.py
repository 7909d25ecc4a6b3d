"""Documents: the split by key, and chunks."""

import itertools

import numpy as np
import pytest

from maskedlm.core.errors import CorpusError
from maskedlm.data.prepare import documents


def document(key, name=""):
  return documents.Document([name or str(key)], key, 10)


def split(keys, share):
  """Returns the sorted keys of held-out and of other documents."""
  found = {"train": [], "heldout": []}
  for name, doc in documents.split_documents(map(document, keys), share):
    found[name].append(doc.key)
  return sorted(found["heldout"]), sorted(found["train"])


@pytest.mark.parametrize(
  ("keys", "share", "heldout", "train"),
  [
    ([0.9, 0.1, 0.3, 0.2, 0.7], 0.25, [0.1, 0.2], [0.3, 0.7, 0.9]),
    # Fewer than two are below the share: the two smallest, with copies.
    ([0.9, 0.1, 0.3, 0.2, 0.7], 0.15, [0.1, 0.2], [0.3, 0.7, 0.9]),
    ([0.9, 0.3, 0.2, 0.7], 0.01, [0.2, 0.3], [0.7, 0.9]),
    ([0.9, 0.2, 0.3, 0.2, 0.3], 0.01, [0.2, 0.2, 0.3, 0.3], [0.9]),
    ([0.9, 0.1, 0.1, 0.1, 0.5], 0.15, [0.1, 0.1, 0.1, 0.5], [0.9]),
    # Copies of other documents stay together too.
    ([0.9, 0.9, 0.2, 0.3, 0.9], 0.01, [0.2, 0.3], [0.9, 0.9, 0.9]),
    ([0.4, 0.0], 0.0, [], [0.0, 0.4]),
    ([], 0.5, [], []),
  ],
)
def test_the_split_is_by_key_for_every_order(keys, share, heldout, train):
  for order in itertools.permutations(keys):
    assert split(order, share) == (heldout, train)


def test_the_split_delays_at_most_two_documents():
  keys = np.random.default_rng(7).permutation(1000) / 1000 + 0.5
  taken = itertools.count()
  stream = (document(key) for key in keys if next(taken) >= 0)
  given = documents.split_documents(stream, 0.01)
  for index, _ in enumerate(given):
    if index == 500:
      break
  assert next(taken) <= 504


def test_a_share_that_leaves_nothing_is_rejected():
  for keys, share in (([0.4, 0.6], 0.01), ([0.1, 0.2, 0.3], 0.9), ([0.1], 0.5)):
    with pytest.raises(CorpusError, match=f"share={share}.*leaves none"):
      split(keys, share)


def test_of_few_documents_windows_are_held_out():
  # 40 lines of 1,000 characters are 8 windows of 5 lines (over 4,096 bytes).
  books = [
    documents.make_document(
      [f"{name}{i:02} " + "x" * 996 for i in range(40)], ""
    )
    for name in "ab"
  ]
  found = list(documents.split_documents(books, 0.01))
  heldout = [doc.lines for name, doc in found if name == "heldout"]
  assert sum(map(len, heldout)) == 10  # The two windows with smallest keys.
  # Each line is in one split, once; the train split has whole stretches.
  lines = [line for _, doc in found for line in doc.lines]
  assert lines == [line for book in books for line in book.lines]
  assert len(found) <= 2 + 2 * 2
  # With a share of 0 the books stay whole.
  assert list(documents.split_documents(books, 0.0)) == [
    ("train", book) for book in books
  ]
