"""Metrics of tags, against conlleval, seqeval and by hand."""

import itertools
import random
import warnings

import pytest
import seqeval.metrics

from maskedlm.data.labelled import bio
from maskedlm.finetune.common import entity_metrics
from maskedlm.finetune.common.label_metrics import confusion_table

LABELS = ["O", "B-A", "B-B", "I-A", "I-B"]


def conlleval(gold, predicted):
  """Returns (correct, predicted, gold) chunks by conlleval's rules.

  Written from their description, as a machine that reads line by line: a
  chunk begins at B, and at I after O or after another type; it ends
  before O, before B, and where the type changes. It is correct if both columns
  begin and end it on the same lines with one type throughout.
  """
  correct = found = gold_count = 0
  state = None  # The line on which both columns began a chunk, both open.
  before = [("O", ""), ("O", "")]
  lines = [
    pair
    for g, p in zip(gold, predicted, strict=True)
    for pair in [*zip(g, p, strict=True), ("O", "O")]  # The end of a sentence.
  ]
  for pair in lines:
    now = [tuple(tag.partition("-")[::2]) for tag in pair]
    ends = [
      a[0] in "BI" and (b[0] in "OB" or a[1] != b[1])
      for a, b in zip(before, now, strict=True)
    ]
    begins = [
      b[0] == "B" or (b[0] == "I" and (a[0] == "O" or a[1] != b[1]))
      for a, b in zip(before, now, strict=True)
    ]
    if state and any(ends):
      correct += all(ends)
      state = None
    gold_count += begins[0]
    found += begins[1]
    if all(begins) and now[0][1] == now[1][1]:
      state = True
    elif any(begins):
      state = None
    before = now
  return correct, found, gold_count


@pytest.mark.parametrize("seed", range(5))
def test_scores_equal_conlleval_and_seqeval(seed):
  rng = random.Random(seed)
  gold, predicted = [], []
  for _ in range(60):
    length = rng.randrange(1, 14)
    gold.append(bio.repair_tags(rng.choices(LABELS, k=length)))
    predicted.append(
      [t if rng.random() < 0.7 else rng.choice(LABELS) for t in gold[-1]]
    )
  scores = entity_metrics.evaluate_entities(gold, predicted, "bio")
  correct, found, gold_count = conlleval(gold, predicted)
  assert 0 < correct < min(found, gold_count)
  assert scores["precision"] == pytest.approx(correct / found)
  assert scores["recall"] == pytest.approx(correct / gold_count)
  assert scores["f1"] == pytest.approx(2 * correct / (found + gold_count))
  theirs = seqeval.metrics
  assert scores["f1"] == pytest.approx(theirs.f1_score(gold, predicted))
  assert scores["precision"] == pytest.approx(
    theirs.precision_score(gold, predicted)
  )
  assert scores["accuracy"] == pytest.approx(
    theirs.accuracy_score(gold, predicted)
  )
  strict = {"mode": "strict", "scheme": seqeval.scheme.IOB2}
  assert scores["strict_f1"] == pytest.approx(
    theirs.f1_score(gold, predicted, **strict)
  )
  assert scores["strict_f1"] != pytest.approx(scores["f1"])
  # By type.
  by_type = entity_metrics.count_entities(gold, predicted, bio.find_entities)
  report = theirs.classification_report(gold, predicted, output_dict=True)
  for name, counts in by_type.items():
    assert counts.f1 == pytest.approx(report[name]["f1-score"])
    assert counts.gold == report[name]["support"]


def test_scores_by_hand():
  gold = [["B-A", "I-A", "O"], ["B-B", "O", "B-A"]]
  predicted = [["B-A", "I-A", "I-A"], ["I-B", "O", "B-A"]]
  # Gold has 3; A (too long), B (from its I) and A are found: 2 are correct.
  # In strict mode B is no entity: 2 found, 1 correct.
  scores = entity_metrics.evaluate_entities(gold, predicted, "bio")
  assert scores["precision"] == scores["recall"] == pytest.approx(2 / 3)
  assert scores["strict_precision"] == 1 / 2
  assert scores["strict_recall"] == pytest.approx(1 / 3)
  assert scores["accuracy"] == pytest.approx(4 / 6)
  assert confusion_table(
    itertools.chain(*gold), itertools.chain(*predicted)
  ).splitlines() == [
    "gold \\ predicted\tB-A\tB-B\tI-A\tI-B\tO",
    "B-A\t2\t0\t0\t0\t0",
    "B-B\t0\t0\t0\t1\t0",
    "I-A\t0\t0\t1\t0\t0",
    "I-B\t0\t0\t0\t0\t0",
    "O\t0\t0\t1\t0\t1",
  ]
  assert entity_metrics.count_words(gold, predicted)["O"] == (1, 1, 2)
  table = entity_metrics.format_table(
    entity_metrics.count_entities(gold, predicted, bio.find_entities), "entity"
  ).splitlines()
  assert table[1].split() == ["A", "0.5000", "0.5000", "0.5000", "2", "2", "1"]
  assert table[-1].split()[0] == "all"


def test_nothing_found_and_nothing_there_is_zero():
  assert entity_metrics.word_accuracy([], []) == 0
  nothing = [["O", "O"]]
  scores = entity_metrics.evaluate_entities(nothing, nothing, "bio")
  assert scores["f1"] == scores["precision"] == scores["recall"] == 0
  assert scores["accuracy"] == 1
  with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    assert seqeval.metrics.f1_score(nothing, nothing) == 0
