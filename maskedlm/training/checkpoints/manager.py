"""Saves checkpoints in the background, and restores the newest good one.

The loop calls `open_checkpoints` once, then `save`, `restore` and `close`; code
that uses a trained model reads it with load.py. Orbax writes and reads the
arrays, on any mesh. This module adds checks: Orbax alone would read a flipped
bit as another number, cast silently, and not fall back to an older step.
files.py decides which folders are complete and which to use. All processes of a
run call the same functions on a shared folder; only process 0 hashes, renames
and deletes.
"""

import concurrent.futures
import contextlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.core.errors import CheckpointError, ConfigError, StorageError
from maskedlm.runtime import buckets, multihost, storage_errors
from maskedlm.training.checkpoints import (
  files,
  manifest,
  read_back,
  state_fields,
)
from maskedlm.training.checkpoints.lock import lock_folder
from maskedlm.training.checkpoints.read_arrays import read_tree
from maskedlm.training.checkpoints.write_arrays import write_arrays

State = Any  # A NamedTuple of pytrees; one field is `params`, nested dicts.


class Checkpoints(NamedTuple):
  """The checkpoints of a workdir, which only this run may write."""

  # save(step, state, meta, *, metric): returns while the files are written.
  save: Callable[..., None]
  # update_metadata(step, meta, *, metric): replaces those of a saved step.
  update_metadata: Callable[..., None]
  # restore(like, check) -> (state, meta) of the newest good step, or None.
  restore: Callable[..., tuple[State, dict] | None]
  # check_room(state): raises StorageError if the disk lacks room for it.
  check_room: Callable[[State], None]
  steps: Callable[[], list[int]]  # Complete steps, in increasing order.
  wait: Callable[[], None]  # Until the last save is complete; raises its error.
  close: Callable[[], None]  # Waits, then lets another run open the workdir.


# The contents of a step.


def _leaves(state: State) -> dict[str, Any]:
  """Returns {path: array}, such as "params/encoder/embeddings/norm/scale"."""
  return {
    jax.tree_util.keystr(path, simple=True, separator="/"): x
    for path, x in jax.tree_util.tree_leaves_with_path(state)
  }


def _describe(state: State) -> dict[str, str]:
  """Returns {path: "float32[5,13]"} of arrays or ShapeDtypeStructs."""
  return {
    path: f"{x.dtype}[{','.join(map(str, x.shape))}]"
    for path, x in _leaves(state).items()
  }


@jax.jit
def _all_finite(arrays):
  return [jnp.isfinite(x).all() for x in arrays]


def _check_finite(state: State, step: int) -> None:
  """Raises CheckpointError if a value of the state is not finite."""
  leaves = _leaves(state)
  inexact = [p for p in leaves if jnp.issubdtype(leaves[p].dtype, jnp.inexact)]
  finite = jax.device_get(_all_finite([leaves[path] for path in inexact]))
  bad = [path for path, ok in zip(inexact, finite, strict=True) if not ok]
  if bad:
    raise CheckpointError(
      f"step {step} was not saved: {len(bad)} arrays, of which {bad[0]} is the "
      "first, have values that are not finite. Resume from the checkpoint "
      "before it."
    )


def _finite(metric: float | None) -> float | None:
  """Returns the metric, or None if it is not finite and can't be ranked."""
  return None if metric is None or not math.isfinite(metric) else float(metric)


def _check_same_arrays(saved: dict, wanted: dict, path: Path) -> None:
  """Raises CheckpointError if an array has another dtype or shape than wanted.

  Orbax would cast silently, or report a shape in a page of text.
  """
  for name in [*wanted, *saved]:
    if saved.get(name) != wanted.get(name):
      raise CheckpointError(
        f"checkpoint {path} doesn't fit: {name} is {saved.get(name, 'absent')} "
        f"there, {wanted.get(name, 'absent')} here. Use the config that it was "
        "saved with, or another --workdir."
      )


# Loading a step.


