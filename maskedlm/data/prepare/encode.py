"""What a worker process of `prepare` does: documents in, arrays of ids out."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from maskedlm.data.corpus import shards
from maskedlm.data.sources.sentences import split_sentences
from maskedlm.data.tokenizers import tokenizer as tokenizer_lib


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

  def encode(chunk):
    report = Counter()
    sentences, ends = [], [0]
    for _, document in chunk:
      sentences += split_sentences(
        document.lines,
        mode=mode,
        language=document.part.language,
        report=report,
      )
      ends.append(len(sentences))
    ids = tokenizer.encode_batch(sentences)
    tokens = np.concatenate([np.empty(0, np.int32), *ids])
    lengths = np.array(list(map(len, ids)), np.int64)
    is_unknown = tokens == tokenizer.special.unk
    token_ends = _sums(lengths)[ends]
    numbers = zip(
      np.diff(_sums(-(-lengths // max_tokens))[ends]).tolist(),
      np.diff(token_ends).tolist(),
      np.diff(_sums(is_unknown)[token_ends]).tolist(),
      strict=True,
    )
    documents = []
    for (split, document), (begin, end), (pieces, size, unknown) in zip(
      chunk, itertools.pairwise(ends), numbers, strict=True
    ):
      kept = "".join(
        itertools.compress(sentences[begin:end], lengths[begin:end])
      )
      counts = {
        "documents": 1,
        "sentences": pieces,
        "tokens": size,
        "characters": len(kept),
        "bytes": len(kept.encode()),
        "unknown": unknown,
      }
      documents.append((split, document.part.name, counts))
    report["words"] += sum(len(sentence.split()) for sentence in sentences)
    report["unknown tokens"] += int(is_unknown.sum())
    report["sentences without tokens"] += int((lengths == 0).sum())
    report["sentences cut at max_sentence_tokens"] += int(
      (lengths > max_tokens).sum()
    )
    return Encoded(
      tokens.astype(dtype),
      cut(lengths, max_tokens),
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


def _sums(numbers: np.ndarray) -> np.ndarray:
  """[3, 2] -> [0, 3, 5]."""
  return np.concatenate([[0], np.cumsum(numbers, dtype=np.int64)])


def cut(lengths: np.ndarray, max_length: int) -> np.ndarray:
  """Each as the fewest and most equal pieces: [7, 2], at most 3 -> 3, 2, 2, 2.

  Nothing is left of a length of 0.
  """
  counts = -(-lengths // max_length)
  pieces = np.repeat(counts, counts)  # Of the sentence that each is of.
  ends = np.repeat(np.cumsum(counts), counts)
  after = ends - 1 - np.arange(len(ends))
  return (np.repeat(lengths, counts) + after) // pieces
