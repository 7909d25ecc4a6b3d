"""Judges minimal pairs: does the model prefer the sentence that is acceptable?

The files are those of BLiMP (Warstadt et al. 2020, arXiv:1912.00582): on each
line a JSON object with "sentence_good" and "sentence_bad", and the phenomenon
as "UID", "linguistics_term" and "field", each of which may be absent. A pair is
right if the score of the good sentence is the higher one.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from maskedlm.data.labelled import tables
from maskedlm.inference.score import texts
from maskedlm.inference.score.texts import TextScore
from maskedlm.inference.token_model import TokenModel

GROUPS = ("UID", "linguistics_term", "field")  # From narrow to wide.
NONE = "-"  # The group of a pair without one, where others have it.
# Scores that differ by less are equal but for rounding, in nats: sentences of
# the same tokens may be computed in batches of different shapes.
TIE = 1e-5


class MinimalPair(NamedTuple):
  """Two sentences, of which one is acceptable."""

  good: str
  bad: str
  groups: Mapping[str, str]  # By the names in GROUPS, those that the line has.


class Judged(NamedTuple):
  """A pair with the scores of its sentences."""

  pair: MinimalPair
  good: TextScore
  bad: TextScore

  @property
  def is_tie(self) -> bool:
    """Whether the two scores are equal."""
    same = np.array_equal(self.good.ids, self.bad.ids)
    return same or abs(self.margin) < TIE

  @property
  def is_correct(self) -> bool:
    """Whether the good sentence has the higher score; a tie is wrong."""
    return self.margin > 0 and not self.is_tie

  @property
  def margin(self) -> float:
    """How much higher the score of the good sentence is, in nats."""
    return self.good.log_likelihood - self.bad.log_likelihood


def read_pairs(paths: Sequence[str]) -> list[MinimalPair]:
  """Returns the pairs of files: JSON lines, or tables with the same columns.

  Raises:
    DataError: see tables.read_records; a sentence is missing or empty.
  """
  return [
    _parse_pair(record)
    for path in paths
    for record in tables.read_records(path)
  ]


def _parse_pair(record: tables.Record) -> MinimalPair:
  return MinimalPair(
    tables.get_text(record, "sentence_good"),
    tables.get_text(record, "sentence_bad"),
    {
      name: tables.get_field(record, name)
      for name in GROUPS
      if name in record.fields
    },
  )


def judge(
  model: TokenModel, pairs: Sequence[MinimalPair], **options
) -> Iterator[Judged]:
  """Yields the pairs with their scores, in order; see texts.score."""
  sentences = itertools.chain.from_iterable((p.good, p.bad) for p in pairs)
  scores = texts.score(model, sentences, **options)
  for pair, good, bad in zip(pairs, scores, scores, strict=True):
    yield Judged(pair, good, bad)


def count(judged: Iterable[Judged]) -> dict[str, Any]:
  """Returns the accuracy of all pairs and of each phenomenon.

  Returns:
    pairs, correct, ties and accuracy (ties are wrong) of all pairs; and for
    each name in GROUPS that a pair has, the same of each of its groups.
  """
  counts: dict[tuple[str, str], Counter] = {}
  named: set[str] = set()
  for judgement in judged:
    named |= {*judgement.pair.groups}
    groups = [("", "")]
    groups += [(name, judgement.pair.groups.get(name, NONE)) for name in GROUPS]
    for group in groups:
      counts.setdefault(group, Counter()).update(
        pairs=1, correct=int(judgement.is_correct), ties=int(judgement.is_tie)
      )
  values = _accuracy(counts[("", "")])
  for name in GROUPS:
    if name in named:
      values[name] = {
        group: _accuracy(counts[kind, group])
        for kind, group in sorted(counts)
        if kind == name
      }
  return values


def _accuracy(counted: Counter) -> dict[str, Any]:
  """Returns the counts and the share that is correct."""
  names = ("pairs", "correct", "ties")
  values = {name: counted[name] for name in names}
  return {**values, "accuracy": counted["correct"] / counted["pairs"]}
