"""Question answering: rows, head, spans, n-best, thresholds, a whole run."""

import itertools
import json
import random
import re
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import encoder_reference as reference
from helpers.letters import encode, encode_batch, make_params
from helpers.repository import CONFIGS
from maskedlm.config import overrides
from maskedlm.core.errors import ConfigError, DataError
from maskedlm.data.labelled import windows
from maskedlm.data.tokenizers.tokenizer import train_tokenizer
from maskedlm.finetune import config as config_lib
from maskedlm.finetune import predict
from maskedlm.finetune.common import batching
from maskedlm.finetune.question_answering import question_answering as qa
from maskedlm.finetune.question_answering import rows as answer_rows
from maskedlm.finetune.question_answering.question_answering import Options
from maskedlm.finetune.question_answering.squad import Example, GoldAnswer
from maskedlm.training.step import totals

PAD, CLS, SEP = 0, 1, 2
TOKENIZER = types.SimpleNamespace(
  special=types.SimpleNamespace(pad=PAD, cls=CLS, sep=SEP),
  encode=encode,
  encode_batch=encode_batch,
)
LENGTH = 13
SMALL = {"max_query": 3, "stride": 4, "max_answer_length": 3, "n_best": 4}
TEXT = "a b c d e f g h i j k"  # Token i is the character 2 i.
EXAMPLES = [
  Example("x y", "a b c d e", "q0", (GoldAnswer("b c", 2), GoldAnswer("e", 8))),
  # 11 tokens in windows of 13 - 3 - 1 - 2 = 7.
  Example("v w x y z", TEXT, "q1", (GoldAnswer("f g", 10),)),
  Example("v w x", TEXT, "q2", ()),
  Example("x", "", "q3", None),
]


def make(cfg=None, length=LENGTH, **options):
  options = Options(**{**SMALL, **options})
  cfg = cfg or reference.config()
  return qa.make_application(TOKENIZER, cfg, {}, options, length=length)


def make_batch(app, examples=EXAMPLES, fillers=0, length=LENGTH):
  rows = app.make_rows(examples)
  which = np.append(np.arange(len(rows.example)), np.full(fillers, -1))
  return batching.gather_rows(rows, which, length, PAD)


# --- Rows ---


def test_rows():
  rows = make().make_rows(EXAMPLES)
  assert [x.tolist() for x in rows.tokens["input_ids"]] == [
    [CLS, 33, 34, SEP, 10, 11, 12, 13, 14, SEP],
    [CLS, 31, 32, 33, SEP, 10, 11, 12, 13, 14, 15, 16, SEP],
    [CLS, 31, 32, 33, SEP, 14, 15, 16, 17, 18, 19, 20, SEP],
    [CLS, 31, 32, 33, SEP, 10, 11, 12, 13, 14, 15, 16, SEP],
    [CLS, 31, 32, 33, SEP, 14, 15, 16, 17, 18, 19, 20, SEP],
    [CLS, 33, SEP, SEP],
  ]
  for ids, kinds in zip(*rows.tokens.values(), strict=True):
    question = ids.tolist().index(SEP) + 1
    assert kinds.tolist() == [0] * question + [1] * (len(ids) - question)
  assert rows.example.tolist() == [0, 1, 1, 2, 2, 3]
  assert rows.notes[0] == "questions cut to task.max_query=3: 1"  # q1's.
  assert not rows.truncated  # Of the texts nothing is lost.
  values = {name: x.tolist() for name, x in rows.values.items()}
  assert values == {
    "context": [[4, 9], [5, 12], [5, 12], [5, 12], [5, 12], [3, 3]],
    # Of e, f, g, which both windows have, e has most context in the first (2
    # tokens to its end; 0 in the second), g in the second; f 1 and 1, but an
    # answer f g h is whole in the second alone.
    "kept": [[4, 9], [5, 10], [6, 12], [5, 10], [6, 12], [3, 3]],
    "first": [0, 0, 4, 0, 4, 0],
    # The first gold answer, in both windows that hold it.
    "start": [5, 10, 6, 0, 0, 0],
    "end": [6, 11, 7, 0, 0, 0],
  }
  assert all(x.dtype == np.int32 for x in rows.values.values())


