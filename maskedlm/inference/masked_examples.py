"""Masks a word in each of some held-out sentences of a corpus."""

import pathlib

import numpy as np

from maskedlm.data.corpus import concat
from maskedlm.data.corpus.store import Corpus
from maskedlm.inference import fill_mask

_TOKENS = range(6, 31)  # Of a sentence that a line shows.
_TRIES = 200  # Sentences to look through for each example.


def print_filled(workdir: pathlib.Path, corpus: Corpus) -> None:
  """Prints how the model of a run fills the masks of three sentences."""
  model = fill_mask.load_mask_filler(workdir)
  for text, word in mask_words(corpus, 3):
    (filled,) = fill_mask.fill_masks(model, [text], top_k=5)
    print(f"{fill_mask.format_filled(filled)}  (it was: {word})")


def mask_words(corpus: Corpus, count: int) -> list[tuple[str, str]]:
  """Returns up to `count` held-out sentences with a word masked, and the word.

  They are spread over the held-out split, so that each of a corpus's languages
  may have some. The word is the one nearest the middle that is a single token.
  """
  total = concat.size(corpus.heldout.sentences) - 1
  examples = {}
  for k in range(count):
    first = (2 * k + 1) * total // (2 * count)
    for index in range(first, min(first + _TRIES, total)):
      example = index not in examples and _mask_word(corpus, index)
      if example:
        examples[index] = example
        break
  return [examples[index] for index in sorted(examples)]


def _mask_word(corpus: Corpus, index: int) -> tuple[str, str] | None:
  """Returns a sentence with a word masked; None if it suits no example."""
  tokenizer, split = corpus.tokenizer, corpus.heldout
  begin, end = concat.take(split.sentences, [index, index + 1])
  if end - begin not in _TOKENS:
    return None
  ids = concat.take(split.tokens, range(begin, end)).tolist()
  text = tokenizer.decode(ids).strip()
  encoding = tokenizer.encode(text)
  begins = np.diff(encoding.word_ids, prepend=-1, append=-1) != 0
  spans = encoding.offsets[begins[:-1] & begins[1:]]
  words = [(int(a), int(b)) for a, b in spans if text[a:b].isalpha()]
  if not words:
    return None
  a, b = min(words, key=lambda span: abs(sum(span) - len(text)))
  mask = tokenizer.tokens(tokenizer.special.mask)
  return f"{text[:a]}{mask}{text[b:]}", text[a:b]
