"""Labelled spans: windows, rows, loss, decoding, thresholds, scores, a run."""

import dataclasses
import itertools
import json
import random
import statistics

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import finetune_runs as runs
from helpers.repository import ROOT
from maskedlm.config import overrides
from maskedlm.core.errors import ConfigError, DataError
from maskedlm.data.labelled import words
from maskedlm.data.tokenizers.tokenizer import train_tokenizer
from maskedlm.finetune import config as configs
from maskedlm.finetune import data_files, predict
from maskedlm.finetune.common import batching
from maskedlm.finetune.common.bio import Entity
from maskedlm.finetune.spans import decode, spans
from maskedlm.finetune.spans import metrics as span_metrics
from maskedlm.finetune.spans import rows as span_rows
from maskedlm.finetune.spans import text as span_text
from maskedlm.finetune.spans.decode import Candidate
from maskedlm.finetune.spans.spans import Example, Options
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.encoder import Encoder
from maskedlm.training.step import totals

TRAIN = "the\tO\ncat\tB-PER\nsat\tI-PER\n\na\tO\nhouse\tB-LOC\n"


@pytest.fixture(scope="module")
def made():
  """Kind -> tokenizer, of the standard library's English."""
  texts = [line for m in (random, statistics) for line in m.__doc__.split("\n")]
  return {
    kind: train_tokenizer(
      [*runs.TEXTS, *texts],
      kind=kind,
      vocab_size=401,
      lowercase=kind == "wordpiece",
    )
    for kind in ("wordpiece", "bpe")
  }


@pytest.fixture
def file(tmp_path):
  def make(content, name="f.tsv"):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    return str(path)

  return make


# --- Rows ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_rows_by_hand(made, kind):
  tokenizer = made[kind]
  example = Example(
    ("the", "xylophone", "cat"),
    (Entity("B", 0, 3), Entity("A", 1, 2), Entity("B", 1, 2)),
  )
  rows = span_rows.make_rows(
    [example], tokenizer, ["NULL", "A", "B"], length=48, max_words=4, stride=0
  )
  a, b, c = (len(x) for x in words.word_encoder(tokenizer)(example.words))
  assert b > 2
  tokens = {name: values[0] for name, values in rows.tokens.items()}
  n = a + b + c + 2
  assert tokens["input_ids"][0] == tokenizer.special.cls
  assert tokens["input_ids"][-1] == tokenizer.special.sep
  rest = [0] * (n - 3)
  assert tokens["word_begins"].tolist() == [1, 1 + a, 1 + a + b, *rest]
  assert tokens["word_ends"].tolist() == [a, a + b, a + b + c, *rest]
  assert tokens["word_kept"].tolist() == [1, 1, 1, *rest]
  expected = np.zeros((4, n), np.int32)
  expected[2, 0] = 2  # Three words from the first on.
  expected[0, 1] = 1  # The first of its two labels.
  np.testing.assert_array_equal(tokens["span_labels"], expected)
  assert rows.values["first_word"].tolist() == [0]


def test_labels_are_where_their_spans_are_scored(made):
  rng = random.Random(5)
  tokenizer, length, most = made["wordpiece"], 24, 4
  examples = sentences(rng, 9, most=50)
  rows = span_rows.make_rows(
    examples, tokenizer, LABELS, length=length, max_words=most, stride=0
  )
  assert len(rows.example) > len(examples) and max(rows.lengths) <= length
  found = [[] for _ in examples]
  for i, index in enumerate(rows.example):
    labels = rows.tokens["span_labels"][i]
    kept = rows.tokens["word_kept"][i]
    for width, place in zip(*np.nonzero(labels * kept), strict=True):
      begin = int(rows.values["first_word"][i] + place)
      label = LABELS[labels[width, place]]
      found[index].append(Entity(label, begin, begin + int(width) + 1))
  expected = [[s for s in e.spans if s.end - s.begin <= most] for e in examples]
  assert list(map(sorted, found)) == list(map(sorted, expected))