def test_roberta_has_two_separators():
  rows = make(reference.config(pair_separators=2)).make_rows(EXAMPLES[:2])
  ids = rows.tokens["input_ids"][0]
  assert ids.tolist() == [CLS, 33, 34, SEP, SEP, 10, 11, 12, 13, 14, SEP]
  assert rows.values["context"].tolist()[0] == [5, 10]
  assert rows.values["start"].tolist()[0] == 6
  assert max(rows.lengths) == LENGTH


def test_a_window_that_has_half_of_the_answer_is_trained_to_have_none():
  examples = [EXAMPLES[1]._replace(answers=(GoldAnswer("g h", 12),))]
  values = make().make_rows(examples).values
  assert values["start"].tolist() == [0, 7]
  assert values["end"].tolist() == [0, 8]


def test_an_answer_that_begins_or_ends_within_a_token():
  example = Example("x", "a b cde f", "q", (GoldAnswer("b cd", 2),))
  offsets = np.array([[0, 1], [2, 3], [4, 7], [8, 9]])
  assert answer_rows._answer_tokens(example, offsets) == (1, 2)
  inner = example._replace(answers=(GoldAnswer("d", 5),))
  assert answer_rows._answer_tokens(inner, offsets) == (2, 2)
  space = example._replace(answers=(GoldAnswer(" ", 3),))
  assert answer_rows._answer_tokens(space, offsets) is None


def official_windows(count, capacity, stride):
  """run_squad.py's windows, and the one in which each token is read off."""
  spans, begin = [], 0
  while True:
    size = min(count - begin, capacity)
    spans.append((begin, size))
    if begin + size == count:
      break
    begin += min(size, stride)

  def context(token, begin, size):
    end = begin + size - 1
    if not begin <= token <= end:
      return -1
    return min(token - begin, end - token) + 0.01 * size

  owners = [
    max(range(len(spans)), key=lambda i, t=token: context(t, *spans[i]))
    for token in range(count)
  ]
  return spans, owners


@pytest.mark.parametrize("count", [1, 316, 317, 318, 444, 500, 1001])
def test_windows_are_those_of_run_squad(count):
  """But the last, which reaches back as far as it can for more context."""
  spans, owners = official_windows(count, 317, 128)
  found = answer_rows._windows(count, 317, 128, 30)
  sizes = np.ones(count, np.int64)
  assert found == windows.cut_windows(
    sizes, 317, stride=128
  )  # As long as they were.
  assert [w.begin for w in found[:-1]] == [begin for begin, _ in spans[:-1]]
  assert [w.end for w in found] == [begin + size for begin, size in spans]
  assert found[-1].begin == max(count - 317, 0)
  owner = np.concatenate(
    [np.full(w.keep_end - w.keep_begin, i) for i, w in enumerate(found)]
  )
  before_last = np.array(owners) < len(spans) - 2
  assert (owner[before_last] == np.array(owners)[before_last]).all()
  if len(spans) > 1:  # With more context the last one may gain tokens.
    assert (owner >= np.array(owners)).all()


@pytest.mark.parametrize("seed", range(40))
def test_an_answer_is_whole_in_the_window_that_keeps_its_first_token(seed):
  rng = np.random.default_rng(seed)
  longest = int(rng.integers(1, 9))
  capacity = longest + int(rng.integers(0, 20))
  count, stride = int(rng.integers(1, 70)), int(rng.integers(1, 140))
  found = answer_rows._windows(count, capacity, stride, longest)
  kept = [i for w in found for i in range(w.keep_begin, w.keep_end)]
  assert kept == list(range(count))
  for w in found:
    assert w.begin <= w.keep_begin and w.keep_end <= w.end
    for first in range(w.keep_begin, w.keep_end):
      assert min(first + longest, count) <= w.end


