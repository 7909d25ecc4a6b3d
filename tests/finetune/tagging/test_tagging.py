"""Tagging: loss and decoding against plain Python, unseen tags, options."""

import itertools
import random

import jax
import numpy as np
import pytest

from helpers import finetune_runs as runs
from helpers import letters
from helpers.applications import run_batches
from helpers.english_tokenizer import english_tokenizer
from maskedlm.data.labelled import bio, words
from maskedlm.finetune.common import batching
from maskedlm.finetune.common.head import Head
from maskedlm.finetune.contract import Setup
from maskedlm.finetune.tagging import tagging
from maskedlm.finetune.tagging.tagging import Example, Options
from maskedlm.training.step import totals

LABELS = ["O", "B-A", "B-B", "I-A", "I-B"]


def assembled(tokenizer, options, *, length=24, seed=0, scale=2.0):
  """Returns an Application whose logits are looked up by token, and params."""
  T, V = len(LABELS), tokenizer.vocab_size

  def init(key):
    return {"table": scale * jax.random.normal(key, (V, T))}

  app = tagging.make_tagger(
    Setup(tokenizer, None, {"labels": LABELS}, length),
    options,
    Head(
      init,
      lambda params, batch, key, train: params["table"][batch["input_ids"]],
    ),
  )
  params = app.init(jax.random.key(seed))
  if options.decode == "crf":
    keys = jax.random.split(jax.random.key(seed + 1), 3)
    params["crf"] = {
      name: 0.02 * jax.random.normal(k, x.shape)
      for k, (name, x) in zip(keys, params["crf"].items(), strict=True)
    }
  return app, params


def sentences(rng, count=11, most=15):
  """Returns examples with random legal tags, one of them long, one empty."""
  vocabulary = sorted(set(" ".join(runs.TEXTS).split()))
  vocabulary += ["xylophone", "\x00"]
  made = []
  for i in range(count):
    length = 40 if i == 3 else 0 if i == 5 else rng.randrange(1, most)
    tags = [rng.choice(LABELS) for _ in range(length)]
    made.append(
      Example(
        tuple(rng.choice(vocabulary) for _ in range(length)),
        tuple(bio.repair_tags(tags)),
      )
    )
  return made


def log_softmax(x):
  x = np.asarray(x, np.float64)
  return x - np.log(np.sum(np.exp(x), axis=-1, keepdims=True))


@pytest.mark.parametrize(
  ("kind", "options"),
  [
    ("wordpiece", Options()),
    ("bpe", Options(decode="words")),
    ("unigram", Options(decode="combine")),
  ],
)
def test_softmax_against_plain_python(kind, options):
  """Compares with words one by one, without rows, windows or padding."""
  tokenizer = english_tokenizer(kind)
  app, params = assembled(tokenizer, options)
  examples = sentences(random.Random(1))
  rows = app.make_rows(examples)
  assert len(rows.example) > len(examples)  # Windows.
  sums, outputs = run_batches(app, params, rows, length=24)
  total, weight = sums["tags"]
  predictions = app.decode(examples, rows, outputs, {})

  table = log_softmax(params["table"])
  loss_by_hand, count = 0.0, 0
  for example, prediction in zip(examples, predictions, strict=True):
    of_words = words.word_encoder(tokenizer)(example.words)
    assert len(prediction["tags"]) == len(example.words)
    for i, ids in enumerate(of_words):
      gold = LABELS.index(example.tags[i])
      trained = ids if options.decode != "words" else ids[:1]
      loss_by_hand -= table[trained, gold].sum()
      count += len(trained)
      scores = table[ids[0]]
      if options.decode == "combine":
        scores = log_softmax(table[ids].mean(axis=0))
      assert prediction["tags"][i] == LABELS[np.argmax(scores)]
      assert prediction["probabilities"][i] == pytest.approx(
        np.exp(scores.max()), abs=1e-3
      )
  assert weight == count
  assert total == pytest.approx(loss_by_hand, rel=1e-4)


