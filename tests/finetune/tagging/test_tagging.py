"""Tagging: words and their tokens, windows, loss, decoding, metrics, files."""

import dataclasses
import itertools
import json
import random
import statistics
import warnings

import jax
import numpy as np
import pytest
import seqeval.metrics

from helpers import finetune_runs as runs
from helpers.repository import ROOT
from maskedlm.config import overrides
from maskedlm.core.errors import ConfigError, DataError
from maskedlm.data.labelled import words
from maskedlm.data.tokenizers.tokenizer import load_tokenizer, train_tokenizer
from maskedlm.finetune import config as configs
from maskedlm.finetune import predict as inference
from maskedlm.finetune.common import batching, bio, entity_metrics
from maskedlm.finetune.common.confusion import confusion_table
from maskedlm.finetune.common.head import Head
from maskedlm.finetune.tagging import label_scheme, tagging
from maskedlm.finetune.tagging import rows as tag_rows
from maskedlm.finetune.tagging.tagging import Example, Options
from maskedlm.finetune.tagging.text import tag_prediction
from maskedlm.interop import labels as fine_tuned
from maskedlm.training.step import totals

KINDS = ["wordpiece", "bpe", "unigram"]
TRAIN = "the\tO\ncat\tB-PER\nsat\tI-PER\n\na\tO\nhouse\tB-LOC\n"


@pytest.fixture(scope="module")
def made():
  """Kind -> tokenizer, of the standard library's English."""
  texts = [line for m in (random, statistics) for line in m.__doc__.split("\n")]
  for thing in (*vars(random).values(), *vars(statistics).values()):
    texts += (getattr(thing, "__doc__", None) or "").split("\n")
  return {
    kind: train_tokenizer(
      texts, kind=kind, vocab_size=601, lowercase=kind == "wordpiece"
    )
    for kind in KINDS
  }


@pytest.fixture
def file(tmp_path):
  def make(content, name="f.conll"):
    path = tmp_path / name
    path.write_bytes(content.encode())
    return str(path)

  return make


# --- Words -----------------------------------------------------------------


@pytest.mark.parametrize(
  ("text", "expected"),
  [
    ("Obama visited Paris.", "Obama visited Paris ."),
    (
      'He said: "Don\'t (ever) pay $3.50!"',
      'He said : " Don\'t ( ever ) pay $ 3.50 ! "',
    ),
    ("wait... what?!  C++, e-mail", "wait ... what ? ! C ++ , e-mail"),
    ("@paul #tag # @ ## a@b", "@paul #tag # @ ## a@b"),
    ("यह घर है।", "यह घर है ।"),
    ("Straße\u00a0«naïve»\u3000日本。", "Straße « naïve » 日本 。"),
    ("hi😀😀 👩‍💻👍🏽 ❤️ 🇩🇪", "hi 😀😀 👩‍💻 👍🏽 ❤️ 🇩🇪"),
    ("  \t ", ""),
    ("", ""),
  ],
)
def test_text_is_split_into_words(text, expected):
  spans = words.split_words(text)
  assert [text[begin:end] for begin, end in spans] == expected.split(
    " " if expected else None
  )
  assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))


@pytest.mark.parametrize("kind", KINDS)
def test_words_have_the_tokens_that_the_sentence_has(made, kind):
  tokenizer = made[kind]
  find = words.word_encoder(tokenizer)
  for text in [*runs.TEXTS[:4], "Zebra quux don't , stop-it ! ( U.S. ) 3.50"]:
    of_words = find(text.split())
    np.testing.assert_array_equal(
      np.concatenate(of_words), tokenizer.encode(text).ids
    )
    for i, ids in enumerate(of_words):
      assert tokenizer.starts_word[ids[0]] or i == 0
      shown = tokenizer.decode(ids).strip()
      if tokenizer.special.unk not in ids:
        assert shown.replace(" ", "").lower() == text.split()[i].lower()


