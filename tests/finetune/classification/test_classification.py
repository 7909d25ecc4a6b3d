"""Classification and regression: rows, head, loss, predictions, scores."""

import functools
import math

import jax
import numpy as np
import pytest

from helpers import encoder_reference as reference
from helpers import letters
from helpers.letters import CLS, PAD, SEP, TOKENIZER, make_params
from maskedlm.core.errors import ConfigError
from maskedlm.finetune.classification import classification
from maskedlm.finetune.classification.classification import Example, Options
from maskedlm.finetune.common import batching
from maskedlm.finetune.contract import Setup
from maskedlm.modeling.encoder import Encoder
from maskedlm.training.step import totals

LENGTH = 13
# 5 examples of 3 classes; the fourth is cut to 13 tokens, at b's end.
EXAMPLES = [
  Example("a b c", None, "no", "x.tsv:2"),
  Example("d e", "f", "yes", "x.tsv:3"),
  Example("", "g h i", "perhaps", "x.tsv:4"),
  Example("a b c d e", "f g h i j k", "no", "x.tsv:5"),
  Example("k", None, "yes", "x.tsv:6"),
]
SCORED = [
  e._replace(label=x)
  for e, x in zip(EXAMPLES, [1.0, 4.5, 2.0, 0.5, 5.0], strict=True)
]


make_batch = functools.partial(
  letters.make_batch, examples=EXAMPLES, length=LENGTH
)


def make(examples=EXAMPLES, cfg=None, label_info=None, **options):
  options = Options(**options)
  label_info = label_info or classification.describe_labels(examples, options)
  cfg = cfg or reference.config()
  app = classification.make_application(
    Setup(TOKENIZER, cfg, label_info, LENGTH), options
  )
  return letters.compiled(app)


# --- Rows ---


def test_rows():
  rows = make().make_rows(EXAMPLES)
  assert [x.tolist() for x in rows.tokens["input_ids"]] == [
    [CLS, 10, 11, 12, SEP],
    [CLS, 13, 14, SEP, 15, SEP],
    [CLS, SEP, 16, 17, 18, SEP],
    [CLS, 10, 11, 12, 13, 14, SEP, 15, 16, 17, 18, 19, SEP],
    [CLS, 20, SEP],
  ]
  assert [x.tolist() for x in rows.tokens["token_type_ids"]] == [
    [0] * 5,
    [0] * 4 + [1] * 2,
    [0] * 2 + [1] * 4,
    [0] * 7 + [1] * 6,
    [0] * 3,
  ]
  # The labels in sorted order: no, perhaps, yes.
  assert rows.values["labels"].tolist() == [0, 2, 1, 0, 2]
  assert rows.values["labels"].dtype == np.int32
  assert rows.example.tolist() == [0, 1, 2, 3, 4]
  assert len(rows.cut) == 1


# --- Head and loss ---


def make_peer(params, cfg):
  """Returns transformers' BertForSequenceClassification with our parameters."""
  torch = pytest.importorskip("torch")
  transformers = pytest.importorskip("transformers")
  from helpers import bert_peer

  rest = reference.make_params(cfg)
  pretraining = bert_peer.make_peer({**rest, **params}, cfg)
  pretraining.config.num_labels = 3
  model = transformers.BertForSequenceClassification(pretraining.config)
  model.bert = pretraining.bert
  dense = params["class_head"]["dense"]
  with torch.no_grad():
    model.classifier.weight.copy_(torch.tensor(dense["kernel"].T))
    model.classifier.bias.copy_(torch.tensor(dense["bias"]))
  return model.eval()


def test_the_same_loss_and_logits_as_transformers():
  torch = pytest.importorskip("torch")
  cfg, app = reference.config(), make()
  params, batch = make_params(app, cfg), make_batch(app)
  with torch.no_grad():
    theirs = make_peer(params, cfg)(
      input_ids=torch.tensor(batch["input_ids"], dtype=torch.long),
      token_type_ids=torch.tensor(batch["token_type_ids"], dtype=torch.long),
      attention_mask=torch.tensor(batch["segment_ids"] > 0),
      labels=torch.tensor(np.int64(batch["labels"])),
    )
  terms, stats = jax.jit(lambda *xs: totals(app.loss(*xs)), static_argnums=3)(
    params, batch, jax.random.key(0), False
  )
  logits = np.array(app.outputs(params, batch)["logits"])
  np.testing.assert_allclose(logits, theirs.logits, atol=1e-4, rtol=1e-4)
  total, weight = terms["class"]
  assert weight == 5
  np.testing.assert_allclose(total / weight, theirs.loss, rtol=1e-4)
  correct = (theirs.logits.numpy().argmax(1) == batch["labels"]).sum()
  assert tuple(stats["accuracy"]) == (correct, 5)


