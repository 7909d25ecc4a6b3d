"""Encoding: even cuts, and the counts of a worker."""

import numpy as np

from helpers.prepare_corpus import WORDS
from maskedlm.data.prepare import documents, encode
from maskedlm.data.sources.domains import Domain
from maskedlm.data.tokenizers.tokenizer import train_tokenizer


def test_long_sentences_are_cut_evenly():
  pieces = encode.cut_lengths(np.array([7, 0, 1, 3, 4, 8, 0]), 3)
  assert pieces.tolist() == [3, 2, 2, 1, 3, 2, 2, 3, 3, 2]
  assert pieces.dtype == np.int64
  assert encode.cut_lengths(np.array([], np.int64), 3).tolist() == []


def test_the_counts_of_a_worker_by_hand(tmp_path):
  train_tokenizer(
    WORDS * 3, kind="wordpiece", vocab_size=200, lowercase=True
  ).save(tmp_path)

  def document(*lines):
    return documents.make_document(list(lines), Domain("", "", ""))

  made = encode.make_encoder(str(tmp_path), "lines", 5)(
    [
      ("train", document("dog " * 5, "\u200b", "dog é")),
      ("heldout", document("\u200b")),
      ("train", document("dog " * 6, "猫 dog 猫")),
    ]
  )
  assert made.lengths.tolist() == [5, 2, 3, 3, 3]
  assert len(made.tokens) == 16
  first, none, last = (counts for *_, counts in made.documents)
  # Sentences without tokens are not counted, nor are their characters.
  assert (first["sentences"], first["tokens"]) == (2, 7)
  assert (first["characters"], first["bytes"]) == (24, 25)
  assert (none["sentences"], none["characters"], none["bytes"]) == (0, 0, 0)
  assert (last["sentences"], last["tokens"]) == (3, 9)
  assert [first["unknown"], none["unknown"], last["unknown"]] == [0, 0, 2]
  assert made.report["sentences without tokens"] == 2
  # The one of five tokens is not cut.
  assert made.report["sentences cut at max_sentence_tokens"] == 1