def test_a_label_that_training_did_not_have(made):
  """Told, in no loss, and wrong: the shares of the metrics by hand."""
  tokenizer = made["bpe"]
  cfg = architecture(tokenizer)
  options = Options(max_span_words=2)
  app = spans.make_application(
    tokenizer, cfg, {"labels": LABELS}, options, length=24
  )
  gold = (Entity("A", 0, 1), Entity("X", 1, 2), Entity("X", 2, 3))
  gold += (Entity("B", 2, 3),)  # Of two, the one that the model has.
  example = Example(tuple("abc"), gold, lines=(7, 8, 9), where="dev.tsv:7")
  rows = app.make_rows([example])
  assert rows.notes == (
    "gold labels that are not in the training set: 2 (1 different), such "
    "as 'X' (dev.tsv:8); they are left out of the loss and count as wrong",
  )
  assert rows.tokens["span_labels"][0][:, :3].tolist() == [[1, -1, 2], [0] * 3]
  params = app.init(jax.random.key(0))
  ids = jnp.zeros((1, 1), jnp.int32)
  encoder = Encoder(cfg).init(jax.random.key(1), ids, ids, ids, train=False)
  params = {"encoder": encoder["params"], **params}
  # All scores are the same, below 0: NULL is chosen, and costs log 4.
  same = jax.tree.map(jnp.zeros_like, params["spans"])
  bias = jnp.full_like(same["label_dense"]["bias"], -1)
  same["label_dense"]["bias"] = bias
  params["spans"] = same
  batch = batching.gather_rows(rows, np.array([0]), 24, tokenizer.special.pad)
  terms, stats = totals(app.loss(params, batch, None, False))
  # Of 3 + 2 spans one is not in the loss, and 3 are to be found.
  np.testing.assert_allclose(terms["spans"], (4 * np.log(4), 4), rtol=1e-6)
  np.testing.assert_allclose(stats["span_recall"], (0, 3))
  found = [{"entities": [{"type": "A", "words": [0, 1]}]}]
  found[0]["entities"] += [{"type": "B", "words": [1, 2]}]
  scores = app.score([example], found)
  assert (scores["precision"], scores["recall"]) == (1 / 2, 1 / 4)
  assert scores["unknown_label"] == 1 / 2


# --- Loss and decoding against plain python --------------------------------

LABELS = ["NULL", "A", "B", "C"]


