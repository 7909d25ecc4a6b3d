"""Numbers of things agree with their nouns."""

import pytest

from maskedlm.core.counts import counted


@pytest.mark.parametrize(
  ("count", "nouns", "text"),
  [
    (0, ["example"], "0 examples"),
    (1, ["example"], "1 example"),
    (2000, ["batch"], "2,000 batches"),
    (1, ["batch"], "1 batch"),
    (3, ["query"], "3 queries"),
    (2, ["different query"], "2 different queries"),
    (2, ["day"], "2 days"),
    (2, ["loss"], "2 losses"),
    (2, ["prefix"], "2 prefixes"),
    (2, ["axis", "axes"], "2 axes"),
    (1, ["axis", "axes"], "1 axis"),
  ],
)
def test_counted(count, nouns, text):
  assert counted(count, *nouns) == text
