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
import functools
import json
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np

from maskedlm.core.errors import CheckpointError, ConfigError, StorageError
from maskedlm.runtime import buckets, folder_lock, multihost, storage_errors
from maskedlm.training.checkpoints import arrays, files, manifest
from maskedlm.training.checkpoints import state as state_of
from maskedlm.training.checkpoints.state import State
from maskedlm.training.sharding import by_path


class Checkpoints:
  """The checkpoints of a workdir, which only this run may write."""

  def __init__(
    self,
    workdir: str | Path,
    keep: Callable[[Path], None],
    lock: folder_lock.Lock | None,
    log: files.Log,
  ):
    """Begins to write them; see open_checkpoints.

    Args:
      workdir: a folder or an address.
      keep: deletes the old steps of a folder.
      lock: of the folder; None on hosts other than the first.
      log: receives a line for each step that is damaged.
    """
    self._workdir = workdir
    self._directory = buckets.origin(workdir) / "checkpoints"
    self._keep, self._lock, self._log = keep, lock, log
    self._background = concurrent.futures.ThreadPoolExecutor(1, "checkpoint")
    # The save in progress.
    self._pending: concurrent.futures.Future | None = None
    self._is_read_back = False  # Whether a save of this process was.

  def save(
    self, step: int, state: State, meta: dict, *, metric: float | None
  ) -> None:
    """Starts saving and returns; `state` may be donated at once.

    Args:
      step: its number, larger than that of every complete step.
      meta: JSON-serializable.
      metric: ranks the step, lower is better; a step whose metric is None or
        not finite is never among the best.

    Raises:
      ConfigError, StorageError: this save or the one before failed.
      CheckpointError: the step is not the newest, a value of the state is not
        finite, the lock is lost, or the first save can't be read.
    """
    self.wait()
    with self._saving(step):
      if self._lock:
        self._lock.check()
      newest = max(files.complete_steps(self._directory), default=-1)
    if step <= newest:
      raise CheckpointError(
        f"step {step} can't be saved: {self._directory} already has step "
        f"{newest}. Resume from it, or choose another --workdir."
      )
    state_of.check_finite(state, step)
    record = {
      "step": int(step),
      "metric": state_of.rankable(metric),
      "arrays": state_of.describe(state),
      "meta": meta,
    }
    json.dumps(record)  # To fail here, not in the background.
    sample = {} if self._is_read_back else arrays.sample_of(by_path(state))
    self._is_read_back = True
    with self._saving(step):
      if self._lock:
        files.begin(self._directory, step)
      wait_for_files = arrays.write_arrays(
        self._directory / str(step),
        {"params": state.params, "state": state_of.beside_params(state)},
      )
    self._pending = self._background.submit(
      self._finish, wait_for_files, record, sample
    )

  def update_metadata(
    self, step: int, meta: dict, *, metric: float | None
  ) -> None:
    """Replaces a complete step's meta and metric, unless `metric` is None."""
    with self._saving(step):
      if (
        self._lock
        and metric is not None
        and step in files.complete_steps(self._directory)
      ):
        self._lock.check()
        path = self._directory / str(step)
        old = manifest.read_record(path)
        new = {**old, "meta": meta, "metric": state_of.rankable(metric)}
        buckets.upload(self._workdir)
        manifest.replace_record(path, new)

  def restore(
    self,
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
    self.wait()
    good, unchecked, problems = multihost.broadcast_from_host0(
      lambda: files.survey(self._directory)
    )
    remedy = "or choose another --workdir to start over."
    if unchecked and not unverified:
      remedy = (
        "set --config.train.resume_unverified=True to use the newest that can "
        f"be read, {remedy}"
      )
    loaded, damaged = files.load_newest(
      self._directory,
      lambda path: state_of.load_state(path, like, check),
      names=good or (unchecked if unverified else []),
      problems=problems,
      remedy=remedy,
      log=self._log,
    )
    if self._lock and loaded:
      with storage_errors.bucket_errors(self._directory):
        for name in damaged:
          files.quarantine(self._directory, name)
        if good:
          files.clear_older(self._directory, int(good[0]))
    return loaded

  def check_room(self, state: State) -> None:
    """Raises StorageError if the disk lacks room for a checkpoint."""
    # An estimate: Orbax compresses by up to a tenth, and adds its own files.
    needed = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(state))

    def check() -> None:
      if self._lock:
        files.check_room(self._directory, needed)

    multihost.run_on_all_hosts(check)

  def steps(self) -> list[int]:
    """Returns the complete steps, in increasing order."""
    return files.complete_steps(self._directory)

  def wait(self) -> None:
    """Waits until the last save is complete; raises its error every time.

    So nothing is saved after a failure, as writes that Orbax left running could
    end up in it.
    """
    if self._pending is not None:
      self._pending.result()

  def close(self) -> None:
    """Waits, then lets another run open the workdir."""
    try:
      self.wait()
    finally:
      self._background.shutdown()
      if self._lock is not None:
        self._lock.close()

  def _finish(
    self,
    wait_for_files: Callable[[], None],
    record: dict,
    sample: dict[str, np.ndarray],
  ) -> None:
    """Waits for the files, hashes them and deletes old steps."""
    step = record["step"]
    try:
      with self._saving(step):
        wait_for_files()
        if self._lock:
          self._lock.check()
          try:
            arrays.check_readable(self._directory / str(step), sample)
          except CheckpointError:
            self._lock.check()  # Another run may have removed it.
            raise
          buckets.upload(self._workdir)  # Logs before the manifest.
          files.end(self._directory, record)
          self._keep(self._directory)
    except (ConfigError, StorageError):
      if self._lock:
        # A full disk gets its space back; the first error is kept.
        with contextlib.suppress(Exception):
          files.clear_unfinished(self._directory)
      raise

  def _saving(self, step: int):
    """Returns a context manager that raises I/O errors in one line."""

    def convert(error: Exception) -> Exception:
      try:
        if self._lock:  # Another run may have removed what this one wrote.
          self._lock.check()
      except CheckpointError as lost:
        return lost
      except Exception:  # A bucket that can't be reached.
        pass
      try:
        intact = f"Steps {files.complete_steps(self._directory)}"
      except Exception:  # A bucket that can't be reached.
        intact = "Earlier steps"
      return storage_errors.as_user_error(
        f"saving step {step} in {self._directory} failed: "
        f"{storage_errors.reason(error)}. {intact} are intact",
        error,
        if_wrong="make it writable, or choose another --workdir.",
        if_temporary="then run again to resume; or choose another --workdir.",
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
    lambda: folder_lock.lock_folder(directory) if primary else None
  )
  if primary:
    for name in files.clear_unfinished(directory):
      log(f"checkpoint {name} is deleted: its save was interrupted")
  keep = functools.partial(
    files.delete_old,
    keep_last=keep_last,
    keep_best=keep_best,
    keep_every=keep_every,
  )
  return Checkpoints(workdir, keep, lock, log)


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
  return state_of.load_state(buckets.origin(folder), like, check)
