"""Makes rows of running text, within one document or across documents.

`document_batches` are SpanBERT's, `full_sentence_batches` and
`whole_sentence_batches` RoBERTa's. The tokens of a row come from a table or
arithmetic, the rows of a step from a hash (batching.py).
"""

import functools
from collections.abc import Callable, Iterator

import numpy as np

from maskedlm.core.errors import CorpusError
from maskedlm.data import hashing
from maskedlm.data.batches import batching, packed_rows, row_tables
from maskedlm.data.batches.batching import Batches
from maskedlm.data.batches.row_source import RowSource
from maskedlm.data.batches.token_spans import copy_spans
from maskedlm.data.corpus import concat, store

RECORD = np.dtype([("token", "<i8"), ("num_tokens", "<i4")])
_VERSION = 1  # Version of RECORD and of the rule by which rows are cut.
BLOCK = 1 << 18  # Sentences processed at a time.


def document_batches(
  config, corpus, shard, *, pack=False, crop=False
) -> Batches:
  """Returns batches of rows of one document: [CLS] tokens [SEP] and padding.

  A row holds as many contiguous sentences as fit; the next begins where it
  ends. A sentence longer than a row is cut into pieces of L - 2 tokens, the
  last of which may share its row with the next sentences. Nothing is dropped:
  an epoch has each token once.

  Args:
    pack: put several short rows in one; packed_rows.pack_rows lists the arrays
      that are added.
    crop: rows of a document longer than a row begin anywhere in it (make_crops)
      instead of where the last one ends.

  Returns:
    Batches of int32 arrays input_ids, token_type_ids (0), segment_ids (1, and
    0 on padding), all [b, L], and example_weights [b] float32.

  Raises:
    ConfigError: data.shares doesn't suit the corpus.
    CorpusError: a split has no text.
  """
  special = corpus.tokenizer.special

  def open_source(corpus, name, length, seed):
    table = open_document_table(corpus, name, length=length)
    tokens = getattr(corpus, name).tokens
    shape = {"length": length, "special": special}
    rows_at = functools.partial(single_text_rows, tokens, **shape)
    key = ("document", _VERSION, name)
    if crop:
      split = getattr(corpus, name)
      place = make_crops(split, capacity=length - 2, seed=seed)
      return RowSource(
        len(table),
        seed,
        lambda row, epoch: rows_at(*place(table["token"][row], row, epoch)),
        key=(*key, "crop"),
        lengths=lambda: place(table["token"], 0, 0)[1] + 2,
      )
    return _table_source(table, seed, rows_at)._replace(
      key=key, lengths=lambda: table["num_tokens"] + 2
    )

  if pack:
    open_source = packed_rows.with_packing(open_source)
  return batching.make_batches(open_source, config, corpus, shard)


def make_crops(
  split: store.Split, *, capacity: int, seed: int
) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
  """Returns (token, row, epoch) -> where these rows begin in that epoch.

  That is the first token, and the number of tokens, [b] each. `token` is any
  token of the row's document, [b]. A document that fits in the `capacity` of a
  row is whole; of others, the place is a hash.
  """
  sentences = concat.take_all(split.documents)
  bounds = concat.take(split.sentences, sentences)

  def crop(token, row, epoch):
    document = np.searchsorted(bounds, token, side="right") - 1
    first = bounds[document]
    size = bounds[document + 1] - first
    num = np.minimum(size, capacity)
    begin = hashing.randint(size - num + 1, seed, "crop", epoch, row)
    return first + begin, num

  return crop


def _table_source(table, seed, rows_at) -> RowSource:
  """Returns the rows of a table of RECORD, the same in every epoch."""

  def read(row, epoch):
    record = table[row]
    return rows_at(record["token"], record["num_tokens"].astype(np.int64))

  return RowSource(len(table), seed, read)


def single_text_rows(tokens, begin, num, *, length, special):
  """Returns arrays of rows [CLS] tokens[begin : begin + num] [SEP] and padding.

  `begin` and `num`, 1 to length - 2, are int64 [b]. The arrays are int32
  [b, L]: input_ids, token_type_ids and segment_ids of document_batches.
  """
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


def open_document_table(corpus, name: str, *, length) -> np.ndarray:
  """Returns the table [R] of RECORD of a split's rows, built if necessary.

  Raises:
    CorpusError: the split has no text.
  """
  split = _with_text(corpus, name)

  def build():
    documents = concat.take(split.sentences, concat.take_all(split.documents))
    return _cut(
      lambda sentence: concat.take(split.sentences, sentence),
      concat.size(split.sentences) - 1,
      documents[1:],
      length - 2,
    )

  key = ["document", _VERSION, name, length]
  return row_tables.open_table(corpus, key, RECORD, build)


