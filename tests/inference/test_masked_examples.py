"""Held-out sentences with a masked word."""

import itertools

from maskedlm.data.corpus import concat, store
from maskedlm.inference import masked_examples


def test_examples_are_held_out_sentences(tiny):
  corpus = store.open_corpus(tiny[1])
  split, decode = corpus.heldout, corpus.tokenizer.decode
  starts = concat.take_all(split.sentences)
  tokens = concat.take_all(split.tokens)
  sentences = [
    decode(tokens[a:b]).strip() for a, b in itertools.pairwise(starts)
  ]
  examples = masked_examples.mask_words(corpus, 3)
  assert len(examples) == 3
  places = []
  for text, word in examples:
    assert text.count("[MASK]") == 1 and word.isalpha()
    places.append(sentences.index(text.replace("[MASK]", word)))
    assert len(corpus.tokenizer.encode(word).ids) == 1
  assert places == sorted({*places})


def test_no_sentence_is_no_example(tiny):
  corpus = store.open_corpus(tiny[1])
  nothing = corpus.heldout._replace(
    sentences=concat.view(corpus.heldout.sentences, 0, 1)
  )
  assert not masked_examples.mask_words(corpus._replace(heldout=nothing), 3)
