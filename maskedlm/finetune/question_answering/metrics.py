"""Exact match and F1 of answers, as SQuAD's official scripts count them.

evaluate-v1.1.py and evaluate-v2.0.py treat two cases differently: an answer
such as "The", which is empty once normalised, and a question without an answer.
All values are fractions from 0 to 1; the scripts print percentages.
"""

import collections
import re
import string
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_QUESTION_WORD = re.compile(r"\b(what|who|when|where|why|which|how)\b")
_NO_ANSWER = "(no answer)"
_PUNCTUATION = str.maketrans("", "", string.punctuation)  # ASCII only.


class AnswerScore(NamedTuple):
  """An answer's best scores against any of the gold answers."""

  exact_match: float
  f1: float


# (predicted, gold answers) -> score.
Scorer = Callable[[str, Sequence[str]], AnswerScore]
PredictedAnswers = Mapping[str, str]  # Question id -> answer.
GoldAnswers = Mapping[str, Sequence[str]]  # Question id -> answers, or ().


def normalise_answer(text: str) -> str:
  """Returns the text in lower case without punctuation and articles."""
  text = text.lower().translate(_PUNCTUATION)
  return " ".join(_ARTICLES.sub(" ", text).split())


def score_v1(predicted: str, gold: Sequence[str]) -> AnswerScore:
  """Scores as SQuAD 1.1 does: two empty answers match exactly, with F1 0."""
  answer = normalise_answer(predicted)
  truths = [normalise_answer(text) for text in gold]
  return AnswerScore(
    float(answer in truths), max(_word_f1(answer, truth) for truth in truths)
  )


def score_v2(predicted: str, gold: Sequence[str]) -> AnswerScore:
  """Scores as SQuAD 2.0 does: without a gold answer, "" is correct, with F1 1.

  Gold answers that are empty once normalised are ignored.
  """
  answer = normalise_answer(predicted)
  truths = [truth for truth in map(normalise_answer, gold) if truth] or [""]
  exact = float(answer in truths)
  if truths == [""]:
    return AnswerScore(exact, exact)
  return AnswerScore(exact, max(_word_f1(answer, truth) for truth in truths))


def evaluate_v1(
  gold: GoldAnswers, answers: PredictedAnswers
) -> dict[str, float]:
  """Returns exact_match and f1; a question without a prediction scores 0."""
  return _mean(list(_scores(gold, answers, score_v1).values()))


def evaluate_v2(
  gold: GoldAnswers, answers: PredictedAnswers
) -> dict[str, float]:
  """Returns exact_match, f1, their has_answer_ variants, no_answer_accuracy.

  The has_answer_ variants are over the questions with an answer,
  no_answer_accuracy over the others. A question without a prediction scores 0
  (evaluate-v2.0.py fails).
  """
  scores = _scores(gold, answers, score_v2)
  values = _mean(list(scores.values()))
  if answerable := [scores[key] for key in gold if gold[key]]:
    for name, value in _mean(answerable).items():
      values[f"has_answer_{name}"] = value
  if impossible := [scores[key].f1 for key in gold if not gold[key]]:
    values["no_answer_accuracy"] = float(np.mean(impossible))
  return values


def best_thresholds(
  gold: GoldAnswers, answers: PredictedAnswers, null_odds: Mapping[str, float]
) -> dict[str, float]:
  """Returns the best scores over all thresholds, as evaluate-v2.0.py does.

  Args:
    gold: the gold answers.
    answers: the answer predicted for a question, unless its null_odds exceed
      the threshold, in which case "" is predicted.
    null_odds: how much more likely no answer is than that one, on any scale.

  Returns:
    best_exact_match, best_f1, and the threshold of each. As in the script, a
    threshold is one of null_odds, or 0 if never answering is best.
  """
  odds, gains = _gains(gold, answers, null_odds)
  values = {}
  for name in AnswerScore._fields:
    totals = _totals(gold, gains[name])
    best = int(np.argmax(totals))
    values[f"best_{name}"] = float(totals[best]) / len(gold)
    values[f"best_{name}_threshold"] = float(odds[best - 1]) if best else 0.0
  return values


