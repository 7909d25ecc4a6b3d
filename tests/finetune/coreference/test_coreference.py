"""Coreference: rows, scores by hand, predictions, labels."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import encoder_reference as reference
from helpers import letters
from helpers.letters import CLS, SEP, TOKENIZER, make_params
from maskedlm.core.errors import DataError
from maskedlm.data.labelled.mentions import Mention
from maskedlm.finetune.contract import Setup
from maskedlm.finetune.coreference import coreference
from maskedlm.finetune.coreference.coreference import Options
from maskedlm.finetune.coreference.gap import Example
from maskedlm.training.step import totals

LENGTH = 13


def example(text, pronoun, a, b, answer=None, **fields):
  """Returns an example whose mentions are given by their letters."""
  places = [
    Mention(text.index(x), text.index(x) + len(x)) for x in (pronoun, a, b)
  ]
  return Example(text, *places, answer, **fields)


LONG = "a b c d e f g h i j k l m n o"
EXAMPLES = [
  example("a b c d e", "e", "a b", "c", "B", id="1", where="f:2", page="p"),
  example("a b c", "a", "c", "b", "NEITHER", id="2", where="f:3", page="q"),
  # 15 tokens, of which 11 fit: c to h are 6, and 2 or 3 on each side.
  example(LONG, "h", "c", "e f", "A", id="3", where="f:4", page="p"),
]


make_batch = functools.partial(
  letters.make_batch, examples=EXAMPLES, length=LENGTH
)


def make(cfg=None, length=LENGTH, **options):
  cfg = cfg or reference.config()
  return coreference.make_application(
    Setup(TOKENIZER, cfg, {}, length), Options(**options)
  )


# --- Rows ---


def test_rows():
  rows = make().make_rows(EXAMPLES)
  assert [x.tolist() for x in rows.tokens["input_ids"]] == [
    [CLS, 10, 11, 12, 13, 14, SEP],
    [CLS, 10, 11, 12, SEP],
    [CLS, *range(10, 21), SEP],
  ]
  assert len(rows.cut) == 1
  assert rows.example.tolist() == [0, 1, 2]
  values = {name: x.tolist() for name, x in rows.values.items()}
  assert values == {
    "spans": [
      [[5, 5], [1, 2], [3, 3]],
      [[1, 1], [3, 3], [2, 2]],
      [[8, 8], [3, 3], [5, 6]],
    ],
    "labels": [2, 0, 1],
  }
  assert all(x.dtype == np.int32 for x in rows.values.values())
  assert all(not x.any() for x in rows.tokens["token_type_ids"])


def test_mentions_further_apart_than_a_row():
  far = example(LONG, "o", "a", "h", "A")
  rows = make(length=8).make_rows([far])
  assert rows.tokens["input_ids"][0].tolist() == (
    [CLS, 10, 11, 16, 17, 18, 24, SEP]
  )
  assert rows.values["spans"].tolist() == [[[6, 6], [1, 1], [4, 4]]]


def test_no_example_has_no_rows():
  assert make().make_rows([]).values["spans"].shape == (0, 3, 2)


# --- Scores and loss ---


def logits_by_hand(params, cfg, batch):
  p = reference.as_float64(params["pair_head"]["ffn"])
  made = []
  for i in range(len(batch["input_ids"])):
    z = reference.encode(
      params["encoder"],
      cfg,
      *(
        batch[name][i]
        for name in ("input_ids", "token_type_ids", "segment_ids")
      ),
    )
    pronoun, *names = (
      np.concatenate([z[a], z[b], z[a : b + 1].mean(axis=0)])
      for a, b in batch["spans"][i]
    )
    scores = [0.0]  # Neither.
    for name in names:
      x = np.concatenate([pronoun, name, pronoun * name])
      x = x @ p["hidden_dense"]["kernel"] + p["hidden_dense"]["bias"]
      x = reference.activate(x, cfg) @ p["score_dense"]["kernel"]
      scores.append(float((x + p["score_dense"]["bias"])[0]))
    made.append(scores)
  return np.array(made)


def test_outputs_and_loss_by_hand():
  cfg = reference.config()
  app = make(cfg)
  params, batch = make_params(app), make_batch(app, fillers=2, length=15)
  expected = logits_by_hand(params, cfg, batch)[:3]
  found = jax.jit(app.outputs)(params, batch)["logits"]
  assert found.shape == (5, 3) and found.dtype == jnp.float32
  np.testing.assert_allclose(found[:3], expected, rtol=1e-3, atol=1e-3)
  compute = jax.jit(lambda *xs: totals(app.loss(*xs)), static_argnums=3)
  terms, stats = compute(params, batch, jax.random.key(0), False)
  gold = [2, 0, 1]
  total = sum(map(reference.cross_entropy, expected, gold))
  np.testing.assert_allclose(terms["coreference"], (total, 3), rtol=1e-3)
  correct = sum(np.argmax(expected, axis=1) == gold)
  assert tuple(map(float, stats["accuracy"])) == (correct, 3)


def test_padding_and_fillers_count_nothing():
  app = make(representation="self_attention")
  letters.check_padding_counts_nothing(app, examples=EXAMPLES, length=LENGTH)


def test_the_order_of_the_names_does_not_matter():
  """Exchanging A and B exchanges their scores."""
  app = make()
  params, compute = make_params(app), jax.jit(app.outputs)
  swapped = [e._replace(a=e.b, b=e.a) for e in EXAMPLES]
  found = compute(params, make_batch(app))["logits"]
  again = compute(params, make_batch(app, examples=swapped))["logits"]
  np.testing.assert_allclose(found, again[:, [0, 2, 1]], rtol=1e-4, atol=1e-5)
  assert not found[:, 0].any()


# --- Predictions ---


def predict(examples, logits):
  app = make()
  outputs = {"logits": [np.float32(x) for x in logits]}
  return app.decode(examples, app.make_rows(examples), outputs, {})


def test_decode_format_and_export():
  found = predict(EXAMPLES, [[0, 0, np.log(2)], [0, -1, -1], [0, 3, 2]])
  assert found[0] == {
    "id": "1",
    "text": "a b c d e",
    "pronoun": "e",
    "pronoun_offset": 8,
    "a": "a b",
    "a_offset": 0,
    "b": "c",
    "b_offset": 4,
    "answer": "B",
    "name": "c",
    "probability": pytest.approx(0.5),
    "probabilities": pytest.approx({"NEITHER": 0.25, "A": 0.25, "B": 0.5}),
  }
  assert coreference.format_prediction(found[0]) == "e\tc\t0.500"
  assert coreference.format_prediction(found[1]).startswith(
    "a\t(neither)\t0.57"
  )
  assert found[1]["name"] is None
  json.dumps(found, allow_nan=False)
  official = "1\tFALSE\tTRUE\n2\tFALSE\tFALSE\n3\tTRUE\tFALSE\n"
  assert coreference.export_predictions(found) == {"gap_system.tsv": official}
  files = coreference.format_tables(EXAMPLES, found)
  assert files["gap_system.tsv"] == official
  assert files["confusion.tsv"].splitlines() == [
    "gold \\ predicted\tA\tB\tNEITHER",
    "A\t1\t0\t0",
    "B\t0\t1\t0",
    "NEITHER\t0\t0\t1",
  ]


def test_score():
  found = predict(EXAMPLES, [[0, 0, 1], [0, 1, 0], [0, 3, 2]])
  values = make().score(EXAMPLES, found)
  # B and A are correct; there is one false positive.
  assert (values["precision"], values["recall"]) == (pytest.approx(2 / 3), 1.0)
  assert values["accuracy"] == pytest.approx(2 / 3)
  with pytest.raises(DataError, match=r"f:2: no answer; expected"):
    make().score([EXAMPLES[0]._replace(answer=None)], found[:1])


def test_labels_and_split_key():
  label_info = coreference.describe_labels(EXAMPLES)
  assert label_info == {"answers": {"NEITHER": 1, "A": 1, "B": 1}}
  with pytest.raises(DataError, match=r"f: all 2 examples .* the answer 'A';"):
    coreference.describe_labels(2 * EXAMPLES[2:])
  with pytest.raises(DataError, match=r"f:2: no answer; expected"):
    coreference.describe_labels([EXAMPLES[0]._replace(answer=None)])
  assert [coreference.TASK.split_key(e) for e in EXAMPLES] == ["p", "q", "p"]
  assert (
    coreference.TASK.split_key(EXAMPLES[0]._replace(page="")) == "a b c d e"
  )