def test_a_stride_that_would_lose_answers():
  long = EXAMPLES[1]._replace(context=f"{TEXT} l m n o p q r")
  # 18 tokens in windows of 7: at that stride 0-6, 7-13 and 11-17, and g h,
  # which are 6 and 7, in none.
  examples = [long._replace(answers=(GoldAnswer("g h", 12),)), EXAMPLES[0]]
  rows = make(stride=7).make_rows(examples)
  assert rows.notes[1:] == [
    "task.stride=7 is reduced to 4..4 for 1 questions, so that windows overlap "
    "by task.max_answer_length=3 tokens and each answer is whole in one; a "
    "larger data.length makes fewer rows"
  ]
  # 0-6, 4-10, 8-14 and 11-17: g is the third of the second.
  assert rows.values["first"].tolist() == [0, 4, 8, 11, 0]
  assert rows.values["start"].tolist()[:4] == [0, 7, 0, 0]
  assert rows.values["end"].tolist()[:4] == [0, 8, 0, 0]
  # What is only predicted is not spoken of.
  assert make(stride=7).make_rows([long._replace(answers=None)]).notes == ()
  # Eight tokens are in no window of seven.
  wide = long._replace(answers=(GoldAnswer("d e f g h i j k", 6),))
  none = long._replace(answers=())  # No answer is not a lost one.
  assert make().make_rows([wide, none, *examples]).notes == [
    "questions cut to task.max_query=3: 3",
    "answers that no window contains whole: 1; they can be neither learnt nor "
    "predicted",
  ]


def test_a_text_is_tokenised_once():
  calls = []

  def counting(text):
    calls.append(text)
    return encode(text)

  tokenizer = types.SimpleNamespace(**{**vars(TOKENIZER), "encode": counting})
  options = Options(**SMALL)
  app = qa.make_application(
    tokenizer, reference.config(), {}, options, length=LENGTH
  )
  examples = 3 * EXAMPLES
  rows = app.make_rows(examples)
  outputs = predict.compute_outputs(
    app, make_params(app), rows, batch_size=4, buckets=(LENGTH,), pad=PAD
  )
  app.decode(examples, rows, outputs, {})
  assert sorted(calls) == sorted({e.context for e in EXAMPLES})


def test_an_encoder_with_one_token_type_is_given_no_other():
  app = make(cfg=reference.config(type_vocab_size=1))
  assert not np.concatenate(
    app.make_rows(EXAMPLES).tokens["token_type_ids"]
  ).any()


# --- Head and loss ---


def token_scores(params, cfg, batch):
  """[B, L, 2] from the reference's encoder, in numpy."""
  dense = reference.as_float64(params["span_head"]["dense"])
  hidden = [
    reference.encode(params["encoder"], cfg, ids, kinds, segments)
    for ids, kinds, segments in zip(
      batch["input_ids"],
      batch["token_type_ids"],
      batch["segment_ids"],
      strict=True,
    )
  ]
  return np.array(hidden) @ dense["kernel"] + dense["bias"]


def test_loss_by_hand():
  """Softmax over [CLS] and the text alone, mean of start and end."""
  app, cfg = make(), reference.config()
  params, batch = make_params(app), make_batch(app)
  scores = token_scores(params, cfg, batch)
  total, hits = 0, [0, 0]
  for i, (begin, end) in enumerate(batch["context"]):
    places = [0, *range(begin, end)]
    for j, name in enumerate(("start", "end")):
      x = scores[i, places, j]
      gold = places.index(batch[name][i])
      total += (np.log(np.exp(x).sum()) - x[gold]) / 2
      hits[j] += int(np.argmax(x)) == gold
  compute = jax.jit(lambda *xs: totals(app.loss(*xs)), static_argnums=3)
  terms, stats = compute(params, batch, jax.random.key(0), False)
  np.testing.assert_allclose(terms["answer"], (total, 6), rtol=1e-5)
  for j, name in enumerate(("start_accuracy", "end_accuracy")):
    assert tuple(map(float, stats[name])) == (hits[j], 6)


def test_filler_rows_count_nothing():
  app = make()
  params = make_params(app)

  def run(batch):
    def loss(params):
      terms, stats = totals(app.loss(params, batch, jax.random.key(0), False))
      total, weight = terms["answer"]
      return total / weight, (terms, stats)

    return jax.jit(jax.grad(loss, has_aux=True))(params)

  plain, padded = (run(make_batch(app, fillers=n)) for n in (0, 2))
  for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(padded), strict=True):
    np.testing.assert_allclose(a, b, atol=1e-5, rtol=1e-4)
  # Neither does what is masked: finite, and no gradient of a nan.
  assert all(np.isfinite(x).all() for x in jax.tree.leaves(plain))


