"""Makes rows of two segments and their batches, as a function of the step.

Every random choice is a hash of (seed, epoch, row), so there is no iterator and
no state, and a host gathers only its own rows. In order: the batches
(`nsp_batches`), the tokens of a row (`next_sentence_pairs`), the arrays.
"""

import functools

import numpy as np

from maskedlm.data import hashing
from maskedlm.data.batches import batching, packed_rows, pair_table
from maskedlm.data.batches.batching import Batches
from maskedlm.data.batches.pair_table import PairTable
from maskedlm.data.batches.row_source import RowSource
from maskedlm.data.batches.token_spans import copy_spans
from maskedlm.data.corpus import concat

_DRAWS = 8  # Candidates among which fitting_b chooses.


def nsp_batches(config, corpus, shard, *, short_share, pack=False) -> Batches:
  """Returns batches for next-sentence prediction (see next_sentence_pairs).

  With pack, a random B is never longer than the B that it replaces, so that
  the pairs that share a row can be chosen before any label is drawn.

  Args:
    short_share: share of the rows that are short (pair_table.target_lengths).
    pack: put several short pairs in a row; packed_rows.pack_rows lists the
      arrays that are added.

  Raises:
    ConfigError: an option is out of range.
    CorpusError: a split has fewer than two documents of two or more tokens.
  """
  read = fitting_pairs if pack else next_sentence_pairs
  options = {"short_share": short_share, "pack": pack, "documents": 2}
  return _batches(read, config, corpus, shard, **options)


def sop_batches(*args, **options) -> Batches:
  """Returns Batches of sentence_order_pairs; as nsp_batches otherwise.

  One document is enough.
  """
  return _batches(sentence_order_pairs, *args, **options)


def adjacent_batches(*args, **options) -> Batches:
  """Returns Batches of adjacent_pairs; one document is enough."""
  return _batches(adjacent_pairs, *args, **options)


def _batches(
  read_pairs, config, corpus, shard, *, short_share, pack=False, documents=1
) -> Batches:
  def open_source(corpus, name, length, seed):
    options = {"length": length, "short_share": short_share, "seed": seed}
    rows = pair_table.open_pair_table(
      corpus, name, documents=documents, **options
    )
    special = corpus.tokenizer.special
    read = functools.partial(read_pairs, rows, special=special)
    return RowSource(
      len(rows.table),
      seed,
      read,
      key=pair_table.table_key(name, options),
      lengths=lambda: np.minimum(rows.table["num_tokens"], length - 3) + 3,
    )

  if pack:
    open_source = packed_rows.with_packing(open_source)
  return batching.make_batches(open_source, config, corpus, shard)


def random_b(rows: PairTable, row, epoch, a_length):
  """Returns (begin, end), int64 [b]: text of another document, to fill the row.

  It extends to the end of a sentence and is then truncated, as a true B is:
  where the text breaks off must not reveal the label.
  """
  target = pair_table.target_lengths(
    rows.table["sentence"][row],
    length=rows.length,
    short_share=rows.short_share,
    seed=rows.seed,
  )
  room = np.maximum(target - a_length, 1)
  other = other_row(rows, row, epoch)
  record = rows.table[other]
  sentence, begin = split_point(rows, record, other, epoch)
  last = _last_start(
    rows.split.sentences,
    np.minimum(begin + room, record["document_end"]) - 1,
    after=sentence,
    within=room,
  )
  return begin, concat.take(rows.split.sentences, last + 1)


