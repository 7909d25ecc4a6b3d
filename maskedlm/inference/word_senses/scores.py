"""Scores word sense disambiguation as official all-words tasks do.

As in the Scorer of Raganato et al. (2017), an answer is correct if it is among
the gold senses; precision is over answers, recall over all instances.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from maskedlm.finetune.common.entity_metrics import MatchCounts
from maskedlm.inference.word_senses.data import TargetWord
from maskedlm.inference.word_senses.senses import Answer, Senses
from maskedlm.runtime import console

POS = ("NOUN", "VERB", "ADJ", "ADV")
# Rows over several parts of speech.
OTHER, ALL = "other", "ALL"
# The row of instances with several candidate senses. For others, both systems
# give the same answer.
AMBIGUOUS = "ambiguous"
NEAREST, FREQUENT = "nearest", "most_frequent"


class ScoreRow(NamedTuple):
  """A row of the table: a group of instances and both systems' scores."""

  name: str
  instances: int
  unanswered: int
  nearest: MatchCounts
  most_frequent: MatchCounts


def count_answers(
  senses: Senses, answered: Iterable[tuple[TargetWord, Answer]]
) -> Counter[tuple[str, str]]:
  """Returns counts by (row, name); Counters of several calls can be added.

  The names are "instances", "answered", and NEAREST and FREQUENT for correct
  answers. The row ALL also has "fallback": answers by a first sense that has no
  vector.
  """
  counts: Counter[tuple[str, str]] = Counter()
  for target, answer in answered:
    rows = [target.pos if target.pos in POS else OTHER, ALL]
    if len(answer.senses) > 1:
      rows.append(AMBIGUOUS)
    for row in rows:
      counts[row, "instances"] += 1
      if answer.senses:
        best, common = answer.senses[0], answer.most_frequent
        counts[row, "answered"] += 1
        counts[row, NEAREST] += senses.names[best] in target.senses
        counts[row, FREQUENT] += senses.names[common] in target.senses
    counts[ALL, "fallback"] += bool(answer.senses) and not answer.scores
  return counts


def make_rows(counts: Mapping[tuple[str, str], int]) -> list[ScoreRow]:
  """Returns a row for each group that has an instance."""
  lines = []
  for row in (*POS, OTHER, ALL, AMBIGUOUS):
    instances = counts.get((row, "instances"), 0)
    answered = counts.get((row, "answered"), 0)
    nearest, frequent = (
      MatchCounts(counts.get((row, system), 0), answered, instances)
      for system in (NEAREST, FREQUENT)
    )
    if instances:
      unanswered = instances - answered
      lines.append(ScoreRow(row, instances, unanswered, nearest, frequent))
  return lines


def format_rows(lines: Iterable[ScoreRow]) -> str:
  """Returns the table as text, in percent, as the official scorer prints it."""
  columns = ("", "instances", "no answer", "nearest: P", "R", "F1")
  rows = (
    (
      line.name,
      f"{line.instances:,}",
      f"{line.unanswered:,}",
      *(
        f"{100 * x:.1f}"
        for system in (line.nearest, line.most_frequent)
        for x in (system.precision, system.recall, system.f1)
      ),
    )
    for line in lines
  )
  return "\n".join(
    console.table((*columns, "most frequent: P", "R", "F1"), rows)
  )
