"""Question answering: head, loss, the best spans, options."""

import functools
import itertools

import jax
import numpy as np
import pytest

from helpers import encoder_reference as reference
from helpers import letters
from helpers.letters import make_params
from helpers.questions import EXAMPLES, LENGTH, make
from maskedlm.core.errors import ConfigError, DataError
from maskedlm.data.labelled.formats.squad import Example
from maskedlm.finetune.question_answering import question_answering
from maskedlm.modeling.task_heads import answers
from maskedlm.training.step import totals

make_batch = functools.partial(
  letters.make_batch, examples=EXAMPLES, length=LENGTH
)


def token_scores(params, cfg, batch):
  """Returns [B, L, 2] from the reference encoder, in numpy."""
  dense = reference.as_float64(params["span_head"]["dense"])
  hidden = [
    reference.encode(params["encoder"], cfg, ids, types, segments)
    for ids, types, segments in zip(
      batch["input_ids"],
      batch["token_type_ids"],
      batch["segment_ids"],
      strict=True,
    )
  ]
  return np.array(hidden) @ dense["kernel"] + dense["bias"]


def test_loss_by_hand():
  """The softmax is over [CLS] and the text; start and end are averaged."""
  app, cfg = make(), reference.config()
  params, batch = make_params(app), make_batch(app)
  scores = token_scores(params, cfg, batch)
  total, correct = 0, [0, 0]
  for i, (begin, end) in enumerate(batch["context"]):
    places = [0, *range(begin, end)]
    for j, name in enumerate(("start", "end")):
      x = scores[i, places, j]
      gold = places.index(batch[name][i])
      total += (np.log(np.exp(x).sum()) - x[gold]) / 2
      correct[j] += int(np.argmax(x)) == gold
  compute = jax.jit(lambda *xs: totals(app.loss(*xs)), static_argnums=3)
  terms, stats = compute(params, batch, jax.random.key(0), False)
  np.testing.assert_allclose(terms["answer"], (total, 6), rtol=1e-5)
  for j, name in enumerate(("start_accuracy", "end_accuracy")):
    assert tuple(map(float, stats[name])) == (correct[j], 6)


def test_left_to_right_the_last_token_scores_no_answer():
  """A causal [CLS] has not seen the text, so its scores can't depend on it."""
  cfg = reference.config(causal=True)
  app = make(cfg)
  params = make_params(app, cfg)
  compute = jax.jit(app.outputs)

  def null(text):
    batch = make_batch(app, examples=[Example("x y", text, "q", ())], length=11)
    return float(compute(params, batch)["null"][0])

  assert abs(null("a b c d") - null("a b c e")) > 1e-3
  wider = make_batch(
    app, examples=[Example("x y", "a b c d", "q", ())], length=LENGTH
  )
  assert float(compute(params, wider)["null"][0]) == pytest.approx(
    null("a b c d"), abs=1e-4
  )


@pytest.mark.parametrize("count", [1, 5, 30])
def test_best_spans_are_the_best_of_all(count):
  rng = np.random.default_rng(2)
  B, L, W = 5, 13, 4
  start, end = rng.standard_normal((2, B, L)).astype(np.float32)
  context = np.array([[3, 13], [2, 7], [5, 6], [4, 4], [0, 0]], np.int32)
  kept = np.array([[3, 9], [4, 7], [5, 6], [4, 4], [0, 0]], np.int32)
  found = answers.best_spans(
    start, end, context=context, kept=kept, max_length=W, count=count
  )
  every_score, every_span = found
  assert every_score.shape == (B, count)
  for i in range(B):
    every = [
      (start[i, a] + end[i, b], a, b)
      for a, b in itertools.product(range(L), repeat=2)
      if kept[i, 0] <= a < kept[i, 1] and a <= b < min(a + W, context[i, 1])
    ]
    expected = sorted(every, reverse=True)[:count]
    scores = np.array(every_score[i])
    np.testing.assert_allclose(
      scores[: len(expected)], [s for s, _, _ in expected], rtol=1e-6
    )
    spans = np.array(every_span[i])[: len(expected)]
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
  # The second window of q1 has the text's tokens 5 to 10 at 6 to 11.
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


def test_a_text_shorter_than_the_longest_answer(monkeypatch):
  monkeypatch.setattr(question_answering, "N_BEST", 99)
  app = make(length=9, max_answer_length=2)
  examples = [Example("x", "a b", "q", None)]
  batch = make_batch(app, examples=examples, length=6)
  outputs = jax.jit(app.outputs)(make_params(app), batch)
  assert outputs["scores"].shape == (1, 6 * 2)
  assert int(np.sum(np.array(outputs["scores"]) > -5e8)) == 3  # a, b, a b.


def test_a_question_leaves_room_for_the_longest_answer(monkeypatch):
  """3 special tokens and 30 of the answer; the question has what is left."""
  with pytest.raises(ConfigError, match=r"data.length=33 .* at least 34 "):
    make(length=33, max_answer_length=30)
  monkeypatch.setattr(question_answering, "MAX_QUERY", 64)
  for length, room in ((34, 1), (96, 63), (97, 64), (200, 64)):
    rows = make(length=length, max_answer_length=30).make_rows(
      [Example("x " * 70, "a", "q", None)]
    )
    assert rows.values["context"].tolist() == [[room + 2, room + 3]]


def test_labels():
  label_info = question_answering.describe_labels(EXAMPLES[:3])
  assert label_info == {"questions": 3, "impossible": 1}
  with pytest.raises(DataError, match=r"no answers; expected"):
    question_answering.describe_labels(EXAMPLES)
  nobody = [EXAMPLES[2]._replace(where="a.json: question q2")] * 3
  with pytest.raises(DataError) as error:
    question_answering.describe_labels(nobody)
  assert "a.json: question q2" in str(error.value)
  assert "3 questions for training, none with an answer" in str(error.value)
