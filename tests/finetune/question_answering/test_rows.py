"""Rows of questions on texts, and the windows of long texts."""

import types

import numpy as np
import pytest

from helpers import encoder_reference as reference
from helpers.letters import CLS, PAD, SEP, TOKENIZER, encode, make_params
from helpers.questions import EXAMPLES, LENGTH, TEXT, make
from maskedlm.data.labelled import windows
from maskedlm.data.labelled.formats.squad import Example, GoldAnswer
from maskedlm.finetune import predict
from maskedlm.finetune.question_answering.rows import (
  answer_tokens,
  answer_windows,
)


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
  for ids, type_ids in zip(*rows.tokens.values(), strict=True):
    question = ids.tolist().index(SEP) + 1
    assert type_ids.tolist() == [0] * question + [1] * (len(ids) - question)
  assert rows.example.tolist() == [0, 1, 1, 2, 2, 3]
  assert "cut to 3 tokens: 1 (the longest has 5)" in rows.notes[0]  # q1's.
  assert not rows.cut  # No token of the texts is lost.
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


def test_a_window_with_half_of_the_answer_has_none():
  examples = [EXAMPLES[1]._replace(answers=(GoldAnswer("g h", 12),))]
  values = make().make_rows(examples).values
  assert values["start"].tolist() == [0, 7]
  assert values["end"].tolist() == [0, 8]


def test_an_answer_that_begins_or_ends_within_a_token():
  example = Example("x", "a b cde f", "q", (GoldAnswer("b cd", 2),))
  offsets = np.array([[0, 1], [2, 3], [4, 7], [8, 9]])
  assert answer_tokens(example, offsets) == (1, 2)
  inner = example._replace(answers=(GoldAnswer("d", 5),))
  assert answer_tokens(inner, offsets) == (2, 2)
  space = example._replace(answers=(GoldAnswer(" ", 3),))
  assert answer_tokens(space, offsets) is None


def official_windows(count, capacity, stride):
  """Returns run_squad.py's windows, and the window that keeps each token."""
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
  """The last window differs: it extends back as far as possible for context."""
  spans, owners = official_windows(count, 317, 128)
  found = answer_windows(count, 317, 128, 30)
  sizes = np.ones(count, np.int64)
  assert found == windows.cut_windows(
    sizes, 317, stride=128
  )  # Unchanged, as answers fit the overlap.
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
  found = answer_windows(count, capacity, stride, longest)
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
    "task.stride=7 is reduced to 4..4 for 1 question, so that windows overlap "
    "by task.max_answer_length=3 tokens and each answer is whole in one; a "
    "larger data.length makes fewer rows"
  ]
  # 0-6, 4-10, 8-14 and 11-17: g is the third of the second.
  assert rows.values["first"].tolist() == [0, 4, 8, 11, 0]
  assert rows.values["start"].tolist()[:4] == [0, 7, 0, 0]
  assert rows.values["end"].tolist()[:4] == [0, 8, 0, 0]
  # Of unlabelled examples, only what is cut is reported.
  (note,) = make(stride=7).make_rows([long._replace(answers=None)]).notes
  assert "cut to 3 tokens: 1 " in note
  # Eight tokens fit in no window of seven.
  wide = long._replace(answers=(GoldAnswer("d e f g h i j k", 6),))
  none = long._replace(
    answers=()
  )  # A question without an answer has none to lose.
  assert make().make_rows([wide, none, *examples]).notes == [
    "questions cut to 3 tokens: 3 (the longest has 5)",
    "answers that no window contains whole: 1; they can be neither learnt nor "
    "predicted",
  ]


def test_a_text_is_tokenised_once():
  calls = []

  def counting(text):
    calls.append(text)
    return encode(text)

  tokenizer = types.SimpleNamespace(**{**vars(TOKENIZER), "encode": counting})
  app = make(tokenizer=tokenizer)
  examples = 3 * EXAMPLES
  rows = app.make_rows(examples)
  outputs = predict.compute_outputs(
    app, make_params(app), rows, batch_size=4, buckets=(LENGTH,), pad=PAD
  )
  app.decode(examples, rows, outputs, {})
  assert sorted(calls) == sorted({e.context for e in EXAMPLES})