def test_left_to_right_no_answer_is_said_of_the_last_token():
  """[CLS] has seen nothing: its scores would be those of any text."""
  cfg = reference.config(causal=True)
  app = make(cfg)
  params = make_params(app, cfg)
  compute = jax.jit(app.outputs)

  def null(text):
    batch = make_batch(app, [Example("x y", text, "q", ())], length=11)
    return float(compute(params, batch)["null"][0])

  assert abs(null("a b c d") - null("a b c e")) > 1e-3
  wider = make_batch(app, [Example("x y", "a b c d", "q", ())], length=LENGTH)
  assert float(compute(params, wider)["null"][0]) == pytest.approx(
    null("a b c d"), abs=1e-4
  )


def test_bfloat16_gives_float32_scores():
  cfg = reference.config(dtype="bfloat16")
  app = make(cfg)
  outputs = jax.eval_shape(app.outputs, make_params(app, cfg), make_batch(app))
  assert outputs["scores"].dtype == outputs["null"].dtype == jnp.float32


# --- Spans ---


@pytest.mark.parametrize("count", [1, 5, 30])
def test_best_spans_are_the_best_of_all(count):
  rng = np.random.default_rng(2)
  B, L, W = 5, 13, 4
  start, end = rng.standard_normal((2, B, L)).astype(np.float32)
  context = np.array([[3, 13], [2, 7], [5, 6], [4, 4], [0, 0]], np.int32)
  kept = np.array([[3, 9], [4, 7], [5, 6], [4, 4], [0, 0]], np.int32)
  found = qa.best_spans(
    start, end, context=context, kept=kept, max_length=W, count=count
  )
  assert found.scores.shape == (B, count)
  for i in range(B):
    every = [
      (start[i, a] + end[i, b], a, b)
      for a, b in itertools.product(range(L), repeat=2)
      if kept[i, 0] <= a < kept[i, 1] and a <= b < min(a + W, context[i, 1])
    ]
    expected = sorted(every, reverse=True)[:count]
    scores = np.array(found.scores[i])
    np.testing.assert_allclose(
      scores[: len(expected)], [s for s, _, _ in expected], rtol=1e-6
    )
    spans = np.array(found.spans[i])[: len(expected)]
    assert spans.tolist() == [[a, b] for _, a, b in expected]
    assert (scores[len(expected) :] < -5e8).all()


def test_outputs_are_of_the_text_and_do_not_depend_on_padding():
  app, cfg = make(), reference.config()
  params, batch = make_params(app), make_batch(app)
  found = jax.device_get(jax.jit(app.outputs)(params, batch))
  scores = token_scores(params, cfg, batch)
  np.testing.assert_allclose(
    found["null"], scores[:, 0].sum(axis=-1), rtol=1e-4
  )
  # The second window of q1: the text's tokens 5 to 10 in the places 6 to 11.
  best = max(
    (scores[2, a, 0] + scores[2, b, 1], a - 1, b - 1)
    for a in range(6, 12)
    for b in range(a, min(a + 3, 12))
  )
  assert found["scores"][2, 0] == pytest.approx(best[0], rel=1e-4)
  assert found["spans"][2, 0].tolist() == list(best[1:])
  longer = jax.jit(app.outputs)(params, make_batch(app, length=17))
  for name in found:
    np.testing.assert_allclose(longer[name], found[name], atol=1e-4)


def test_a_text_shorter_than_the_longest_answer():
  app = make(length=9, max_answer_length=2, n_best=99)
  examples = [Example("x", "a b", "q", None)]
  batch = make_batch(app, examples, length=6)
  outputs = jax.jit(app.outputs)(make_params(app), batch)
  assert outputs["scores"].shape == (1, 6 * 2)
  assert int(np.sum(np.array(outputs["scores"]) > -5e8)) == 3  # a, b, a b.


# --- Predictions ---


def outputs_of(rows):
  """[(null, {(first, last): score})] of each row -> what the device gives."""
  return {
    "null": [np.float32(null) for null, _ in rows],
    "spans": [
      np.array([*spans, *[(0, 0)] * (5 - len(spans))], np.int32)
      for _, spans in rows
    ],
    "scores": [
      np.array([*spans.values(), *[-2e9] * (5 - len(spans))], np.float32)
      for _, spans in rows
    ],
  }


def decode(examples, outputs, tuned=None, **options):
  app = make(**options)
  return app.decode(examples, app.make_rows(examples), outputs, tuned or {})