def sentences(rng, count=9, most=30):
  """Examples with random spans, one label each; a long and an empty one."""
  vocabulary = [*set(" ".join(runs.TEXTS).split()), "xylophone", "\x00"]
  found = []
  for i in range(count):
    n = most if i == 3 else 0 if i == 5 else rng.randrange(1, 12)
    places = set()
    for _ in range(n // 2):
      begin = rng.randrange(n)
      places.add((begin, min(begin + rng.randrange(1, 7), n)))
    labelled = tuple(Entity(rng.choice("ABC"), *p) for p in sorted(places))
    found.append(
      Example(tuple(rng.choice(vocabulary) for _ in range(n)), labelled)
    )
  return found


def architecture(tokenizer):
  return EncoderConfig(
    vocab_size=tokenizer.vocab_size,
    num_layers=1,
    width=18,
    num_heads=3,
    mlp_width=22,
    max_positions=64,
    activation="gelu",
    dropout=0.0,
    attention_dropout=0.0,
    norm_epsilon=1e-12,
    init_stddev=0.5,
    dtype="float32",
    remat="none",
  )


def run_batches(app, params, rows, batch_size=4):
  """(loss summed over all batches, its weight, outputs by row)."""
  batches = batching.heldout_batches(
    rows, batch_size=batch_size, buckets=(64,), pad=0, shard=(0, 1)
  )
  total, weight, outputs = 0.0, 0.0, []
  loss = jax.jit(lambda p, b: totals(app.loss(p, b, None, False)))
  found = np.zeros(2)
  for i in range(batches.num_steps):
    batch = batches.batch_at(i)
    terms, metrics = loss(params, batch)
    total += float(terms["spans"][0])
    weight += float(terms["spans"][1])
    found += np.array(metrics["span_recall"], float)
    outputs.append(jax.device_get(jax.jit(app.outputs)(params, batch)))
  return total, weight, found, predict.by_row(batches, outputs)


@pytest.mark.parametrize("nested", [False, True])
def test_loss_and_predictions_span_by_span(made, nested):
  """Sentences that fit, each alone, every span scored on its own."""
  tokenizer, most = made["wordpiece"], 3
  cfg = architecture(tokenizer)
  options = Options(max_span_words=most, nested=nested)
  app = spans.make_application(
    tokenizer, cfg, {"labels": LABELS}, options, length=64
  )
  params = app.init(jax.random.key(0))
  ids = jnp.zeros((1, 1), jnp.int32)
  encoder = Encoder(cfg).init(jax.random.key(1), ids, ids, ids, train=False)
  params = {"encoder": encoder["params"], **params}
  examples = sentences(random.Random(2), 9, most=12)
  rows = app.make_rows(examples)
  assert len(rows.example) == len(examples)
  total, weight, found, outputs = run_batches(app, params, rows)
  predictions = app.decode(examples, rows, outputs, {"threshold": -0.4})

  head = spans.SpanHead(cfg, options.representation, len(LABELS))

  @jax.jit
  def logits_of(tokens, length):
    """[64, T] of one row's ids, and of begins and ends of spans: [3, 64]."""
    ids, begins, ends = tokens[:, None]
    real = (jnp.arange(64)[None] < length).astype(jnp.int32)
    x = Encoder(cfg).apply(encoder, ids, 0 * ids, real, train=False)
    return head.apply(
      {"params": params["spans"]}, x, begins, ends, train=False
    )[0]

  nats, scored, gold, right = 0.0, 0, 0, 0
  for example, prediction in zip(examples, predictions, strict=True):
    of_words = words.word_encoder(tokenizer)(example.words)
    row = [tokenizer.special.cls, *itertools.chain(*of_words)]
    row += [tokenizer.special.sep]
    places = [
      (begin, end)
      for begin in range(len(of_words))
      for end in range(begin + 1, min(begin + most, len(of_words)) + 1)
    ]
    candidates = []
    truth = {(s.begin, s.end): s.type for s in example.spans}
    if places:
      sizes = np.cumsum([0, *map(len, of_words)])
      tokens = np.zeros((3, 64), np.int32)  # Padded, for one compilation.
      tokens[0, : len(row)] = row
      tokens[1, : len(places)] = [1 + sizes[b] for b, _ in places]
      tokens[2, : len(places)] = [sizes[e] for _, e in places]
      logits = logits_of(tokens, len(row))[: len(places)]
      logits = np.asarray(logits, np.float64)
      log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
      for place, of_one in zip(places, log_p, strict=True):
        label = LABELS.index(truth.get(place, "NULL"))
        nats -= of_one[label]
        scored += 1
        gold += label > 0
        right += label > 0 and int(np.argmax(of_one)) == label
        best = 1 + int(np.argmax(of_one[1:]))
        margin = of_one[best] - of_one[0]
        if margin > -0.4:
          candidates.append((margin, place, best, np.exp(of_one[best])))
    # One after the other, the best first, as the words of the docs have it.
    chosen = []
    for margin, (b, e), label, p in sorted(candidates, reverse=True):
      agrees = all(
        e <= c or d <= b or (nested and (c <= b < e <= d or b <= c < d <= e))
        for _, (c, d), *_ in chosen
      )
      if agrees:
        chosen.append((margin, (b, e), label, p))
    chosen.sort(key=lambda c: (c[1][0], -c[1][1]))
    assert [(e["type"], e["words"]) for e in prediction["entities"]] == [
      (LABELS[label], list(place)) for _, place, label, _ in chosen
    ]
    for entity, (margin, _, _, p) in zip(
      prediction["entities"], chosen, strict=True
    ):
      assert entity["score"] == pytest.approx(p, abs=2e-4)
      assert entity["margin"] == pytest.approx(margin, abs=2e-3)
  assert sum(len(p["entities"]) for p in predictions) > 9
  assert weight == scored and found.tolist() == [right, gold]
  assert total == pytest.approx(nats, rel=1e-4)


def test_filler_rows_and_padding_count_nothing(made):
  tokenizer = made["bpe"]
  cfg = architecture(tokenizer)
  app = spans.make_application(
    tokenizer, cfg, {"labels": LABELS}, Options(), length=24
  )
  ids = jnp.zeros((1, 1), jnp.int32)
  encoder = Encoder(cfg).init(jax.random.key(1), ids, ids, ids, train=False)
  params = {"encoder": encoder["params"], **app.init(jax.random.key(0))}
  rows = app.make_rows(sentences(random.Random(1), 7))
  one = run_batches(app, params, rows, batch_size=4)
  other = run_batches(app, params, rows, batch_size=1)
  np.testing.assert_allclose(one[0], other[0], rtol=1e-5)
  assert one[1] == other[1] and one[2].tolist() == other[2].tolist()
  for a, b in zip(one[3]["margins"], other[3]["margins"], strict=True):
    np.testing.assert_allclose(a, b, atol=1e-4)


# --- Decoding by hand ------------------------------------------------------


def candidates(*given):
  return [Candidate(m, Entity(t, b, e), 0.5) for m, t, b, e in given]


def names(chosen):
  return [(c.span.type, c.span.begin, c.span.end) for c in chosen]


FOUND = candidates(
  (1.0, "A", 0, 3),  # Crosses the next one, is worse.
  (2.0, "B", 2, 5),
  (1.5, "C", 3, 4),  # Within it.
  (-1.0, "A", 5, 7),
  (0.5, "B", 1, 6),  # Around it.
  (0.4, "A", 2, 5),  # The same words.
)


def test_flat_decoding_by_hand():
  chosen = decode.without_overlaps(FOUND)
  assert names(chosen) == [("B", 2, 5), ("A", 5, 7)]
  assert names(decode.select_above(chosen, 0.0)) == [("B", 2, 5)]
  assert names(decode.select_above(chosen, -1.0)) == [("B", 2, 5)]  # Over it.
  assert names(decode.select_above(chosen, -2.0)) == [("B", 2, 5), ("A", 5, 7)]


def test_nested_decoding_by_hand():
  chosen = decode.without_crossings(FOUND)
  assert names(chosen) == [("B", 2, 5), ("C", 3, 4), ("B", 1, 6)]
  # (5, 7) crosses (1, 6), which is better; above() has outer ones first.
  assert names(decode.select_above(chosen, 0.0)) == [
    ("B", 1, 6),
    ("B", 2, 5),
    ("C", 3, 4),
  ]
  # With one end in common spans are within each other.
  same = candidates((3, "A", 0, 2), (2, "B", 0, 4), (1, "C", 2, 4))
  found = decode.without_crossings(same)
  assert names(found) == [("A", 0, 2), ("B", 0, 4), ("C", 2, 4)]
  assert names(decode.select_above(found, 0.0)) == [
    ("B", 0, 4),
    ("A", 0, 2),
    ("C", 2, 4),
  ]


def test_equal_margins_are_decided_by_place():
  given = candidates((1, "B", 1, 2), (1, "A", 0, 2), (1, "A", 1, 3))
  for order in itertools.permutations(given):
    assert names(decode.without_overlaps(order)) == [("A", 0, 2)]


@pytest.mark.parametrize("seed", range(10))
def test_nested_decoding_against_its_definition(seed):
  rng = random.Random(seed)
  given = []
  for _ in range(40):
    begin = rng.randrange(12)
    given.append((rng.random(), "A", begin, begin + rng.randrange(1, 6)))
  chosen = []
  for m, t, b, e in sorted(given, reverse=True):
    if not any(
      b < c < e < d or c < b < d < e or (b, e) == (c, d)
      for _, _, c, d in chosen
    ):
      chosen.append((m, t, b, e))
  found = decode.without_crossings(candidates(*given))
  assert [(c.margin, *c.span) for c in found] == chosen


# --- The threshold ---------------------------------------------------------


def test_threshold_by_hand():
  gold = [[Entity("A", 0, 1), Entity("B", 2, 3)], [Entity("A", 4, 5)]]
  chosen = [
    candidates((3.0, "A", 0, 1), (-2.0, "B", 2, 3), (-3.0, "B", 5, 6)),
    candidates((1.0, "B", 4, 5), (-1.0, "A", 7, 8)),
  ]
  # Right, wrong, wrong, right, wrong: F1 is 2/4, 2/5, 2/6, 4/7, 4/8.
  threshold, f1 = decode.calibrate_threshold(chosen, gold)
  assert threshold == -2.5 and f1 == pytest.approx(4 / 7)
  kept = [[c.span for c in decode.select_above(cs, threshold)] for cs in chosen]
  assert span_metrics.evaluate_spans(gold, kept)["f1"] == pytest.approx(f1)


def test_threshold_at_the_borders():
  gold = [[Entity("A", 0, 1)]]
  assert decode.calibrate_threshold([[]], gold) == (0.0, 0.0)
  wrong = [candidates((5.0, "B", 0, 1))]
  assert decode.calibrate_threshold(wrong, gold) == (0.0, 0.0)
  # All of them: a bit below the lowest.
  assert decode.calibrate_threshold([candidates((-4.0, "A", 0, 1))], gold) == (
    -4.5,
    1.0,
  )
  # Equal margins go together.
  equal = candidates((2.0, "A", 0, 1), (2.0, "A", 3, 4), (1.0, "A", 5, 6))
  assert decode.calibrate_threshold([equal], gold) == (
    1.5,
    pytest.approx(2 / 3),
  )
  # As good as each other: the one nearer to the argmax.
  gold = [[Entity("A", 0, 1), Entity("A", 2, 3)]]
  given = candidates(
    (9.0, "A", 0, 1), (8.0, "A", 4, 5), (7.0, "A", 6, 7), (0.5, "A", 2, 3)
  )
  # F1: 2/3, 2/4, 2/5, 4/6.
  assert decode.calibrate_threshold([given], gold) == (-0.25 + 0.25, 2 / 3)


@pytest.mark.parametrize("seed", range(5))
def test_threshold_against_trying_all(seed):
  rng = random.Random(seed)
  chosen, gold = [], []
  for _ in range(7):
    found = [(rng.gauss(0, 2), rng.choice("AB"), i, i + 1) for i in range(9)]
    chosen.append(decode.without_overlaps(candidates(*found)))
    gold.append([Entity(rng.choice("AB"), i, i + 1) for i in range(0, 9, 2)])
  threshold, f1 = decode.calibrate_threshold(chosen, gold)

  def f1_at(value):
    kept = [[c.span for c in decode.select_above(cs, value)] for cs in chosen]
    return span_metrics.evaluate_spans(gold, kept)["f1"]

  assert f1_at(threshold) == pytest.approx(f1)
  tried = [c.margin + d for cs in chosen for c in cs for d in (-1e-9, 1e-9)]
  assert f1 == pytest.approx(max(map(f1_at, tried)))


# --- Scores ----------------------------------------------------------------

GOLD = [
  (Entity("A", 0, 5), Entity("B", 1, 3), Entity("A", 4, 5)),
  (Entity("A", 0, 1), Entity("C", 0, 1)),
]
MADE = [
  [Entity("A", 0, 5), Entity("A", 1, 3), Entity("A", 4, 5)],
  [Entity("A", 0, 1)],
]


def test_scores_by_hand():
  scores = span_metrics.evaluate_spans(GOLD, MADE)
  assert scores == {
    "f1": pytest.approx(6 / 9),
    "precision": 3 / 4,
    "recall": 3 / 5,
  }
  # Within others: gold B and A, found A and A; the label counts.
  inner = span_metrics.evaluate_inner_spans(GOLD, MADE)
  assert inner["inner_f1"] == inner["inner_recall"] == 1 / 2
  assert (
    span_metrics.inner_spans(GOLD[1]) == []
  )  # The same words are not within.
  text = span_metrics.format_report(GOLD, MADE)
  lines = [line.split() for line in text.splitlines()]
  assert ["B", "0.0000", "0.0000", "0.0000", "1", "0", "0"] in lines
  assert ["3-4"] not in [line[:1] for line in lines]
  assert ["2", "0.0000", "0.0000", "0.0000", "1", "1", "0"] in lines
  assert ["5-8", "1.0000", "1.0000", "1.0000", "1", "1", "1"] in lines


def test_widths_are_told_apart():
  spans = [[Entity("A", 0, width) for width in (1, 2, 3, 4, 5, 8, 9, 30)]]
  lines = span_metrics.format_report(spans, spans).splitlines()
  cells = [line.split() for line in lines if line]
  gold = {cell[0]: cell[4] for cell in cells if cell[0][0].isdigit()}
  assert gold == {"1": "1", "2": "1", "3-4": "2", "5-8": "2", "9-": "2"}


def test_what_limits_cost_by_hand():
  sizes = [[1, 1, 4, 4, 1], [1]]
  labels = ["NULL", *sorted({s.type for spans in GOLD for s in spans})]

  def reach_of(gold, sizes, *, labels=labels, **limits):
    return span_metrics.evaluate_reach(gold, sizes, labels=labels, **limits)

  reach = reach_of(GOLD, sizes, max_words=5, capacity=20)
  assert reach == {
    "reachable": 0.8,
    "unknown_label": 0.0,
    "too_wide": 0.0,
    "second_label": 0.2,
  }
  # The first of one's two labels is unknown: the second takes its place.
  both = [(Entity("X", 0, 1), Entity("A", 0, 1))]
  assert reach_of(both, [[1]], max_words=5, capacity=20) == {
    "reachable": 0.5,
    "unknown_label": 0.5,
    "too_wide": 0.0,
    "second_label": 0.0,
  }
  reach = reach_of(GOLD, sizes, max_words=2, capacity=4)
  # The whole sentence is wide in words; words 1 to 3 in tokens.
  assert reach["too_wide"] == 0.4 and reach["reachable"] == pytest.approx(0.4)
  for capacity, share in ((5, 0), (4, 1)):  # Of 2 + 3 tokens.
    reach = reach_of(
      [[Entity("A", 0, 2)]], [[2, 3]], max_words=2, capacity=capacity
    )
    assert reach["too_wide"] == share
  assert reach_of([()], [[]], max_words=1, capacity=1) == {
    "reachable": 1.0,
    "unknown_label": 0.0,
    "too_wide": 0.0,
    "second_label": 0.0,
  }


# --- Files, options, text --------------------------------------------------


def test_labels_are_of_the_training_set(file):
  path = file("a\tB-Z\tO\nb\tI-Z\tB-Y\n\nc\tO\tO\n")
  options = Options(nested=True)
  examples = spans.read_examples(path, options)
  assert spans.describe_labels(examples) == {"labels": ["NULL", "Y", "Z"]}
  assert examples[0].spans == (Entity("Z", 0, 2), Entity("Y", 1, 2))
  assert examples[1].where == f"{path}:4" and examples[1].lines == (4,)
  only = dataclasses.replace(options, identify=True)
  examples = spans.read_examples(path, only)
  assert spans.describe_labels(examples) == {"labels": ["NULL", "SPAN"]}
  assert examples[0].spans == (Entity("SPAN", 0, 2), Entity("SPAN", 1, 2))
  # Two labels of the same words are one span then.
  twice = spans.read_examples(file("a\tB-Z\tB-Y\n", "twice.tsv"), only)
  assert twice[0].spans == (Entity("SPAN", 0, 1),)
  flat = Options(tag_column=1)
  assert spans.read_examples(path, flat)[0].spans == (Entity("Z", 0, 2),)


def test_files_are_documents(file, tmp_path):
  for name in ("b.tsv", "a.tsv"):
    file(TRAIN, name)
  examples = data_files.read_examples(
    spans.TASK, str(tmp_path / "*.tsv"), Options()
  )
  assert list(map(spans.TASK.split_key, examples)) == [
    "a.tsv",
    "a.tsv",
    "b.tsv",
    "b.tsv",
  ]


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("a\tO\nb\tO\n", "no span in 1 sentences, all tags are O"),
    ("a\nb\n", "the words have no tags"),
  ],
)
def test_nothing_to_learn(file, text, message):
  options = Options()
  with pytest.raises(DataError, match=message):
    spans.describe_labels(spans.read_examples(file(text), options))


