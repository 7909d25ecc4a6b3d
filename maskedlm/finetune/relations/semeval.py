"""SemEval-2010 task 8: its files, its official metric and its output format.

Hendrickx et al. 2010 (https://aclanthology.org/S10-1006): how are two nominals
of a sentence related? By one of nine relations, in either direction, or Other.

  1 <TAB> "The <e1>child</e1> was wrapped and bound into the <e2>cradle</e2>."
  Other
  Comment: ...
"""

import pathlib
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from maskedlm.core.errors import DataError
from maskedlm.data.labelled.lines import read_lines
from maskedlm.finetune.common import entity_metrics
from maskedlm.finetune.common.gold_labels import NO_LABEL
from maskedlm.finetune.common.mentions import Mention

_SENTENCE = re.compile(r"([0-9]+)[\t ]+(.*)")
_RELATION = re.compile(r"([^\s()]+)(\(e1,e2\)|\(e2,e1\))?")
_TAG = re.compile(r"</?e[12]>")
_COMMENT = "Comment"


class Example(NamedTuple):
  """A sentence without its tags, and the relation between two parts of it."""

  text: str
  e1: Mention
  e2: Mention
  relation: str | None = None
  id: str = ""
  where: str = ""  # FILE:LINE of the sentence.


def read_sentences(
  path: str | pathlib.Path, *, other: str = "Other"
) -> list[Example]:
  """Reads the sentences of a file in the task's format.

  The line after a sentence has its relation; blank lines and lines that begin
  with "Comment" are skipped. In a file without relations, like the test set as
  it was distributed, they are None; so is one that is - or ?, and not `other`.

  Raises:
    DataError: the file is missing, empty or not UTF-8; a line is malformed; a
      sentence lacks an entity, or a relation although others have one.
  """
  examples: list[Example] = []
  without: list[Example] = []
  expects_relation = False
  for number, line in enumerate(read_lines(pathlib.Path(path)), 1):
    where = f"{path}:{number}"
    line = line.strip()
    if match := _SENTENCE.fullmatch(line):
      without += examples[-1:] * expects_relation
      if "\t" in match[2]:
        raise DataError(
          f"{where}: a tab within the sentence; expected the relation in the "
          "next line, not in another column."
        )
      examples.append(_sentence(*match.groups(), where))
      expects_relation = True
    elif line and not line.startswith(_COMMENT):
      if not expects_relation or not _RELATION.fullmatch(line):
        raise DataError(
          f"{where}: {line[:40]!r}; expected a sentence (number, tab, sentence "
          "in quotes), then a relation such as Cause-Effect(e1,e2), "
          "Cause-Effect(e2,e1) or Other, or a line that begins with Comment."
        )
      if line == other or line not in NO_LABEL:
        examples[-1] = examples[-1]._replace(relation=line)
      expects_relation = False
  if not examples:
    raise DataError(f"{path}: no sentences; expected at least one.")
  without += examples[-1:] * expects_relation
  if 0 < len(without) < len(examples):
    raise DataError(
      f"{without[0].where}: the sentence has no relation, but others do; "
      "expected it on the next line, such as Cause-Effect(e1,e2) or Other."
    )
  return examples


def parse_entity_tags(text: str, *, where: str) -> tuple[str, Mention, Mention]:
  """Returns (text without tags, e1, e2), given <e1>...</e1> and <e2>...</e2>.

  Raises:
    DataError: a tag is missing or repeated, or an entity is empty or closed
      before it is opened.
  """
  plain, begin, places = "", 0, {}
  for match in _TAG.finditer(text):
    if match.group() in places:
      raise DataError(
        f"{where}: the sentence has {match.group()} twice; expected each of "
        "<e1>, </e1>, <e2> and </e2> once."
      )
    plain += text[begin : match.start()]
    begin = match.end()
    places[match.group()] = len(plain)
  plain += text[begin:]
  for tag in ("<e1>", "</e1>", "<e2>", "</e2>"):
    if tag not in places:
      raise DataError(
        f"{where}: the sentence has no {tag}; expected tags around both "
        "entities, such as The <e1>child</e1> in the <e2>cradle</e2>."
      )
  e1, e2 = (
    Mention(places[f"<{name}>"], places[f"</{name}>"]) for name in ("e1", "e2")
  )
  for name, entity in (("e1", e1), ("e2", e2)):
    if not plain[entity.begin : entity.end].strip():
      raise DataError(
        f"{where}: <{name}></{name}> is empty; expected the words of an entity."
      )
  return plain, e1, e2