def fitting_b(rows: PairTable, row, epoch, a_length):
  """Returns (begin, end), int64 [b]: as random_b, but fitted to the row's size.

  Of several candidates, takes the one that fills the true B's space best. It
  begins and ends as a true B does: with whole sentences or, if A and B are from
  one sentence, with the end of one. If not even one sentence fits, it is the
  end of one too. A row that is truncated anyway gets whole sentences past the
  limit, as from random_b.
  """
  record, sentences = rows.table[row], rows.split.sentences
  cut = record["num_tokens"] >= rows.length - 3
  size = np.minimum(record["num_tokens"], rows.length - 3)
  room = np.maximum(size - a_length, 1)
  draw = np.arange(_DRAWS)[:, None]  # Arrays of draws are [_DRAWS, b].
  other = other_row(rows, row, epoch, "fitting", draw)
  other_record = rows.table[other]
  sentence, _ = split_point(rows, other_record, other, epoch)
  start = concat.take(sentences, sentence)
  limit = np.minimum(start + room, other_record["document_end"])
  # The last sentence end that fits or, if truncated, the first that doesn't.
  last = cut + _last_start(sentences, limit - cut, after=sentence, within=room)
  several = record["num_sentences"] > 1
  whole = several & (last > sentence)
  end = concat.take(sentences, np.where(whole, last, sentence + 1))
  begin = np.where(whole, start, np.maximum(start, end - room))
  filled = np.where(several & ~whole, 0, np.minimum(end - begin, room))
  best = np.argmax(filled, axis=0), np.arange(len(row))
  return begin[best], end[best]


def next_sentence_pairs(
  rows: PairTable, row, epoch, *, special, draw_b=random_b
) -> dict[str, np.ndarray]:
  """Returns sentence pairs (Devlin et al., arXiv:1810.04805, appendix A.2).

  A row is split at a sentence boundary into A and B; with probability 1/2, B
  is replaced by text from another document that fills the room that A leaves,
  to the end of a sentence. Long pairs are truncated as by google-research/bert.
  Unlike there, no row gets a random B for lack of a boundary, so the labels are
  balanced, and a replaced B is not put back into another row, so an epoch has
  each row once.

  Args:
    rows: the rows of a split.
    row: int64 [b], rows of its table.
    epoch: int64 [b], epoch in which each is read; each epoch draws anew.
    special: libraries.Special.
    draw_b: draws a random B: random_b or fitting_b.

  Returns:
    int32 arrays: input_ids [b, L], [CLS] A [SEP] B [SEP] and padding;
    token_type_ids [b, L], 1 on B and its [SEP]; segment_ids [b, L], 1 on all
    but padding; nsp_labels [b], 0 = B is next, 1 = B is random.
  """
  label = hashing.randint(2, rows.seed, "label", epoch, row)
  begin, end = _halves(rows, row, epoch)
  other = draw_b(rows, row, epoch, end[0] - begin[0])
  for side, drawn in zip((begin, end), other, strict=True):
    side[1] = np.where(label == 1, drawn, side[1])
  arrays = _truncated(rows, row, epoch, begin, end, special)
  return {**arrays, "nsp_labels": label.astype(np.int32)}


# When packed, a pair may not be longer than its row.
fitting_pairs = functools.partial(next_sentence_pairs, draw_b=fitting_b)


def sentence_order_pairs(
  rows: PairTable, row, epoch, *, special
) -> dict[str, np.ndarray]:
  """Returns neighbouring texts, in order or not (arXiv:1909.11942, sect. 3.1).

  They are the A and B of next_sentence_pairs where B is next; with probability
  1/2 they are swapped, and the second one always has B's token type. As in the
  original, the later text is a little longer on average, since a row ends with
  the sentence that reaches its length. Arguments and arrays are those of
  next_sentence_pairs, but nsp_labels are 0 = in order, 1 = swapped.
  """
  label = hashing.randint(2, rows.seed, "label", epoch, row)
  begin, end = _halves(rows, row, epoch)
  # Swapped before truncation, so that it doesn't reveal which was first.
  begin, end = (np.where(label == 1, x[::-1], x) for x in (begin, end))
  arrays = _truncated(rows, row, epoch, begin, end, special)
  return {**arrays, "nsp_labels": label.astype(np.int32)}


def adjacent_pairs(
  rows: PairTable, row, epoch, *, special
) -> dict[str, np.ndarray]:
  """Returns next_sentence_pairs with B always next, and without nsp_labels."""
  begin, end = _halves(rows, row, epoch)
  return _truncated(rows, row, epoch, begin, end, special)


