"""What a worker process of `prepare` does: documents in, arrays of ids out."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from maskedlm.corpus import shards
from maskedlm.corpus import tokenizer as tokenizer_lib
from maskedlm.corpus.sentences import split_sentences


class Encoded(NamedTuple):
  """What a worker makes of a chunk: arrays, since they are fast to send."""

  tokens: np.ndarray  # [n]: the ids of all sentences.
  lengths: np.ndarray  # [s]: tokens of each sentence.
  # Of each document: its split, its part's name and parts.COUNTS.
  documents: list[tuple[str, str, dict[str, int]]]
  num_bytes: int  # Of text.
  report: Counter


def make_encoder(
  tokenizer_path: str, mode: str, max_tokens: int
) -> Callable[[list], Encoded]:
  """chunk -> Encoded, with the tokenizer loaded in this process."""
  tokenizer = tokenizer_lib.load(tokenizer_path)
  dtype = shards.token_dtype(tokenizer.vocab_size)

  def count(texts, ids):
    """parts.COUNTS of a document, and the lengths of its sentences."""
    kept = [text for text, i in zip(texts, ids, strict=True) if len(i)]
    pieces = [length for i in ids for length in cut(len(i), max_tokens)]
    unknown = sum(np.count_nonzero(i == tokenizer.special.unk) for i in ids)
    counts = {
      "documents": 1,
      "sentences": len(pieces),
      "tokens": sum(pieces),
      "characters": sum(map(len, kept)),
      "bytes": sum(len(text.encode()) for text in kept),
      "unknown": int(unknown),
    }
    return counts, pieces

  def encode(chunk):
    report = Counter()
    sentences, ends = [], []
    for _, document in chunk:
      sentences += split_sentences(
        document.lines,
        mode=mode,
        language=document.part.language,
        report=report,
      )
      ends.append(len(sentences))
    ids = tokenizer.encode_batch(sentences)
    report["words"] += sum(len(sentence.split()) for sentence in sentences)
    report["sentences without tokens"] += sum(not len(i) for i in ids)
    report["sentences cut at max_sentence_tokens"] += sum(
      len(i) > max_tokens for i in ids
    )
    documents, lengths = [], []
    for (split, document), begin, end in zip(
      chunk, [0, *ends], ends, strict=False
    ):
      counts, pieces = count(sentences[begin:end], ids[begin:end])
      documents.append((split, document.part.name, counts))
      lengths += pieces
    tokens = np.concatenate([np.empty(0, np.int32), *ids]).astype(dtype)
    report["unknown tokens"] += sum(c["unknown"] for *_, c in documents)
    return Encoded(
      tokens,
      np.array(lengths, np.int64),
      documents,
      sum(document.num_bytes for _, document in chunk),
      report,
    )

  return encode


def unpack(
  encoded: Iterable[Encoded], report: Counter, parts: list[dict]
) -> Iterator[tuple[str, list[np.ndarray]]]:
  """(split, ids of each sentence) of each document that has any.

  Counts in `report` and, what goes into the corpus, in `parts`.
  """
  counts = {part["name"]: part for part in parts}
  for chunk in encoded:
    report.update(chunk.report)
    bounds = shards.offsets(chunk.lengths)
    sentences = [chunk.tokens[a:b] for a, b in itertools.pairwise(bounds)]
    begin = 0
    for split, part, found in chunk.documents:
      end = begin + found["sentences"]
      if begin == end:
        report["documents without tokens"] += 1
        continue
      if part:
        for name, count in found.items():
          counts[part][split][name] += count
      yield split, sentences[begin:end]
      begin = end


def cut(length: int, max_length: int) -> list[int]:
  """Lengths of the fewest and most equal pieces: 7 by at most 3 -> 3, 2, 2."""
  pieces = -(-length // max_length)
  return [(length + i) // pieces for i in reversed(range(pieces))]
