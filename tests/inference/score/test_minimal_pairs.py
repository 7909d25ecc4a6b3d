"""Minimal pairs: what is right, what is a tie, and accuracy by phenomenon."""

import json
import math

import numpy as np

from maskedlm.inference.score import minimal_pairs
from maskedlm.inference.score.minimal_pairs import Judged, MinimalPair
from maskedlm.inference.score.texts import TextScore


def score(total, *ids):
  nothing = np.zeros(0)
  return TextScore("", total, math.nan, (), nothing, np.array(ids), nothing)


def judged(good, bad, ids=(1, 2), **groups):
  return Judged(
    MinimalPair("g", "b", groups), score(good, ids[0]), score(bad, ids[1])
  )


def test_counts_by_hand():
  binding = {"linguistics_term": "binding", "UID": "a_binding"}
  values = minimal_pairs.count(
    [
      judged(-3.0, -4.0, **binding),
      judged(-4.0, -3.0, **binding),
      judged(-3.0, -3.5, linguistics_term="binding", UID="b_binding"),
      judged(-3.0, -3.0 - 1e-7, UID="agree"),  # A tie, but for rounding.
      judged(-3.0, -3.1, ids=(7, 7), UID="agree"),  # The same tokens.
      judged(-1.0, -2.0, UID="agree"),
    ]
  )
  assert values == {
    "pairs": 6,
    "correct": 3,
    "ties": 2,
    "accuracy": 0.5,
    "UID": {
      "a_binding": {"pairs": 2, "correct": 1, "ties": 0, "accuracy": 0.5},
      "agree": {"pairs": 3, "correct": 1, "ties": 2, "accuracy": 1 / 3},
      "b_binding": {"pairs": 1, "correct": 1, "ties": 0, "accuracy": 1.0},
    },
    "linguistics_term": {
      "-": {"pairs": 3, "correct": 1, "ties": 2, "accuracy": 1 / 3},
      "binding": {"pairs": 3, "correct": 2, "ties": 0, "accuracy": 2 / 3},
    },
  }


LINE = {
  "sentence_good": "She sees herself.",
  "sentence_bad": "She sees himself.",
  "field": "morphology",
  "linguistics_term": "anaphor_agreement",
  "UID": "anaphor_gender_agreement",
  "simple_LM_method": True,
  "pairID": "0",
}


def test_blimp_lines_are_read(tmp_path):
  path = tmp_path / "a.jsonl"
  bare = {k: LINE[k] for k in ("sentence_good", "sentence_bad")}
  path.write_text(f"{json.dumps(LINE)}\n{json.dumps(bare)}\n")
  first, second = minimal_pairs.read_pairs([str(path)])
  assert first.good == "She sees herself." and first.bad == LINE["sentence_bad"]
  assert first.groups == {name: LINE[name] for name in minimal_pairs.GROUPS}
  assert second.groups == {}