def _with_text(corpus, name) -> store.Split:
  """Returns corpus.train or corpus.heldout; CorpusError if it has no text."""
  split = getattr(corpus, name)
  if concat.size(split.tokens):
    return split
  remedy = "prepare a corpus that has some"
  if name == "heldout":
    remedy = "raise corpus.heldout_share or set train.eval_rows=0"
  raise CorpusError(f"{corpus.path}: the {name} split has no text: {remedy}.")


def _cut(start_of, num_sentences, barriers, capacity) -> Iterator[np.ndarray]:
  """Yields the rows' records, for a block of sentences at a time.

  The end of a row depends only on its beginning, so the ends are computed for
  every sentence (and piece of one) at once; the rows are then a chain.

  Args:
    start_of: sentences [n] -> the places [n] where they begin; that of sentence
      num_sentences is the end.
    barriers: sorted places that lie within no row; the last is the end.
    num_sentences, capacity: of all, and places in a row, at most.
  """
  row = 0  # The place at which the next row begins.
  for low in range(0, num_sentences, BLOCK):
    high = min(low + BLOCK, num_sentences)
    # No sentence is empty: a row has at most `capacity` of them.
    last = min(high + capacity, num_sentences)
    sentences = start_of(np.arange(low, last + 1))
    units = _pieces(sentences, capacity)
    begin = units[: np.searchsorted(units, sentences[high - low])]
    fits = np.searchsorted(units, begin + capacity, side="right") - 1
    barrier = row_tables.places(barriers, begin)
    ends = barriers[barrier[0] : barrier[-1] + 1]
    limit = np.searchsorted(units, ends)[barrier - barrier[0]]
    end = np.minimum(fits, limit)
    first = np.searchsorted(units, row)
    rows = row_tables.chain(end, first)
    record = np.empty(len(rows), RECORD)
    record["token"] = units[rows]
    record["num_tokens"] = units[end[rows]] - units[rows]
    yield record
    if len(rows):  # Otherwise the last row is longer than the block.
      row = units[end[rows[-1]]]


