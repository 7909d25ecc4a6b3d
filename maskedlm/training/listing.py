"""Lists the checkpoints of a run, also those that can't be used."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from maskedlm.core.counts import sized
from maskedlm.core.errors import CheckpointError
from maskedlm.runtime import buckets, console, storage_errors
from maskedlm.training.checkpoints import files, manifest


def list_steps(workdir: str | Path) -> Iterator[dict[str, Any]]:
  """Yields what is known of each checkpoint, in the order of their steps.

  Every file is read and compared with its SHA-256. Keys:
    step: its number.
    heldout: the held-out loss; of a fine-tuned model, the task's metric. None
      if it was not measured or can't be read.
    best: whether no other usable step is better.
    bytes: the size of its files.
    problem: why it can't be used; None if it can.

  Args:
    workdir: WORKDIR or WORKDIR/checkpoints, a folder or an address.

  Raises:
    CheckpointError: there is none.
    ConfigError, StorageError: the folder can't be read.
  """
  path = buckets.origin(workdir)
  directory = path / "checkpoints"
  directory = directory if directory.is_dir() else path
  with storage_errors.bucket_errors(directory):
    steps = files.all_steps(directory)
    if not steps:
      raise CheckpointError(
        f"{workdir} has no checkpoint: expected the workdir of a run."
      )
    best = files.ranked_steps(directory)[:1]
    for step, folder in steps:
      yield {
        "step": step,
        **_facts(folder),
        "best": folder.name in map(str, best),
      }


def _facts(folder: Path) -> dict[str, Any]:
  """Returns heldout, bytes and problem of a step's folder."""
  problem = manifest.find_damage(folder)
  if not problem and not manifest.is_step(folder.name):
    problem = f"renamed to {folder.name}"
  record = manifest.find_record(folder)
  names = buckets.list_files(folder)
  return {
    "heldout": _heldout(record) if record else None,
    "bytes": sum((folder / name).stat().st_size for name in names),
    "problem": problem,
  }


def _heldout(record: dict) -> float | None:
  """Returns the loss or the metric of which a record has the rank."""
  rank = record["metric"]
  is_fine_tuned = "kind" in record["meta"].get("task", {})
  return -rank if is_fine_tuned and rank is not None else rank


def format_steps(steps: list[dict[str, Any]]) -> list[str]:
  """Returns the lines of a table of list_steps."""
  return console.table(
    ("step", "held out", "size", ""),
    (
      (
        f"{s['step']:,}",
        None if s["heldout"] is None else f"{s['heldout']:.4f}",
        sized(s["bytes"]),
        s["problem"] or ("best" if s["best"] else ""),
      )
      for s in steps
    ),
    align=">>><",
  )