def test_n_best_over_the_windows():
  example = EXAMPLES[1]._replace(context="a b a c e f a b i j k")
  outputs = outputs_of(
    [
      (9.0, {(0, 1): 3.0, (3, 3): 2.0, (5, 5): 1.0}),
      # "a b" again, and better.
      (9.0, {(6, 7): 4.0, (8, 10): 2.5}),
    ]
  )
  (made,) = decode([example], outputs)
  shares = np.exp([4.0, 2.5, 2.0, 1.0])
  shares /= shares.sum()
  found = [(n["answer"], n["start"], n["end"]) for n in made["nbest"]]
  assert found == [
    ("a b", 12, 15),
    ("i j k", 16, 21),
    ("c", 6, 7),
    ("f", 10, 11),
  ]
  assert [n["score"] for n in made["nbest"]] == pytest.approx(list(shares))
  assert (made["id"], made["question"]) == ("q1", example.question)
  assert {k: made[k] for k in made["nbest"][0]} == made["nbest"][0]
  assert "null_odds" not in made  # In 1.1 there is an answer.
  json.dumps(made)
  (two,) = decode([example], outputs, n_best=2)
  assert [n["answer"] for n in two["nbest"]] == ["a b", "i j k"]
  assert qa.format_prediction(made) == f"a b\t{shares[0]:.3f}"


def test_no_answer_is_as_likely_as_in_the_window_that_says_it_least():
  outputs = outputs_of([(9.0, {(0, 0): 1.0}), (2.5, {(8, 8): 2.0})])
  (made,) = decode(EXAMPLES[1:2], outputs, allow_impossible=True)
  assert made["null_odds"] == pytest.approx(2.5 - 2.0)
  assert [n["answer"] for n in made["nbest"]] == ["", "i", "a"]
  shares = np.exp([2.5, 2.0, 1.0])
  assert made["score"] == pytest.approx(shares[0] / shares.sum())
  assert (made["answer"], made["start"], made["end"]) == ("", None, None)
  assert qa.format_prediction(made).startswith("(no answer)\t0.")


def test_the_threshold():
  outputs = outputs_of([(9.0, {(0, 0): 1.0}), (2.5, {(8, 8): 2.0})])

  def answer(threshold):
    tuned = {"null_threshold": threshold, "f1": 0.3}
    options = {"allow_impossible": True}
    (made,) = decode(EXAMPLES[1:2], outputs, tuned, **options)
    return made["answer"], made["start"]

  # null_odds are 0.5: no answer if they are above.
  assert answer(0.4) == ("", None)
  assert answer(0.5) == ("i", 16)
  assert answer(-3.0) == ("", None)
  assert answer(7.0) == ("i", 16)


@pytest.mark.parametrize("allow_impossible", [False, True])
def test_a_text_without_tokens_has_no_answer(allow_impossible):
  outputs = outputs_of([(-3.0, {})])
  (made,) = decode(
    EXAMPLES[3:],
    outputs,
    {"null_threshold": 50.0},
    allow_impossible=allow_impossible,
  )
  assert (made["answer"], made["start"], made["score"]) == ("", None, 1.0)
  assert len(made["nbest"]) == 1
  json.dumps(made, allow_nan=False)


def test_whitespace_tokens_are_no_answers():
  """A token of whitespace alone has an empty span, where it ends."""
  text = "ab  \n cd"
  offsets = np.array([[0, 2], [6, 6], [6, 8]], np.int32)
  assert answer_rows.answer_characters(text, offsets, 0, 1) == (0, 2)
  assert answer_rows.answer_characters(text, offsets, 1, 2) == (6, 8)
  assert answer_rows.answer_characters(text, offsets, 1, 1) == (6, 6)
  outputs = outputs_of([(0.0, {(1, 1): 9.0, (0, 1): 4.0, (0, 0): 3.0})])
  found = qa._n_best(text, offsets, outputs, 20)
  assert found == [{"answer": "ab", "start": 0, "end": 2, "score": 4.0}]