def test_bpe_that_puts_no_space_before_a_text(made, tmp_path):
  """RoBERTa's: only words after the first have a space before them."""
  made["bpe"].save(tmp_path)
  path = tmp_path / "tokenizer.json"
  definition = json.loads(path.read_text())

  def switch(node):
    if isinstance(node, list):
      return [switch(x) for x in node]
    if isinstance(node, dict):
      return {
        k: False if k == "add_prefix_space" else switch(v)
        for k, v in node.items()
      }
    return node

  path.write_text(json.dumps(switch(definition)))
  tokenizer = load_tokenizer(path)
  text = runs.TEXTS[1]
  of_words = words.word_encoder(tokenizer)(text.split())
  assert not tokenizer.starts_word[of_words[0][0]]
  np.testing.assert_array_equal(
    np.concatenate(of_words), tokenizer.encode(text).ids
  )


@pytest.mark.parametrize("kind", KINDS)
def test_no_word_is_without_tokens(made, kind):
  odd = ["\x00", "", "\u200d", "\ufe0f", "\u0301", "\u00a0", "日", "[SEP]", "a"]
  of_words = words.word_encoder(made[kind])(odd)
  assert all(len(ids) for ids in of_words)
  special = set(made[kind].special) - {made[kind].special.unk}
  assert not special & {int(i) for ids in of_words for i in ids}
  assert of_words[1].tolist() == [made[kind].special.unk]


# --- Rows ------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_rows_by_hand(made, kind):
  tokenizer = made[kind]
  example = Example(("the", "xylophone", "cat"), ("O", "B-A", "I-A"))
  rows = tag_rows.make_rows(
    [example], tokenizer, {"O": 0, "B-A": 1, "I-A": 2}, length=48, stride=0
  )
  sizes = [len(x) for x in words.word_encoder(tokenizer)(example.words)]
  assert sizes[1] > 2  # An unknown word of several tokens.
  ids, of_tokens, starts, tags = (
    rows.tokens[name][0].tolist()
    for name in ("input_ids", "token_words", "word_starts", "word_tags")
  )
  assert ids[0] == tokenizer.special.cls and ids[-1] == tokenizer.special.sep
  a, b, c = sizes
  assert of_tokens == [0] + [1] * a + [2] * b + [3] * c + [0]
  assert starts == [1, 1 + a, 1 + a + b] + [0] * (len(ids) - 3)
  assert tags == [0, 1, 2] + [0] * (len(ids) - 3)
  assert rows.truncated == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_every_word_is_in_one_row_whatever_the_length(made, kind, seed):
  rng = random.Random(seed)
  vocabulary = [*" ".join(runs.TEXTS).split(), "\x00", "x" * 40, "日本語", ""]
  examples = [
    Example(tuple(rng.choice(vocabulary) for _ in range(rng.randrange(60))))
    for _ in range(7)
  ]
  length = rng.choice([8, 11, 17])
  rows = tag_rows.make_rows(
    examples, made[kind], {"O": 0}, length=length, stride=rng.choice([0, 1, 5])
  )
  assert max(rows.lengths) <= length
  assert rows.example.tolist() == sorted(rows.example)
  find = words.word_encoder(made[kind])
  for index, example in enumerate(examples):
    found = []
    mine = np.flatnonzero(rows.example == index)
    for i in mine:
      ids, of_tokens = (
        rows.tokens["input_ids"][i],
        rows.tokens["token_words"][i],
      )
      starts = rows.tokens["word_starts"][i]
      for slot in range(int(np.sum(starts > 0))):
        places = np.flatnonzero(of_tokens == slot + 1)
        assert places[0] == starts[slot]
        found.append(ids[places].tolist())
    expected = [x[: length - 2].tolist() for x in find(example.words)]
    assert found == expected
    assert rows.values["begins"][mine].tolist() == [1] + [0] * (len(mine) - 1)
    assert rows.values["ends"][mine].tolist() == [0] * (len(mine) - 1) + [1]
  cut = [any(len(t) > length - 2 for t in find(e.words)) for e in examples]
  assert rows.truncated == sum(cut)


