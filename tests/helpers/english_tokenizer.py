"""Tokenizers of the standard library's English, trained once a session."""

import functools
import random
import statistics

from helpers import finetune_runs as runs
from maskedlm.data.tokenizers.tokenizer import train_tokenizer

KINDS = ("wordpiece", "bpe", "unigram")


@functools.cache
def english_tokenizer(kind):
  texts = [*runs.TEXTS]
  for module in (random, statistics):
    # Not all of vars(module): what is imported first adds to that.
    for name in module.__all__:
      texts += (getattr(module, name).__doc__ or "").split("\n")
  return train_tokenizer(
    texts, kind=kind, vocab_size=601, lowercase=kind == "wordpiece"
  )
