"""The picture of a text: what stands above its words."""

import pytest

from helpers import untrained
from maskedlm.inference.plots import figure, text_row
from maskedlm.inference.plots.text_row import Mark


def test_a_pair_by_hand():
  row = text_row.row_of_pair("a b", "c", 0.75)
  # -log 0.75 = 0.2877, -log 0.25 = 1.3863.
  assert row.title == "NSP loss 0.288 if B follows A, 1.386 if B is random"
  assert row.words == ("[CLS]", "a", "b", "[SEP]", "c", "[SEP]")
  assert [mark[:3] for mark in row.marks] == [
    (0, 0, "follows 75.0%"),
    (1, 3, "A"),
    (4, 5, "B"),
  ]


@pytest.mark.parametrize(
  ("answer", "words", "marks"),
  [
    (
      {"label": "good", "probability": 0.62},
      ("[CLS]", "a", "b"),
      [Mark(0, 0, "good 62%", figure.colour(0))],
    ),
    (
      {"tokens": ["a", "b"], "tags": ["O", "X"], "probabilities": [1.0, 0.5]},
      ("a", "b"),
      [Mark(0, 0, "O 100%"), Mark(1, 1, "X 50%", figure.colour(0))],
    ),
    (
      {"tokens": ["a", "b"], "tags": ["X", "X"]},  # Of a CRF.
      ("a", "b"),
      [Mark(i, i, "X", figure.colour(0)) for i in range(2)],
    ),
    (
      {
        "tokens": ["a", "b"],
        "entities": [
          {"type": "IN", "words": [0, 1], "score": 0.9},
          {"type": "OUT", "words": [0, 2], "score": 0.8},
        ],
      },
      ("a", "b"),
      [
        Mark(0, 0, "IN 90%", figure.colour(0)),
        Mark(0, 1, "OUT 80%", figure.colour(1)),
      ],
    ),
  ],
)
def test_answers(answer, words, marks):
  row = text_row.row_of_answer("a b", answer)
  assert row.words == words and row.marks == marks


def test_the_verb(tagged, tmp_path, size, verb):
  out = tmp_path / "a.png"

  def call(checkpoint, text, **expect):
    return verb(
      "plot",
      "row",
      f"--checkpoint={checkpoint}",
      f"--out={out}",
      text,
      **expect,
    )

  lines = call(tagged, "the cat sat").out.splitlines()
  assert lines[0] == f"{out}: the cat sat"
  assert [line.split(":")[0].strip() for line in lines[1:]] == [
    "the",
    "cat",
    "sat",
  ]
  tags = size(out)
  heads = ("pooler", "mlm_head", "nsp_head")
  path = untrained.pretrained(tmp_path / "run", heads=heads)
  assert call(path, "the cat").out == f"{out}: vectors of 24 values\n"
  vectors = size(out)
  # Its title of 25 letters is wider than two words: 150 pixels an inch.
  assert abs(vectors[0] - 150 * (0.4 + 25 * text_row.LETTER)) <= 1
  strip, level = text_row.STRIP + 0.1, text_row.LEVEL
  assert abs(vectors[1] - tags[1] - 150 * (strip - level)) <= 1
  # Brackets above each other do not add a level unless one contains another.
  assert "NSP loss" in call(path, "the cat\tsat on").out
  assert size(out)[1] == tags[1]
  printed = call(path, " ", expect=2).err
  assert "has 0 words; expected 1 to 64" in printed
  text_row.draw_row(str(out), text_row.TextRow("long " * 99, ("a",), []))
  assert 150 * (text_row.WIDTH - 0.5) < size(out)[0] <= 150 * text_row.WIDTH