# --- Loss and decoding -----------------------------------------------------

LABELS = ["O", "B-A", "B-B", "I-A", "I-B"]


def assembled(tokenizer, options, *, length=24, seed=0, scale=2.0):
  """An Application whose logits are a table of token ids; and its params."""
  T, V = len(LABELS), tokenizer.vocab_size

  def init(key):
    return {"table": scale * jax.random.normal(key, (V, T))}

  app = tagging.make_tagger(
    tokenizer,
    {"labels": LABELS},
    options,
    Head(
      init,
      lambda params, batch, key, train: params["table"][batch["input_ids"]],
    ),
    length=length,
  )
  params = app.init(jax.random.key(seed))
  if options.crf:
    keys = jax.random.split(jax.random.key(seed + 1), 3)
    params["crf"] = {
      name: 0.02 * jax.random.normal(k, x.shape)
      for k, (name, x) in zip(keys, params["crf"].items(), strict=True)
    }
  return app, params


def sentences(rng, count=11, most=15):
  """Examples with random legal tags, one long and one empty among them."""
  vocabulary = [*set(" ".join(runs.TEXTS).split()), "xylophone", "\x00"]
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


def run_batches(app, params, rows, batch_size=4):
  """(loss summed over all batches, its weight, outputs by row)."""
  batches = batching.heldout_batches(
    rows, batch_size=batch_size, buckets=(16, 24), pad=0, shard=(0, 1)
  )
  total, weight, outputs = 0.0, 0.0, []
  loss = jax.jit(lambda p, b: totals(app.loss(p, b, None, False))[0]["tags"])
  for i in range(batches.num_steps):
    batch = batches.batch_at(i)
    value = loss(params, batch)
    total, weight = total + float(value[0]), weight + float(value[1])
    outputs.append(jax.device_get(jax.jit(app.outputs)(params, batch)))
  return total, weight, inference.by_row(batches, outputs)


