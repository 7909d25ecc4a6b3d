"""Makes tables of rows for sentence pairs: which sentences are in row i.

The rows partition the split as in google-research/bert: sentences of a document
are added until they fill a row or the document ends. pair_rows.py makes the
arrays of these rows.
"""

import logging
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from maskedlm.core.counts import counted
from maskedlm.core.errors import CorpusError
from maskedlm.data import hashing
from maskedlm.data.batches import row_tables
from maskedlm.data.corpus import concat, store

RECORD = np.dtype(
  [
    ("sentence", "<i8"),  # The row's first sentence, in the split.
    ("token", "<i8"),  # The row's first token, in the split.
    ("num_sentences", "<i4"),
    ("num_tokens", "<i4"),
    ("document_end", "<i8"),  # The token after its document's last one.
    ("document_row", "<i8"),  # The first row of its document.
    ("num_document_rows", "<i8"),
  ]
)
_log = logging.getLogger(__name__)
VERSION = 1  # Version of RECORD and of the rule by which rows are cut.
BLOCK = 1 << 18  # Sentences, or rows, processed at a time.


class PairTable(NamedTuple):
  """A split cut into R rows, with the options by which it was cut."""

  split: store.Split
  table: np.ndarray  # [R] of RECORD, memory-mapped.
  length: int  # L: a row is cut to fit L - 3 tokens and three specials.
  short_share: float
  seed: int


def open_pair_table(
  corpus, name: str, *, length, short_share, seed, documents: int = 2
) -> PairTable:
  """Returns the rows of a split, from its table or newly cut; see PairTable.

  `documents` is the number that must have rows: 2 if a random B comes from
  another document, else 1.

  Raises:
    CorpusError: the split has fewer.
  """
  split = getattr(corpus, name)
  options = {"length": length, "short_share": short_share, "seed": seed}

  table = row_tables.open_table(
    corpus, table_key(name, options), RECORD, lambda: cut_rows(split, **options)
  )
  # Rows are in order.
  num_documents = len({*table["document_end"][:1], *table["document_end"][-1:]})
  if num_documents < documents:
    raise CorpusError(
      _too_few_documents(corpus.path, name, num_documents, documents)
    )
  return PairTable(split, table, **options)


def table_key(name: str, options) -> tuple:
  """Returns the key of a split's table (see row_tables.open_table)."""
  return "pairs", VERSION, name, options


def target_lengths(sentence, *, length, short_share, seed) -> np.ndarray:
  """Returns the target lengths of rows that begin at `sentence` [n], int64 [n].

  A row ends with the sentence that reaches its target. This is L - 3, which
  leaves room for [CLS] and two [SEP], or with probability short_share uniform
  in [2, L - 3], so that the model has seen short inputs before fine-tuning
  (create_pretraining_data.py draws it once for each document).
  """
  target = np.full(np.shape(sentence), length - 3)
  short = hashing.uniform(seed, "short", sentence) < short_share
  target[short] = 2 + hashing.randint(
    length - 4, seed, "target", sentence[short]
  )
  return target


def cut_rows(split: store.Split, **options) -> Iterator[np.ndarray]:
  """Yields the rows of a split, in blocks of RECORD.

  The end of a row that begins at sentence s depends on s alone, so it is
  computed for a block of sentences at once, however long the documents are.
  The rows are then the chain 0 -> end(0) -> end(end(0)) ... The options are
  length, short_share and seed, see PairTable and target_lengths.
  """
  documents = concat.take_all(split.documents)
  document_tokens = concat.take(split.sentences, documents)
  num_sentences = int(documents[-1])
  firsts, row = [], 0
  for low in range(0, num_sentences, BLOCK):
    high = min(low + BLOCK, num_sentences)
    ends = _ends(split, low, high, documents, document_tokens, **options)
    firsts.append(low + row_tables.chain(ends - low, row - low))
    if len(firsts[-1]):  # Otherwise the last row is longer than the block.
      row = ends[firsts[-1][-1] - low]
  bounds = np.concatenate([*firsts, [num_sentences]])
  starts, ends = bounds[:-1], bounds[1:]
  # A pair takes two tokens: a shorter document has no row.
  is_tiny = (np.diff(document_tokens) < 2) & (np.diff(documents) > 0)
  tiny = np.searchsorted(starts, documents[:-1][is_tiny])
  if len(tiny):
    _log.info("%d documents of a single token have no row", len(tiny))
    starts, ends = np.delete(starts, tiny), np.delete(ends, tiny)
  document_rows = np.searchsorted(starts, documents)
  num_rows = np.diff(document_rows)
  for low in range(0, len(starts), BLOCK):
    start, end = starts[low : low + BLOCK], ends[low : low + BLOCK]
    document = row_tables.places(documents, start) - 1
    record = np.empty(len(start), RECORD)
    record["sentence"] = start
    record["token"] = concat.take(split.sentences, start)
    record["num_sentences"] = end - start
    record["num_tokens"] = concat.take(split.sentences, end) - record["token"]
    document_end = documents[document + 1]
    record["document_end"] = concat.take(split.sentences, document_end)
    record["document_row"] = document_rows[document]
    record["num_document_rows"] = num_rows[document]
    yield record


def _ends(split, low, high, documents, document_tokens, **options):
  """Returns the ends of rows that begin at sentences low..high - 1, int64."""
  sentence = np.arange(low, high)
  # No sentence is empty, so no row reaches further than L sentences.
  last = min(high + options["length"], int(documents[-1]))
  tokens = concat.take(split.sentences, np.arange(low, last + 1))
  full = tokens[: high - low] + target_lengths(sentence, **options)
  end = low + np.searchsorted(tokens, full)
  document = row_tables.places(documents, sentence)
  document_end = documents[document]
  end = np.minimum(end, document_end)
  # One remaining token can't be a pair: it joins the last row.
  leftover = document_tokens[document] - tokens[end - low]
  return np.where(leftover < 2, document_end, end)


def _too_few_documents(path, name: str, num: int, documents: int) -> str:
  remedy = "give it more documents (in text files a blank line ends one)"
  if name == "heldout":
    remedy = "raise corpus.heldout_share or set train.eval_rows=0"
  why = "a row has two segments of a token each"
  if documents > 1:
    why = "next-sentence prediction needs two, to draw a random B from another"
  return (
    f"{path}: the {name} split has {counted(num, 'document')} of at least 2 "
    f"tokens; {why}: {remedy}."
  )