def _pieces(starts, capacity) -> np.ndarray:
  """Returns the starts of sentences [n + 1] and of pieces of long ones."""
  count = -(-np.diff(starts) // capacity)
  piece = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
  pieces = np.repeat(starts[:-1], count) + capacity * piece
  return np.append(pieces, starts[-1])


# RoBERTa


def full_sentence_batches(
  config, corpus, shard, *, isolate_documents
) -> Batches:
  """Returns batches of full rows: [CLS] text [SEP], across documents.

  RoBERTa's FULL-SENTENCES (Liu et al., arXiv:1907.11692, section 4.2): the
  documents one after the other, with an extra [SEP] at the end of each. Here a
  row is full to the last position; it may end in the middle of a sentence, and
  the next row continues it. whole_sentence_batches, cut as fairseq does, are
  4% padding at L = 512 and 17% at L = 128, on English novels. The cuts
  are drawn anew for each epoch, so a given sentence is whole in most epochs. An
  epoch has each token once, and only one of its rows has padding.

  Args:
    isolate_documents: whether a document attends only to itself, with positions
      from 0. Its [SEP] belongs to it, and the row's [CLS] to the first
      document.

  Returns:
    Batches of int32 arrays input_ids, token_type_ids (0), segment_ids, all
    [b, L], and example_weights [b] float32. segment_ids are 1 (0 on padding);
    with isolate_documents they number a row's documents 1, 2, ..., and there
    are int32 `positions` [b, L] as well.

  Raises:
    ConfigError: data.shares doesn't suit the corpus.
    CorpusError: a split has no text.
  """

  def open_source(corpus, name, length, seed):
    rows_at = _stream_reader(corpus, name, length, isolate_documents)
    size = int(open_stream_starts(corpus, name)[-1])
    capacity = length - 2

    def read(row, epoch):
      # Each epoch begins at a different place on the circle.
      cut = hashing.randint(min(capacity, size), seed, "cut", epoch)
      done = row * capacity
      return rows_at(cut + done, np.minimum(capacity, size - done))

    return RowSource(-(-size // capacity), seed, read)

  return batching.make_batches(open_source, config, corpus, shard)


def whole_sentence_batches(
  config, corpus, shard, *, isolate_documents
) -> Batches:
  """Returns full_sentence_batches whose rows begin and end with a sentence.

  They are cut as by fairseq (--sample-break-mode complete): a row holds as many
  whole sentences as fit and is padded. A document's [SEP] counts as part of its
  last sentence. A sentence longer than a row is cut into pieces, as in
  document_batches. Rows are the same in every epoch.

  Arguments, arrays and errors are those of full_sentence_batches.
  """

  def open_source(corpus, name, length, seed):
    rows_at = _stream_reader(corpus, name, length, isolate_documents)
    table = open_sentence_table(corpus, name, length=length)
    return _table_source(table, seed, rows_at)

  return batching.make_batches(open_source, config, corpus, shard)


def _stream_reader(corpus, name, length, isolate_documents):
  """Returns stream_rows as a function (begin, num) -> arrays."""
  return functools.partial(
    stream_rows,
    getattr(corpus, name).tokens,
    open_stream_starts(corpus, name),
    length=length,
    special=corpus.tokenizer.special,
    isolate_documents=isolate_documents,
  )


def open_sentence_table(corpus, name: str, *, length) -> np.ndarray:
  """Returns the table [R] of RECORD of whole sentences, built if necessary.

  Tokens are places in the stream of open_stream_starts.

  Raises:
    CorpusError: the split has no text.
  """
  split = _with_text(corpus, name)
  documents = concat.take_all(split.documents)

  def place_of(sentence):
    separators = np.searchsorted(documents, sentence, side="right") - 1
    return concat.take(split.sentences, sentence) + separators

  size = concat.size(split.sentences) - 1
  return row_tables.open_table(
    corpus,
    ["sentences", _VERSION, name, length],
    RECORD,
    lambda: _cut(place_of, size, place_of(np.array([size])), length - 2),
  )


def open_stream_starts(corpus, name: str) -> np.ndarray:
  """Returns documents' starts in a split's stream and its size, int64 [Dn + 1].

  The stream is a circle: the documents in order, each with a separator at its
  end, and then the first one again.

  Raises:
    CorpusError: the split has no text.
  """
  split = _with_text(corpus, name)

  def build():
    size = concat.size(split.documents)
    for low in range(0, size, BLOCK):
      document = np.arange(low, min(low + BLOCK, size))
      sentence = concat.take(split.documents, document)
      yield concat.take(split.sentences, sentence) + document

  key = ["stream", _VERSION, name]
  return row_tables.open_table(corpus, key, np.dtype("<i8"), build)


def stream_rows(
  tokens, starts, begin, num, *, length, special, isolate_documents
) -> dict[str, np.ndarray]:
  """Returns arrays [b, L] of rows [CLS] stream[begin : begin + num] [SEP].

  `begin` and `num`, 1 to length - 2, are [b]; a row wraps around the stream at
  most once. `starts` [Dn + 1] is from open_stream_starts. For the arrays, see
  full_sentence_batches.
  """
  num_documents, size = len(starts) - 1, starts[-1]

  def document_at(place):
    lap, place = np.divmod(place, size)
    document = np.searchsorted(starts, place, side="right") - 1
    return document + lap * num_documents

  def start_of(document):
    lap, document = np.divmod(document, num_documents)
    return starts[document] + lap * size

  b, L = len(begin), length
  column = np.arange(L)
  real = column < num[:, None] + 2
  # Positions to which no token is copied are separators.
  input_ids = np.where(real, special.sep, special.pad).astype(np.int32)
  input_ids[:, 0] = special.cls

  first, last = document_at(begin), document_at(begin + num - 1)
  count = last - first + 1
  # From here on: for each document of each row.
  row = np.repeat(np.arange(b), count)
  nth = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
  document = first[row] + nth
  left = np.maximum(start_of(document), begin[row])
  right = np.minimum(start_of(document + 1) - 1, (begin + num)[row])
  at = row * L + 1 + left - begin[row]
  lap, document = np.divmod(document, num_documents)
  # Minus one separator for each document before.
  token = left - lap * size - document
  copy_spans(tokens, token, right - left, input_ids.reshape(-1), at)
  arrays = {
    "input_ids": input_ids,
    "token_type_ids": np.zeros((b, L), np.int32),
    "segment_ids": real.astype(np.int32),
  }
  if not isolate_documents:
    return arrays
  begins = np.zeros((b, L), bool)
  begins.reshape(-1)[at[nth > 0]] = True
  segment = 1 + np.cumsum(begins, axis=1)
  segment_begin = np.maximum.accumulate(np.where(begins, column, 0), axis=1)
  return {
    **arrays,
    "segment_ids": np.where(real, segment, 0).astype(np.int32),
    "positions": (column - segment_begin).astype(np.int32),
  }