def test_scores_are_trained_as_deviations_from_the_mean():
  app = make(SCORED, regression=True)
  cfg = reference.config()
  params, batch = make_params(app, cfg), make_batch(app, examples=SCORED)
  rows = app.make_rows(SCORED)
  outputs = app.outputs(params, batch)
  found = [p["score"] for p in app.decode(SCORED, rows, outputs, {})]
  # Mean 2.6; deviations -1.6, 1.9, -0.6, -2.1, 2.4: variance 16.70 / 5.
  np.testing.assert_allclose(
    found, 2.6 + math.sqrt(3.34) * np.array(outputs["deviations"]), rtol=1e-5
  )
  terms, stats = totals(app.loss(params, batch, jax.random.key(0), False))
  errors = np.square(np.array(found) - [1.0, 4.5, 2.0, 0.5, 5.0])
  np.testing.assert_allclose(stats["mse"][0], errors.sum(), rtol=1e-5)
  np.testing.assert_allclose(terms["score"][0], errors.sum() / 3.34, rtol=1e-5)
  np.testing.assert_allclose(
    app.score(SCORED, app.decode(SCORED, rows, outputs, {}))["mse"],
    errors.mean(),
    rtol=1e-5,
  )


def test_without_the_pooler():
  app, cfg = make(pooler=False), reference.config()
  params, batch = make_params(app, cfg), make_batch(app)
  assert set(params) == {"encoder", "class_head"}
  names = ("input_ids", "token_type_ids", "segment_ids")
  hidden = jax.jit(functools.partial(Encoder(cfg).apply, train=False))(
    {"params": params["encoder"]}, *(batch[name] for name in names)
  )
  dense = params["class_head"]["dense"]
  np.testing.assert_allclose(
    app.outputs(params, batch)["logits"],
    np.array(hidden)[:, 0] @ dense["kernel"] + dense["bias"],
    atol=1e-5,
  )


def test_left_to_right_the_last_real_token_stands_for_the_row():
  cfg = reference.config(causal=True)
  app = make(cfg=cfg)
  params, batch = make_params(app, cfg), make_batch(app)
  logits = np.array(app.outputs(params, batch)["logits"])
  # Changing the first text's last word changes the logits; padding doesn't.
  other = [EXAMPLES[0]._replace(text="a b k"), *EXAMPLES[1:]]
  changed = np.array(
    app.outputs(params, make_batch(app, examples=other))["logits"]
  )
  assert np.abs(changed[0] - logits[0]).max() > 1e-3
  np.testing.assert_allclose(changed[1:], logits[1:], atol=1e-5)
  rows = app.make_rows(EXAMPLES)
  longer = batching.gather_rows(rows, np.arange(5), 17, PAD)
  np.testing.assert_allclose(
    app.outputs(params, longer)["logits"], logits, atol=1e-5
  )


# --- Predictions ---


def test_decode_and_format():
  app = make()
  logits = [np.float32([math.log(1), math.log(2), math.log(5)])]
  (prediction,) = app.decode(EXAMPLES[:1], None, {"logits": logits}, {})
  assert prediction["label"] == "yes"
  assert prediction["probability"] == pytest.approx(5 / 8)
  assert prediction["probabilities"] == pytest.approx(
    {"no": 1 / 8, "perhaps": 2 / 8, "yes": 5 / 8}
  )
  assert classification.format_prediction(prediction) == "yes\t0.625"


def test_scores_are_clipped_to_the_range_for_display_only():
  app = make(SCORED, regression=True)
  outputs = {"deviations": [np.float32(2), np.float32(-3), np.float32(0)]}
  found = app.decode(SCORED[:3], None, outputs, {})
  assert [p["score"] for p in found] == pytest.approx(
    [2.6 + 2 * 3.34**0.5, 2.6 - 3 * 3.34**0.5, 2.6]
  )
  assert [classification.format_prediction(p) for p in found] == [
    "5.000",
    "0.500",
    "2.600",
  ]


def test_export_of_other_files():
  made = classification.export_predictions(
    [{"label": "b"}, {"label": "a"}], Options()
  )
  assert made == {"predictions.tsv": "index\tprediction\n0\tb\n1\ta\n"}


def test_which_metric_chooses_the_best():
  assert make().best == "accuracy"
  assert make(metric="macro_f1").best == "macro_f1"
  assert make(positive="yes", metric="f1").best == "f1"
  assert make(SCORED, regression=True).best == "pearson_spearman"
  with pytest.raises(ConfigError, match=r"task\.metric='f1' is not available"):
    make(metric="f1")  # Three labels.
  with pytest.raises(ConfigError, match=r'did you mean "pearson"'):
    make(SCORED, regression=True, metric="person")
  with pytest.raises(ConfigError, match=r"task\.positive='ja' is not a label"):
    make(positive="ja")


def test_the_second_of_two_labels_is_the_positive_one():
  examples = [Example("a", None, x) for x in ("bad", "good", "good")]
  app = make(examples)
  found = [{"label": x} for x in ("bad", "good", "bad")]
  assert app.score(examples, found)["f1"] == pytest.approx(2 / 3)
  other = make(examples, positive="bad")
  assert other.score(examples, found)["f1"] == pytest.approx(2 / 3)
  found[1]["label"] = "bad"
  assert app.score(examples, found)["f1"] == 0
  assert other.score(examples, found)["f1"] == pytest.approx(1 / 2)