def test_tune_and_score():
  """q1's best answer is "f g", right, q2's is "i", where there is none."""
  app = make(allow_impossible=True)
  examples = EXAMPLES[1:3]
  rows = app.make_rows(examples)
  outputs = outputs_of(
    [
      (0.5, {(5, 6): 1.0}),
      (0.0, {(9, 10): 0.0}),
      (3.0, {(0, 0): 1.0}),
      (4.0, {(8, 8): 2.0}),
    ]
  )
  tuned = app.calibrate(examples, rows, outputs)
  # Odds: 0 - 1 and 3 - 2.
  assert tuned == {"null_threshold": 0.0}
  predictions = app.decode(examples, rows, outputs, tuned)
  assert [p["answer"] for p in predictions] == ["f g", ""]
  expected = {
    "exact_match": 1.0,
    "f1": 1.0,
    "has_answer_exact_match": 1.0,
    "has_answer_f1": 1.0,
    "no_answer_accuracy": 1.0,
    "best_exact_match": 1.0,
    "best_exact_match_threshold": -1.0,
    "best_f1": 1.0,
    "best_f1_threshold": -1.0,
  }
  assert app.score(examples, predictions) == expected
  # With another threshold it is worse, and what is best is the same.
  bold = app.decode(examples, rows, outputs, {"null_threshold": 5.0})
  assert app.score(examples, bold) == {
    **expected,
    "exact_match": 0.5,
    "f1": 0.5,
    "no_answer_accuracy": 0.0,
  }
  plain = make()
  assert plain.calibrate(examples, rows, outputs) == {}
  assert plain.best == "f1"
  predictions = plain.decode(examples, rows, outputs, {})
  assert plain.score(examples[:1], predictions[:1]) == {
    "exact_match": 1.0,
    "f1": 1.0,
  }
  with pytest.raises(DataError, match=r"input: no answers; expected"):
    plain.score(EXAMPLES[3:], predictions[:1])


def test_report_and_export():
  app = make(allow_impossible=True)
  examples = EXAMPLES[1:3]
  outputs = outputs_of([(0.0, {(5, 5): 1.0}), *[(0.0, {(8, 8): 0.5})] * 3])
  predictions = app.decode(examples, app.make_rows(examples), outputs, {})
  files = qa.export_predictions(predictions)
  assert json.loads(files["predictions.json"]) == {"q1": "f", "q2": "i"}
  assert json.loads(files["null_odds.json"]) == {"q1": -1.0, "q2": -0.5}
  report = qa.format_tables(examples, predictions)
  assert set(files) - set(report) == {"nbest_predictions.json"}
  assert set(report) - set(files) == {"mistakes.tsv", "by_question.txt"}
  assert report["mistakes.tsv"].split("\n")[1:] == [
    "q2\t0.000\ti\t(no answer)\tv w x",
    "q1\t0.667\tf\tf g\tv w x y z",
    "",
  ]


# --- Answers are parts of the text, to the character ---

ODD = [
  "NFC caf\u00e9 na\u00efve \u1ec7 \u00c5",
  "NFD cafe\u0301 nai\u0308ve e\u0323\u0302 A\u030a \u0301alone",
  "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f44d\U0001f3fd\u2764\ufe0f",
  "日本語です 中文，标点。한국어 \u1112\u1161\u11ab",
  "हिन्दी में क्षत्रिय ज़्यादा",
  "مُحَمَّدٌ السَّلامُ عَلَيْكُم שָׁלוֹם",
  "\ufb01ne o\ufb03ce \u00bd \u2460 \u337f ＡＢＣ Straße İstanbul ǅ",
  "don't stop-it (U.S., $3.50)!  two\u00a0no-break\u3000wide\n\tlines",
  "\U0001f1e9\U0001f1ea zero\u200bwidth \u200ejoin\u200d a\x00b \ufeffbom",
]


def odd_text(draw):
  words = [word for line in ODD for word in re.split(r"(\s+)", line)]
  return "".join(
    draw.choice(words) + " " * draw.randrange(2) for _ in range(20)
  )


@pytest.fixture(scope="module", params=["wordpiece", "bpe", "unigram"])
def odd_tokenizer(request):
  draw = random.Random(3)
  lines = [*(3 * ODD), *(odd_text(draw) for _ in range(100))]
  return train_tokenizer(
    lines,
    kind=request.param,
    vocab_size=150 if request.param == "unigram" else 420,
    lowercase=True,
  )


