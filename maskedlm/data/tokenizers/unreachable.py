"""Finds tokens that no text gives, whatever the model learns of them.

A word may be in a vocabulary although the tokenizer splits it (covid-19, "new
york"), normalizes it to another (naïve, in an uncased vocabulary), or prefers
other pieces (a BPE without the merges).
"""

import numpy as np

from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.data.tokenizers.vocabulary_map import token_spellings

# What may precede a token within a text: nothing, a word, a part of a word, or
# a character that ends one.
_BEFORE_WORDS = ("", "a ", "( ")
_BEFORE_PARTS = ("", "a", "z", "1", "(", "-", "a(")


def unreachable_tokens(tokenizer: Tokenizer) -> list[int]:
  """Returns the ids of the tokens that no text gives, in ascending order.

  Special tokens and those of single bytes are not among them.
  """
  waiting = {
    index: spelling
    for index, spelling in token_spellings(tokenizer).items()
    if spelling.text.isprintable()
  }
  if tokenizer.kind == "wordpiece":  # Decoding may change the spelling.
    waiting = {
      i: spelling._replace(text=tokenizer.tokens(i).removeprefix("##"))
      for i, spelling in waiting.items()
    }
  for starts_word, prefixes in ((True, _BEFORE_WORDS), (False, _BEFORE_PARTS)):
    for prefix in prefixes:
      tried = [i for i, x in waiting.items() if x.follows_space == starts_word]
      texts = [prefix + waiting[i].text for i in tried]
      for i, text, ids in zip(
        tried, texts, tokenizer.encode_batch(texts), strict=True
      ):
        if i in ids or (not starts_word and _is_one_word(tokenizer, text, ids)):
          del waiting[i]
  return sorted(waiting)


def _is_one_word(tokenizer: Tokenizer, text: str, ids: np.ndarray) -> bool:
  """Returns whether WordPiece reads a text as one word, spelt as it is.

  A part of such a word may be any token, depending on the letters before it.
  """
  return (
    tokenizer.kind == "wordpiece"
    and tokenizer.normalize(text) == text
    and not tokenizer.follows_space[ids[1:]].any()
    and text[0].isalpha()
    and len(text) > 1
  )