def _load_state(
  path: Path, like: State, check: Callable[[dict], None]
) -> tuple[State, dict]:
  record = manifest.read_record(path)
  check(manifest.meta(record))
  like, later = state_fields.leave_out(like, record["arrays"])
  _check_same_arrays(record["arrays"], _describe(like), path)
  beside = read_tree(path / "state", state_fields.beside_params(like))
  found = {**beside, "params": read_tree(path / "params", like.params), **later}
  return like._replace(**found), manifest.meta(record)


# The public functions.


def restore_from(
  path: str,
  like: State,
  check: Callable[[dict], None] = lambda meta: None,
  *,
  log: files.Log,
) -> tuple[State, dict]:
  """Loads the state of another run, which may be in progress.

  Args:
    path: its workdir, for the newest good step, or the folder of a step.
    like, check: as in Checkpoints.restore.
    log: receives a line for each step that is damaged.

  Raises:
    CheckpointError: no step can be used, or an array differs from `like`.
    ConfigError, StorageError: the folder can't be read.
  """
  # Host 0 decides, as another step may be complete when other hosts look.
  folder = multihost.broadcast_from_host0(
    lambda: str(
      files.load_step(
        buckets.origin(path), None, lambda x: x, items=("",), log=log
      )
    )
  )
  return _load_state(buckets.origin(folder), like, check)


def _saving(step: int, directory: Path):
  """Returns a context manager that raises I/O errors in one line."""

  def convert(error: Exception) -> Exception:
    try:
      intact = f"Steps {files.complete_steps(directory)}"
    except Exception:  # A bucket that can't be reached.
      intact = "Earlier steps"
    return storage_errors.as_user_error(
      f"saving step {step} in {directory} failed: "
      f"{storage_errors.reason(error)}. {intact} are intact",
      error,
      if_wrong="make it writable, or choose another --workdir.",
      if_temporary="make room or choose another --workdir, and run again to "
      "resume.",
    )

  return storage_errors.raise_as(convert)


