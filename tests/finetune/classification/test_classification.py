"""Classification and regression: files, head, loss, predictions, metrics.

test_run.py has whole runs of it.
"""

import math
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from helpers import encoder_reference as reference
from helpers.letters import encode_batch, make_params
from maskedlm.core.errors import ConfigError, DataError
from maskedlm.finetune.classification import classification
from maskedlm.finetune.classification.classification import Example, Options
from maskedlm.finetune.common import batching, label_metrics
from maskedlm.finetune.common.confusion import confusion_table
from maskedlm.modeling.encoder import Encoder
from maskedlm.training.step import totals

PAD, CLS, SEP = 0, 1, 2
TOKENIZER = types.SimpleNamespace(
  special=types.SimpleNamespace(pad=PAD, cls=CLS, sep=SEP),
  encode_batch=encode_batch,
)
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


def make(examples=EXAMPLES, cfg=None, label_info=None, **options):
  options = Options(**options)
  label_info = label_info or classification.describe_labels(examples, options)
  cfg = cfg or reference.config()
  return classification.make_application(
    TOKENIZER, cfg, label_info, options, length=LENGTH
  )


def make_batch(app, examples=EXAMPLES, fillers=0):
  rows = app.make_rows(examples)
  which = np.append(np.arange(len(examples)), np.full(fillers, -1))
  return batching.gather_rows(rows, which, LENGTH, PAD)


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
  assert rows.truncated == 1


def test_an_encoder_with_one_token_type_is_given_no_other():
  app = make(cfg=reference.config(type_vocab_size=1))
  assert not np.concatenate(
    app.make_rows(EXAMPLES).tokens["token_type_ids"]
  ).any()


def test_unlabelled_examples_become_zeros():
  unlabelled = [e._replace(label=None) for e in EXAMPLES]
  assert make().make_rows(unlabelled).values["labels"].tolist() == [0] * 5
  rows = make(SCORED, regression=True).make_rows(unlabelled)
  assert rows.values["scores"].tolist() == [0.0] * 5


# --- Head and loss ---


@pytest.fixture(scope="module")
def peer():
  """transformers' BertForSequenceClassification with our parameters."""
  torch = pytest.importorskip("torch")
  transformers = pytest.importorskip("transformers")
  from helpers.bert_peer import make_peer

  def build(params, cfg, count):
    rest = {
      name: tree
      for name, tree in reference.make_params(cfg).items()
      if name not in params
    }
    pretraining = make_peer({**rest, **params}, cfg)
    model = transformers.BertForSequenceClassification(pretraining.config)
    model.bert = pretraining.bert
    model.num_labels = count
    model.config.num_labels = count
    model.config.problem_type = None
    dense = params["class_head"]["dense"]
    model.classifier = torch.nn.Linear(cfg.width, count)
    with torch.no_grad():
      model.classifier.weight.copy_(torch.tensor(dense["kernel"].T))
      model.classifier.bias.copy_(torch.tensor(dense["bias"]))
    return model.eval()

  def run(params, cfg, count, batch, labels):
    with torch.no_grad():
      return build(params, cfg, count)(
        input_ids=torch.tensor(batch["input_ids"], dtype=torch.long),
        token_type_ids=torch.tensor(batch["token_type_ids"], dtype=torch.long),
        attention_mask=torch.tensor(batch["segment_ids"] > 0),
        labels=torch.tensor(labels),
      )

  return run


def test_the_same_loss_and_logits_as_transformers(peer):
  cfg, app = reference.config(), make()
  params, batch = make_params(app, cfg), make_batch(app)
  theirs = peer(params, cfg, 3, batch, np.int64(batch["labels"]))
  terms, stats = jax.jit(lambda *xs: totals(app.loss(*xs)), static_argnums=3)(
    params, batch, jax.random.key(0), False
  )
  logits = np.array(app.outputs(params, batch)["logits"])
  np.testing.assert_allclose(logits, theirs.logits, atol=1e-4, rtol=1e-4)
  total, weight = terms["class"]
  assert weight == 5
  np.testing.assert_allclose(total / weight, theirs.loss, rtol=1e-4)
  hits = (theirs.logits.numpy().argmax(1) == batch["labels"]).sum()
  assert tuple(stats["accuracy"]) == (hits, 5)


