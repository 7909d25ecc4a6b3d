"""Chains of a document from the vectors of its kept spans, on the host.

The scores are chain_head.py's, between all rows of a document. Time and memory
grow with the number of spans times MAX_ANTECEDENTS.
"""

import math
from typing import NamedTuple

import numpy as np

from maskedlm.finetune.common import crossings

# Spans back to which a link is possible: it bounds the time of long documents.
MAX_ANTECEDENTS = 2000
_BLOCK = 256  # Spans whose links are scored together.


class Spans(NamedTuple):
  """The kept spans of a document; [N] each."""

  begins: np.ndarray  # The first word.
  ends: np.ndarray  # One after the last word.
  scores: np.ndarray
  queries: np.ndarray  # [N, E].
  keys: np.ndarray  # [N, E].


def without_crossings(spans: Spans) -> Spans:
  """Returns the spans without those that cross a better one.

  They are in the order of the text, outer spans last.
  """
  begins, ends = spans.begins, spans.ends
  chosen = crossings.without_crossings(begins, ends, spans.scores)
  order = sorted(chosen, key=lambda i: (begins[i], ends[i]))
  return Spans(*(x[np.array(order, np.int64)] for x in spans))


def best_antecedents(
  spans: Spans,
  distances: np.ndarray,
  distance_scores: np.ndarray,
  max_antecedents: int = MAX_ANTECEDENTS,
) -> np.ndarray:
  """Returns the index of each span's likeliest antecedent, or -1 for none.

  Spans are in the order of the text, and an antecedent at most max_antecedents
  spans back. `distances` are the lower bounds of buckets after the first, and
  `distance_scores` has a score for each bucket.
  """
  count, width = len(spans.scores), spans.queries.shape[-1]
  antecedents = np.full(count, -1, np.int64)
  for start in range(0, count, _BLOCK):
    stop = min(start + _BLOCK, count)
    low = max(start - max_antecedents, 0)
    block, candidates = slice(start, stop), slice(low, stop)
    links = spans.queries[block] @ spans.keys[candidates].T / math.sqrt(width)
    links += spans.scores[block, None] + spans.scores[candidates]
    apart = spans.begins[block, None] - spans.begins[candidates]
    links += distance_scores[np.searchsorted(distances, apart, "right")]
    back = np.arange(start, stop)[:, None] - np.arange(low, stop)
    links[(back <= 0) | (back > max_antecedents)] = -np.inf
    best = links.argmax(axis=1)
    is_link = links[np.arange(stop - start), best] > 0
    antecedents[block][is_link] = low + best[is_link]
  return antecedents


def make_chains(
  spans: Spans, antecedents: np.ndarray
) -> list[list[tuple[int, int]]]:
  """Returns the mentions of each chain of two or more, in the text's order."""
  mentions = list(zip(spans.begins.tolist(), spans.ends.tolist(), strict=True))
  chains, chain_of = [], {}
  for i, antecedent in enumerate(antecedents.tolist()):
    if antecedent < 0:
      continue
    if antecedent not in chain_of:
      chain_of[antecedent] = [mentions[antecedent]]
      chains.append(chain_of[antecedent])
    chain_of[i] = chain_of[antecedent]
    chain_of[i].append(mentions[i])
  return sorted(chains)
