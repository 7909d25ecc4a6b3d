"""Plans the documents that each piece of the source has in the corpus.

documents.split_documents delays a few documents until later ones are read. Here
it runs on the digests of all documents alone, and its decisions are recorded
for each piece. The lengths of the sentences then determine those on which the
tokenizer is trained. In order: the plan, reading by it, the sample.
"""

import functools
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from maskedlm.core.parse_json import parse_json
from maskedlm.data.corpus import shards
from maskedlm.data.prepare import dedup, documents, vocabulary_sample
from maskedlm.data.prepare.beam.job import (
  Job,
  load_array,
  load_job,
  result_path,
  save_arrays,
)
from maskedlm.data.prepare.documents import Document
from maskedlm.data.sources.domains import Domain
from maskedlm.runtime import output_files

TRAIN = shards.SPLITS.index("train")


def write_plan(folder: str) -> None:
  """Writes the plan of each piece: its documents' splits and order.

  A document that documents.split_documents delays may come after those of a
  later piece, and is then in the plan of that piece.
  """
  job = load_job(folder)
  numbered = enumerate(domain for domain, _ in job.pieces)
  for domain, group in itertools.groupby(numbered, lambda pair: pair[1]):
    indices = [index for index, _ in group]
    _plan_domain(job, domain, indices)


def _plan_domain(job: Job, domain: Domain, indices: list[int]) -> None:
  current = indices[0]
  deduplicates = dedup.is_enabled(job.config.corpus)
  load = functools.partial(load_array, job.folder)
  if deduplicates:
    statuses = [load("duplicates", index, "status") for index in indices]
    dedup.check_domain(domain.name, np.concatenate(statuses))

  def read():
    nonlocal current
    for current in indices:
      digests = load("survey", current, "digests").tolist()
      if deduplicates:
        status = load("duplicates", current, "status")
        places = np.flatnonzero(status == dedup.KEPT).tolist()
      else:
        places = range(len(digests))
      for place in places:
        key = documents.split_key(digests[place])
        # An address for the lines; of 0 bytes, so it isn't cut into windows.
        yield Document((current, place), key, 0, domain)

  def write(index, rows):
    columns = np.array(rows, np.int64).reshape(-1, 3).T
    arrays = dict(zip(("split", "piece", "place"), columns, strict=True))
    save_arrays(job.folder, "plan", index, **arrays)

  rows: list[tuple] = []
  index = indices[0]
  share = job.config.corpus.heldout_share
  for split, document in documents.split_documents(read(), share):
    while index < current:
      write(index, rows)
      rows, index = [], index + 1
    rows.append((shards.SPLITS.index(split), *document.lines))
  for rest in range(index, indices[-1] + 1):
    write(rest, rows)
    rows = []


def read_planned(
  job: Job, index: int, is_wanted: Callable[[int], bool] = lambda row: True
) -> Iterator[tuple[int, str, Document]]:
  """Yields (row, split, document) for the wanted rows of a piece's plan.

  The few documents of other pieces are read first.
  """
  rows = _load_plan(job.folder, index).tolist()
  rows = [row for row in enumerate(rows) if is_wanted(row[0])]
  places: dict[int, set[int]] = {}  # Piece -> its documents that are read.
  for _, (_, piece, place) in rows:
    places.setdefault(piece, set()).add(place)

  def read(piece):
    stream = documents.read_piece(job.config, *job.pieces[piece], Counter())
    for place, document in enumerate(stream):
      if place in places[piece]:
        yield (piece, place), document

  waiting = {}
  for piece in places.keys() - {index}:
    waiting.update(read(piece))
  stream = read(index) if index in places else iter(())
  last = None
  for row, (split, *address) in rows:
    address = tuple(address)
    if last is None or last[0] != address:  # Copies are adjacent.
      while address not in waiting:
        waiting.update([next(stream)])
      last = address, waiting.pop(address)
    yield row, shards.SPLITS[split], last[1]


def _load_plan(folder: str, index: int) -> np.ndarray:
  """Returns the plan [n, 3] of a piece: split, piece, document."""
  names = ("split", "piece", "place")
  columns = [load_array(folder, "plan", index, name) for name in names]
  return np.stack(columns, axis=1)


# The sample


def load_sentence_sizes(
  folder: str, index: int
) -> tuple[np.ndarray, np.ndarray]:
  """Returns numbers and sizes of the training sentences of a piece's plan.

  They are [n], the sentences of each row of the plan, 0 if it is held out; and
  the bytes of each sentence.
  """
  rows = _load_plan(folder, index)
  counts, sizes = np.zeros(len(rows), np.int64), []
  changes = np.flatnonzero(np.diff(rows[:, 1])) + 1
  for run in np.split(np.arange(len(rows)), changes):  # Rows of one piece.
    run = run[rows[run, 0] == TRAIN]
    if not len(run):
      continue
    load = functools.partial(load_array, folder, "survey", int(rows[run[0], 1]))
    starts = shards.offsets(load("counts"))
    places = rows[run, 2]
    counts[run] = starts[places + 1] - starts[places]
    # Indices in the survey's `sizes` of the sentences of each document.
    ends = np.cumsum(counts[run])
    line = np.arange(ends[-1]) - np.repeat(ends - counts[run], counts[run])
    sizes.append(load("sizes")[np.repeat(starts[places], counts[run]) + line])
  return counts, np.concatenate([np.empty(0, np.uint32), *sizes])


def choose_stride(
  sizes: Iterable[np.ndarray], max_bytes: int
) -> tuple[int, list[int], int]:
  """Chooses a domain's sample of sentences, as training.sample_sentences does.

  `sizes` has for each piece, in order, [n], the bytes of its sentences.

  Returns:
    k, the smallest power of two for which every k-th sentence fits; the index
    of each piece's first sentence; the number of sentences.
  """
  powers = 1 << np.arange(48)
  total, count = np.zeros(48, np.int64), np.zeros(48, np.int64)
  starts, start = [], 0
  for piece in sizes:
    starts.append(start)
    for i, power in enumerate(powers.tolist()):
      sampled = piece[-start % power :: power]
      total[i] += int(sampled.sum(dtype=np.int64))
      count[i] += len(sampled)
    start += len(piece)
  fits = (total <= max_bytes) | (count <= 1)
  return int(powers[np.argmax(fits)]), starts, start


def write_sample(folder: str, index: int, start: int, step: int) -> None:
  """Writes every step-th of a piece's training sentences.

  `start` is the index of the piece's first sentence in its domain, and `step`
  the k of `choose_stride`.
  """
  job = load_job(folder)
  begins = start + shards.offsets(load_sentence_sizes(folder, index)[0])
  # The first sampled sentence at or after the beginning of each row.
  first = -(-begins[:-1] // step) * step
  is_wanted = first < begins[1:]
  sample = []
  for row, _, document in read_planned(job, index, is_wanted.__getitem__):
    sentences = vocabulary_sample.document_sentences(job.config, document)
    sample += sentences[first[row] - begins[row] :: step]
  path = result_path(folder, "sample", index)
  with output_files.whole_file(path) as file:
    file.write(json.dumps(sample).encode())


def read_sample(folder: str, index: int) -> list[str]:
  """Returns the sentences that `write_sample` wrote."""
  with open(result_path(folder, "sample", index), "rb") as file:
    return parse_json(file.read())