def test_the_same_squared_error_as_transformers(peer):
  cfg = reference.config()
  label_info = {"low": 0.5, "high": 5.0, "mean": 0.0, "stddev": 1.0}
  app = make(SCORED, label_info=label_info, regression=True)
  params, batch = make_params(app, cfg), make_batch(app, SCORED)
  theirs = peer(params, cfg, 1, batch, batch["scores"])
  terms, stats = totals(app.loss(params, batch, jax.random.key(0), False))
  total, weight = terms["score"]
  np.testing.assert_allclose(total / weight, theirs.loss, rtol=1e-4)
  np.testing.assert_allclose(stats["mse"][0], total, rtol=1e-6)


def test_scores_are_learnt_as_deviations_from_the_mean():
  app = make(SCORED, regression=True)
  cfg = reference.config()
  params, batch = make_params(app, cfg), make_batch(app, SCORED)
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


@pytest.mark.parametrize("regression", [False, True])
def test_filler_rows_count_nothing(regression):
  """Whatever is in a row of weight 0, loss, metrics and gradient are equal."""
  examples = SCORED if regression else EXAMPLES
  app = make(examples, regression=regression)
  params = make_params(app, reference.config())

  @jax.jit
  def run(params, batch):
    def loss(params):
      terms, stats = totals(app.loss(params, batch, jax.random.key(0), False))
      ((total, weight),) = terms.values()
      return total / weight, (terms, stats)

    return jax.grad(loss, has_aux=True)(params)

  batch = make_batch(app, examples[:3], fillers=2)
  assert batch["example_weights"].tolist() == [1, 1, 1, 0, 0]
  other = make_batch(app, examples)
  other["example_weights"] = batch["example_weights"]
  found = run(params, batch)
  for a, b in zip(
    jax.tree.leaves(found), jax.tree.leaves(run(params, other)), strict=True
  ):
    np.testing.assert_allclose(a, b, atol=1e-6, rtol=1e-5)
  for metrics in found[1]:
    assert [weight for _, weight in metrics.values()] == [3]


