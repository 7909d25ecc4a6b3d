"""Multiple choice: rows, scores, loss, predictions, configs."""

import functools
import json

import jax
import numpy as np
import pytest

from helpers import encoder_reference as reference
from helpers import letters
from helpers.letters import CLS, PAD, SEP, TOKENIZER, make_params
from maskedlm.core.errors import DataError
from maskedlm.data.labelled.formats import choices
from maskedlm.data.labelled.formats.choices import Example
from maskedlm.finetune.contract import Setup
from maskedlm.finetune.multiple_choice import multiple_choice
from maskedlm.finetune.multiple_choice.multiple_choice import Options
from maskedlm.training.step import totals

LENGTH = 13
# 5 examples of 3 choices; the third is cut to 13 tokens.
EXAMPLES = [
  Example("a b", ("c", "d e f", "g"), label=2, where="x.tsv:2"),
  Example("a", ("b", "c", "d"), "h i", label=0, where="x.tsv:3"),
  Example("a b c d e f g", ("h", "a b c d e", ""), label=1, where="x.tsv:4"),
  Example("", ("a", "b", "c"), label=1, where="x.tsv:5"),
  Example("k", ("a", "b c", "d"), label=0, where="x.tsv:6"),
]


make_batch = functools.partial(
  letters.make_batch, examples=EXAMPLES, length=LENGTH
)


def make(cfg=None, label_info=None, **options):
  cfg = cfg or reference.config()
  label_info = {"choices": 3} if label_info is None else label_info
  return multiple_choice.make_application(
    Setup(TOKENIZER, cfg, label_info, LENGTH), Options(**options)
  )


def test_rows():
  rows = make().make_rows(EXAMPLES)
  first, second, third = (
    [rows.tokens[name][i].tolist() for name in ("input_ids", "token_type_ids")]
    for i in range(3)
  )
  assert first == [
    [
      [CLS, 10, 11, SEP, 12, SEP, PAD, PAD],
      [CLS, 10, 11, SEP, 13, 14, 15, SEP],
      [CLS, 10, 11, SEP, 16, SEP, PAD, PAD],
    ],
    [
      [0, 0, 0, 0, 1, 1, 0, 0],
      [0, 0, 0, 0, 1, 1, 1, 1],
      [0, 0, 0, 0, 1, 1, 0, 0],
    ],
  ]
  # The question precedes each choice.
  assert second[0] == [[CLS, 10, SEP, 17, 18, 10 + i, SEP] for i in (1, 2, 3)]
  # Only choices that are too long are cut; an empty choice is valid.
  assert third[0][1] == [CLS, 10, 11, 12, 13, 14, SEP, 10, 11, 12, 13, 14, SEP]
  assert third[0][2] == [CLS, *range(10, 17), SEP, SEP, PAD, PAD, PAD]
  assert rows.values["sequence_lengths"].tolist() == [
    [6, 8, 6],
    [7, 7, 7],
    [11, 13, 10],
    [4, 4, 4],
    [5, 6, 5],
  ]
  assert rows.values["labels"].tolist() == [2, 0, 1, 1, 0]
  assert rows.lengths.tolist() == [8, 7, 13, 4, 6]
  assert (len(rows.cut), rows.example.tolist()) == (1, [0, 1, 2, 3, 4])


@pytest.mark.parametrize("pooler", [True, False])
def test_scores_in_plain_numpy(pooler):
  """Compares with each choice alone and without padding."""
  cfg = reference.config()
  app = make(cfg, pooler=pooler)
  params, batch = make_params(app, cfg), make_batch(app, length=16, fillers=2)
  assert len(params) == 2 + pooler
  ours = np.asarray(jax.jit(app.outputs)(params, batch)["logits"])
  assert ours.shape == (7, 3) and np.isfinite(ours).all()
  head = reference.as_float64(params["choice_head"])["dense"]
  rows = app.make_rows(EXAMPLES)
  loss, correct = 0.0, 0
  for i, example in enumerate(EXAMPLES):
    expected = []
    for c, n in enumerate(rows.values["sequence_lengths"][i]):
      ids, types = (
        rows.tokens[name][i][c, :n] for name in ("input_ids", "token_type_ids")
      )
      x = reference.encode(params["encoder"], cfg, ids, types, np.ones(n))[0]
      if pooler:
        dense = reference.as_float64(params["pooler"])["dense"]
        x = np.tanh(x @ dense["kernel"] + dense["bias"])
      expected.append((x @ head["kernel"] + head["bias"]).item())
    np.testing.assert_allclose(ours[i], expected, atol=1e-4)
    loss += reference.cross_entropy(np.array(expected), example.label)
    correct += np.argmax(expected) == example.label
  terms, metrics = totals(
    letters.compiled(app).loss(params, batch, None, False)
  )
  np.testing.assert_allclose(terms["choice"], (loss, 5), rtol=1e-4)
  np.testing.assert_allclose(metrics["choice_accuracy"], (correct, 5))


def test_predictions_score_and_tables():
  app = make()
  outputs = {"logits": np.log([[1, 1, 2], [6, 1, 1], [1, 1, 8], [2, 5, 1]])}
  examples = [
    e._replace(category=c) for e, c in zip(EXAMPLES, "inin", strict=False)
  ]
  examples[1] = examples[1]._replace(key="77")
  predictions = app.decode(examples, None, outputs, {})
  assert [p["label"] for p in predictions] == [2, 0, 2, 1]
  assert predictions[1] == {
    "id": "77",
    "label": 0,
    "choice": "b",
    "probability": pytest.approx(0.75),
    "probabilities": pytest.approx([0.75, 0.125, 0.125]),
  }
  assert json.loads(json.dumps(predictions)) == predictions
  assert multiple_choice.format_prediction(predictions[1]) == "0\t0.750\tb"
  assert app.score(examples, predictions) == {"accuracy": 0.75}
  assert multiple_choice.format_tables(examples, predictions) == {
    "places.tsv": "gold \\ predicted\t0\t1\t2\n"
    "0\t1\t0\t0\n1\t0\t1\t1\n2\t0\t0\t1\n",
    "categories.tsv": "category\texamples\taccuracy\n"
    "i\t2\t0.5000\nn\t2\t1.0000\n",
  }
  assert set(multiple_choice.format_tables(EXAMPLES[:4], predictions)) == {
    "places.tsv"
  }
  assert choices.write_answers(predictions) == {
    "answers.csv": "0,C\n77,A\n2,C\n3,B\n"
  }
  assert app.decode([], None, {}, {}) == []


def test_labels_and_another_number_of_choices():
  assert multiple_choice.describe_labels(EXAMPLES) == {"choices": 3}
  fewer = Example("a", ("b", "c"), label=0, where="y.tsv:7")
  with pytest.raises(DataError, match=r"y.tsv:7 has 2 choices; expected 3"):
    multiple_choice.describe_labels([*EXAMPLES, fewer])
  with pytest.raises(DataError, match=r"y.tsv:7 has 2 choices; expected 3"):
    make().make_rows([fewer])
  # An imported model has no number of choices.
  assert make(label_info={}).make_rows([fewer]).values["labels"].shape == (1,)
  unlabelled = EXAMPLES[0]._replace(label=None)
  with pytest.raises(DataError, match=r"x.tsv:2: no label; expected"):
    multiple_choice.describe_labels([unlabelled])
  assert make().make_rows([unlabelled]).values["labels"].tolist() == [0]
