"""Numbers of things agree with their nouns."""

import pytest

from maskedlm.core.counts import counted


@pytest.mark.parametrize(
  ("count", "noun", "text"),
  [
    (0, "example", "0 examples"),
    (1, "example", "1 example"),
    (2000, "batch", "2,000 batches"),
    (1, "batch", "1 batch"),
    (3, "query", "3 queries"),
    (2, "different query", "2 different queries"),
    (2, "day", "2 days"),
    (2, "loss", "2 losses"),
    (2, "prefix", "2 prefixes"),
  ],
)
def test_counted(count, noun, text):
  assert counted(count, noun) == text
