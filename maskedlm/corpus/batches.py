"""Batches of sentence pairs: numpy arrays as a pure function of the step.

Sits between the rows (rows.py) and an objective, whose Task hands `batch_at` to
the loop. Every random choice is a hash of (seed, epoch, row), so there is no
iterator, no state, and a host gathers its own rows only. Read top-down: which
rows a step has (`nsp`) -> which tokens a row has (`pairs`) -> the arrays.
"""

import numpy as np

from maskedlm.corpus import epochs, hashing, store
from maskedlm.corpus.epochs import Batches
from maskedlm.corpus.epochs import phase_at as phase_at
from maskedlm.corpus.rows import Rows, open_rows, targets
from maskedlm.corpus.spans import copy_spans


def nsp(
  corpus, data, *, seed, num_steps, eval_rows, short_share, shard
) -> Batches:
  """Batches for masked language modelling with next-sentence prediction.

  Training goes through the rows of the train split epoch after epoch, each
  epoch in an order of its own, without a pause where one ends. The last
  long_share of the steps have rows, a batch size and epochs of their own.
  Held-out batches always have the first phase's shape; they are a fixed
  sample of at most eval_rows rows, whose last batch is filled up with rows of
  weight 0. Both functions may be called from several threads at once.

  Args:
    corpus: store.Corpus.
    data: config.data.
    seed: config.seed.
    num_steps: of training; with data.long_share it says where phase 2 begins.
    eval_rows: held-out rows at most; 0 = none are needed.
    short_share: share of the rows that are cut short (rows.targets).
    shard: (index, count) of this host: it gets the index-th of count equal
      slices of each batch.

  Raises:
    ConfigError: an option that is out of range.
    CorpusError: a split of fewer than two documents.
  """
  epochs.check_share("objective.short_share", short_share)
  special = corpus.tokenizer.special

  def open_source(name, length, seed):
    options = {"length": length, "short_share": short_share, "seed": seed}
    rows = open_rows(corpus, name, **options)

    def read(row, epoch):
      return pairs(rows, row, epoch, special=special)

    return epochs.Source(len(rows.table), seed, read)

  return epochs.make_batches(
    open_source,
    data,
    seed=seed,
    num_steps=num_steps,
    eval_rows=eval_rows,
    shard=shard,
  )


def pairs(rows: Rows, row, epoch, *, special) -> dict[str, np.ndarray]:
  """Sentence pairs (Devlin et al., arXiv:1810.04805, appendix A.2).

  A row is split at a sentence boundary into A and B; with probability 1/2 the
  B is text from another document instead, as long as what A leaves free, to
  the end of a sentence. What is too long is truncated as by google-research/
  bert. Unlike there, no row is given a random B for want of a boundary, so the
  labels are balanced, and what a random B takes the place of isn't put back
  into another row, so an epoch has each row once.

  Args:
    rows: of a split.
    row: int64 [b], rows of its table.
    epoch: int64 [b], when they are read: each epoch draws anew.
    special: tokenizer.Special.

  Returns:
    int32 arrays: input_ids [b, L], [CLS] A [SEP] B [SEP] and padding;
    token_type_ids [b, L], 1 on B and its [SEP]; segment_ids [b, L], 1 on all
    but padding; nsp_labels [b], 0 = B is next, 1 = B is random.
  """
  label = hashing.randint(2, rows.seed, "label", epoch, row)
  other = _other_row(rows, row, epoch)
  own, donor = rows.table[row], rows.table[other]
  _, split = _split_point(rows, own, row, epoch)
  sentence, donor_split = _split_point(rows, donor, other, epoch)

  a_length = split - own["token"]
  target = targets(
    own["sentence"],
    length=rows.length,
    short_share=rows.short_share,
    seed=rows.seed,
  )
  # To a sentence's end and then truncated, as a true B is: where the text
  # breaks off must not tell the one from the other.
  room = np.maximum(target - a_length, 1)
  donor_end = _sentence_end(
    rows.split.sentences,
    np.minimum(donor_split + room, donor["document_end"]),
    after=sentence,
    within=room,
  )
  own_end = own["token"] + own["num_tokens"]
  b_begin = np.where(label == 1, donor_split, split)
  b_length = np.where(label == 1, donor_end, own_end) - b_begin

  begin = np.stack([own["token"], b_begin])
  length = np.stack([a_length, b_length])
  kept = truncated_lengths(*length, maximum=rows.length - 3)
  side = np.arange(2)[:, None]
  # Each token that goes, goes from the front or the back by a coin's flip.
  begin += hashing.coin_flips(
    length - kept, rows.seed, "front", epoch, row, side
  )
  arrays = _assemble(rows.split.tokens, begin, kept, rows.length, special)
  return {**arrays, "nsp_labels": label.astype(np.int32)}


def truncated_lengths(a, b, *, maximum) -> np.ndarray:
  """[2, ...]: what is left of A and B once they fit, the longer one paying.

  The same as taking single tokens off the longer one, B where they are equal,
  until both fit (truncate_seq_pair of google-research/bert), in closed form.
  """
  a_kept = np.minimum(a, np.maximum((maximum + 1) // 2, maximum - b))
  return np.stack([a_kept, np.minimum(b, maximum - a_kept)])


def _other_row(rows: Rows, row, epoch) -> np.ndarray:
  """A row of another document for each row, all being equally likely."""
  record = rows.table[row]
  first, count = record["document_row"], record["num_document_rows"]
  other = hashing.randint(
    len(rows.table) - count, rows.seed, "other", epoch, row
  )
  return np.where(other < first, other, other + count)


def _split_point(rows: Rows, record, row, epoch):
  """(sentence, token) [b]: where B begins, and the sentence that is in.

  A uniform sentence boundary within the row; any token but the first of a
  row that is one sentence.
  """
  several = record["num_sentences"] > 1
  count = np.where(several, record["num_sentences"], record["num_tokens"])
  point = 1 + hashing.randint(count - 1, rows.seed, "split", epoch, row)
  sentence = record["sentence"] + np.where(several, point, 0)
  token = store.take(rows.split.sentences, sentence)
  return sentence, token + np.where(several, 0, point)


def _sentence_end(sentences, token, *, after, within) -> np.ndarray:
  """The first end of a sentence at or past `token`, by bisection. int64 [b].

  It is the start of one of the `within` sentences that follow `after`.
  """
  low = after + 1
  high = np.minimum(after + within, store.size(sentences) - 1)
  for _ in range(int(within.max(initial=1)).bit_length()):
    middle = (low + high) // 2
    before = store.take(sentences, middle) < token
    low = np.where(before, middle + 1, low)
    high = np.where(before, high, middle)
  return store.take(sentences, high)


def _assemble(tokens, begin, length, L, special) -> dict[str, np.ndarray]:
  """The arrays of `pairs` for A and B at begin, length [2, b]."""
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
