"""The demo's answers: JSON in, JSON out."""

import json

import numpy as np
import pytest

from helpers import untrained
from helpers.untrained import POSITIONS, D, H, N
from maskedlm.core.errors import ConfigError, DataError
from maskedlm.inference.demo import answers
from maskedlm.inference.model import load

NAMES = list(untrained.TUNED)  # pos, ner, mood, qa, four, many


def test_describe_models(models, workdirs):
  made = json.loads(json.dumps(answers.describe_models(models)))
  tuned = made.pop("tuned")
  assert made == {
    "checkpoint": str(workdirs["pretrained"]),
    "mask": "[MASK]",
    "layers": N,
    "heads": H,
    "width": D,
    "positions": POSITIONS,
    "characters": 2000,
    "masked": list(answers.EXAMPLES),
  }
  assert [model["path"] for model in tuned] == NAMES
  assert [model["kind"] for model in tuned] == [
    *("tagging", "tagging", "classification", "question_answering"),
    *("multiple_choice", "multi_label"),
  ]


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_pieces_and_masks_make_up_the_text(kind, models, tmp_path):
  if kind == "bpe":
    encoder = load(untrained.pretrained(tmp_path / kind, kind=kind))
    models = answers.Models(encoder, ())
  about = answers.describe_models(models)
  mask = about["mask"]
  assert mask == {"wordpiece": "[MASK]", "bpe": "<mask>"}[kind]
  assert about["masked"][0] == answers.EXAMPLES[0].replace("[MASK]", mask)
  text = f"The 👩‍💻 {mask} sat, {mask}{mask} on!"
  made = json.loads(
    json.dumps(answers.answer_fill(models, {"text": f" {text}\n"}))
  )
  assert mask.join(made["pieces"]) == text
  assert [len(words) for words in made["masks"]] == 3 * [8]
  expected = models.encoder.fill_mask(text, top=8)
  assert [
    [(w["word"], pytest.approx(w["probability"])) for w in words]
    for words in made["masks"]
  ] == expected


def test_cosines_of_two_words(models):
  texts = ["The cat sat on the mat.", "a cat or a dog"]
  fields = {"first": texts[0], "second": texts[1], "word": "CAT", "other": ""}
  made = answers.answer_compare(models, fields)
  assert made["words"] == ["CAT", "CAT"]
  assert len(made["layers"]) == N + 1
  assert made["standardised"] == []
  for layer, found in enumerate(made["layers"]):
    assert found["layer"] == layer
    x = models.encoder.vectors(texts, layers=(layer,))
    x = x._replace(values=x.values / np.linalg.norm(x.values, axis=1)[:, None])
    a, b = x.values[x.texts == 0], x.values[x.texts == 1]
    assert found["cosine"] == pytest.approx(a[1] @ b[1], abs=1e-5)
    # One of the 7 x 5 pairs is of the same word, cat and cat.
    usual = ((a @ b.T).sum() - a[1] @ b[1]) / 34
    assert found["usual"] == pytest.approx(usual, abs=1e-5)


def test_attention_of_a_layer(models):
  text = "the cat [MASK]"
  made = answers.answer_attend(models, {"text": text, "layer": 2})
  assert made["tokens"] == ["[CLS]", "the", "cat", "[MASK]", "[SEP]"]
  weights = np.array(made["weights"])
  assert weights.shape == (H, 5, 5)
  expected = models.encoder.attend(text).weights[1]
  np.testing.assert_allclose(weights, expected, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_every_example_is_labelled(models, workdirs, name):
  place = NAMES.index(name)
  example = answers.describe_models(models)["tuned"][place]["example"]
  assert example and "\t" not in example
  made = answers.answer_label(models, {"text": example, "model": place})[
    "prediction"
  ]
  (expected,) = load(workdirs[name]).predict([example.replace("\n", "\t")])
  assert json.loads(json.dumps(made)) == json.loads(json.dumps(expected))


def test_lines_stand_for_tabs(models):
  text = " Who sat? \r\n\n  The cat sat on the mat.\n"
  made = answers.answer_label(
    models, {"text": text, "model": NAMES.index("qa")}
  )
  assert made["prediction"]["question"] == "Who sat?"
  assert made["prediction"]["answer"] in "The cat sat on the mat."
  assert made["texts"] == ["Who sat?", "The cat sat on the mat."]
  # As predict has it, what else str.splitlines splits at is text.
  odd = "Who\u2028sat\x85or\x0cslept?"
  fields = {"text": f"{odd}\rThe cat.", "model": NAMES.index("qa")}
  assert answers.answer_label(models, fields)["texts"] == [odd, "The cat."]
  with pytest.raises(DataError):  # A question alone.
    answers.answer_label(models, {"text": "Who?", "model": NAMES.index("qa")})


@pytest.mark.parametrize(
  ("name", "fields", "message"),
  [
    ("fill", {}, "“text” is empty"),
    ("fill", {"text": ["a"]}, r"text=\['a'\]: expected text"),
    ("fill", {"text": 2001 * "a"}, "2,001 characters; expected at most 2,000"),
    ("fill", {"text": "the cat"}, r"no \[MASK\] in 'the cat'"),
    (
      "compare",
      {"first": "a cat", "second": "a dog.", "word": "cat"},
      "'cat' is not a word of 'a dog.'; its words: a, dog, [.].",
    ),
    (
      "attend",
      {"text": "the " * 63, "layer": 1},
      "has 65 tokens; .* at most 64",
    ),
    ("attend", {"text": "a", "layer": 0}, "layer=0: .* a number from 1 to 2"),
    ("attend", {"text": "a", "layer": True}, "layer=True: expected a number"),
    ("label", {"text": "a"}, "model=None: expected a number from 0 to 5"),
  ],
)
def test_wrong_fields(models, name, fields, message):
  with pytest.raises(ConfigError, match=message) as found:
    answers.ANSWERS[name](models, fields)
  assert "\n" not in str(found.value)


def test_unusual_text_is_answered(models):
  text = "the \ud800 \x00 \u202e e\u0301 👍🏽🏴 \u200b [SEP] cat [MASK]"
  made = [
    answers.answer_fill(models, {"text": text}),
    answers.answer_attend(models, {"text": text, "layer": 1}),
    answers.answer_compare(
      models, {"first": text, "second": "a cat", "word": "cat"}
    ),
    *(
      answers.answer_label(models, {"text": text, "model": i}) for i in range(3)
    ),
  ]
  assert json.dumps(made, allow_nan=False).isascii()
