"""Answers are parts of the text, to the character, in any script."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from helpers import tokenizer_kinds
from helpers.tokenizer_texts import ODD_TEXTS
from maskedlm.data.labelled.formats.squad import Example, GoldAnswer
from maskedlm.finetune.question_answering.rows import (
  answer_characters,
  answer_tokens,
)


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
