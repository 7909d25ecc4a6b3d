"""Encodes documents into arrays of ids, in the workers of `prepare`."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from maskedlm.data.corpus import shards
from maskedlm.data.tokenizers import lost_text
from maskedlm.data.tokenizers.document_text import make_text
from maskedlm.data.tokenizers.documents import Text
from maskedlm.data.tokenizers.tokenizer import open_tokenizer

NO_LIMIT = 1 << 31  # Tokens; for sequences, which are not cut.


class Encoded(NamedTuple):
  """An encoded chunk of documents, as arrays, which are fast to send."""

  tokens: np.ndarray  # [n]: the ids of all sentences.
  lengths: np.ndarray  # [s]: number of tokens of each sentence.
  # Split, domain name and domain_splits.COUNTS of each document.
  documents: list[tuple[str, str, dict[str, int]]]
  num_bytes: int  # Bytes of text.
  report: Counter


def make_encoder(
  tokenizer_path: str, mode: str, max_tokens: int
) -> Callable[[list], Encoded]:
  """Returns a function from a chunk of (split, document) to Encoded.

  The mode is corpus.sentences. Sentences of more than max_tokens are cut;
  sequences (FASTA) are not.
  """
  tokenizer = open_tokenizer(tokenizer_path)
  dtype = shards.token_dtype(tokenizer.vocab_size)
  count_lost, unk = lost_text.make_counter(tokenizer), tokenizer.special.unk

  def encode(chunk):
    report = Counter()
    texts = [
      make_text(
        document.lines,
        tokenizer,
        mode="whole" if document.domain.has_sequences else mode,
        language=document.domain.language,
        report=report,
      )
      for _, document in chunk
    ]
    encoded = tokenizer.encode_documents(texts, report)
    documents, limits = [], []
    for (split, document), text, (ids, counts) in zip(
      chunk, texts, encoded, strict=True
    ):
      limit = NO_LIMIT if document.domain.has_sequences else max_tokens
      limits.append(np.full(len(counts), limit))
      characters, num_bytes = _sizes(text, counts)
      numbers = {
        "documents": 1,
        "sentences": int((-(-counts // limit)).sum()),
        "tokens": len(ids),
        "characters": characters,
        "bytes": num_bytes,
        "unknown": int((ids == unk).sum()),
      }
      documents.append((split, document.domain.name, numbers))
      pairs = itertools.pairwise(text.spans)  # A sentence ends a word, too.
      report["words"] += len(text.text.split())
      report["words"] += sum(end == begin for (_, end), (begin, _) in pairs)
      report["unknown tokens"] += numbers["unknown"]
    tokens, lengths = map(np.concatenate, zip(*encoded, strict=True))
    limits = np.concatenate(limits)
    long = int((lengths > limits).sum())
    report["sentences cut at max_sentence_tokens"] += long
    report["sentences without tokens"] += int((lengths == 0).sum())
    unknown = lost_text.unknown_sentences(texts, encoded, unk)
    report.update(count_lost([text for text, _ in texts], unknown))
    if not tokenizer.spells_lines:
      lines = (line for _, document in chunk for line in document.lines)
      if spaces := sum(len(line) - len(line.lstrip()) for line in lines):
        report[lost_text.INDENTATION.name] += spaces
    return Encoded(
      tokens.astype(dtype),
      cut_lengths(lengths, limits),
      documents,
      sum(document.num_bytes for _, document in chunk),
      report,
    )

  return encode


def _sizes(text: Text, counts: np.ndarray) -> tuple[int, int]:
  """Returns the characters and UTF-8 bytes of the sentences with tokens."""
  spans = list(itertools.compress(text.spans, counts))
  characters = sum(end - begin for begin, end in spans)
  if text.text.isascii():
    return characters, characters
  sentences = "".join(text.text[begin:end] for begin, end in spans)
  return characters, len(sentences.encode())


def unpack_documents(
  encoded: Iterable[Encoded], report: Counter, domain_counts: list[dict]
) -> Iterator[tuple[str, list[np.ndarray]]]:
  """Yields (split, ids of each sentence) of each document that has tokens.

  Adds the counts of all chunks to `report`, and those of the documents in the
  corpus to `domain_counts` (domain_splits.empty_counts).
  """
  by_name = {counts["name"]: counts for counts in domain_counts}
  for chunk in encoded:
    report.update(chunk.report)
    bounds = shards.offsets(chunk.lengths)
    sentences = [chunk.tokens[a:b] for a, b in itertools.pairwise(bounds)]
    begin = 0
    for split, domain, numbers in chunk.documents:
      end = begin + numbers["sentences"]
      if begin == end:
        report["documents without tokens"] += 1
        continue
      if domain:
        for name, count in numbers.items():
          by_name[domain][split][name] += count
      yield split, sentences[begin:end]
      begin = end


def cut_lengths(
  lengths: np.ndarray, max_length: int | np.ndarray
) -> np.ndarray:
  """Divides lengths [n] into the fewest, most equal pieces of <= max_length.

  [7, 2] at 3 -> [3, 2, 2, 2]. Lengths of 0 are dropped.
  """
  counts = -(-lengths // max_length)
  pieces = np.repeat(counts, counts)  # Number of pieces of each one's length.
  ends = np.repeat(np.cumsum(counts), counts)
  after = ends - 1 - np.arange(len(ends))
  return (np.repeat(lengths, counts) + after) // pieces