def test_without_the_pooler():
  app, cfg = make(pooler=False), reference.config()
  params, batch = make_params(app, cfg), make_batch(app)
  assert set(params) == {"encoder", "class_head"}
  hidden = Encoder(cfg).apply(
    {"params": params["encoder"]},
    batch["input_ids"],
    batch["token_type_ids"],
    batch["segment_ids"],
    train=False,
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
  # Another last word of the first text changes it; padding doesn't.
  other = [EXAMPLES[0]._replace(text="a b k"), *EXAMPLES[1:]]
  changed = np.array(app.outputs(params, make_batch(app, other))["logits"])
  assert np.abs(changed[0] - logits[0]).max() > 1e-3
  np.testing.assert_allclose(changed[1:], logits[1:], atol=1e-5)
  rows = app.make_rows(EXAMPLES)
  longer = batching.gather_rows(rows, np.arange(5), 17, PAD)
  np.testing.assert_allclose(
    app.outputs(params, longer)["logits"], logits, atol=1e-5
  )


def test_dropout_is_that_of_the_key():
  cfg = reference.config(dropout=0.5)
  app = make(cfg=cfg)
  params, batch = make_params(app, cfg), make_batch(app)

  def term(seed, train):
    loss = totals(app.loss(params, batch, jax.random.key(seed), train))
    return float(loss[0]["class"][0])

  assert term(1, True) == term(1, True) != term(2, True)
  assert term(1, False) == term(2, False)


def test_bfloat16_gives_float32_logits():
  cfg = reference.config(dtype="bfloat16")
  app = make(cfg=cfg)
  outputs = app.outputs(make_params(app, cfg), make_batch(app))
  assert outputs["logits"].dtype == jnp.float32


# --- Predictions ---


def test_decode_and_show():
  app = make()
  logits = [np.float32([math.log(1), math.log(2), math.log(5)])]
  (prediction,) = app.decode(EXAMPLES[:1], None, {"logits": logits}, {})
  assert prediction["label"] == "yes"
  assert prediction["probability"] == pytest.approx(5 / 8)
  assert prediction["probabilities"] == pytest.approx(
    {"no": 1 / 8, "perhaps": 2 / 8, "yes": 5 / 8}
  )
  assert classification.format_prediction(prediction) == "yes\t0.625"


def test_scores_are_cut_to_the_range_only_to_be_shown():
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


def test_report():
  gold = ["no", "no", "yes", "no"]
  found = [{"label": x} for x in ("no", "yes", "yes", "no")]
  tables = classification.format_tables(
    [Example("", None, x) for x in gold], found
  )
  assert tables["confusion.tsv"] == (
    "gold \\ predicted\tno\tyes\nno\t2\t1\nyes\t0\t1\n"
  )
  lines = tables["labels.txt"].split("\n")
  # precision, recall, F1, count.
  assert lines[2].split() == ["no", "1.0000", "0.6667", "0.8000", "3"]
  assert lines[3].split() == ["yes", "0.5000", "1.0000", "0.6667", "1"]
  examples = [Example("", None, x) for x in (0.0, 1.0, 4.0, 5.0)]
  scores = [{"score": x} for x in (0.5, 1.0, 3.0, 6.0)]
  assert classification.format_tables(examples, scores)["scores.tsv"].split(
    "\n"
  ) == [
    "from\tto\texamples\tmean gold\tmean predicted\tmean absolute error",
    "0.000\t1.000\t1\t0.000\t0.500\t0.500",
    "1.000\t2.000\t1\t1.000\t1.000\t0.000",
    "4.000\t5.000\t2\t4.500\t4.500\t1.000",
    "",
  ]


def test_export_of_other_files():
  made = classification.export_predictions(
    [{"label": "b"}, {"label": "a"}], Options()
  )
  assert made == {"predictions.tsv": "index\tprediction\n0\tb\n1\ta\n"}


# --- Metrics ---


def test_class_metrics_by_hand():
  """Of "1": 2 true, 1 false positive; 1 false, 3 true negative."""
  gold = list("1110000")
  found = list("1101000")
  values = label_metrics.evaluate_labels(gold, found, positive="1")
  f1, f0 = 2 * 2 / (2 * 2 + 1 + 1), 2 * 3 / (2 * 3 + 1 + 1)
  assert values == pytest.approx(
    {
      "accuracy": 5 / 7,
      "f1": f1,
      "macro_f1": (f1 + f0) / 2,
      "accuracy_f1": (5 / 7 + f1) / 2,
      "mcc": (2 * 3 - 1 * 1) / math.sqrt(3 * 3 * 4 * 4),
    }
  )
  assert "f1" not in label_metrics.evaluate_labels(gold, found)


def test_a_label_that_is_only_predicted_has_a_column():
  assert confusion_table(list("aab"), list("acb")) == (
    "gold \\ predicted\ta\tb\tc\na\t1\t0\t1\nb\t0\t1\t0\nc\t0\t0\t0\n"
  )


def test_predicting_one_class_gives_zeros_not_nan():
  values = label_metrics.evaluate_labels(
    list("1010"), list("0000"), positive="1"
  )
  assert values["mcc"] == values["f1"] == 0
  assert values["macro_f1"] == pytest.approx((2 / 3) / 2)


@pytest.mark.filterwarnings("error")
def test_a_file_of_one_label_that_is_always_right_warns_of_nothing():
  values = label_metrics.evaluate_labels(["1"], ["1"], positive="1")
  assert values == {
    "accuracy": 1,
    "macro_f1": 1,
    "mcc": 0,
    "f1": 1,
    "accuracy_f1": 1,
  }


def test_score_metrics():
  gold, found = [1.0, 2.0, 3.0, 5.0], [2.0, 1.0, 4.0, 9.0]
  values = label_metrics.evaluate_scores(gold, found)
  # Deviations -1.75, -.75, .25, 2.25 and -2, -3, 0, 5.
  pearson = (3.5 + 2.25 + 11.25) / math.sqrt(8.75 * 38)
  spearman = 1 - 6 * (1 + 1) / (4 * 15)  # Ranks 1 2 3 4 and 2 1 3 4.
  assert values == pytest.approx(
    {
      "pearson": pearson,
      "spearman": spearman,
      "pearson_spearman": (pearson + spearman) / 2,
      "mse": (1 + 1 + 1 + 16) / 4,
    }
  )
  rng = np.random.default_rng(0)
  gold, found = rng.integers(0, 5, (2, 31))
  values = label_metrics.evaluate_scores(gold, found)
  assert values["spearman"] == pytest.approx(
    scipy.stats.spearmanr(gold, found).statistic
  )


def test_a_constant_correlates_with_nothing():
  values = label_metrics.evaluate_scores([1.0, 2.0, 4.0], [3.0, 3.0, 3.0])
  assert (values["pearson"], values["spearman"]) == (0, 0)
  nan = float("nan")
  assert label_metrics.evaluate_scores([1.0, 2.0], [nan, 3.0])["pearson"] == 0


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


def test_score_takes_the_second_of_two_labels_as_positive():
  examples = [Example("a", None, x) for x in ("bad", "good", "good")]
  app = make(examples)
  found = [{"label": x} for x in ("bad", "good", "bad")]
  assert app.score(examples, found)["f1"] == pytest.approx(2 / 3)
  other = make(examples, positive="bad")
  assert other.score(examples, found)["f1"] == pytest.approx(2 / 3)
  found[1]["label"] = "bad"
  assert app.score(examples, found)["f1"] == 0
  assert other.score(examples, found)["f1"] == pytest.approx(1 / 2)


# --- Files ---


def write(path, text):
  path.write_text(text, encoding="utf-8")
  return str(path)


def read(path, **options):
  return classification.read_examples(path, Options(**options))


def test_named_columns(tmp_path):
  path = write(tmp_path / "a.csv", 'stars,review,id\n5,"good, very",7\n1,b,8\n')
  columns = {"text": "review", "label": "stars"}
  assert read(path, **columns) == [
    Example("good, very", None, "5", f"{path}:2"),
    Example("b", None, "1", f"{path}:3"),
  ]
  pairs = read(path, text_b="id", **columns)
  assert [e.text_b for e in pairs] == ["7", "8"]
  numbers = read(path, regression=True, **columns)
  assert [e.label for e in numbers] == [5.0, 1.0]


def test_jsonl_and_files_without_header(tmp_path):
  path = write(tmp_path / "a.jsonl", '{"text": "x", "label": true}\n')
  assert read(path) == [Example("x", None, "true", f"{path}:1")]
  path = write(tmp_path / "a.tsv", "1\tx y\n0\tz\n")
  found = read(path, header=("label", "text"))
  assert [(e.text, e.label) for e in found] == [("x y", "1"), ("z", "0")]
  # Where the line is there after all, it is not an example.
  path = write(tmp_path / "b.tsv", "label\ttext\n0\tz\n")
  assert len(read(path, header=("label", "text"))) == 1


def test_files_without_labels_can_only_be_predicted(tmp_path):
  path = write(tmp_path / "a.tsv", "text\tlable\nx\t1\n")
  (example,) = read(path)
  assert example.label is None
  message = (
    f"{path}:2: no column 'label'; there are 'text', 'lable'; did you mean "
  )
  with pytest.raises(DataError) as error:
    classification.describe_labels([example], Options())
  assert str(error.value).startswith(message)
  with pytest.raises(DataError):
    make().score([example], [{"label": "no"}])
  path = write(tmp_path / "b.tsv", "text\tlabel\nx\t1\ny\t\n")
  with pytest.raises(DataError, match=r"b\.tsv:3: label '' means no label"):
    classification.describe_labels(read(path), Options())


def test_what_training_can_not_use(tmp_path):
  path = write(tmp_path / "a.tsv", "text\tlabel\nx\tyes\ny\tyes\nz\tyes\n")
  with pytest.raises(DataError) as error:
    classification.describe_labels(read(path), Options())
  assert str(error.value) == (
    f"{path}: all 3 examples for training have the label 'yes'; expected at "
    "least two."
  )
  path = write(tmp_path / "b.tsv", "text\tlabel\nx\t3\ny\t3.0\n")
  with pytest.raises(DataError, match=r"have the label 3\.0"):
    classification.describe_labels(
      read(path, regression=True), Options(regression=True)
    )
  path = write(tmp_path / "c.tsv", "text\tlabel\nx\t3\ny\tthree\n")
  with pytest.raises(DataError, match=r"c\.tsv:3: score 'three' is not a"):
    read(path, regression=True)
  path = write(tmp_path / "d.tsv", "text\tlabel\nx\tnan\n")
  with pytest.raises(DataError, match=r"d\.tsv:2: score 'nan' is not a"):
    read(path, regression=True)
  path = write(tmp_path / "e.tsv", "sentence\tlabel\nx\tnan\n")
  with pytest.raises(DataError, match=r"e\.tsv:2: no column 'text'; there are"):
    read(path)


def test_an_unknown_label_in_the_development_set():
  dev = [EXAMPLES[0], EXAMPLES[1]._replace(label="maybe", where="dev.tsv:17")]
  app = make()
  rows = app.make_rows(dev)
  assert rows.values["labels"].tolist()[1] == -1
  assert rows.notes == (
    "gold labels that are not in the training set: 1 (1 different), such "
    "as 'maybe' (dev.tsv:17); they are left out of the loss and count as wrong",
  )
  label = EXAMPLES[0].label
  scores = app.score(dev, [{"label": label}] * 2)
  assert scores["accuracy"] == 1 / 2
  assert scores["macro_f1"] == pytest.approx((2 / 3 + 0) / 2)


def test_options_that_do_not_go_together():
  with pytest.raises(ConfigError, match=r'did you mean "mrpc"'):
    classification.layout_of(Options(layout="mrcp"))
  with pytest.raises(ConfigError, match=r"task\.regression=True: the"):
    classification.layout_of(Options(layout="rte", regression=True))


def test_parse():
  def parse(line, **options):
    return classification.parse_line(line, Options(**options))[:2]

  assert parse("one\ttext") == ("one\ttext", None)
  assert parse('{"text": "x", "n": 1}') == ("x", None)
  assert parse('{"review": "x"}', text="review") == ("x", None)
  assert parse("a b\tc", layout="mrpc") == ("a b", "c")
  assert parse('{"text": "a", "text_b": "b"}', layout="mrpc") == ("a", "b")
  assert parse('{"premise": "a", "hypothesis": "b"}', layout="mnli") == (
    "a",
    "b",
  )
  with pytest.raises(DataError, match=r"this model takes pairs; expected two"):
    parse("one text", layout="rte")
  with pytest.raises(DataError, match=r"has no 'text_b'; expected an object"):
    parse('{"text": "a"}', layout="rte")
  with pytest.raises(DataError, match=r"input: not JSON"):
    parse('{"text": ')


def test_a_second_text_is_never_dropped(tmp_path):
  def parse(line, **options):
    return classification.parse_line(line, Options(**options))[:2]

  with pytest.raises(DataError, match=r"'text_b', but .* takes single texts"):
    parse('{"text": "a", "text_b": "b"}')
  assert parse("a b", layout="texts") == ("a b", None)
  assert parse("a\tb", layout="texts") == ("a", "b")
  assert parse('{"text": "a"}', layout="texts") == ("a", None)
  assert parse('{"text": "a", "text_b": "b"}', layout="texts") == ("a", "b")
  for header, expected in (("text\ttext_b", "b"), ("text\tid", None)):
    path = tmp_path / "data.tsv"
    path.write_text(f"{header}\na\tb\n")
    (example,) = classification.read_examples(
      str(path), Options(layout="texts")
    )
    assert (example.text, example.text_b) == ("a", expected)