def test_no_gold_to_score_against(made, file):
  cfg = architecture(made["bpe"])
  app = spans.make_application(
    made["bpe"], cfg, {"labels": LABELS}, Options(), length=24
  )
  examples = spans.read_examples(file("a\nb\n"), Options())
  with pytest.raises(DataError, match=r"f\.tsv:1: no spans; expected"):
    app.score(examples, [{"entities": []}])


@pytest.mark.parametrize(
  ("options", "message"),
  [
    (
      {"max_span_words": 23},
      "more than a row holds: at most data.length - 2 = 22",
    ),
  ],
)
def test_options_that_make_no_sense(made, options, message):
  cfg = architecture(made["bpe"])
  with pytest.raises(ConfigError) as error:
    spans.make_application(
      made["bpe"], cfg, {"labels": LABELS}, Options(**options), length=24
    )
  assert message in str(error.value)


def test_predictions_have_offsets_into_the_text():
  text = " Jane Lee  left."
  example = spans.TASK.parse_line(text, Options())
  assert example.words == ("Jane", "Lee", "left", ".")
  found = candidates((2.0, "PER", 0, 2), (0.25, "NAME", 0, 1))
  made = span_text.span_prediction(example, found)
  assert made["entities"] == [
    {
      "type": "PER",
      "text": "Jane Lee",
      "start": 1,
      "end": 9,
      "words": [0, 2],
      "score": 0.5,
      "margin": 2.0,
    },
    {
      "type": "NAME",
      "text": "Jane",
      "start": 1,
      "end": 5,
      "words": [0, 1],
      "score": 0.5,
      "margin": 0.25,
    },
  ]
  assert json.loads(json.dumps(made)) == made
  assert spans.TASK.format_prediction(made).splitlines() == [
    text,
    "     1-9    PER: Jane Lee (0.50)",
    "     1-5    NAME: Jane (0.50)",
  ]
  example = spans.TASK.parse_line('{"tokens": ["a b", "", "c"]}', Options())
  made = span_text.span_prediction(example, candidates((1.0, "X", 2, 3)))
  assert made["text"] == "a b  c" and made["entities"][0]["start"] == 5
  with pytest.raises(DataError, match="expected"):
    spans.TASK.parse_line("{oops", Options())