def strip_direction(relation: str) -> str:
  """Returns the relation without its (e1,e2) or (e2,e1)."""
  match = _RELATION.fullmatch(relation)
  return match.group(1) if match else relation


def directed_labels(relations: Sequence[str], *, other: str) -> list[str]:
  """Returns the labels for these relations: `other` first, the rest sorted.

  A relation that occurs in one direction gets labels for both: the task's
  training set has a single Entity-Destination(e2,e1).
  """
  labels = set(relations)
  for relation in relations:
    name = strip_direction(relation)
    if name != relation:
      labels |= {f"{name}(e1,e2)", f"{name}(e2,e1)"}
  return [other] * (other in labels) + sorted(labels - {other})


# --- The official metric ---


class RelationCounts(NamedTuple):
  """Numbers of examples of a relation, both directions together."""

  correct: int  # Both relation and direction are correct.
  reversed: int  # The relation is correct, but not its direction.
  predicted: int  # In either direction.
  gold: int

  @property
  def scores(self) -> tuple[float, float, float]:
    """(precision, recall, F1); a wrong direction counts against both."""
    found = entity_metrics.MatchCounts(self.correct, self.predicted, self.gold)
    return found.precision, found.recall, found.f1


def count_relations(
  gold: Sequence[str], predicted: Sequence[str], *, other: str = ""
) -> dict[str, RelationCounts]:
  """Returns the counts of each relation in gold except `other`, sorted."""
  pairs = [
    (strip_direction(g), strip_direction(p), g == p)
    for g, p in zip(gold, predicted, strict=True)
  ]
  actual = Counter(g for g, _, _ in pairs)
  proposed = Counter(p for _, p, _ in pairs)
  right = Counter(g for g, _, same in pairs if same)
  backwards = Counter(g for g, p, same in pairs if g == p and not same)
  return {
    name: RelationCounts(
      right[name], backwards[name], proposed[name], actual[name]
    )
    for name in sorted(set(actual) - {other})
  }


def evaluate_relations(
  gold: Sequence[str], predicted: Sequence[str], *, other: str = "Other"
) -> dict[str, float]:
  """Returns the official scores, as fractions.

  f1 is the mean of the relations' F1, other excluded, where a correct relation
  in the wrong direction counts as wrong ("(9+1)-way evaluation taking
  directionality into account" of semeval2010_task8_scorer-v1.2.pl). precision
  and recall are means as well; micro_f1 counts all relations together;
  undirected_f1 is f1 without directions; accuracy is over all labels.
  """
  counts = list(count_relations(gold, predicted, other=other).values())
  each = [c.scores for c in counts]
  precision, recall, f1 = (_mean([x[i] for x in each]) for i in range(3))
  together = entity_metrics.MatchCounts(
    correct=sum(c.correct for c in counts),
    predicted=sum(c.predicted for c in counts),
    gold=sum(c.gold for c in counts),
  )
  undirected = [
    entity_metrics.MatchCounts(c.correct + c.reversed, c.predicted, c.gold).f1
    for c in counts
  ]
  return {
    "f1": f1,
    "precision": precision,
    "recall": recall,
    "micro_f1": together.f1,
    "undirected_f1": _mean(undirected),
    "accuracy": _mean([g == p for g, p in zip(gold, predicted, strict=True)]),
  }


def format_report(gold: Sequence[str], predicted: Sequence[str]) -> str:
  """Returns tab-separated counts and scores of each relation, and of Other."""
  lines = [
    "relation\tright\twrong direction\tpredicted\tgold\tprecision\trecall\tf1"
  ]
  for name, counts in count_relations(gold, predicted).items():
    figures = "\t".join(f"{x:.4f}" for x in counts.scores)
    lines.append("\t".join([name, *map(str, counts), figures]))
  return "\n".join([*lines, ""])


def format_answers(ids: Sequence[str], relations: Sequence[str]) -> str:
  """Returns the scorer's input: a line `id<TAB>relation` for each sentence."""
  return "".join(f"{i}\t{r}\n" for i, r in zip(ids, relations, strict=True))


def _mean(values: Sequence[float]) -> float:
  return sum(values) / len(values) if values else 0.0


def _sentence(number: str, text: str, where: str) -> Example:
  if len(text) > 1 and text[0] == text[-1] == '"':
    text = text[1:-1]
  return Example(*parse_entity_tags(text, where=where), id=number, where=where)
