"""Coreference metrics: the official scorer's published cases, and by hand."""

import pytest

from maskedlm.finetune.coreference_chains import metrics

NAMES = ("recall", "precision", "f1")


def evaluate(gold, predicted):
  return metrics.evaluate_chains([gold.split()], [predicted.split()])


def check(values, **expected):
  for metric, numbers in expected.items():
    found = [values[f"{metric}_{name}"] for name in NAMES[: len(numbers)]]
    assert found == pytest.approx(numbers, abs=1e-5), metric


@pytest.mark.parametrize(
  ("predicted", "ceafe"),
  [
    ("a bc def", (1, 1, 1)),
    ("a de", (0.6, 0.9, 0.72)),
    ("a bcx defy z", (0.88571, 0.66429, 0.75918)),
    ("a bcx dy z", (0.73333, 0.55, 0.62857)),
    ("a bcxB dy z", (0.68889, 0.51667, 0.59048)),
    ("a bcx dy Bz", (0.73333, 0.55, 0.62857)),
  ],
)
def test_cases_of_the_official_scorer(predicted, ceafe):
  """TC1 to TC6 of reference-coreference-scorers, test/TestCases.README."""
  check(evaluate("a bc def", predicted), ceafe=ceafe)


def test_the_example_of_the_papers():
  """Pradhan et al. 2014, section 4; Moosavi & Strube 2016, section 3.

  For B3's recall, abc has parts of 2 and 1, and defg of 1 (d) and 2 (f, g):
  ((4 + 1) / 3 + (1 + 4) / 4) / 7.
  """
  values = evaluate("abc defg", "ab cd fghi")
  check(
    values,
    muc=(2 / 5, 2 / 5, 2 / 5),
    b3=((5 / 3 + 5 / 4) / 7, (2 + 1 / 2 + 1 / 2 + 4 / 4) / 8),
    ceafe=((4 / 5 + 4 / 8) / 2, (4 / 5 + 4 / 8) / 3, 0.52),
    lea=((3 * 1 / 3 + 4 * 1 / 6) / 7, (2 + 0 + 4 * 1 / 6) / 8),
    mention=(6 / 7, 6 / 8),
  )
  parts = [values[f"{name}_f1"] for name in ("muc", "b3", "ceafe")]
  assert values["conll_f1"] == pytest.approx(sum(parts) / 3)


def test_counts_are_summed_over_documents():
  """The same letters are other mentions in another document."""
  gold, predicted = [["ab"], ["abc", "de"]], [["ab"], ["abde"]]
  values = metrics.evaluate_chains(gold, predicted)
  check(values, muc=(3 / 4, 3 / 4), mention=(6 / 7, 1.0))
  # The first document has 2 of 2; the second 4/3 + 4/2 of 5, and 2 of 4.
  check(values, b3=((2 + 4 / 3 + 2) / 7, (2 + 2) / 6))
  # The second document aligns abde with de: 4/6.
  check(values, ceafe=((1 + 4 / 6) / 3, (1 + 4 / 6) / 2))


def test_chains_of_one_mention():
  """LEA counts a link from the mention to itself, if it is alone in both."""
  values = evaluate("a b cd", "a bx cd")
  check(values, lea=((1 + 0 + 2) / 4, (1 + 0 + 2) / 5), muc=(1.0, 1 / 2))


@pytest.mark.parametrize(("gold", "predicted"), [("", "ab"), ("ab", "")])
def test_nothing_on_one_side(gold, predicted):
  values = evaluate(gold, predicted)
  assert set(values.values()) == {0.0}
  assert metrics.evaluate_chains([], [])["conll_f1"] == 0
