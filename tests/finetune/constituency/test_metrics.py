"""Bracket scores: examples worked by hand, and a plain loop like EVALB's."""

import random

import pytest

from maskedlm.data.labelled.formats import trees
from maskedlm.data.labelled.formats.trees import Bracket
from maskedlm.finetune.constituency import metrics

GOLD = (
  "(TOP (S (NP (DT The) (NN cat)) (, ,) (VP (VBD sat) (PRT (RP down))) (. .)))"
)


def parse(text):
  ((tree, _),) = trees.parse_trees([(1, text)], "t")
  return metrics.Parse(tree.tags, tree.brackets)


def score(gold, predicted):
  return metrics.evaluate([parse(gold)], [parse(predicted)])


def test_by_hand(monkeypatch):
  found = (
    "(TOP (S (NP (DT The) (JJ cat)) (VP (, ,) (VBD sat) (RP down)) (. .)))"
  )
  # Of S, NP, VP, PRT, three are found; VP begins after the comma in both.
  assert score(GOLD, found) == pytest.approx(
    {
      "bracket_f1": 6 / 7,
      "bracket_precision": 1,
      "bracket_recall": 3 / 4,
      "complete_match": 0,
      "tag_accuracy": 5 / 6,
    }
  )
  # With punctuation, VP has another word.
  monkeypatch.setattr(metrics, "PUNCTUATION", ())
  assert score(GOLD, found)["bracket_precision"] == 2 / 3


@pytest.mark.parametrize(
  ("gold", "found", "right", "of_gold", "of_found"),
  [
    # Brackets of punctuation alone don't count, whatever they are called.
    ("(S (NN a) (X (. .)))", "(S (NN a) (. .))", 1, 1, 1),
    # S around all words, and S around all but the full stop, are the same.
    ("(S (NN a) (. .))", "(TOP (S (NN a)) (. .))", 1, 1, 1),
    # PRT is ADVP.
    ("(S (ADVP (RB a)) (NN b))", "(S (PRT (RB a)) (NN b))", 2, 2, 2),
    # Each bracket of a chain counts, as often as it is there.
    ("(NP (NP (NN a)))", "(NP (NN a))", 1, 2, 1),
    ("(NP (NN a))", "(NP (NP (NP (NN a))))", 1, 1, 3),
    ("(S (VP (NN a)))", "(VP (S (NN a)))", 2, 2, 2),
    # The gold tags say what is punctuation.
    ("(S (NP (NN a) (. .)) (NN b))", "(S (NP (. a)) (NN .) (NN b))", 2, 2, 2),
    # No bracket at all.
    ("(NN a)", "(NP (NN a))", 0, 0, 1),
  ],
)
def test_what_counts(gold, found, right, of_gold, of_found):
  counts = metrics.count_brackets([parse(gold)], [parse(found)])
  total = metrics.sum_counts(counts)
  assert (total.correct, total.gold, total.predicted) == (
    right,
    of_gold,
    of_found,
  )
  complete = score(gold, found)["complete_match"]
  assert complete == (right == of_gold == of_found)


def like_evalb(gold, found):
  """Returns the matching, gold and predicted brackets, one loop in another."""
  punctuation = {",", ":", "``", "''", "."}
  kept = [i for i, tag in enumerate(gold.tags) if tag not in punctuation]

  def shrink(brackets):
    covered = (
      (label, [i for i in kept if begin <= i < end])
      for label, begin, end in brackets
    )
    return [(label, words) for label, words in covered if words]

  truth, rest = shrink(gold.brackets), shrink(found.brackets)
  counts = len(truth), len(rest)
  match = 0
  for label, words in truth:
    for other in rest:
      same = {label, other[0]} in ({label}, {"ADVP", "PRT"})
      if same and words == other[1]:
        match += 1
        rest.remove(other)
        break
  return match, *counts


def test_random_trees_against_a_plain_loop():
  rng = random.Random(3)

  def brackets(begin, end):
    if end - begin > 1 and rng.random() < 0.8:
      cut = rng.randrange(begin + 1, end)
      rest = brackets(begin, cut) + brackets(cut, end)
    else:
      rest = []
    own = rng.choices(("NP", "VP", "ADVP", "PRT"), k=rng.randrange(3))
    return [Bracket(label, begin, end) for label in own] + rest

  gold, found = [], []
  for _ in range(60):
    n = rng.randrange(1, 9)
    tags = [rng.choice(("NN", "VB", ",", ".")) for _ in range(n)]
    gold.append(metrics.Parse(tags, brackets(0, n)))
    found.append(metrics.Parse(["NN"] * n, brackets(0, n)))
  counts = metrics.sum_counts(metrics.count_brackets(gold, found))
  sums = map(sum, zip(*map(like_evalb, gold, found), strict=True))
  assert (counts.correct, counts.gold, counts.predicted) == tuple(sums)
  assert counts.correct > 20
