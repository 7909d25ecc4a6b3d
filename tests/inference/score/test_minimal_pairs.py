"""Minimal pairs: what is right, what is a tie, and accuracy by phenomenon."""

import json
import math

import numpy as np
import pytest

from maskedlm.core.errors import DataError
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


@pytest.mark.parametrize(
  ("line", "words"),
  [
    ({"sentence_good": "a"}, "sentence_bad"),
    ({"sentence_good": "a", "sentence_bad": ""}, "sentence_bad is empty"),
    ({"sentence_good": ["a"], "sentence_bad": "b"}, "sentence_good is a list"),
    ([1], "list"),
  ],
)
def test_a_bad_line_is_named(tmp_path, line, words):
  path = tmp_path / "a.jsonl"
  path.write_text(f"{json.dumps(LINE)}\n{json.dumps(line)}\n")
  with pytest.raises(DataError, match=rf"a\.jsonl:2.*{words}") as found:
    minimal_pairs.read_pairs([str(path)])
  assert "\n" not in str(found.value)


def test_an_empty_file_is_refused(tmp_path):
  (tmp_path / "a.jsonl").write_text("\n")
  with pytest.raises(DataError, match=r"a\.jsonl"):
    minimal_pairs.read_pairs([str(tmp_path / "a.jsonl")])