def test_answers_are_exact_parts_of_odd_texts(odd_tokenizer):
  """Any span of tokens, and any gold answer through its tokens and back."""
  draw = random.Random(11)
  for _ in range(60):
    text = odd_text(draw)
    offsets = odd_tokenizer.encode(text).offsets
    # Tokens in order, none of them reversed.
    assert (offsets[:, 0] <= offsets[:, 1]).all()
    assert (np.diff(offsets, axis=0) >= 0).all()
    n = len(offsets)
    spans = [sorted((draw.randrange(n), draw.randrange(n))) for _ in range(20)]
    scores = {tuple(span): -float(i) for i, span in enumerate(spans)}
    outputs = {
      "spans": [np.array(list(scores), np.int32)],
      "scores": [np.array(list(scores.values()), np.float32)],
    }
    for made in qa._n_best(text, offsets, outputs, 20):
      assert made["answer"] == text[made["start"] : made["end"]]
      assert made["answer"] == made["answer"].strip() != ""
    for _ in range(20):
      begin, end = sorted(
        (draw.randrange(len(text)), draw.randrange(len(text)))
      )
      answer = text[begin:end].strip()
      begin = text.find(answer, begin) if answer else begin
      example = Example("", text, "", (GoldAnswer(answer, begin),))
      tokens = answer_rows._answer_tokens(example, offsets)
      if tokens is None:  # Nothing that a token stands for.
        covered = np.zeros(len(text) + 1)
        for a, b in offsets:
          covered[a:b] = 1
        assert not covered[begin : begin + len(answer)].any()
        continue
      a, b = answer_rows.answer_characters(text, offsets, *tokens)
      # All of the answer that tokens stand for, and no token more.
      found = range(a, b)
      inside = (offsets[:, 0] < begin + len(answer)) & (offsets[:, 1] > begin)
      for first, last in offsets[inside]:
        assert first >= last or {first, last - 1} <= set(found)
      assert a == offsets[inside][0, 0]
      assert b <= offsets[inside][-1, 1]


def test_whole_words_come_back_as_they_are(odd_tokenizer):
  """Answers whose borders are those of tokens: most of real data."""
  words = [
    "caf\u00e9",
    "nai\u0308ve",
    "हिन्दी",
    "مُحَمَّدٌ",
    "o\ufb03ce",
    "中文",
    "(U.S.)",
  ]
  for order in itertools.islice(itertools.permutations(words), 0, 5040, 97):
    text = "  ".join(order)
    offsets = odd_tokenizer.encode(text).offsets
    for i, j in itertools.combinations(range(len(order)), 2):
      answer = "  ".join(order[i:j])
      example = Example("", text, "", (GoldAnswer(answer, text.index(answer)),))
      tokens = answer_rows._answer_tokens(example, offsets)
      begin, end = answer_rows.answer_characters(text, offsets, *tokens)
      assert text[begin:end] == answer


# --- Options ---


def test_a_length_that_leaves_no_room():
  with pytest.raises(ConfigError) as error:
    make(length=64, max_query=64, max_answer_length=30)
  message = str(error.value)
  for part in ("data.length=64 leaves 0", "max_query=64", "_length=30"):
    assert part in message
  make(length=97, max_query=64, max_answer_length=30)


def test_describe():
  label_info = qa.describe_labels(EXAMPLES[:3])
  assert label_info == {"questions": 3, "impossible": 1}
  with pytest.raises(DataError, match=r"no answers; expected"):
    qa.describe_labels(EXAMPLES)
  nobody = [EXAMPLES[2]._replace(where="a.json: question q2")] * 3
  with pytest.raises(DataError) as error:
    qa.describe_labels(nobody)
  assert "a.json: question q2" in str(error.value)
  assert "none of the 3 questions" in str(error.value)


def test_configs(monkeypatch, tmp_path):
  monkeypatch.setenv("MASKEDLM_DATA", str(tmp_path))
  path = str(CONFIGS / "squad.py")

  def load(variant):
    return overrides.load_config(
      f"{path}:{variant}", validate=config_lib.validate
    )

  one = load("v1")
  assert one.data.train == f"{tmp_path}/squad/train-v1.1.json"
  assert (one.data.dev, one.data.length) == ("", 384)
  assert not one.task.allow_impossible
  assert (one.data.batch_size, one.train.epochs) == (32, 3)
  (tmp_path / "squad").mkdir()
  (tmp_path / "squad" / "dev-v2.0.json").write_text("{}")
  two = load("v2")
  assert two.data.dev == f"{tmp_path}/squad/dev-v2.0.json"
  assert two.task.allow_impossible
  assert (two.data.batch_size, two.train.epochs) == (48, 2)
  with pytest.raises(ConfigError, match=r'squad.*did you mean "v2"'):
    load("v2.0")