def _halves(rows: PairTable, row, epoch):
  """Returns (begin, end), each [2, b]: the tokens of A, and of B after it."""
  record = rows.table[row]
  _, split = split_point(rows, record, row, epoch)
  begin = np.stack([record["token"], split])
  return begin, np.stack([split, record["token"] + record["num_tokens"]])


def _truncated(rows: PairTable, row, epoch, begin, end, special):
  """Returns the arrays of A and B, from begin to end [2, b], truncated."""
  length = end - begin
  if (length < 0).any() or (end > concat.size(rows.split.tokens)).any():
    raise ValueError("a text ends outside the tokens of its split")
  kept = truncated_lengths(*length, maximum=rows.length - 3)
  side = np.arange(2)[:, None]
  # Each token is removed from the front or the back, by a coin flip.
  begin = begin + hashing.coin_flips(
    length - kept, rows.seed, "front", epoch, row, side
  )
  return _assemble(rows.split.tokens, begin, kept, rows.length, special)


def truncated_lengths(a, b, *, maximum) -> np.ndarray:
  """Returns the lengths of A and B after truncation to `maximum`: [2, ...].

  The closed form of removing single tokens from the longer one, B if they are
  equal, until both fit (truncate_seq_pair of google-research/bert).
  """
  a_kept = np.minimum(a, np.maximum((maximum + 1) // 2, maximum - b))
  return np.stack([a_kept, np.minimum(b, maximum - a_kept)])


def other_row(rows: PairTable, row, epoch, *words) -> np.ndarray:
  """Returns a uniformly drawn row of another document for each row [b]."""
  record = rows.table[row]
  first, count = record["document_row"], record["num_document_rows"]
  other = hashing.randint(
    len(rows.table) - count, rows.seed, "other", epoch, row, *words
  )
  return np.where(other < first, other, other + count)


def split_point(rows: PairTable, record, row, epoch):
  """Returns (sentence, token) [b]: the sentence and token where B begins.

  It is a uniform sentence boundary within the row, or any token but the first
  of a row that is one sentence.

  Raises:
    ValueError: it is outside the row, so the sentences' starts are damaged.
  """
  several = record["num_sentences"] > 1
  count = np.where(several, record["num_sentences"], record["num_tokens"])
  point = 1 + hashing.randint(count - 1, rows.seed, "split", epoch, row)
  sentence = record["sentence"] + np.where(several, point, 0)
  token = concat.take(rows.split.sentences, sentence)
  token = token + np.where(several, 0, point)
  place = token - record["token"]
  if not ((place > 0) & (place < record["num_tokens"])).all():
    raise ValueError("a sentence begins outside the row that has it")
  return sentence, token


def _last_start(sentences, token, *, after, within) -> np.ndarray:
  """Returns the last sentence [b] that begins at or before `token`.

  It is `after`, which does, or one of the `within` sentences that follow it,
  found by bisection. The end of the text counts as the start of a sentence.
  """
  low = after
  high = np.minimum(after + within, concat.size(sentences) - 1)
  for _ in range(int(within.max(initial=0)).bit_length()):
    middle = (low + high + 1) // 2
    begins = concat.take(sentences, middle) <= token
    low = np.where(begins, middle, low)
    high = np.where(begins, high, middle - 1)
  return low


def _assemble(tokens, begin, length, L, special) -> dict[str, np.ndarray]:
  """Returns the arrays of the pairs A, B at begin and length [2, b]."""
  column = np.arange(L)
  first = np.arange(begin.shape[1]) * L
  a_sep = length[0] + 1
  b_sep = a_sep + 1 + length[1]
  input_ids = np.full((begin.shape[1], L), special.pad, np.int32)
  flat = input_ids.reshape(-1)
  flat[first] = special.cls
  flat[first + a_sep] = special.sep
  flat[first + b_sep] = special.sep
  copy_spans(
    tokens, begin, length, flat, np.stack([first + 1, first + a_sep + 1])
  )
  real = column <= b_sep[:, None]
  return {
    "input_ids": input_ids,
    "token_type_ids": (real & (column > a_sep[:, None])).astype(np.int32),
    "segment_ids": real.astype(np.int32),
  }