def log_softmax(x):
  x = np.asarray(x, np.float64)
  return x - np.log(np.sum(np.exp(x), axis=-1, keepdims=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
  "options",
  [
    Options(),
    Options(tag_all_subwords=False),
    Options(decode="combine"),
  ],
  ids=["first", "first-only", "combine"],
)
def test_softmax_against_plain_python(made, kind, options):
  """Word by word, as if there were no rows, windows, batches or padding."""
  tokenizer = made[kind]
  app, params = assembled(tokenizer, options)
  examples = sentences(random.Random(1))
  rows = app.make_rows(examples)
  assert len(rows.example) > len(examples)  # Windows.
  total, weight, outputs = run_batches(app, params, rows)
  predictions = app.decode(examples, rows, outputs, {})

  table = log_softmax(params["table"])
  nats, count = 0.0, 0
  for example, prediction in zip(examples, predictions, strict=True):
    of_words = words.word_encoder(tokenizer)(example.words)
    assert len(prediction["tags"]) == len(example.words)
    for i, ids in enumerate(of_words):
      gold = LABELS.index(example.tags[i])
      trained = ids if options.tag_all_subwords else ids[:1]
      nats -= table[trained, gold].sum()
      count += len(trained)
      scores = table[ids[0]]
      if options.decode == "combine":
        scores = log_softmax(table[ids].mean(axis=0))
      assert prediction["tags"][i] == LABELS[np.argmax(scores)]
      assert prediction["probabilities"][i] == pytest.approx(
        np.exp(scores.max()), abs=1e-3
      )
  assert weight == count
  assert total == pytest.approx(nats, rel=1e-4)


def test_crf_against_plain_python(made):
  """Of sentences that fit: the loss, and the best of the legal sequences."""
  tokenizer = made["wordpiece"]
  app, params = assembled(tokenizer, Options(crf=True))
  examples = [e for e in sentences(random.Random(2), 17, 6) if len(e.words) < 6]
  rows = app.make_rows(examples)
  total, weight, outputs = run_batches(app, params, rows)
  predictions = app.decode(examples, rows, outputs, {})
  table = np.asarray(params["table"], np.float64)
  start, move, end = (
    100 * np.asarray(params["crf"][name], np.float64)
    for name in ("start", "transitions", "end")
  )
  nats = 0.0
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
    nats += np.logaddexp.reduce(list(scores.values())) - scores[gold]
    best = max(scores, key=scores.get)
    assert prediction["tags"] == [LABELS[t] for t in best]
  assert weight == sum(len(e.words) for e in examples)
  assert total == pytest.approx(nats, rel=1e-4)


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
def test_crf_is_legal_across_windows_and_its_loss_finite(made, scheme):
  labels = bio.all_tags(["A", "B"], scheme)
  tokenizer = made["unigram"]
  options = Options(crf=True, scheme=scheme)
  app = tagging.make_tagger(
    tokenizer,
    {"labels": labels},
    options,
    Head(
      lambda key: {
        "table": 5 * jax.random.normal(key, (tokenizer.vocab_size, len(labels)))
      },
      lambda p, batch, key, train: p["table"][batch["input_ids"]],
    ),
    length=12,
  )
  params = app.init(jax.random.key(4))
  rng = random.Random(4)
  # One entity over all of a sentence: every window begins and ends within.
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
  total, _, outputs = run_batches(app, params, rows)
  # Nothing of the gold tags is forbidden: a forbidden step costs 1e4.
  assert 0 < total < 5e3
  for prediction in app.decode(examples, rows, outputs, {}):
    borders = [None, *prediction["tags"], None]
    assert all(
      bio.may_follow(s, t, scheme) for s, t in itertools.pairwise(borders)
    )


# --- Labels that are not our own --------------------------------------------


@pytest.mark.parametrize(
  ("labels", "gold", "said"),
  [
    (  # As those of BERT's own script.
      ["X", "[CLS]", "O", "B-PER", "I-PER", "[SEP]"],
      "O B-PER I-PER O",
      "X B-PER I-PER [SEP]",
    ),
    (["O", "B-A", "I-A", "E-A", "S-A"], "B-A E-A O S-A", None),
    (["O", "B-A", "I-A", "L-A", "U-A"], "B-A E-A O S-A", "B-A L-A O U-A"),
    # IOB1, in which no two entities of type A ever met.
    (
      ["O", "I-A", "I-B", "B-B"],
      "B-A I-A B-B B-B",
      "I-A I-A I-B B-B",
    ),
    (["PER", "LOC"], "PER LOC LOC PER", None),
  ],
)
def test_a_perfect_prediction_of_an_imported_model(made, labels, gold, said):
  config = {"id2label": {str(i): label for i, label in enumerate(labels)}}
  task = fine_tuned.read_task(config, "tagging", 64, "here")
  assert task["about"]["labels"] == labels
  options = Options(**task["options"])
  app = tagging.make_tagger(
    made["wordpiece"],
    task["about"],
    options,
    Head(lambda key: {}, lambda *args: None),
    length=24,
  )
  example = Example(tuple("abcd"), tuple(gold.split()), lines=(1, 2, 3, 4))
  rows = app.make_rows([example])
  assert rows.notes == ()
  tags = np.array([labels.index(tag) for tag in (said or gold).split()])
  assert len(tags) == 4
  outputs = {"tags": [tags], "probabilities": [np.ones(4)]}
  (prediction,) = app.decode([example], rows, outputs, {})
  assert prediction["tags"] == gold.split()
  scores = app.score([example], [prediction])
  assert scores["accuracy"] == 1
  if options.task == "ner":
    assert scores["f1"] == scores["strict_f1"] == 1


def test_the_scheme_of_labels():
  of = label_scheme.detect_label_scheme
  assert of(["O", "I-A"]) == of(["B-A", "I-A", "X"]) == "bio"
  assert of(["B-A", "E-A"]) == of(["B-A", "U-A"]) == of(["I-A", "L-A"])
  assert of(["B-A", "S-A"]) == "bioes"
  assert of(["NOUN", "X"]) is of(["LABEL_0"]) is None
  # The first O is the tag's; what is none has no id, and says O.
  found = label_scheme.read_labels(["X", "O", "B-", "B-A", "I-A"], "bio")
  assert found.tags == ("O", "O", "O", "B-A", "I-A")
  assert found.ids == {"O": 1, "B-A": 3, "I-A": 4} and not found.is_iob1
  # Of two labels for a tag the first; IOB1's I-B also begins a B.
  found = label_scheme.read_labels(["O", "I-A", "I-B", "B-A", "I-B"], "bio")
  assert found.ids == {"O": 0, "I-A": 1, "I-B": 2, "B-A": 3, "B-B": 2}
  assert found.is_iob1
  # A model may never have met an A of two words' beginning.
  found = label_scheme.read_labels(["O", "I-A", "E-A", "S-A"], "bioes")
  assert "B-A" not in found.ids and not found.is_iob1


# --- Metrics ---------------------------------------------------------------


def conlleval(gold, predicted):
  """(right, predicted, gold) chunks by the rules that conlleval describes.

  Written from their description, as a machine that reads one line after the
  other: a chunk begins at B, and at I after O or after another type; it ends
  before O, before B, and where the type changes. It is right if both columns
  begin and end it on the same lines with one type throughout.
  """
  right = found = wanted = 0
  state = None  # The line on which both columns began a chunk, both open.
  before = [("O", ""), ("O", "")]
  lines = [
    pair
    for g, p in zip(gold, predicted, strict=True)
    for pair in [*zip(g, p, strict=True), ("O", "O")]  # A sentence's border.
  ]
  for pair in lines:
    now = [tuple(tag.partition("-")[::2]) for tag in pair]
    ends = [
      a[0] in "BI" and (b[0] in "OB" or a[1] != b[1])
      for a, b in zip(before, now, strict=True)
    ]
    begins = [
      b[0] == "B" or (b[0] == "I" and (a[0] == "O" or a[1] != b[1]))
      for a, b in zip(before, now, strict=True)
    ]
    if state and any(ends):
      right += all(ends)
      state = None
    wanted += begins[0]
    found += begins[1]
    if all(begins) and now[0][1] == now[1][1]:
      state = True
    elif any(begins):
      state = None
    before = now
  return right, found, wanted


@pytest.mark.parametrize("seed", range(5))
def test_scores_equal_conlleval_and_seqeval(seed):
  rng = random.Random(seed)
  gold, predicted = [], []
  for _ in range(60):
    length = rng.randrange(1, 14)
    gold.append(bio.repair_tags(rng.choices(LABELS, k=length)))
    predicted.append(
      [t if rng.random() < 0.7 else rng.choice(LABELS) for t in gold[-1]]
    )
  scores = entity_metrics.evaluate_entities(gold, predicted, "bio")
  right, found, wanted = conlleval(gold, predicted)
  assert 0 < right < min(found, wanted)
  assert scores["precision"] == pytest.approx(right / found)
  assert scores["recall"] == pytest.approx(right / wanted)
  assert scores["f1"] == pytest.approx(2 * right / (found + wanted))
  theirs = seqeval.metrics
  assert scores["f1"] == pytest.approx(theirs.f1_score(gold, predicted))
  assert scores["precision"] == pytest.approx(
    theirs.precision_score(gold, predicted)
  )
  assert scores["accuracy"] == pytest.approx(
    theirs.accuracy_score(gold, predicted)
  )
  strict = {"mode": "strict", "scheme": seqeval.scheme.IOB2}
  assert scores["strict_f1"] == pytest.approx(
    theirs.f1_score(gold, predicted, **strict)
  )
  assert scores["strict_f1"] != pytest.approx(scores["f1"])
  # By type.
  by_type = entity_metrics.count_entities(gold, predicted, bio.find_entities)
  told = theirs.classification_report(gold, predicted, output_dict=True)
  for kind, counts in by_type.items():
    assert counts.f1 == pytest.approx(told[kind]["f1-score"])
    assert counts.gold == told[kind]["support"]


def test_scores_by_hand():
  gold = [["B-A", "I-A", "O"], ["B-B", "O", "B-A"]]
  predicted = [["B-A", "I-A", "I-A"], ["I-B", "O", "B-A"]]
  # Gold has 3; found are A (too long), B (by its I) and A: 2 are right.
  # Strictly the B is no entity: 2 found, 1 right.
  scores = entity_metrics.evaluate_entities(gold, predicted, "bio")
  assert scores["precision"] == scores["recall"] == pytest.approx(2 / 3)
  assert scores["strict_precision"] == 1 / 2
  assert scores["strict_recall"] == pytest.approx(1 / 3)
  assert scores["accuracy"] == pytest.approx(4 / 6)
  assert confusion_table(
    itertools.chain(*gold), itertools.chain(*predicted)
  ).splitlines() == [
    "gold \\ predicted\tB-A\tB-B\tI-A\tI-B\tO",
    "B-A\t2\t0\t0\t0\t0",
    "B-B\t0\t0\t0\t1\t0",
    "I-A\t0\t0\t1\t0\t0",
    "I-B\t0\t0\t0\t0\t0",
    "O\t0\t0\t1\t0\t1",
  ]
  assert entity_metrics.count_words(gold, predicted)["O"] == (1, 1, 2)
  table = entity_metrics.format_table(
    entity_metrics.count_entities(gold, predicted, bio.find_entities), "entity"
  ).splitlines()
  assert table[1].split() == ["A", "0.5000", "0.5000", "0.5000", "2", "2", "1"]
  assert table[-1].split()[0] == "all"


def test_a_type_that_is_only_predicted_costs_precision():
  gold, predicted = [["O", "B-A", "O"]], [["B-B", "B-A", "O"]]
  counts = entity_metrics.count_entities(gold, predicted, bio.find_entities)
  assert counts == {"A": (1, 1, 1), "B": (0, 1, 0)}
  scores = entity_metrics.evaluate_entities(gold, predicted, "bio")
  assert (scores["precision"], scores["recall"]) == (1 / 2, 1)


def test_nothing_found_and_nothing_there_is_zero():
  assert entity_metrics.word_accuracy([], []) == 0
  nothing = [["O", "O"]]
  scores = entity_metrics.evaluate_entities(nothing, nothing, "bio")
  assert scores["f1"] == scores["precision"] == scores["recall"] == 0
  assert scores["accuracy"] == 1
  with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    assert seqeval.metrics.f1_score(nothing, nothing) == 0


# --- Reading, labels, options ----------------------------------------------


def test_labels_are_of_the_training_set(file):
  label_info = tagging.describe_labels(
    tagging.read_examples(file(TRAIN), Options()), Options()
  )
  # LOC has one word each, and yet its I: a dev set may have it.
  assert label_info == {"labels": ["O", "B-LOC", "B-PER", "I-LOC", "I-PER"]}
  pos = Options(task="pos")
  label_info = tagging.describe_labels(
    tagging.read_examples(file("a\tDET\ncat\tNOUN\na\tDET\n"), pos), pos
  )
  assert label_info == {"labels": ["DET", "NOUN"]}


@pytest.mark.parametrize(
  "options",
  [Options(), Options(tag_all_subwords=False), Options(crf=True)],
  ids=["subwords", "words", "crf"],
)
def test_a_tag_that_training_did_not_have(file, made, options):
  """Told, in no loss, and wrong."""
  app, params = assembled(made["wordpiece"], options)
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
  if options.crf:
    params["crf"] = jax.tree.map(np.zeros_like, params["crf"])
  batch = batching.gather_rows(rows, np.array([0, 1]), 16, 0)
  terms, stats = totals(app.loss(params, batch, None, False))
  if options.crf:  # Of the first sentence alone: O, B-A or B-B.
    np.testing.assert_allclose(terms["tags"], (np.log(3), 1), rtol=1e-5)
  else:
    np.testing.assert_allclose(terms["tags"], (2 * np.log(5), 2), rtol=1e-5)
    # Of equals the first, O, is taken: one word of four is right.
    np.testing.assert_allclose(stats["tag_accuracy"], (1, 4))
  found = [{"tags": ["O"]}, {"tags": ["B-A", "B-A", "O"]}]
  scores = app.score(dev, found)
  assert scores["accuracy"] == 2 / 4
  # Two entities of gold, two found, one of both.
  assert scores["f1"] == scores["strict_f1"] == 1 / 2


@pytest.mark.parametrize(
  ("text", "options", "message"),
  [
    (
      "a\tO\n\nb\tI-A\n",
      Options(),
      "f.conll:3: I-A at the start of a sentence",
    ),
    ("a\tDET\n", Options(), "f.conll:1: 'DET' is not an entity tag"),
    ("a\tO\nb\n", Options(), "f.conll:2: 1 columns"),
    ("", Options(), "f.conll: the file is empty; expected labelled"),
    ("\n\n", Options(), "the file has no words"),
    ("a\tO\nb\tO\n", Options(), "every word has the tag 'O'; expected at"),
    ("a\tX\n", Options(task="pos"), "every word has the tag 'X'"),
    ("a\nb\n", Options(), "the words have no tags"),
  ],
)
def test_bad_training_files(file, text, options, message):
  path = file(text)
  with pytest.raises(DataError) as error:
    tagging.describe_labels(tagging.read_examples(path, options), options)
  assert message in str(error.value) and path in str(error.value)


def test_the_scheme_of_a_file_can_be_told(file):
  path = file("cat\tI-PER\ndog\tI-PER\n")
  with pytest.raises(DataError, match=r":1: I-PER .* is ill-formed BIO"):
    tagging.read_examples(path, Options())
  found = tagging.read_examples(path, Options(file_scheme="iob1"))
  assert found[0].tags == ("B-PER", "I-PER")


def test_repair_bio_reads_what_is_refused(file):
  path = file("a\tI-A\nb\tI-A\nc\tI-B\n")
  found = tagging.read_examples(path, Options(repair_bio=True))
  assert found[0].tags == ("B-A", "I-A", "B-B")


@pytest.mark.parametrize(
  ("options", "message"),
  [
    ({"crf": True, "decode": "combine"}, "set task.decode='first'"),
    ({"decode": "combine", "tag_all_subwords": False}, "doesn't train"),
  ],
)
def test_options_that_make_no_sense(options, message):
  with pytest.raises(ConfigError) as error:
    tagging.check_options(Options(**options))
  assert message in str(error.value)


def test_input_of_predict():
  example = tagging.TASK.parse_line(" Jane  met @bob.", Options())
  assert example.words == ("Jane", "met", "@bob", ".")
  assert example.offsets == ((1, 5), (7, 10), (11, 15), (15, 16))
  assert tagging.TASK.parse_line(
    '{"tokens": ["a b", ""]}', Options()
  ).words == (
    "a b",
    "",
  )
  assert tagging.TASK.parse_line('{"text": "{a"}', Options()).words == (
    "{",
    "a",
  )
  for line in (
    '{"tokens": "a b"}',
    '{"tokens": [1]}',
    "{}",
    "{oops",
    '{"text": 1}',
  ):
    with pytest.raises(DataError, match="expected"):
      tagging.TASK.parse_line(line, Options())


def test_predictions_have_offsets_into_the_text():
  text = " Jane  met Ann Lee."
  example = tagging.TASK.parse_line(text, Options())
  predict = tag_prediction
  tags = ["B-PER", "O", "B-PER", "I-PER", "O"]
  sure = [0.9, 0.8, 0.7, 0.6, 0.5]
  made = predict(example, tags, sure, has_entities=True)
  assert made["text"] == text
  assert made["entities"] == [
    {
      "type": "PER",
      "text": "Jane",
      "start": 1,
      "end": 5,
      "words": [0, 1],
      "score": 0.9,
    },
    {
      "type": "PER",
      "text": "Ann Lee",
      "start": 11,
      "end": 18,
      "words": [2, 4],
      "score": 0.6,
    },
  ]
  for entity in made["entities"]:
    assert text[entity["start"] : entity["end"]] == entity["text"]
  assert json.loads(json.dumps(made)) == made
  assert tagging.TASK.format_prediction(made).splitlines() == [
    text,
    "     1-5    PER: Jane (0.90)",
    "    11-18   PER: Ann Lee (0.60)",
  ]
  # Of words alone the text is made.
  made = predict(
    Example(("a", "", "b c")), ["O", "O", "B-X"], [1, 1, 1], has_entities=True
  )
  assert made["text"] == "a  b c"
  assert (
    made["entities"][0]["text"] == "b c" and made["entities"][0]["start"] == 3
  )
  made = predict(Example(("a", "b")), ["X", "Y"], [1, 1], has_entities=False)
  assert (
    "entities" not in made and tagging.TASK.format_prediction(made) == "a/X b/Y"
  )


def test_files_that_are_left_can_be_read(file):
  options = Options()
  examples = tagging.read_examples(file(TRAIN), options)
  tags = [["O", "B-LOC", "I-LOC"], ["O", "B-LOC"]]
  predictions = [
    tag_prediction(e, t, [1] * len(t), has_entities=True)
    for e, t in zip(examples, tags, strict=True)
  ]
  files = tagging.format_tables(examples, predictions)
  assert set(files) == {"report.txt", "confusion.tsv", "predictions.conll"}
  written = file(files["predictions.conll"], "p.conll")
  assert [e.tags for e in tagging.read_examples(written, options)] == list(
    map(tuple, tags)
  )
  gold = tagging.read_examples(
    written, dataclasses.replace(options, tag_column=1)
  )
  assert [e.tags for e in gold] == [e.tags for e in examples]
  out = tagging.export_predictions(predictions, options)
  again = tagging.read_examples(
    file(out["predictions.conll"], "q.conll"), options
  )
  assert [e.tags for e in again] == list(map(tuple, tags))


@pytest.mark.parametrize(
  ("config", "labels", "best"),
  [
    ("ner.py", 13, "f1"),
    ("ner.py:crf", 13, "f1"),
    ("pos.py", 17, "accuracy"),
    ("pos.py:vi", 17, "accuracy"),
    ("pos.py:mr", 16, "accuracy"),
  ],
)
def test_configs_read_the_real_data(config, labels, best, data_dir, made):
  """Each dev set's tags are known; counted with cut, sort and uniq."""
  c = overrides.load_config(
    f"{ROOT}/configs/{config}", validate=configs.validate
  )
  options = c.task.to_dict()
  assert options.pop("kind") == "tagging"
  options = Options(**options)
  train, dev = (
    tagging.read_examples(
      path.replace(configs.data_dir(), str(data_dir)), options
    )
    for path in (c.data.train, c.data.dev)
  )
  label_info = tagging.describe_labels(train, options)
  assert len(label_info["labels"]) == labels
  app = tagging.make_tagger(
    made["wordpiece"],
    label_info,
    options,
    Head(None, None),  # Nothing is computed here.
    length=c.data.length,
  )
  assert app.best == best
  dev = dev[:200]
  rows = app.make_rows(dev)
  words_read = sum(int(np.sum(x > 0)) for x in rows.tokens["word_starts"])
  assert words_read == sum(len(e.words) for e in dev)


@pytest.mark.parametrize("config", ["ner.py:conll", "pos.py:xx"])
def test_a_variant_that_is_none(config):
  with pytest.raises(ConfigError, match=config.partition(":")[2]):
    overrides.load_config(f"{ROOT}/configs/{config}", validate=configs.validate)


def test_words_without_tags_have_no_score(file, made):
  app, _ = assembled(made["wordpiece"], Options())
  examples = tagging.read_examples(file("a\nb\n"), Options())
  with pytest.raises(DataError, match=r"f.conll:1: no tags; expected"):
    app.score(examples, [{"tags": ["O", "O"]}])