def open_checkpoints(
  workdir: str | Path,
  *,
  keep_last: int,
  keep_best: int,
  log: files.Log,
  keep_every: int = 0,
) -> Checkpoints:
  """Opens WORKDIR/checkpoints for writing; deletes unfinished saves there.

  Args:
    workdir: a folder or an address; created if it doesn't exist.
    keep_last: how many of the newest steps to keep, at least 1, as a run
      resumes from the newest.
    keep_best: how many of the steps with the lowest metric to keep as well.
    log: receives a line for each step that is damaged or unfinished.
    keep_every: keep the multiples of this number of steps as well; 0 for none.

  Raises:
    ConfigError: the folder may not be written.
    CheckpointError: another run is writing to it.
    StorageError: it can't be written now.
  """
  directory = buckets.origin(workdir) / "checkpoints"
  primary = multihost.is_primary()
  multihost.run_on_all_hosts(
    lambda: files.check_names(directory) if primary else None
  )
  lock = multihost.run_on_all_hosts(
    lambda: lock_folder(directory) if primary else None
  )
  if primary:
    for name in files.clear_unfinished(directory):
      log(f"checkpoint {name} is deleted: its save was interrupted")
  background = concurrent.futures.ThreadPoolExecutor(1, "checkpoint")
  pending = None  # The save in progress.
  is_read_back = False  # Whether one was since the start.

  def finish(
    written: Callable[[], None], record: dict, sample: dict[str, np.ndarray]
  ) -> None:
    """Waits for the files, hashes them and deletes old steps."""
    step = record["step"]
    try:
      with _saving(step, directory):
        written()
        if primary:
          lock.check()
          read_back.check_readable(directory / str(step), sample)
          buckets.upload(workdir)  # Logs before the manifest.
          files.end(directory, record)
          files.delete_old(
            directory,
            keep_last=keep_last,
            keep_best=keep_best,
            keep_every=keep_every,
          )
    except (ConfigError, StorageError):
      if primary:
        with contextlib.suppress(Exception):  # Keep the first error.
          files.clear_unfinished(directory)  # A full disk gets its space back.
      raise

  def wait() -> None:
    """Waits until the last save is complete; raises its error every time.

    So nothing is saved after a failure, as writes that Orbax left running could
    end up in it.
    """
    if pending is not None:
      pending.result()

  def save(
    step: int, state: State, meta: dict, *, metric: float | None
  ) -> None:
    """Starts saving and returns; `state` may be donated at once.

    Args:
      step: its number, larger than that of every complete step.
      state: its arrays.
      meta: JSON-serializable.
      metric: ranks the step, lower is better; a step whose metric is None or
        not finite is never among the best.

    Raises:
      ConfigError, StorageError: this save or the one before failed.
      CheckpointError: the step is not the newest, a value of the state is not
        finite, the lock is lost, or the first save can't be read.
    """
    nonlocal pending, is_read_back  # A second save waits for the first.
    wait()
    with _saving(step, directory):
      newest = max(files.complete_steps(directory), default=-1)
    if step <= newest:
      raise CheckpointError(
        f"step {step} can't be saved: {directory} already has step {newest}. "
        "Resume from it, or choose another --workdir."
      )
    _check_finite(state, step)
    record = {
      "step": int(step),
      "metric": _finite(metric),
      "arrays": _describe(state),
      "meta": meta,
    }
    json.dumps(record)  # To fail here, not in the background.
    sample = {} if is_read_back else read_back.sample_of(_leaves(state))
    is_read_back = True
    with _saving(step, directory):
      if primary:
        lock.check()
        files.begin(directory, step)
      written = write_arrays(
        directory / str(step),
        {"params": state.params, "state": state_fields.beside_params(state)},
      )
    pending = background.submit(finish, written, record, sample)

  def update_metadata(step: int, meta: dict, *, metric: float | None) -> None:
    """Replaces a complete step's meta and metric, unless `metric` is None."""
    with _saving(step, directory):
      if (
        primary
        and metric is not None
        and step in files.complete_steps(directory)
      ):
        lock.check()
        path = directory / str(step)
        old = manifest.read_record(path)
        new = {**old, "meta": meta, "metric": _finite(metric)}
        buckets.upload(workdir)
        manifest.replace_record(path, new)

  def restore(
    like: State,
    check: Callable[[dict], None] = lambda meta: None,
    *,
    unverified: bool = False,
  ) -> tuple[State, dict] | None:
    """Loads the newest good step.

    Newer steps, which are damaged, are logged and renamed.

    Args:
      like: the state as jax.ShapeDtypeStructs with shardings, on any mesh.
      check: called with the meta before the arrays are compared; may raise.
      unverified: whether a step without a manifest may be loaded if none is
        good.

    Returns:
      (state, meta), the meta as it was saved, with "step" and "metric"; None if
      nothing was ever saved.

    Raises:
      CheckpointError: no step can be used, or an array differs from `like` (the
        error names the first).
    """
    wait()
    good, others, problems = multihost.broadcast_from_host0(
      lambda: files.survey(directory)
    )
    remedy = "or choose another --workdir to start over."
    if others and not unverified:
      remedy = (
        "set --config.train.resume_unverified=True to use the newest that can "
        f"be read, {remedy}"
      )
    loaded, damaged = files.load_newest(
      directory,
      lambda path: _load_state(path, like, check),
      names=good or (others if unverified else []),
      problems=problems,
      remedy=remedy,
      log=log,
    )
    if primary and loaded:
      with storage_errors.bucket_errors(directory):
        for name in damaged:
          files.quarantine(directory, name)
        if good:
          files.clear_older(directory, int(good[0]))
    return loaded

  def check_room(state: State) -> None:
    # An estimate: Orbax compresses by up to a tenth, and adds its own files.
    needed = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(state))
    multihost.run_on_all_hosts(
      lambda: primary and files.check_room(directory, needed)
    )

  def close() -> None:
    try:
      wait()
    finally:
      background.shutdown()
      if lock is not None:
        lock.close()

  return Checkpoints(
    save=save,
    update_metadata=update_metadata,
    restore=restore,
    check_room=check_room,
    steps=lambda: files.complete_steps(directory),
    wait=wait,
    close=close,
  )
