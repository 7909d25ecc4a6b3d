"""Defines the stages of `prepare` on pieces of the source, for many machines.

runner.py runs them with Beam. The source is divided into pieces (files). Each
function takes the index of a piece and reads and writes files in a folder that
all workers share (job.py); it depends on nothing else. The stages in order:

  survey      digests, band hashes and sentence lengths of each document
  duplicates  which documents repeat earlier ones, by hashes over all pieces
  plan        each piece's documents, their splits and order (piece_plan.py)
  sample      every k-th training sentence, for the tokenizer (piece_plan.py)
  encoded     the documents' tokens, as small shards
  shards      the corpus's shards, made of slices of the small ones

They use the same functions as local.py (dedup.py, documents.py, sources/,
encode.py, corpus/shards.py) on the same documents in the same order: the plan
is documents.split_documents of all digests, and the sample's k and the shards'
bounds follow from lengths. So the corpus is the same, byte for byte, unless a
domain has fewer than documents.FEW documents, which only local.py cuts into
windows.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from maskedlm.core.parse_json import parse_json
from maskedlm.data.corpus import domain_splits, shards
from maskedlm.data.prepare import dedup, documents, encode, vocabulary_sample
from maskedlm.data.prepare.beam import merge_shards, piece_plan
from maskedlm.data.prepare.beam.job import (
  load_array,
  load_job,
  result_path,
  save_arrays,
)
from maskedlm.data.tokenizers import training
from maskedlm.runtime import output_files

# survey


def survey(folder: str, index: int) -> Counter:
  """Reads a piece, writes its hashes and lengths, and returns its report."""
  job = load_job(folder)
  report: Counter = Counter()
  trains = not job.config.tokenizer.path
  threshold = job.config.corpus.near_duplicates
  signatures, counts = [dedup.compute_signatures([], threshold)], []
  sizes: list[int] = []
  stream = documents.read_piece(job.config, *job.pieces[index], report)
  for pairs in documents.make_chunks(("", document) for document in stream):
    chunk = [document for _, document in pairs]
    signatures.append(dedup.compute_signatures(chunk, threshold))
    for document in chunk if trains else ():
      sentences = vocabulary_sample.document_sentences(job.config, document)
      counts.append(len(sentences))
      sizes += map(training.utf8_length, sentences)
  digests, bands, characters = map(
    np.concatenate, zip(*signatures, strict=True)
  )
  arrays = {"digests": digests, "bands": bands, "characters": characters}
  arrays["counts"] = np.array(counts, np.int64)
  arrays["sizes"] = np.array(sizes, np.uint32)
  arrays["report"] = _json_array(report)
  save_arrays(folder, "survey", index, **arrays)
  return report


def survey_report(folder: str, index: int) -> Counter:
  """Returns the report of reading a piece."""
  report = load_array(folder, "survey", index, "report")
  return Counter(parse_json(report.tobytes()))


# duplicates

_DIGEST = -1  # Stands for the digests, in place of a band's number.


def band_hashes(folder: str, num_groups: int, index: int) -> Iterator[tuple]:
  """Yields ((band, group), (piece, hashes [n], documents [n])) for a piece.

  Equal hashes are in the same group, so that each group can be searched alone.
  """
  digests, bands = (
    load_array(folder, "survey", index, name) for name in ("digests", "bands")
  )
  for band, values in ((_DIGEST, digests), *enumerate(bands.T)):
    groups = values % np.uint64(num_groups)
    for group in np.unique(groups):
      places = np.flatnonzero(groups == group)
      yield (band, int(group)), (index, values[places], places)


def mark_duplicates(
  key: tuple[int, int], hashes: Iterable[tuple]
) -> Iterator[tuple]:
  """Yields (piece, (status, documents [n])) for documents with an earlier hash.

  The key and the hashes of the group are from `band_hashes`.
  """
  hashes = sorted(hashes, key=lambda entry: entry[0])
  repeated = dedup.find_repeated(
    np.concatenate([values for _, values, _ in hashes])
  )
  status = dedup.EQUAL if key[0] == _DIGEST else dedup.SIMILAR
  bounds = shards.offsets([len(values) for _, values, _ in hashes])
  owner = np.searchsorted(bounds, repeated, side="right") - 1
  for i in np.unique(owner):
    index, _, places = hashes[i]
    yield index, (status, places[repeated[owner == i] - bounds[i]])


def write_status(folder: str, index: int, marks: Iterable[tuple]) -> Counter:
  """Writes the status of each document of a piece; returns `count_dropped`.

  The marks are (status, documents [n]) of `mark_duplicates`; None is ignored.
  """
  characters = load_array(folder, "survey", index, "characters")
  status = np.full(len(characters), dedup.KEPT, np.uint8)
  # EQUAL comes last and overwrites SIMILAR.
  for value, places in sorted(filter(None, marks), key=lambda mark: -mark[0]):
    status[places] = value
  save_arrays(folder, "duplicates", index, status=status)
  return Counter(dedup.count_dropped(status, characters))


def count_dropped(folder: str, index: int) -> Counter:
  """Returns the counts of a piece's dropped documents."""
  characters = load_array(folder, "survey", index, "characters")
  status = load_array(folder, "duplicates", index, "status")
  return Counter(dedup.count_dropped(status, characters))


