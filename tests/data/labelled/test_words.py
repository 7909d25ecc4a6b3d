"""Words of a text, and the tokens of each."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import finetune_runs as runs
from helpers import tokenizer_kinds
from helpers.english_tokenizer import KINDS, english_tokenizer
from maskedlm.data.labelled import words


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
def test_words_have_the_tokens_that_the_sentence_has(kind):
  tokenizer = english_tokenizer(kind)
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


# Their tokens may be of several words.
ACROSS = ("no regex", "one piece", "llama", "gemma", "marks")


@pytest.mark.parametrize(
  "name", [n for n in tokenizer_kinds.NAMES if not n.endswith(ACROSS)]
)
def test_words_of_any_script_have_the_tokens_of_the_text(any_kind, name):
  tokenizer, _ = any_kind(name)
  find = words.word_encoder(tokenizer)

  @settings(max_examples=15, deadline=None, derandomize=True)
  @given(st.lists(st.text("abécdß我カไ한😀של!", min_size=1), min_size=1))
  def run(found):
    of_words = find(found)
    ids = tokenizer.encode(" ".join(found)).ids
    assert np.concatenate(of_words).tolist() == ids.tolist()

  run()


@pytest.mark.parametrize("kind", KINDS)
def test_no_word_is_without_tokens(kind):
  odd = ["\x00", "", "\u200d", "\ufe0f", "\u0301", "\u00a0", "日", "[SEP]", "a"]
  of_words = words.word_encoder(english_tokenizer(kind))(odd)
  assert all(len(ids) for ids in of_words)
  special = set(english_tokenizer(kind).special) - {
    english_tokenizer(kind).special.unk
  }
  assert not special & {int(i) for ids in of_words for i in ids}
  assert of_words[1].tolist() == [english_tokenizer(kind).special.unk]
