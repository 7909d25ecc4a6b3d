"""Answers are parts of the text, to the character, in any script."""

import random
import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from helpers import tokenizer_kinds
from helpers.tokenizer_texts import ODD_TEXTS
from maskedlm.data.labelled.formats.questions import Example, GoldAnswer
from maskedlm.data.tokenizers.tokenizer import train_tokenizer
from maskedlm.finetune.question_answering import question_answering
from maskedlm.finetune.question_answering.rows import (
  answer_characters,
  answer_tokens,
)

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
  """Checks spans of tokens, and gold answers mapped to tokens and back."""
  draw = random.Random(11)
  for _ in range(60):
    text = odd_text(draw)
    offsets = odd_tokenizer.encode(text).offsets
    # Tokens are in order, and none is reversed.
    assert (offsets[:, 0] <= offsets[:, 1]).all()
    assert (np.diff(offsets, axis=0) >= 0).all()
    n = len(offsets)
    spans = [sorted((draw.randrange(n), draw.randrange(n))) for _ in range(20)]
    scores = {tuple(span): -float(i) for i, span in enumerate(spans)}
    outputs = {
      "spans": [np.array(list(scores), np.int32)],
      "scores": [np.array(list(scores.values()), np.float32)],
    }
    for made in question_answering.n_best(text, offsets, outputs, 20):
      assert made["answer"] == text[made["start"] : made["end"]]
      assert made["answer"] == made["answer"].strip() != ""
    for _ in range(20):
      begin, end = sorted(
        (draw.randrange(len(text)), draw.randrange(len(text)))
      )
      answer = text[begin:end].strip()
      begin = text.find(answer, begin) if answer else begin
      example = Example("", text, "", (GoldAnswer(answer, begin),))
      tokens = answer_tokens(example, offsets)
      if tokens is None:  # No token covers the answer.
        covered = np.zeros(len(text) + 1)
        for a, b in offsets:
          covered[a:b] = 1
        assert not covered[begin : begin + len(answer)].any()
        continue
      a, b = answer_characters(text, offsets, *tokens)
      # All tokens that overlap the answer, and no others.
      found = range(a, b)
      inside = (offsets[:, 0] < begin + len(answer)) & (offsets[:, 1] > begin)
      for first, last in offsets[inside]:
        assert first >= last or {first, last - 1} <= set(found)
      assert a == offsets[inside][0, 0]
      assert b <= offsets[inside][-1, 1]


@pytest.mark.parametrize("name", tokenizer_kinds.NAMES)
def test_an_answer_of_whole_tokens_comes_back(any_kind, name):
  """Also next to characters that are composed, divided or removed."""
  tokenizer, _ = any_kind(name)

  @settings(max_examples=60, deadline=None, derandomize=True)
  @given(ODD_TEXTS, st.integers(0, 99), st.integers(0, 99))
  def run(text, first, last):
    offsets = tokenizer.encode(text).offsets
    assume(len(offsets))
    first, last = sorted((first % len(offsets), last % len(offsets)))
    begin, end = answer_characters(text, offsets, first, last)
    answer = text[begin:end]
    assert answer == answer.strip()
    assume(answer)  # A token of whitespace has no characters.
    example = Example("", text, "", (GoldAnswer(answer, begin),))
    tokens = answer_tokens(example, offsets)
    assert tokens[0] <= last and tokens[1] >= first
    found = answer_characters(text, offsets, *tokens)
    # A byte or a part of a character stands for all of it, and so do its
    # neighbours that share a token with it.
    assert found[0] <= begin and end <= found[1]
    if first == 0 or offsets[first - 1, 1] <= begin:
      assert found[0] == begin
    if last == len(offsets) - 1 or offsets[last + 1, 0] >= end:
      assert found[1] == end

  run()
