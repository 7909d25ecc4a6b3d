"""How many senses are right: the official scores of all-words tasks.

As the Scorer of Raganato et al. (2017) counts: an answer is right if it is
among the gold senses; precision is of the answers, recall of all instances.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from maskedlm.inference.word_senses.data import Target
from maskedlm.inference.word_senses.senses import Answer, Senses

POS = ("NOUN", "VERB", "ADJ", "ADV")
# Rows that are of several parts of speech.
OTHER, ALL = "other", "ALL"
# Instances whose entry had several senses in training: on others both systems
# say the same.
AMBIGUOUS = "ambiguous"
NEAREST, FREQUENT = "nearest", "most_frequent"


class Score(NamedTuple):
  """Of a system on some instances; each from 0 to 1."""

  precision: float
  recall: float
  f1: float


class Line(NamedTuple):
  """A row of the table."""

  name: str
  instances: int
  unanswered: int
  nearest: Score
  most_frequent: Score


def score(right: int, answered: int, instances: int) -> Score:
  """Precision, recall and their harmonic mean; 0 where nothing is right."""
  if not right:
    return Score(0.0, 0.0, 0.0)
  precision, recall = right / answered, right / instances
  return Score(precision, recall, 2 * precision * recall / (precision + recall))


def tally(
  senses: Senses, answered: Iterable[tuple[Target, Answer]]
) -> Counter[tuple[str, str]]:
  """(row, what) -> how many; those of several parts can be added.

  What is counted: instances, answered, NEAREST and FREQUENT, which were right;
  and of the row ALL "fallback", answers of a first sense without a vector.
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


def table(counts: Mapping[tuple[str, str], int]) -> list[Line]:
  """A line for each row that has an instance."""
  lines = []
  for row in (*POS, OTHER, ALL, AMBIGUOUS):
    instances = counts.get((row, "instances"), 0)
    answered = counts.get((row, "answered"), 0)
    nearest, frequent = (
      score(counts.get((row, system), 0), answered, instances)
      for system in (NEAREST, FREQUENT)
    )
    if instances:
      unanswered = instances - answered
      lines.append(Line(row, instances, unanswered, nearest, frequent))
  return lines


def format_table(lines: Iterable[Line]) -> str:
  """The table as text, in percent, as the official scorer prints them."""
  heads = "     P      R     F1"
  text = [
    f"{'':31}  {'nearest neighbour':^20}  {'most frequent sense':^20}".rstrip(),
    f"{'':10}{'instances':>10}{'no answer':>11}  {heads}  {heads}",
  ]
  for line in lines:
    cells = "  ".join(
      "".join(f"{100 * value:7.1f}" for value in system)[1:]
      for system in (line.nearest, line.most_frequent)
    )
    text.append(
      f"{line.name:10}{line.instances:10,}{line.unanswered:11,}  {cells}"
    )
  return "\n".join(text)
