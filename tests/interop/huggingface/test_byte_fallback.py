"""Exports a unigram model that spells unknown characters by their bytes."""

import json

import tokenizers

from maskedlm.data.tokenizers import tokenizer
from maskedlm.interop.huggingface import unigram_json


def test_byte_pieces_are_the_same_and_decode(tmp_path):
  ours = tokenizer.train_tokenizer(
    ["plain words in a text of words", "a text in plain letters"] * 9,
    kind="unigram",
    vocab_size=278,
    lowercase=False,
    byte_fallback=True,
  )
  ours.save(tmp_path)
  content = (tmp_path / "tokenizer.model").read_bytes()
  made = unigram_json.to_tokenizer_json(content, mask="[MASK]", where="a test")
  theirs = tokenizers.Tokenizer.from_str(json.dumps(made))
  text = "words 漢, \U0001f600 letters"
  encoding = theirs.encode(text, add_special_tokens=False)
  assert encoding.ids == ours.encode(text).ids.tolist()
  assert "<0xE6>" in encoding.tokens
  assert theirs.decode(encoding.ids) == ours.decode(encoding.ids) == text