def test_exported_files_are_read_again(file):
  predictions = [
    span_text.span_prediction(
      Example(("a", "b", "c")), candidates((1, "X", 0, 3), (1, "Y", 1, 2))
    ),
    span_text.span_prediction(Example(("d",)), []),
  ]
  options = Options(nested=True)
  (text,) = spans.export_predictions(predictions).values()
  again = spans.read_examples(file(text), options)
  assert again[0].spans == (Entity("X", 0, 3), Entity("Y", 1, 2))
  assert again[1].spans == ()


@pytest.mark.parametrize(
  ("variant", "labels", "found", "reachable"),
  [
    # Counted with cut, sort and uniq; one entity has ten words.
    ("wnut17", 7, 836, 835 / 836),
    ("litbank", 5, 157, 1.0),
    ("identify", 2, 157, 1.0),
  ],
)
def test_configs_read_the_real_data(
  variant, labels, found, reachable, data_dir, made
):
  config = f"{ROOT}/configs/spans.py:{variant}"
  c = overrides.load_config(config, validate=configs.validate)
  options = c.task.to_dict()
  assert options.pop("kind") == "spans"
  options = Options(**options)
  path = c.data.dev or c.data.train.replace("*", "1342_*")
  examples = data_files.read_examples(
    spans.TASK, path.replace(configs.data_dir(), str(data_dir)), options
  )
  label_info = spans.describe_labels(examples)
  assert len(label_info["labels"]) == labels
  cfg = architecture(made["wordpiece"])
  app = spans.make_application(
    made["wordpiece"], cfg, label_info, options, length=c.data.length
  )
  gold = [
    {"entities": [{"type": s.type, "words": [s.begin, s.end]} for s in e.spans]}
    for e in examples
  ]
  assert sum(len(p["entities"]) for p in gold) == found
  scores = app.score(examples, gold)
  assert scores["f1"] == 1.0
  assert scores["reachable"] == pytest.approx(reachable)
  assert len(app.make_rows(examples[:50]).example) >= 50


def test_a_variant_that_is_none():
  with pytest.raises(ConfigError, match="litbnk"):
    overrides.load_config(f"{ROOT}/configs/spans.py:litbnk")
