"""Rows of running text: of one document, or packed across documents.

Beside the pairs of batches.py, on the same terms: which tokens row i has is a
table or arithmetic, which rows a step has is a hash (epochs.py). Read
top-down: `document_rows` (SpanBERT, ELECTRA), then `full_sentences` (RoBERTa).
"""

from collections.abc import Iterator

import numpy as np

from maskedlm.corpus import epochs, store, tables
from maskedlm.corpus.epochs import Batches, Source
from maskedlm.corpus.errors import CorpusError
from maskedlm.corpus.spans import copy_spans

RECORD = np.dtype([("token", "<i8"), ("num_tokens", "<i4")])
_VERSION = 1  # Of the rule by which rows are cut, and of RECORD.
_BLOCK = 1 << 18  # Sentences that are worked on at a time.


def document_rows(
  corpus, data, *, seed, num_steps, eval_rows, shard
) -> Batches:
  """Batches of rows of one document: [CLS] tokens [SEP] and padding.

  A row is contiguous sentences, as many as fit; the next one begins where it
  ends. A sentence longer than a row is cut into pieces of L - 2 tokens, the
  last of which may share its row with what follows. Nothing is dropped: an
  epoch has each token once.

  Arguments and errors are those of epochs.make_batches.

  Returns:
    Batches of int32 arrays input_ids, token_type_ids (0), segment_ids (1, and
    0 on padding), all [b, L], and example_weights [b] float32.

  Raises:
    CorpusError: a split without text.
  """
  special = corpus.tokenizer.special

  def open_source(name, length, seed):
    split = getattr(corpus, name)
    table = open_rows(corpus, name, length=length)

    def read(row, epoch):
      del epoch  # A row is the same in every epoch.
      record = table[row]
      return single_spans(
        split.tokens,
        record["token"],
        record["num_tokens"].astype(np.int64),
        length=length,
        special=special,
      )

    return Source(len(table), seed, read)

  return epochs.make_batches(
    open_source,
    data,
    seed=seed,
    num_steps=num_steps,
    eval_rows=eval_rows,
    shard=shard,
  )


def single_spans(tokens, begin, num, *, length, special):
  """[CLS] tokens[begin : begin + num] [SEP]: arrays [b, length] of int32."""
  b, L = len(begin), length
  input_ids = np.full((b, L), special.pad, np.int32)
  input_ids[:, 0] = special.cls
  input_ids[np.arange(b), num + 1] = special.sep
  copy_spans(tokens, begin, num, input_ids.reshape(-1), np.arange(b) * L + 1)
  real = np.arange(L) < num[:, None] + 2
  return {
    "input_ids": input_ids,
    "token_type_ids": np.zeros((b, L), np.int32),
    "segment_ids": real.astype(np.int32),
  }


def open_rows(corpus, name: str, *, length) -> np.ndarray:
  """The table [R] of RECORD of a split's rows, built if need be.

  Raises:
    CorpusError: the split has no text.
  """
  split = getattr(corpus, name)
  if not store.size(split.tokens):
    raise CorpusError(_no_text(corpus, name))

  def build():
    blocks = list(_cut(split, capacity=length - 2))
    return sum(map(len, blocks)), lambda: blocks

  return tables.open_table(
    corpus, ["document", _VERSION, name, length], RECORD, build
  )


def _no_text(corpus, name) -> str:
  if name == "heldout":
    remedy = "raise corpus.heldout_share or set train.eval_rows=0"
  else:
    remedy = "prepare a corpus with some text"
  return f"{corpus.path}: the {name} split holds no text: {remedy}."


def _cut(split, capacity) -> Iterator[np.ndarray]:
  """The rows' records, for a block of sentences at a time.

  Where a row ends depends on where it begins alone, so that is computed for
  every sentence (and piece of one) at once; the rows are then a chain.
  """
  documents = store.take(
    split.sentences,
    store.take(split.documents, np.arange(store.size(split.documents))),
  )
  num_sentences = store.size(split.sentences) - 1
  row = 0  # The token that the next row begins at.
  for low in range(0, num_sentences, _BLOCK):
    high = min(low + _BLOCK, num_sentences)
    # No sentence is empty: a row reaches over at most `capacity` of them.
    last = min(high + capacity, num_sentences)
    sentences = store.take(split.sentences, np.arange(low, last + 1))
    units = _pieces(sentences, capacity)
    begin = units[: np.searchsorted(units, sentences[high - low])]
    fits = np.searchsorted(units, begin + capacity, side="right") - 1
    document_end = documents[np.searchsorted(documents, begin, side="right")]
    end = np.minimum(fits, np.searchsorted(units, document_end))
    first = np.searchsorted(units, row)
    rows = tables.chain(end, first)
    record = np.empty(len(rows), RECORD)
    record["token"] = units[rows]
    record["num_tokens"] = units[end[rows]] - units[rows]
    yield record
    if len(rows):  # Else the row before is longer than the block.
      row = units[end[rows[-1]]]


def _pieces(starts, capacity) -> np.ndarray:
  """starts [n + 1] of sentences, and of the pieces of those too long."""
  count = -(-np.diff(starts) // capacity)
  piece = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
  pieces = np.repeat(starts[:-1], count) + capacity * piece
  return np.append(pieces, starts[-1])
