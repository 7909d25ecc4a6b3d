"""The work of `prepare` cut into pieces that many machines can do: the stages.

Below beam.py, which says who does them. A source is cut into pieces (files);
each function here takes the number of one, reads and writes files of a folder
that all workers share (job.py), and depends on nothing else. In their order:

  survey      digests, band hashes and lengths of sentences of each document
  verdicts    which documents stood before (grouped by hash, over all pieces)
  plan        which documents are whose, on which side, in which order, and
  sample      every k-th sentence of those for training, for the tokenizer:
              order.py has both
  encode      their tokens, as small shards
  reshard     the corpus's shards, of runs of the small ones

The functions that the local runner is made of do the work (duplicates.py,
documents.split, sources.py, encode.py, shards.py), on the same documents in the
same order: `plan` puts the documents, by their digests alone, through
documents.split, and the sample's k and the shards' bounds follow from lengths.
So the bytes are the same.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from maskedlm.data.corpus import language_parts, shards
from maskedlm.data.prepare import (
  dedup,
  documents,
  encode,
  merge_shards,
  piece_plan,
)
from maskedlm.data.prepare import job as job_lib
from maskedlm.data.sources import languages
from maskedlm.data.tokenizers import training

# survey


def survey(folder: str, index: int) -> Counter:
  """Reads a piece, and notes what the decisions about it need."""
  job, report = job_lib.load(folder), Counter()
  trains = not job.config.tokenizer.path
  signatures, counts, sizes = [_no_signatures(job)], [], []
  read = documents.read_piece(job.config, *job.pieces[index], report)
  for chunk in documents.chunked(("", document) for document in read):
    found = [document for _, document in chunk]
    signatures.append(
      dedup.signatures(found, job.config.corpus.near_duplicates)
    )
    for document in found if trains else ():
      sentences = piece_plan.sentences(job, document)
      counts.append(len(sentences))
      sizes += map(training.num_bytes, sentences)
  digests, bands, characters = map(
    np.concatenate, zip(*signatures, strict=True)
  )
  job_lib.save_arrays(
    job_lib.result(folder, "survey", index),
    digests=digests,
    bands=bands,
    characters=characters,
    counts=np.array(counts, np.int64),
    sizes=np.array(sizes, np.uint32),
    report=np.frombuffer(json.dumps(report).encode(), np.uint8),
  )
  return report


def _no_signatures(job: job_lib.Job) -> dedup.Signatures:
  return dedup.signatures([], job.config.corpus.near_duplicates)


def report_of(folder: str, index: int) -> Counter:
  """What was found when the piece was read."""
  return Counter(
    json.loads(job_lib.load_array(folder, "survey", index, "report").tobytes())
  )


# verdicts

_EXACT = -1  # Instead of a band's number.


def spread(folder: str, index: int, num_groups: int) -> Iterator[tuple]:
  """The piece's hashes, ((band, group), (piece, hashes, their documents)).

  Equal hashes have the same group, so that each can be looked at alone.
  """
  digests, bands = (
    job_lib.load_array(folder, "survey", index, name)
    for name in ("digests", "bands")
  )
  for band, values in ((_EXACT, digests), *enumerate(bands.T)):
    groups = values % np.uint64(num_groups)
    for group in np.unique(groups):
      places = np.flatnonzero(groups == group)
      yield (band, int(group)), (index, values[places], places)


def judge(key: tuple[int, int], found: Iterable[tuple]) -> Iterator[tuple]:
  """(piece, (fate, documents)) of those whose hash an earlier one has."""
  found = sorted(found, key=lambda part: part[0])
  again = dedup.repeated(np.concatenate([values for _, values, _ in found]))
  fate = dedup.COPY if key[0] == _EXACT else dedup.SIMILAR
  bounds = shards.offsets(len(values) for _, values, _ in found)
  piece = np.searchsorted(bounds, again, side="right") - 1
  for i in np.unique(piece):
    index, _, places = found[i]
    yield index, (fate, places[again[piece == i] - bounds[i]])


def note(folder: str, index: int, verdicts: Iterable[tuple]) -> Counter:
  """Writes the fate of each document of a piece; counts what is dropped."""
  characters = job_lib.load_array(folder, "survey", index, "characters")
  fate = np.full(len(characters), dedup.KEPT, np.uint8)
  # COPY comes last. Every piece has an empty verdict, so that it has a file.
  for kind, places in sorted(filter(None, verdicts), key=lambda v: -v[0]):
    fate[places] = kind
  job_lib.save_arrays(job_lib.result(folder, "fates", index), fate=fate)
  return Counter(dedup.dropped(fate, characters))


def dropped(folder: str, index: int) -> Counter:
  """What `note` has counted."""
  characters = job_lib.load_array(folder, "survey", index, "characters")
  fate = job_lib.load_array(folder, "fates", index, "fate")
  return Counter(dedup.dropped(fate, characters))


# encode


def encode_piece(folder: str, index: int, vocab_size: int) -> Counter:
  """Writes the tokens of a piece's plan as small shards, a folder of them."""
  job, report = job_lib.load(folder), Counter()
  counts = language_parts.empty_counts(languages.parse(job.config.corpus))
  encoder = encode.make_encoder(
    os.path.join(folder, "tokenizer"),
    job.config.corpus.sentences,
    job.config.corpus.max_sentence_tokens,
  )
  chunks = documents.chunked(
    (split, document) for _, split, document in piece_plan.in_order(job, index)
  )
  with job_lib.new_folder(job_lib.result(folder, "encoded", index)) as work:
    splits = shards.write_shards(
      work,
      encode.unpack(map(encoder, chunks), report, counts),
      vocab_size=vocab_size,
      shard_tokens=shards.MAX_TOKENS - 1,
    )
    found = {"splits": splits, "report": report, "parts": counts}
    with open(os.path.join(work, "found.json"), "w") as file:
      json.dump(found, file)
  return report


def encoded(folder: str, index: int) -> dict:
  """Of a piece: splits (as write_shards), report and parts' counts."""
  path = os.path.join(job_lib.result(folder, "encoded", index), "found.json")
  with open(path, "rb") as file:
    return json.load(file)


# reshard


def layout(folder: str, split: str, num_pieces: int, shard_tokens: int):
  """The runs of each shard of a split."""
  names = (
    (job_lib.result(folder, "encoded", index), shards.shard_name(split, i))
    for index in range(num_pieces)
    for i in range(len(encoded(folder, index)["splits"][split]["shards"]))
  )
  return list(merge_shards.layout(names, shard_tokens=shard_tokens))


def reshard(
  folder: str, name: str, runs: Sequence[merge_shards.Run], vocab_size: int
) -> None:
  """Writes a shard of the corpus, and beside it what meta.json says of it."""
  total, files, counts = merge_shards.write(
    os.path.join(folder, "corpus"), name, runs, vocab_size=vocab_size
  )
  found = {"total": total, "files": files}
  job_lib.save_arrays(
    os.path.join(folder, "shards", name),
    counts=counts,
    found=np.frombuffer(json.dumps(found).encode(), np.uint8),
  )


def shard(folder: str, name: str) -> tuple[dict, dict, np.ndarray]:
  """The three that `reshard` has noted of a shard."""
  with np.load(os.path.join(folder, "shards", name)) as found:
    values = json.loads(found["found"].tobytes())
    return values["total"], values["files"], found["counts"]
