"""Makes a corpus of a few synthetic documents, for when only shapes matter.

`maskedlm inspect` builds a Task on it when there is no text yet: the model,
the optimizer and the costs don't depend on the content of the text. They do
depend on its length: documents are longer than rows here, so a row of several
texts, packed or isolated, costs about as much as a whole one, the maximum.
"""

from typing import Any

import numpy as np

from maskedlm.data.corpus import concat, store
from maskedlm.data.tokenizers.tokenizer import Special, Tokenizer

DOCUMENTS, SENTENCES = 4, 64  # Documents per split; sentences per document.
TOKENS = 2048  # Tokens per sentence.


def make_corpus(options) -> store.Corpus:
  """Returns an in-memory corpus with config.tokenizer's vocabulary size."""
  vocab_size = options.vocab_size
  special = Special(*range(5))
  is_kmers = options.kind == "kmers"
  unused: Any = None  # Nothing is encoded or saved.
  tokenizer = Tokenizer(
    kind=options.kind,
    vocab_size=vocab_size,
    special=special,
    special_ids=np.arange(5),
    follows_space=np.ones(vocab_size, bool),
    starts_word=np.ones(vocab_size, bool),
    line_separator="\n",
    spells_lines=True,
    tokens=str,
    normalize=str,
    encode=unused,
    encode_batch=unused,
    encode_documents=unused,
    decode=lambda ids: " ".join(map(str, ids)),
    save=unused,
    sha256="",
    **({"k": options.k, "stride": options.stride} if is_kmers else {}),
  )
  split = _split(vocab_size)
  return store.Corpus(
    path="/dev/null/stand-in",  # Not writable, even by root.
    meta={},
    fingerprint=f"stand-in {vocab_size}",
    train=split,
    heldout=split,
    token_counts=np.ones(vocab_size, np.int64),
    tokenizer=tokenizer,
  )


def _split(vocab_size: int) -> store.Split:
  sentences, base = DOCUMENTS * SENTENCES, np.zeros(1, np.int64)
  tokens = 5 + np.arange(sentences * TOKENS) % max(vocab_size - 5, 1)
  starts = np.arange(0, sentences * TOKENS + 1, TOKENS)
  firsts = np.arange(0, sentences + 1, SENTENCES)
  arrays = tokens, starts, firsts
  return store.Split(*(concat.concatenate([x], base) for x in arrays))
