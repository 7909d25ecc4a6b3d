"""Prepares a corpus with processes on this machine: the default runner.

A stream of documents passes through the stages, none of which holds all of it:
documents are read (documents.py), duplicates are dropped (dedup.py) and the
tokenizer is trained (vocabulary_sample.py); then the documents are read again,
split, encoded by worker processes (encode.py) and written (store.write_corpus).
beam/ is the other runner.
"""

import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from maskedlm.data import workers
from maskedlm.data.corpus import domain_splits, store
from maskedlm.data.options import TextConfig
from maskedlm.data.prepare import dedup, encode, options, vocabulary_sample
from maskedlm.data.prepare.documents import (
  Document,
  cache_small,
  make_chunks,
  read_documents,
  show_progress,
  split_documents,
)
from maskedlm.data.tokenizers import lost_text
from maskedlm.data.tokenizers.tokenizer import Tokenizer


def run(config: TextConfig, path: str, *, log: Callable) -> store.Corpus:
  """Prepares the corpus at `path`; see prepare.prepare."""
  report: Counter = Counter()
  domain_counts = domain_splits.empty_counts(config.corpus)
  read = document_reader(config, report)
  tokenizer = make_tokenizer(config, read(), log=log)
  # Workers load it from the corpus's folder, which is not shared with others.
  tokenizer_path = os.path.join(store.work_folder(path), "tokenizer")
  return store.write_corpus(
    path,
    _encode_documents(config, tokenizer_path, read(), report, domain_counts),
    tokenizer=tokenizer,
    shard_tokens=config.corpus.shard_tokens,
    options=options.recorded_options(
      config, tokenizer, domains=bool(domain_counts)
    ),
    report=report,
    domains=domain_counts,
  )


def document_reader(
  config: TextConfig, report: Counter
) -> Callable[[], Iterable[Document]]:
  """Returns a function that reads the documents to encode at each call.

  A small source is read only once. `report` has the counts of the latest read.
  Duplicates are searched for here, before the function is called.
  """
  cache: list[Document] = []

  def read():
    if cache:
      return iter(cache)
    report.clear()
    return cache_small(read_documents(config, report), cache)

  if not dedup.is_enabled(config.corpus):
    return read
  status, characters = dedup.find_duplicates(
    _show(read(), "looking for duplicates"), config.corpus
  )

  def read_unique():
    documents = read()
    # dict.update, since Counter.update would add the counts.
    dict.update(report, dedup.count_dropped(status, characters))
    return itertools.compress(documents, status == dedup.KEPT)

  return read_unique


def make_tokenizer(
  config: TextConfig, documents: Iterable[Document], *, log: Callable
) -> Tokenizer:
  """Loads tokenizer.path, or trains a tokenizer on the documents."""
  documents = _show(documents, "reading for the tokenizer")
  train = vocabulary_sample.train_on_documents
  return vocabulary_sample.load_or_train(
    config, lambda: train(config, documents, log=log), log=log
  )


def _encode_documents(
  config: TextConfig,
  tokenizer_path: str,
  documents: Iterable[Document],
  report: Counter,
  domain_counts: list[dict],
) -> Iterator[tuple[str, list[np.ndarray]]]:
  """Yields (split, ids of each sentence); see encode.unpack_documents."""
  corpus = config.corpus
  encoded = workers.ordered_map(
    encode.make_encoder,
    (tokenizer_path, corpus.sentences, corpus.max_sentence_tokens),
    make_chunks(split_documents(documents, corpus.heldout_share)),
    num_workers=workers.num_workers(corpus),
  )
  encoded = show_progress(
    encoded, "preparing", lambda e: (len(e.documents), e.num_bytes)
  )
  yield from encode.unpack_documents(encoded, report, domain_counts)
  lost_text.refuse(report, corpus)


def _show(documents: Iterable[Document], label: str) -> Iterable[Document]:
  return show_progress(documents, label, lambda d: (1, d.num_bytes))
