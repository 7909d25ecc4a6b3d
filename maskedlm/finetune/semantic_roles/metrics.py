"""Metrics of semantic roles: F1 of arguments as srl-eval.pl counts it.

srl-eval.pl is the official script of the CoNLL-2004 and 2005 shared tasks
(Carreras and Marquez 2005, https://aclanthology.org/W05-0620), which CoNLL-2012
data are scored with as well. Its rules:

  - An argument is correct if a gold argument of the same predicate has its
    label and exactly its words.
  - C-X continues the last X before it: together they are one argument, of label
    X, that is correct only if all parts are. Without an X before it, C-X is an
    X of its own.
  - R-X is a label like any other.
  - V (with its C-V) is counted apart, not in precision, recall and F1.
  - Predicates that are not in the gold data are skipped; the arguments of those
    that are missing are missed.

`end_to_end` differs in the last rule: arguments of predicates that are not in
the gold data are wrong (He et al. 2018, https://aclanthology.org/P18-2058).
"""

from collections.abc import Sequence
from typing import NamedTuple

from maskedlm.data.labelled.formats.predicates import VERB, Predicate, with_verb
from maskedlm.finetune.common import entity_metrics
from maskedlm.finetune.common.entity_metrics import MatchCounts

Sentences = Sequence[Sequence[Predicate]]


class Argument(NamedTuple):
  """An argument with all of its parts."""

  label: str
  parts: tuple[tuple[int, int], ...]  # (first word, word after the last).


def join_parts(predicate: Predicate) -> list[Argument]:
  """Returns the arguments of a predicate, V too, with C-X joined to X."""
  arguments: list[Argument] = []
  last: dict[str, int] = {}  # Label -> its last argument.
  for label, begin, end in with_verb(predicate):
    head = label.removeprefix("C-")
    if label != head and head in last:
      place = last[head]
      parts = (*arguments[place].parts, (begin, end))
      arguments[place] = Argument(head, parts)
    else:
      last[head] = len(arguments)
      arguments.append(Argument(head, ((begin, end),)))
  return arguments


def count_arguments(
  gold: Sentences, predicted: Sentences, *, skip_others: bool = True
) -> dict[str, MatchCounts]:
  """Returns the counts of each label, sorted; V is among them.

  Args:
    gold, predicted: the predicates of each sentence.
    skip_others: whether predicates that are not in the gold data are skipped,
      as in srl-eval.pl; otherwise their arguments are wrong.
  """
  pairs = []
  for sentence, guessed in zip(gold, predicted, strict=True):
    truths, guesses = (
      {p.index: set(join_parts(p)) for p in predicates}
      for predicates in (sentence, guessed)
    )
    pairs += [
      (truths.get(index, set()), guesses.get(index, set()))
      for index in (truths if skip_others else truths | guesses)
    ]
  return entity_metrics.count_matches(pairs)


def count_predicates(gold: Sentences, found: Sentences) -> MatchCounts:
  """Returns the counts of predicates, by their words."""
  counts = entity_metrics.count_entities(
    gold, found, lambda predicates: [(VERB, p.index) for p in predicates]
  )
  return entity_metrics.sum_counts(counts)


def overall(counts: dict[str, MatchCounts]) -> MatchCounts:
  """Returns the sum over all labels but V."""
  return entity_metrics.sum_counts(
    {label: c for label, c in counts.items() if label != VERB}
  )


def evaluate_roles(
  gold: Sentences, given: Sentences, found: Sentences
) -> dict[str, float]:
  """Returns the metrics, fractions, of the predicates of each sentence.

  `given` are the gold ones with predicted arguments, `found` the model's own.
  """
  end_to_end = overall(count_arguments(gold, found, skip_others=False))
  scores = overall(count_arguments(gold, given)).scores()
  return {
    "srl_f1": scores.pop("f1"),
    **scores,
    **count_predicates(gold, found).scores("predicate_"),
    "end_to_end_f1": end_to_end.f1,
  }


def format_report(gold: Sentences, given: Sentences, found: Sentences) -> str:
  """Returns tables by label: gold predicates, V apart, and found predicates."""
  counts = count_arguments(gold, given)
  verb = {VERB: counts.pop(VERB)} if VERB in counts else {}
  ends = count_arguments(gold, found, skip_others=False)
  ends.pop(VERB, None)
  parts = [
    "Arguments of the given predicates, as srl-eval.pl counts them:",
    entity_metrics.format_table(counts, "label"),
    "The predicates' own words, not counted above:",
    entity_metrics.format_table(verb, "label"),
    "Arguments of the predicates that were found (end to end):",
    entity_metrics.format_table(ends, "label"),
  ]
  return "\n".join(parts)