def test_crf_against_plain_python():
  """Checks the loss and the best legal sequence of sentences that fit."""
  tokenizer = english_tokenizer("wordpiece")
  app, params = assembled(tokenizer, Options(decode="crf"))
  examples = [e for e in sentences(random.Random(2), 17, 6) if len(e.words) < 6]
  rows = app.make_rows(examples)
  sums, outputs = run_batches(app, params, rows, length=24)
  total, weight = sums["tags"]
  predictions = app.decode(examples, rows, outputs, {})
  table = np.asarray(params["table"], np.float64)
  start, move, end = (
    100 * np.asarray(params["crf"][name], np.float64)
    for name in ("start", "transitions", "end")
  )
  loss_by_hand = 0.0
  for example, prediction in zip(examples, predictions, strict=True):
    emissions = [
      table[ids[0]] for ids in words.word_encoder(tokenizer)(example.words)
    ]
    if not emissions:
      assert prediction["tags"] == []
      continue
    # All legal sequences, grown word by word.
    scores = {
      (t,): start[t] + emissions[0][t]
      for t in range(5)
      if bio.may_follow(None, LABELS[t], "bio")
    }
    for emission in emissions[1:]:
      scores = {
        (*path, t): score + move[path[-1], t] + emission[t]
        for path, score in scores.items()
        for t in range(5)
        if bio.may_follow(LABELS[path[-1]], LABELS[t], "bio")
      }
    scores = {path: score + end[path[-1]] for path, score in scores.items()}
    gold = tuple(LABELS.index(tag) for tag in example.tags)
    loss_by_hand += np.logaddexp.reduce(list(scores.values())) - scores[gold]
    best = max(scores, key=scores.get)
    assert prediction["tags"] == [LABELS[t] for t in best]
  assert weight == sum(len(e.words) for e in examples)
  assert total == pytest.approx(loss_by_hand, rel=1e-4)


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
def test_crf_is_legal_across_windows_and_its_loss_finite(scheme):
  labels = bio.all_tags(["A", "B"], scheme)
  tokenizer = english_tokenizer("unigram")
  options = Options(decode="crf", scheme=scheme)
  app = tagging.make_tagger(
    Setup(tokenizer, None, {"labels": labels}, 12),
    options,
    Head(
      lambda key: {
        "table": 5 * jax.random.normal(key, (tokenizer.vocab_size, len(labels)))
      },
      lambda p, batch, key, train: p["table"][batch["input_ids"]],
    ),
  )
  params = app.init(jax.random.key(4))
  rng = random.Random(4)
  # One entity spans the sentence, so windows begin and end inside it.
  text = " ".join(runs.TEXTS).split()
  examples = [
    Example(
      tuple(rng.choices(text, k=n)),
      tuple(bio.entity_tags([bio.Entity("A", 0, n)], n, scheme)),
    )
    for n in (45, 3, 31)
  ]
  rows = app.make_rows(examples)
  assert len(rows.example) > 6
  sums, outputs = run_batches(app, params, rows, length=24)
  total, _ = sums["tags"]
  # No gold tag is forbidden: a forbidden transition costs 1e4.
  assert 0 < total < 5e3
  for prediction in app.decode(examples, rows, outputs, {}):
    borders = [None, *prediction["tags"], None]
    assert all(
      bio.may_follow(s, t, scheme) for s, t in itertools.pairwise(borders)
    )


@pytest.mark.parametrize(
  "options",
  [Options(), Options(decode="words"), Options(decode="crf")],
  ids=["subwords", "words", "crf"],
)
def test_an_unseen_tag(file, options):
  """It is reported, left out of the loss, and counts as wrong."""
  app, params = assembled(english_tokenizer("wordpiece"), options)
  text = "a\tO\n\nb\tB-A\nc\tB-PER\nd\tI-PER\n"
  dev = tagging.read_examples(file(text, "dev.conll"), options)
  rows = app.make_rows(dev)
  assert rows.tokens["word_tags"][1][:3].tolist() == [2 - 1, -1, -1]
  (note,) = rows.notes
  assert note.startswith(
    "gold labels that are not in the training set: 2 (2 different), such as "
    "'B-PER' ("
  )
  assert "dev.conll:4); " in note
  params["table"] = 0 * params["table"] - 1  # All tags are equally likely.
  if options.decode == "crf":
    params["crf"] = jax.tree.map(np.zeros_like, params["crf"])
  batch = batching.gather_rows(rows, np.array([0, 1]), 16, 0)
  loss = letters.compiled(app).loss
  terms, stats = totals(loss(params, batch, None, False))
  if options.decode == "crf":  # The first sentence only: O, B-A or B-B.
    np.testing.assert_allclose(terms["tags"], (np.log(3), 1), rtol=1e-5)
  else:
    np.testing.assert_allclose(terms["tags"], (2 * np.log(5), 2), rtol=1e-5)
    # O is the first of equals: one word of four is correct.
    np.testing.assert_allclose(stats["tag_accuracy"], (1, 4))
  found = [{"tags": ["O"]}, {"tags": ["B-A", "B-A", "O"]}]
  scores = app.score(dev, found)
  assert scores["accuracy"] == 2 / 4
  # Gold has two entities, two are found, one is correct.
  assert scores["f1"] == scores["strict_f1"] == 1 / 2
