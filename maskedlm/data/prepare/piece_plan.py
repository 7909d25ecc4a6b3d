"""Which documents a piece of the source has in the corpus, and in which order.

Beside stages.py. documents.split lets a few documents wait for those to come;
here it is given all of them by their digests alone, and what it says is noted
for each piece. From the lengths of their sentences follows which ones the
tokenizer is trained on. Read top-down: plan -> reading by it -> the sample.
"""

import functools
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from maskedlm.data.corpus import shards
from maskedlm.data.prepare import dedup, documents
from maskedlm.data.prepare import job as job_lib
from maskedlm.data.prepare.documents import Document
from maskedlm.data.sources.languages import Part
from maskedlm.data.sources.sentences import split_sentences

TRAIN = shards.SPLITS.index("train")


def plan(folder: str) -> None:
  """Writes for each piece the documents that are its: their order and side.

  documents.split lets some wait, so a document may come after those of a later
  piece, which then has it.
  """
  job = job_lib.load(folder)
  numbered = enumerate(part for part, _ in job.pieces)
  for part, group in itertools.groupby(numbered, lambda pair: pair[1]):
    indices = [index for index, _ in group]
    _plan_part(job, part, indices)


def _plan_part(job: job_lib.Job, part: Part, indices: list[int]) -> None:
  current = indices[0]
  unique = dedup.are_dropped(job.config.corpus)
  load = functools.partial(job_lib.load_array, job.folder)
  if unique:
    fates = [load("fates", index, "fate") for index in indices]
    dedup.check_part(part.name, np.concatenate(fates))

  def read():
    nonlocal current
    for current in indices:
      digests = load("survey", current, "digests").tolist()
      if unique:
        fate = load("fates", current, "fate")
        places = np.flatnonzero(fate == dedup.KEPT).tolist()
      else:
        places = range(len(digests))
      for place in places:
        key = documents.key_of(digests[place])
        yield Document((current, place), key, 0, part)

  def write(index, rows):
    columns = np.array(rows, np.int64).reshape(-1, 3).T
    job_lib.save_arrays(
      job_lib.result(job.folder, "plan", index),
      **dict(zip(("split", "piece", "place"), columns, strict=True)),
    )

  rows, index = [], indices[0]
  share = job.config.corpus.heldout_share
  for split, document in documents.split(read(), share):
    while index < current:
      write(index, rows)
      rows, index = [], index + 1
    rows.append((shards.SPLITS.index(split), *document.lines))
  for rest in range(index, indices[-1] + 1):
    write(rest, rows)
    rows = []


def in_order(job: job_lib.Job, index: int, wanted: Callable = lambda row: True):
  """(row, split, Document) of the plan of a piece; of rows that are wanted.

  Documents of other pieces are few; they are looked up before.
  """
  rows = _rows(job.folder, index)
  rows = [row for row in enumerate(rows) if wanted(row[0])]
  places = {}  # Piece -> documents of it that are read.
  for _, (_, piece, place) in rows:
    places.setdefault(piece, set()).add(place)

  def read(piece):
    found = enumerate(
      documents.read_piece(job.config, *job.pieces[piece], Counter())
    )
    for place, document in found:
      if place in places[piece]:
        yield (piece, place), document

  held = {}
  for piece in places.keys() - {index}:
    held.update(read(piece))
  stream = read(index) if index in places else iter(())
  last = None
  for row, (split, *name) in rows:
    if last is None or last[0] != tuple(name):  # Copies stand together.
      while tuple(name) not in held:
        found, document = next(stream)
        held[found] = document
      last = tuple(name), held.pop(tuple(name))
    yield row, shards.SPLITS[split], last[1]


def _rows(folder: str, index: int) -> list[list[int]]:
  """[split, piece, document] of each document of the plan of a piece."""
  names = ("split", "piece", "place")
  columns = [job_lib.load_array(folder, "plan", index, name) for name in names]
  return np.stack(columns, axis=1).tolist()


# The sample


def sentences(job: job_lib.Job, document: Document) -> list[str]:
  """The sentences of a document, as the config says."""
  return split_sentences(
    document.lines,
    mode=job.config.corpus.sentences,
    language=document.part.language,
    report=Counter(),  # `encode` splits again, and counts.
  )


class Sampled(NamedTuple):
  """Of a piece's sentences for training, those that the tokenizer sees."""

  counts: np.ndarray  # Sentences of each row of the plan; 0 if held out.
  sizes: np.ndarray  # Bytes of each one.


def lines_of(folder: str, index: int) -> Sampled:
  """The sentences for training of a piece's plan, by their lengths."""
  rows = np.array(_rows(folder, index), np.int64).reshape(-1, 3)
  counts, sizes = np.zeros(len(rows), np.int64), []
  changes = np.flatnonzero(np.diff(rows[:, 1])) + 1
  for run in np.split(np.arange(len(rows)), changes):
    run = run[rows[run, 0] == TRAIN]
    if not len(run):
      continue
    of = functools.partial(
      job_lib.load_array, folder, "survey", int(rows[run[0], 1])
    )
    starts = shards.offsets(of("counts"))
    places = rows[run, 2]
    counts[run] = starts[places + 1] - starts[places]
    # The lines of each document: places in `sizes` of the survey.
    ends = np.cumsum(counts[run])
    line = np.arange(ends[-1]) - np.repeat(ends - counts[run], counts[run])
    sizes.append(of("sizes")[np.repeat(starts[places], counts[run]) + line])
  return Sampled(counts, np.concatenate([np.empty(0, np.uint32), *sizes]))


def stride(
  lines: Iterable[np.ndarray], max_bytes: int
) -> tuple[int, list[int], int]:
  """(k, where each piece's sentences begin, their number) of the sample.

  As tokenizer_train.sample has it, k is the least power of two for which every
  k-th sentence fits; lines: bytes of the sentences of each piece, in order.
  """
  powers = 1 << np.arange(48)
  total, count = np.zeros(48, np.int64), np.zeros(48, np.int64)
  starts, start = [], 0
  for sizes in lines:
    starts.append(start)
    for i, power in enumerate(powers.tolist()):
      taken = sizes[-start % power :: power]
      total[i] += int(taken.sum(dtype=np.int64))
      count[i] += len(taken)
    start += len(sizes)
  fits = (total <= max_bytes) | (count <= 1)
  return int(powers[np.argmax(fits)]), starts, start


def sample(folder: str, index: int, start: int, step: int) -> None:
  """Writes every step-th sentence for training of a piece; start is its first.

  That number counts from the first sentence of the part.
  """
  job = job_lib.load(folder)
  begins = start + shards.offsets(lines_of(folder, index).counts)
  first = -(-begins[:-1] // step) * step  # That is taken, from a row on.
  wanted = first < begins[1:]
  found = []
  for row, _, document in in_order(job, index, wanted.__getitem__):
    found += sentences(job, document)[first[row] - begins[row] :: step]
  with shards.new_file(job_lib.result(folder, "sample", index)) as file:
    file.write(json.dumps(found).encode())


def sampled(folder: str, index: int) -> list[str]:
  """What `sample` has written."""
  with open(job_lib.result(folder, "sample", index), "rb") as file:
    return json.load(file)
