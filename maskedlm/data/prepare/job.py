"""The folder in which a run of beam.py works: what it is to do, and its files.

run.json says what all stages (stages.py, order.py) share; each stage has a
folder with a file for each piece of the source. A file appears by a rename when
it is whole, so what is there needs not be done again.
"""

import contextlib
import json
import os
import shutil
import uuid
from typing import NamedTuple

import numpy as np
from ml_collections import ConfigDict

from maskedlm.core.errors import CorpusError
from maskedlm.data.corpus import shards
from maskedlm.data.sources import languages, reader
from maskedlm.data.sources.languages import Part


class Job(NamedTuple):
  """What all stages of a run share; run.json in the folder holds it."""

  folder: str
  config: ConfigDict
  pieces: list[tuple[Part, reader.Piece]]


def load(folder: str) -> Job:
  """The job that `start` has put into the folder."""
  with open(os.path.join(folder, "run.json"), encoding="utf-8") as file:
    run = json.load(file)
  pieces = [
    (
      Part(**piece["part"]),
      reader.Piece(tuple(piece["paths"]), range(*piece["records"])),
    )
    for piece in run["pieces"]
  ]
  return Job(folder, ConfigDict(run["config"]), pieces)


def start(job: Job) -> None:
  """Writes run.json, or sees that the one that is there is the same.

  Raises CorpusError for the folder of a run with other options or other text,
  and for one that holds something else.
  """
  run = {
    "config": {
      "seed": job.config.seed,
      "corpus": {
        **job.config.corpus.to_dict(),
        # These may change meanwhile.
        "path": "",
        "num_workers": 0,
      },
      "tokenizer": job.config.tokenizer.to_dict(),
    },
    "pieces": [
      {
        "part": part._asdict(),
        "paths": list(piece.paths),
        "records": [piece.records.start, piece.records.stop],
        "bytes": sum(map(os.path.getsize, piece.paths)),
      }
      for part, piece in job.pieces
    ],
  }
  path = os.path.join(job.folder, "run.json")
  if os.path.exists(path):
    with open(path, encoding="utf-8") as file:
      there = json.load(file)
    if there != run:
      differs = [
        k
        for k in ("corpus", "tokenizer", "seed")
        if there["config"][k] != run["config"][k]
      ]
      raise CorpusError(
        f"{job.folder}: an unfinished run with other "
        f"{' and '.join(differs) + ' options' if differs else 'text'} is there;"
        " give the same ones to continue it, or remove the folder."
      )
    return
  names = os.listdir(job.folder) if os.path.lexists(job.folder) else []
  if not all(n.startswith("run.json.") for n in names):  # Half of one.
    raise CorpusError(
      f"{job.folder}: prepare works there, but what is there isn't its own;"
      " move that away, or use another path."
    )
  with shards.new_file(path) as file:
    file.write(json.dumps(run).encode())


def cut(config: ConfigDict, num_bytes: int) -> list:
  """The pieces of the source, or of one part after the other."""
  found = []
  for part in languages.parse(config.corpus):
    with languages.naming(part.name):
      pieces = reader.pieces(
        part.source, text_field=config.corpus.text_field, num_bytes=num_bytes
      )
    found += [(part, piece) for piece in pieces]
  return found


def result(folder: str, stage: str, index: int | str) -> str:
  """Where a stage's file (or folder) of a piece is."""
  name = index if isinstance(index, str) else f"{index:06d}"
  return os.path.join(folder, stage, name)


# Files


def load_array(folder: str, stage: str, index: int, name: str) -> np.ndarray:
  with np.load(result(folder, stage, index)) as arrays:
    return arrays[name]


def save_arrays(path: str, **arrays: np.ndarray) -> None:
  with shards.new_file(path) as file:
    np.savez(file, **arrays)


@contextlib.contextmanager
def new_folder(path: str):
  """A folder that is there when it is whole; if one is there already, that."""
  work = f"{path}.{uuid.uuid4().hex}"
  os.makedirs(work)
  try:
    yield work
    if not os.path.exists(path):
      os.rename(work, path)
  finally:
    shutil.rmtree(work, ignore_errors=True)
