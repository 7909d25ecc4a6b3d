"""Labelled spans: rows, loss and predictions, unseen labels, configs."""

import itertools
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import encoder_reference
from helpers import finetune_runs as runs
from helpers.applications import run_batches
from helpers.english_tokenizer import english_tokenizer
from helpers.letters import compiled, make_params
from maskedlm.core.errors import ConfigError
from maskedlm.data.labelled import words
from maskedlm.data.labelled.bio import Entity
from maskedlm.finetune import data_files
from maskedlm.finetune.common import batching
from maskedlm.finetune.contract import Setup
from maskedlm.finetune.spans import spans
from maskedlm.finetune.spans.rows import make_rows
from maskedlm.finetune.spans.spans import Example, Options
from maskedlm.modeling.encoder import Encoder
from maskedlm.training.step import totals


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_rows_by_hand(kind):
  tokenizer = english_tokenizer(kind)
  example = Example(
    ("the", "xylophone", "cat"),
    (Entity("B", 0, 3), Entity("A", 1, 2), Entity("B", 1, 2)),
  )
  rows = make_rows(
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


def test_labels_are_where_their_spans_are_scored():
  rng = random.Random(5)
  tokenizer, length, most = english_tokenizer("wordpiece"), 24, 4
  examples = sentences(rng, 9, most=50)
  rows = make_rows(
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


def test_an_unseen_label():
  """It is reported, left out of the loss, and counts as wrong."""
  tokenizer = english_tokenizer("bpe")
  cfg = architecture(tokenizer)
  options = Options(max_span_words=2)
  app = spans.make_application(
    Setup(tokenizer, cfg, {"labels": LABELS}, 24), options
  )
  gold = (Entity("A", 0, 1), Entity("X", 1, 2), Entity("X", 2, 3))
  gold += (Entity("B", 2, 3),)  # Of two labels, the known one counts.
  example = Example(tuple("abc"), gold, lines=(7, 8, 9), where="dev.tsv:7")
  rows = app.make_rows([example])
  assert rows.notes == (
    "gold labels that are not in the training set: 2 (1 different), such "
    "as 'X' (dev.tsv:8); they are left out of the loss and count as wrong",
  )
  assert rows.tokens["span_labels"][0][:, :3].tolist() == [[1, -1, 2], [0] * 3]
  params = jax.device_put(make_params(app, cfg))
  # All scores are equal and below 0: NULL is chosen, at a loss of log 4.
  same = jax.tree.map(jnp.zeros_like, params["spans"])
  bias = jnp.full_like(same["label_dense"]["bias"], -1)
  same["label_dense"]["bias"] = bias
  params["spans"] = same
  batch = batching.gather_rows(rows, np.array([0]), 24, tokenizer.special.pad)
  terms, stats = totals(compiled(app).loss(params, batch, None, False))
  # One of 3 + 2 spans is left out of the loss; gold has 3.
  np.testing.assert_allclose(terms["spans"], (4 * np.log(4), 4), rtol=1e-6)
  np.testing.assert_allclose(stats["span_recall"], (0, 3))
  found = [{"entities": [{"type": "A", "words": [0, 1]}]}]
  found[0]["entities"] += [{"type": "B", "words": [1, 2]}]
  scores = app.score([example], found)
  assert (scores["precision"], scores["recall"]) == (1 / 2, 1 / 4)
  assert scores["unknown_label"] == 1 / 2


LABELS = ["NULL", "A", "B", "C"]


def sentences(rng, count=9, most=30):
  """Returns examples with random spans, one of them long, one empty."""
  vocabulary = sorted(set(" ".join(runs.TEXTS).split()))
  vocabulary += ["xylophone", "\x00"]
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
  return encoder_reference.config(
    vocab_size=tokenizer.vocab_size, max_positions=64
  )


@pytest.mark.parametrize("nested", [False, True])
def test_loss_and_predictions_span_by_span(nested):
  """Compares with sentences one by one, each span scored on its own."""
  tokenizer, most = english_tokenizer("wordpiece"), 3
  cfg = architecture(tokenizer)
  options = Options(max_span_words=most, nested=nested)
  app = spans.make_application(
    Setup(tokenizer, cfg, {"labels": LABELS}, 64), options
  )
  params = jax.device_put(make_params(app, cfg))
  examples = sentences(random.Random(2), 9, most=12)
  rows = app.make_rows(examples)
  assert len(rows.example) == len(examples)
  sums, outputs = run_batches(app, params, rows, length=64)
  (total, weight), found = sums["spans"], sums["span_recall"]
  predictions = app.decode(examples, rows, outputs, {"threshold": -0.4})

  head = spans.SpanHead(cfg, options.representation, len(LABELS))

  @jax.jit
  def logits_of(tokens, length):
    """Returns [64, T], given ids, begins and ends of spans: [3, 64]."""
    ids, begins, ends = tokens[:, None]
    real = (jnp.arange(64)[None] < length).astype(jnp.int32)
    x = Encoder(cfg).apply(
      {"params": params["encoder"]}, ids, 0 * ids, real, train=False
    )
    return head.apply(
      {"params": params["spans"]}, x, begins, ends, train=False
    )[0]

  loss_by_hand, scored, gold, correct = 0.0, 0, 0, 0
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
        loss_by_hand -= of_one[label]
        scored += 1
        gold += label > 0
        correct += label > 0 and int(np.argmax(of_one)) == label
        best = 1 + int(np.argmax(of_one[1:]))
        margin = of_one[best] - of_one[0]
        if margin > -0.4:
          candidates.append((margin, place, best, np.exp(of_one[best])))
    # One after the other, the best first, as documented.
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
  assert weight == scored and found.tolist() == [correct, gold]
  assert total == pytest.approx(loss_by_hand, rel=1e-4)


def test_spans_wider_than_a_row():
  setup = Setup(english_tokenizer("bpe"), None, {"labels": LABELS}, 24)
  with pytest.raises(ConfigError, match=r"at most data\.length - 2 = 22"):
    spans.make_application(setup, Options(max_span_words=23))


def test_a_given_threshold_replaces_the_calibrated_one():
  tokenizer = english_tokenizer("bpe")
  example = Example(tuple("abc"), (Entity("A", 0, 1), Entity("A", 2, 3)))
  margins = (2.0, 0.5, -0.25)
  outputs = {
    "margins": np.float32([margins]),
    "labels": np.array([[1, 1, 1]]),
    "begins": np.array([[0, 1, 2]]),
    "widths": np.array([[1, 1, 1]]),
    "probabilities": np.float32([[0.8, 0.6, 0.4]]),
  }

  def decoded(*tokens):
    """Returns the words that are labelled, and what is calibrated."""
    task = data_files.with_overrides("spans", {"max_span_words": 2}, tokens)
    app = task.make_application(
      Setup(tokenizer, architecture(tokenizer), {"labels": LABELS}, 24)
    )
    rows = app.make_rows([example])
    (made,) = app.decode([example], rows, outputs, {"threshold": 0.75})
    tuned = app.calibrate([example], rows, outputs)
    return [x["words"][0] for x in made["entities"]], tuned["threshold"]

  # Of 3 spans 2 are right: an F1 of 4/5; of the first alone, of 2/3.
  assert decoded() == ([0], -1.0 + 0.25)
  assert decoded("--config.task.threshold=0") == ([0, 1], 0.0)  # The argmax.
  assert decoded("--config.task.threshold=-0.5") == ([0, 1, 2], -0.5)
  assert decoded("--config.task.threshold=0.5") == ([0], 0.5)
  for value in ("high", "nan"):
    with pytest.raises(ConfigError, match="threshold="):
      decoded(f"--config.task.threshold={value}")
  with pytest.raises(ConfigError, match=r"config\.task\.threshold: "):
    data_files.with_overrides("tagging", {}, ["--config.task.threshold=0"])
