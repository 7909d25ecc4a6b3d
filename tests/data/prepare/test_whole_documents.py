"""Rows are slices of documents, which have the ids of the library."""

import itertools

import numpy as np
import pytest

from helpers import tokenizer_kinds
from helpers.prepare_corpus import prepare_corpus
from maskedlm.config import defaults
from maskedlm.data.batches import pair_rows, pair_table, text_rows
from maskedlm.data.corpus import concat

LENGTH = 13
NAMES = [
  "wordpiece",
  "byte-level, prefix",
  "byte-level, no prefix",
  "metaspace, first",
  "gemma",
  "unigram, words",
  "sentencepiece unigram",
  "sentencepiece bpe, gemma",
]


@pytest.fixture(scope="module", params=itertools.product(NAMES, (0, 1)))
def prepared(request, tmp_path_factory):
  """Returns a corpus and the library's ids of each of its documents."""
  name, is_lines = request.param
  folder = tmp_path_factory.mktemp("corpus")
  tokenizer, library_ids = tokenizer_kinds.make(name, folder)
  tokenizer.save(folder / "saved")
  documents = list(tokenizer_kinds.SCRIPTS.values())
  text = "\n\n".join("\n".join(lines) for lines in documents)
  (folder / "text.txt").write_text(text, encoding="utf-8")
  config = defaults.default()
  config.corpus.source = f"text:{folder}/text.txt"
  config.corpus.sentences = "lines" if is_lines else "split"
  config.corpus.max_sentence_tokens = 40
  config.corpus.num_workers = 1
  config.corpus.heldout_share = 0.0
  config.tokenizer.path = str(folder / "saved")
  corpus = prepare_corpus(config, folder / "corpus")
  return corpus, [
    library_ids(tokenizer.line_separator.join(lines)) for lines in documents
  ]


def bounds(split):
  """Returns each document's first token, and the end."""
  return concat.take(split.sentences, concat.take_all(split.documents))


def test_documents_are_stored_as_the_library_encodes_them(prepared):
  corpus, expected = prepared
  tokens = concat.take_all(corpus.train.tokens).tolist()
  begins = bounds(corpus.train).tolist()
  assert [tokens[a:b] for a, b in itertools.pairwise(begins)] == expected


def test_rows_of_documents_join_to_the_ids_of_the_library(prepared):
  corpus, expected = prepared
  table = text_rows.open_document_table(corpus, "train", length=LENGTH)
  rows = text_rows.single_text_rows(
    corpus.train.tokens,
    table["token"],
    table["num_tokens"].astype(np.int64),
    length=LENGTH,
    special=corpus.tokenizer.special,
  )
  joined = [[] for _ in expected]
  place = 0
  begins = bounds(corpus.train)
  for ids, real in zip(rows["input_ids"], rows["segment_ids"], strict=True):
    text = ids[real > 0][1:-1].tolist()
    document = np.searchsorted(begins, place, side="right") - 1
    joined[document] += text
    place += len(text)
  assert joined == expected


def test_full_rows_join_to_the_ids_of_the_library(prepared):
  corpus, expected = prepared
  special = corpus.tokenizer.special
  starts = text_rows.open_stream_starts(corpus, "train")
  begin = np.arange(0, starts[-1], LENGTH - 2)
  rows = text_rows.stream_rows(
    corpus.train.tokens,
    starts,
    begin,
    np.minimum(LENGTH - 2, starts[-1] - begin),
    length=LENGTH,
    special=special,
    isolate_documents=False,
  )
  stream = [
    index
    for ids, real in zip(rows["input_ids"], rows["segment_ids"], strict=True)
    for index in ids[real > 0][1:-1].tolist()
  ]
  assert stream == [i for ids in expected for i in [*ids, special.sep]]


def test_pairs_are_slices_of_documents(prepared):
  corpus, expected = prepared
  special = corpus.tokenizer.special
  rows = pair_table.open_pair_table(
    corpus, "train", length=LENGTH, short_share=0.3, seed=3
  )
  row = np.arange(len(rows.table))
  spelt = ["".join(map(chr, ids)) for ids in expected]  # To find slices in.
  labels = set()
  for epoch in range(2):
    made = pair_rows.next_sentence_pairs(
      rows, row, np.full(len(row), epoch), special=special
    )
    for ids, types, label in zip(
      made["input_ids"],
      made["token_type_ids"],
      made["nsp_labels"].tolist(),
      strict=True,
    ):
      ids, b = ids.tolist(), np.flatnonzero(types)
      a_text = "".join(map(chr, ids[1 : b[0] - 1]))
      b_text = "".join(map(chr, ids[b[0] : b[-1]]))
      assert a_text and any(a_text in text for text in spelt)
      assert b_text and any(b_text in text for text in spelt)
      if label == 0:  # B follows A, both perhaps cut at their ends.
        assert any(
          a_text in text and b_text in text[text.index(a_text) :]
          for text in spelt
        )
      labels.add(label)
  assert labels == {0, 1}
