"""Splits and configs made by hand, for the tests of rows and batches."""

import hashlib
import itertools
import types

import numpy as np

from maskedlm.config import defaults
from maskedlm.data.batches import pair_rows, text_rows
from maskedlm.data.corpus import concat, store

SPECIAL = types.SimpleNamespace(pad=0, unk=1, cls=2, sep=3, mask=4)
FIRST_ID = 5  # The first id of ordinary text.


def make_split(documents, num_shards=1) -> store.Split:
  """Returns a split of documents (lists of sentences, lists of ids)."""
  bounds = np.linspace(0, len(documents), num_shards + 1).astype(int)
  parts = {"tokens": [], "sentences": [], "documents": []}
  for low, high in itertools.pairwise(bounds):
    shard = documents[low:high]
    sentences = [s for d in shard for s in d]
    parts["tokens"].append(np.array([*itertools.chain(*sentences)], np.uint16))
    parts["sentences"].append(_starts(sentences))
    parts["documents"].append(_starts(shard))

  def counted(starts, counted_parts):
    sizes = [len(part) for part in counted_parts]
    return _concat([*starts, np.zeros(1, np.uint32)], np.cumsum([0, *sizes]))

  return store.Split(
    tokens=_concat(parts["tokens"], np.zeros(num_shards, np.uint16)),
    sentences=counted(parts["sentences"], parts["tokens"]),
    documents=counted(parts["documents"], parts["sentences"]),
  )


def make_corpus(path, train, heldout=(), num_shards=1):
  """Returns a stand-in for store.Corpus with two lists of documents."""
  return types.SimpleNamespace(
    path=str(path),
    meta={},
    fingerprint=hashlib.sha256(repr([train, heldout]).encode()).hexdigest(),
    train=make_split(train, num_shards),
    heldout=make_split(heldout),
    tokenizer=types.SimpleNamespace(special=SPECIAL),
    domains=(),
  )


def make_data(**changes):
  """Returns config.data with small, odd sizes."""
  sizes = {
    "length": 13,
    "batch_size": 6,
    "long_length": 29,
    "long_batch_size": 4,
  }
  default = defaults.default().data.to_dict()
  return types.SimpleNamespace(**{**default, **sizes, **changes})


def make_config(data, *, seed=11, eval_rows=0):
  """Returns the options that makers of batches read from a config."""
  train = types.SimpleNamespace(eval_rows=eval_rows)
  return types.SimpleNamespace(data=data, seed=seed, train=train)


def random_documents(seed, num_documents, max_sentences, max_tokens):
  """Returns documents of 1..max_sentences sentences of 1..max_tokens random
  ids.
  """
  rng = np.random.default_rng(seed)
  return [
    [
      rng.integers(FIRST_ID, 60_000, rng.integers(1, max_tokens + 1)).tolist()
      for _ in range(rng.integers(1, max_sentences + 1))
    ]
    for _ in range(num_documents)
  ]


def numbered(documents):
  """Gives every token an id of its own: FIRST_ID + its place in the split."""
  ids = iter(range(FIRST_ID, 1 << 16))
  return [
    [[next(ids) for _ in sentence] for sentence in document]
    for document in documents
  ]


def numbered_documents(*args):
  """Random documents whose ids tell the places of the tokens."""
  return numbered(random_documents(*args))


def nsp_batches(corpus, data=None, *, pack=False, **changes):
  name = "packed_nsp" if pack else "nsp"
  return make_batches(name, corpus, data, **changes)


# Name -> (maker of batches, its options): every kind of row.
BATCHES = {
  "nsp": (pair_rows.nsp_batches, {"short_share": 0.1}),
  "packed_nsp": (pair_rows.nsp_batches, {"short_share": 0.1, "pack": True}),
  "sop": (pair_rows.sop_batches, {"short_share": 0.1}),
  "adjacent": (pair_rows.adjacent_batches, {"short_share": 0.05}),
  "document_rows": (text_rows.document_batches, {}),
  "packed_rows": (text_rows.document_batches, {"pack": True}),
  "full_sentences": (
    text_rows.full_sentence_batches,
    {"isolate_documents": False},
  ),
  "isolated": (text_rows.full_sentence_batches, {"isolate_documents": True}),
  "whole_sentences": (
    text_rows.whole_sentence_batches,
    {"isolate_documents": True},
  ),
}


def make_batches(name, corpus, data=None, *, shard=(0, 1), **changes):
  """Returns the Batches of one of BATCHES."""
  make, options = BATCHES[name]
  config = make_config(data or make_data(), **changes)
  return make(config, corpus, shard, **options)


def _starts(runs):
  sizes = [len(run) for run in runs]
  return np.cumsum([0, *sizes])[:-1].astype(np.uint32)


def _concat(parts, bases):
  ends = np.cumsum([0, *(len(part) for part in parts)])
  return concat.Concat(tuple(parts), ends.astype(np.int64), np.asarray(bases))
