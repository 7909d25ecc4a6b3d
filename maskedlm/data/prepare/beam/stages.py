"""The stages of `prepare` on pieces of the source, for many machines.

runner.py has Beam run them. The source is cut into pieces (files). Each
function here takes the number of one and reads and writes files in a folder
that all workers share (job.py); it depends on nothing else. In their order:

  survey      digests, band hashes and sentence lengths of each document
  duplicates  which documents stood before (grouped by hash, over all pieces)
  plan        each piece's documents, their splits and order, and
  sample      every k-th sentence for training, for the tokenizer: piece_plan.py
  encoded     the documents' tokens, as small shards
  shards      the corpus's shards, made of slices of the small ones

The work is done by the functions that local.py is made of (dedup.py,
documents.py, sources/, encode.py, corpus/shards.py), on the same documents in
the same order: the plan is documents.split_documents of all digests, and the
sample's k and the shards' bounds follow from lengths. So the corpus is the
same, byte for byte.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from maskedlm.data.corpus import domain_splits, shards
from maskedlm.data.prepare import dedup, documents, encode, vocabulary_sample
from maskedlm.data.prepare.beam import job as job_lib
from maskedlm.data.prepare.beam import merge_shards, piece_plan
from maskedlm.data.sources import domains
from maskedlm.data.tokenizers import training
from maskedlm.runtime import output_files

# survey


def survey(folder: str, index: int) -> Counter:
  """Reads a piece and writes what the decisions about it need.

  Returns:
    The report of reading it.
  """
  job, report = job_lib.load_job(folder), Counter()
  trains = not job.config.tokenizer.path
  threshold = job.config.corpus.near_duplicates
  signatures, counts, sizes = [dedup.compute_signatures([], threshold)], [], []
  stream = documents.read_piece(job.config, *job.pieces[index], report)
  for chunk in documents.make_chunks(("", document) for document in stream):
    chunk = [document for _, document in chunk]
    signatures.append(dedup.compute_signatures(chunk, threshold))
    for document in chunk if trains else ():
      sentences = vocabulary_sample.document_sentences(job.config, document)
      counts.append(len(sentences))
      sizes += map(training.utf8_length, sentences)
  digests, bands, characters = map(
    np.concatenate, zip(*signatures, strict=True)
  )
  job_lib.save_arrays(
    folder,
    "survey",
    index,
    digests=digests,
    bands=bands,
    characters=characters,
    counts=np.array(counts, np.int64),
    sizes=np.array(sizes, np.uint32),
    report=_json_array(report),
  )
  return report


def survey_report(folder: str, index: int) -> Counter:
  """Returns the report of reading a piece."""
  report = job_lib.load_array(folder, "survey", index, "report")
  return Counter(json.loads(report.tobytes()))


# duplicates

_DIGEST = -1  # Instead of a band's number.


def band_hashes(folder: str, index: int, num_groups: int) -> Iterator[tuple]:
  """Yields a piece's hashes: ((band, group), (piece, hashes, documents)).

  Equal hashes are in the same group, so that each group can be searched alone.
  """
  digests, bands = (
    job_lib.load_array(folder, "survey", index, name)
    for name in ("digests", "bands")
  )
  for band, values in ((_DIGEST, digests), *enumerate(bands.T)):
    groups = values % np.uint64(num_groups)
    for group in np.unique(groups):
      places = np.flatnonzero(groups == group)
      yield (band, int(group)), (index, values[places], places)


def mark_duplicates(
  key: tuple[int, int], hashes: Iterable[tuple]
) -> Iterator[tuple]:
  """Yields (piece, (status, documents)) of documents with an earlier hash.

  Args:
    key: band and group.
    hashes: (piece, hashes, documents) of the group, from `band_hashes`.
  """
  hashes = sorted(hashes, key=lambda part: part[0])
  repeated = dedup.find_repeated(
    np.concatenate([values for _, values, _ in hashes])
  )
  status = dedup.EQUAL if key[0] == _DIGEST else dedup.SIMILAR
  bounds = shards.offsets(len(values) for _, values, _ in hashes)
  owner = np.searchsorted(bounds, repeated, side="right") - 1
  for i in np.unique(owner):
    index, _, places = hashes[i]
    yield index, (status, places[repeated[owner == i] - bounds[i]])


def write_status(folder: str, index: int, marks: Iterable[tuple]) -> Counter:
  """Writes the status of each document of a piece; returns what is dropped.

  Args:
    folder: of the job.
    index: of the piece.
    marks: (status, documents) from `mark_duplicates`, or None.
  """
  characters = job_lib.load_array(folder, "survey", index, "characters")
  status = np.full(len(characters), dedup.KEPT, np.uint8)
  # EQUAL comes last and overwrites SIMILAR.
  for value, places in sorted(filter(None, marks), key=lambda mark: -mark[0]):
    status[places] = value
  job_lib.save_arrays(folder, "duplicates", index, status=status)
  return Counter(dedup.count_dropped(status, characters))


def count_dropped(folder: str, index: int) -> Counter:
  """Returns what `write_status` returned."""
  characters = job_lib.load_array(folder, "survey", index, "characters")
  status = job_lib.load_array(folder, "duplicates", index, "status")
  return Counter(dedup.count_dropped(status, characters))


# encoded


def encode_piece(folder: str, index: int, vocab_size: int) -> Counter:
  """Writes a folder of small shards with the tokens of a piece's plan.

  Returns:
    The report of encoding it.
  """
  job, report = job_lib.load_job(folder), Counter()
  parts = domain_splits.empty_counts(domains.parse_domains(job.config.corpus))
  encoder = encode.make_encoder(
    os.path.join(folder, "tokenizer"),
    job.config.corpus.sentences,
    job.config.corpus.max_sentence_tokens,
  )
  chunks = documents.make_chunks(
    (split, document)
    for _, split, document in piece_plan.read_planned(job, index)
  )
  path = job_lib.result_path(folder, "encoded", index)
  with output_files.whole_folder(path) as work:
    splits = shards.write_shards(
      work,
      encode.unpack_documents(map(encoder, chunks), report, parts),
      vocab_size=vocab_size,
      shard_tokens=shards.MAX_TOKENS - 1,
    )
    result = {"splits": splits, "report": report, "parts": parts}
    with open(os.path.join(work, "result.json"), "w") as file:
      json.dump(result, file)
  return report


def load_encoded(folder: str, index: int) -> dict[str, Any]:
  """Returns a piece's splits (of write_shards), report and parts' counts."""
  path = job_lib.result_path(folder, "encoded", index)
  with open(os.path.join(path, "result.json"), "rb") as file:
    return json.load(file)


# shards


def plan_shards(
  folder: str, split: str, num_pieces: int, shard_tokens: int
) -> list[list[merge_shards.ShardSlice]]:
  """Returns the slices of small shards that each shard of a split has."""
  names = (
    (job_lib.result_path(folder, "encoded", index), shards.shard_name(split, i))
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
  """Writes a shard of the corpus and, apart from it, its entry in meta.json."""
  total, files, counts = merge_shards.write_shard(
    os.path.join(folder, "corpus"), name, slices, vocab_size=vocab_size
  )
  entry = _json_array({"total": total, "files": files})
  job_lib.save_arrays(folder, "shards", name, counts=counts, entry=entry)


def load_shard(folder: str, name: str) -> tuple[dict, dict, np.ndarray]:
  """Returns what merge_shards.write_shard returned for a shard."""
  entry, counts = (
    job_lib.load_array(folder, "shards", name, array)
    for array in ("entry", "counts")
  )
  entry = json.loads(entry.tobytes())
  return entry["total"], entry["files"], counts


def _json_array(value: Any) -> np.ndarray:
  return np.frombuffer(json.dumps(value).encode(), np.uint8)
