"""Manages the folder of a Beam run: its description, and files of arrays.

run.json describes the run for all workers; each stage (stages.py,
piece_plan.py) has a folder with a file per piece of the source. A file is
renamed into place when complete, so finished work need not be repeated.
"""

import json
import os
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from maskedlm.core.errors import CorpusError
from maskedlm.core.parse_json import parse_json
from maskedlm.data.corpus import manifest
from maskedlm.data.options import CorpusOptions, TextConfig, TokenizerOptions
from maskedlm.data.sources import domains, files, reader, same_files
from maskedlm.data.sources.domains import Domain
from maskedlm.runtime import output_files


class Job(NamedTuple):
  """The folder, config and pieces that all stages of a run share."""

  folder: str
  config: TextConfig
  pieces: list[tuple[Domain, reader.Piece]]


def load_job(folder: str) -> Job:
  """Loads the job that `start_job` wrote to the folder."""
  with open(os.path.join(folder, "run.json"), encoding="utf-8") as file:
    run = parse_json(file.read())
  pieces = [
    (
      Domain(**piece["part"]),
      reader.Piece(tuple(piece["paths"]), range(*piece["records"])),
    )
    for piece in run["pieces"]
  ]
  values = run["config"]
  config = TextConfig(
    seed=values["seed"],
    corpus=CorpusOptions(**values["corpus"]),
    tokenizer=TokenizerOptions(**values["tokenizer"]),
  )
  return Job(folder, config, pieces)


def start_job(job: Job) -> None:
  """Writes run.json, or checks that an existing one is the same.

  Raises:
    CorpusError: the folder belongs to a run with other options or other text,
      or holds other files.
  """
  # These may differ when a run is continued.
  varying = {"path": "", "num_workers": 0, "cache_gb": None}
  run = {
    "version": manifest.VERSION,
    "config": {
      "seed": job.config.seed,
      "corpus": vars(job.config.corpus) | varying,
      "tokenizer": vars(job.config.tokenizer),
    },
    "pieces": [
      {
        "part": domain._asdict(),
        "paths": list(piece.paths),
        "records": [piece.records.start, piece.records.stop],
        "bytes": sum(map(files.size, piece.paths)),
      }
      for domain, piece in job.pieces
    ],
  }
  path = os.path.join(job.folder, "run.json")
  if os.path.exists(path):
    with open(path, encoding="utf-8") as file:
      earlier = parse_json(file.read())
    if earlier.get("version") != manifest.VERSION:
      raise CorpusError(
        f"{job.folder} holds an unfinished run of another version of"
        " maskedlm; remove the folder to prepare the corpus from its start."
      )
    before, now = _canonical(earlier), _canonical(run)
    if before != now:
      names = ("corpus", "tokenizer", "seed")
      sections = [name for name in names if before[name] != now[name]]
      raise CorpusError(
        f"{job.folder} holds an unfinished run with other "
        f"{' and '.join(sections) + ' options' if sections else 'text'}; use"
        " the same to continue it, or remove the folder."
      )
    return
  entries = os.listdir(job.folder) if os.path.lexists(job.folder) else []
  if not all(n.startswith(".run.json.") for n in entries):  # Unfinished ones.
    raise CorpusError(
      f"{job.folder}: prepare works in this folder, but it holds other files;"
      " move them away, or use another path."
    )
  with output_files.whole_file(path) as file:
    file.write(json.dumps(run).encode())


def _canonical(run: dict[str, Any]) -> dict[str, Any]:
  """Returns what a continued run must keep, whatever its paths' spelling."""
  config = run["config"]
  sections = {
    section: {
      name: same_files.canonical(f"{section}.{name}", value)
      for name, value in config[section].items()
    }
    for section in ("corpus", "tokenizer")
  }
  pieces = [
    ([*map(os.path.realpath, piece["paths"])], piece["records"], piece["bytes"])
    for piece in run["pieces"]
  ]
  return {**sections, "seed": config["seed"], "pieces": pieces}


def list_pieces(
  config: TextConfig, num_bytes: int
) -> list[tuple[Domain, reader.Piece]]:
  """Returns the pieces of the source, or of all domains in their order."""
  pieces = []
  for domain in domains.parse_domains(config.corpus):
    with domains.errors_of_domain(domain.name):
      listed = reader.list_pieces(
        domain.source,
        text_field=config.corpus.text_field,
        num_bytes=num_bytes,
      )
      pieces += [(domain, piece) for piece in listed]
  return pieces


def result_path(folder: str, stage: str, name: int | str) -> str:
  """Returns the file or folder that a stage makes for a piece or shard."""
  name = name if isinstance(name, str) else f"{name:06d}"
  return os.path.join(folder, stage, name)


def is_done(folder: str, stage: str, names: Iterable[int | str]) -> bool:
  """Returns whether a stage has finished all of these pieces or shards."""
  return all(os.path.exists(result_path(folder, stage, n)) for n in names)


def load_array(
  folder: str, stage: str, name: int | str, array: str
) -> np.ndarray:
  """Loads one of the arrays that `save_arrays` wrote.

  Raises:
    CorpusError: the file is damaged.
  """
  path = result_path(folder, stage, name)
  try:
    with np.load(path) as arrays:
      return arrays[array]
  except output_files.NPZ_ERRORS as e:
    raise CorpusError(
      f"{path} is damaged ({e}): remove it, and run the same command again, "
      "which makes it again."
    ) from None


def save_arrays(
  folder: str, stage: str, name: int | str, **arrays: np.ndarray
) -> None:
  """Writes named arrays as a stage's result for a piece or shard."""
  with output_files.whole_file(result_path(folder, stage, name)) as file:
    np.savez(file, allow_pickle=False, **arrays)