# encoded


def encode_piece(folder: str, index: int, vocab_size: int) -> Counter:
  """Writes a folder of small shards for a piece's plan; returns its report."""
  job = load_job(folder)
  report: Counter = Counter()
  domain_counts = domain_splits.empty_counts(job.config.corpus)
  encoder = encode.make_encoder(
    os.path.join(folder, "tokenizer"),
    job.config.corpus.sentences,
    job.config.corpus.max_sentence_tokens,
  )
  chunks = documents.make_chunks(
    (split, document)
    for _, split, document in piece_plan.read_planned(job, index)
  )
  path = result_path(folder, "encoded", index)
  with output_files.whole_folder(path) as work:
    splits = shards.write_shards(
      work,
      encode.unpack_documents(map(encoder, chunks), report, domain_counts),
      vocab_size=vocab_size,
      shard_tokens=shards.MAX_TOKENS - 1,
    )
    result = {"splits": splits, "report": report, "parts": domain_counts}
    with open(os.path.join(work, "result.json"), "w") as file:
      json.dump(result, file)
  return report


def load_encoded(folder: str, index: int) -> dict[str, Any]:
  """Returns a piece's splits (see write_shards), report and domain counts."""
  path = result_path(folder, "encoded", index)
  with open(os.path.join(path, "result.json"), "rb") as file:
    return parse_json(file.read())


# shards


def plan_shards(
  folder: str, split: str, num_pieces: int, shard_tokens: int
) -> list[list[merge_shards.ShardSlice]]:
  """Returns the slices of small shards that make up each shard of a split."""
  names = (
    (result_path(folder, "encoded", index), shards.shard_name(split, i))
    for index in range(num_pieces)
    for i in range(len(load_encoded(folder, index)["splits"][split]["shards"]))
  )
  return list(merge_shards.plan_shards(names, shard_tokens=shard_tokens))


def write_shard(
  folder: str,
  name: str,
  slices: Sequence[merge_shards.ShardSlice],
  vocab_size: int,
) -> None:
  """Writes a shard of the corpus and, separately, its entry in meta.json."""
  corpus = os.path.join(folder, "corpus")
  total, files, counts = merge_shards.write_shard(
    corpus, name, slices, vocab_size=vocab_size
  )
  entry = _json_array({"total": total, "files": files})
  digests = shards.block_hashes(os.path.join(corpus, f"{name}{shards.TOKENS}"))
  hashes = np.frombuffer(digests, np.uint8)
  save_arrays(folder, "shards", name, counts=counts, entry=entry, hashes=hashes)


def load_shard(folder: str, name: str) -> tuple[dict, dict, np.ndarray, bytes]:
  """Returns the result of merge_shards.write_shard, and shards.block_hashes."""
  entry, counts, hashes = (
    load_array(folder, "shards", name, array)
    for array in ("entry", "counts", "hashes")
  )
  entry = parse_json(entry.tobytes())
  return entry["total"], entry["files"], counts, hashes.tobytes()


def _json_array(value: Any) -> np.ndarray:
  return np.frombuffer(json.dumps(value).encode(), np.uint8)