def calibrate_threshold(
  gold: GoldAnswers, answers: PredictedAnswers, null_odds: Mapping[str, float]
) -> float:
  """Returns the threshold of the best F1, for use on other questions.

  Unlike the script's, it lies midway between two different null_odds, so that
  rounding errors change no prediction.
  """
  odds, gains = _gains(gold, answers, null_odds)
  # Below the first, between any two, above the last.
  bounds = np.concatenate([odds[:1] - 2, odds, odds[-1:] + 2])
  totals = np.where(bounds[:-1] < bounds[1:], _totals(gold, gains["f1"]), -1)
  best = int(np.argmax(totals))
  return float(bounds[best] + bounds[best + 1]) / 2


def format_error_tables(
  questions: Mapping[str, str],
  gold: GoldAnswers,
  answers: PredictedAnswers,
  scorer: Scorer,
) -> dict[str, str]:
  """Returns mistakes.tsv and by_question.txt, scores by question word.

  Mistakes are answers that don't match exactly, sorted by F1, lowest first.
  """
  scores = _scores(gold, answers, scorer)
  lines = ["id\tf1\tpredicted\tgold\tquestion"]
  for key in sorted(scores, key=lambda key: scores[key].f1):
    if not scores[key].exact_match:
      expected = " | ".join(dict.fromkeys(gold[key])) or _NO_ANSWER
      texts = (answers.get(key) or _NO_ANSWER, expected, questions[key])
      cells = (" ".join(text.split()) for text in texts)
      lines.append("\t".join([key, f"{scores[key].f1:.3f}", *cells]))
  groups = collections.defaultdict(list)
  for key, question in questions.items():
    match = _QUESTION_WORD.search(question.lower())
    groups[match.group() if match else "(other)"].append(scores[key])
  rows = [f"{'':<10}{'exact_match':>12}{'f1':>9}{'questions':>12}"]
  for word in sorted(groups, key=lambda word: (-len(groups[word]), word)):
    exact, f1 = _mean(groups[word]).values()
    rows.append(f"{word:<10}{exact:>12.4f}{f1:>9.4f}{len(groups[word]):>12}")
  return {
    "mistakes.tsv": "\n".join(lines) + "\n",
    "by_question.txt": "\n".join(rows) + "\n",
  }


def _word_f1(predicted: str, truth: str) -> float:
  """Returns the F1 of two normalised answers as bags of words."""
  a, b = predicted.split(), truth.split()
  same = sum((collections.Counter(a) & collections.Counter(b)).values())
  if not same:
    return 0.0
  precision, recall = same / len(a), same / len(b)
  return 2 * precision * recall / (precision + recall)


def _scores(
  gold: GoldAnswers, answers: PredictedAnswers, scorer: Scorer
) -> dict[str, AnswerScore]:
  return {
    key: scorer(answers[key], gold[key])
    if key in answers
    else AnswerScore(0.0, 0.0)
    for key in gold
  }


def _mean(scores: Sequence[AnswerScore]) -> dict[str, float]:
  means = np.mean(np.array(scores, np.float64).reshape(-1, 2), axis=0)
  return dict(zip(AnswerScore._fields, means.tolist(), strict=True))


def _gains(gold, answers, null_odds) -> tuple[np.ndarray, dict]:
  """Returns sorted null_odds [n], and {score: gain [n] from answering each}."""
  keys = sorted(gold, key=null_odds.__getitem__)
  scores = [
    score_v2(answers[key], gold[key])
    if gold[key]
    # Not answering is correct here; an answer loses that point.
    else AnswerScore(*[-1.0 if answers[key] else 0.0] * 2)
    for key in keys
  ]
  odds = np.array([null_odds[key] for key in keys], np.float64)
  gains = np.array(scores, np.float64).reshape(-1, 2).T
  return odds, dict(zip(AnswerScore._fields, gains, strict=True))


def _totals(gold: GoldAnswers, gains: np.ndarray) -> np.ndarray:
  """Returns the totals [n + 1] if the first 0, 1, ... n are answered."""
  impossible = sum(not answers for answers in gold.values())
  return np.cumsum(np.concatenate([[impossible], gains]))
