"""Text after a special token has the spaces of the text, and no others."""

import json

import pytest
import tokenizers
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from helpers import tokenizer_kinds

PARTS = ["cat", "dog", "a", ".", "?", " ", "  ", "\xa0", "\u3000", "\n"]
TEXTS = st.lists(st.sampled_from(PARTS), max_size=8).map("".join)
SPELT = ["<mask>", "<s>", "<pad>", "the", "\t"]


def spell(tokenizer, ids):
  tokens = map(tokenizer.tokens, ids)
  return "".join(token.removeprefix("##") for token in tokens)


@pytest.mark.parametrize("name", tokenizer_kinds.NAMES)
def test_a_mask_replaces_a_letter(any_kind, name):
  """The tokens around a mask spell what they spell around a letter."""
  tokenizer, _ = any_kind(name)
  mask = tokenizer.tokens(tokenizer.special.mask)

  @settings(max_examples=12, deadline=None, derandomize=True)
  @given(TEXTS, TEXTS)
  def run(before, after):
    # A newline is no space to it, but dropped at the beginning of a text.
    assume(name != "deberta" or "\n" not in after)
    before = f"a{before}".rstrip()  # Spaces before a mask are dropped.
    masked = tokenizer.encode(f"{before}{mask}{after}", specials=True).ids
    found = spell(tokenizer, masked.tolist())
    lettered = tokenizer.encode(f"{before}e{after}").ids.tolist()
    size = len(spell(tokenizer, tokenizer.encode(before).ids.tolist()))
    expected = spell(tokenizer, lettered)
    assert found == f"{expected[:size]}{mask}{expected[size + 1 :]}"

  run()


@pytest.mark.parametrize("name", tokenizer_kinds.JSON)
def test_spellings_of_special_tokens_are_text(any_kind, name, tmp_path):
  """The reference is the library without special tokens."""
  tokenizer, _ = any_kind(name)
  tokenizer.save(tmp_path)
  definition = json.loads((tmp_path / "tokenizer.json").read_text())
  definition["added_tokens"] = [
    token for token in definition["added_tokens"] if not token["special"]
  ]
  library = tokenizers.Tokenizer.from_str(json.dumps(definition))

  @settings(max_examples=12, deadline=None, derandomize=True)
  @given(st.lists(st.sampled_from(PARTS + SPELT), max_size=9).map("".join))
  def run(text):
    expected = library.encode(text, add_special_tokens=False).ids
    found = tokenizer.encode(text).ids.tolist()
    assert spell(tokenizer, found) == spell(tokenizer, expected)

  run()
