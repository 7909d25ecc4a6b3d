"""Checkpoints: saved in the background, verified, fallen back from.

The loop opens them once and calls `save`, `restore` and `close`; fine-tuning
and fill-mask call `load_params`. Orbax writes and reads the arrays, on any
mesh. What it does not do is done here: it reads a flipped bit as another
number, casts silently and never falls back. Which folder is what, which is
whole and which to use is in checkpoint_files.py. Every process of a run calls
the same functions on a shared folder; process 0 alone hashes, renames and
deletes.
"""

import concurrent.futures
import contextlib
import json
import logging
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

from maskedlm.core.errors import CheckpointError, StorageError
from maskedlm.runtime import buckets, multihost, storage_errors
from maskedlm.training.checkpoints import files

State = Any  # A NamedTuple of pytrees; one field is `params`, nested dicts.


def _not_orbax(record: logging.LogRecord) -> bool:
  return "orbax" not in record.pathname + record.getMessage()


def _not_closed_loop(unraisable, report=sys.unraisablehook) -> None:
  if str(unraisable.exc_value) != "Event loop is closed":
    report(unraisable)


# Orbax narrates each save, and where one fails, the writes that it leaves
# behind print their tracebacks for a while. Its errors are raised as well, and
# reported below in one line.
logging.getLogger("absl").addFilter(_not_orbax)
logging.getLogger("asyncio").addFilter(_not_orbax)
sys.unraisablehook = _not_closed_loop


class Checkpoints(NamedTuple):
  """The checkpoints of a workdir, opened for writing by this run alone."""

  # save(step, state, meta, *, metric): returns while the files are written.
  save: Callable[..., None]
  # amend(step, meta, *, metric): of a step that is saved already.
  amend: Callable[..., None]
  # restore(like, check) -> (state, meta) of the newest good step, or None.
  restore: Callable[..., tuple[State, dict] | None]
  # check_room(state): StorageError where the disk is too small to save it.
  check_room: Callable[[State], None]
  steps: Callable[[], list[int]]  # Complete steps, in increasing order.
  wait: Callable[[], None]  # Until the last save is complete; its error.
  close: Callable[[], None]  # wait, then let another run open the workdir.


# What is saved.


def _leaves(state: State) -> dict[str, Any]:
  """Returns {path: array}, such as "params/encoder/embeddings/norm/scale"."""
  return {
    jax.tree_util.keystr(path, simple=True, separator="/"): x
    for path, x in jax.tree_util.tree_leaves_with_path(state)
  }


def _describe(state: State) -> dict[str, str]:
  """Returns {path: "float32[5,13]"}, equal for a state and for its like."""
  return {
    path: f"{x.dtype}[{','.join(map(str, x.shape))}]"
    for path, x in _leaves(state).items()
  }


@jax.jit
def _all_finite(arrays):
  return [jnp.isfinite(x).all() for x in arrays]


def _check_finite(state: State, step: int) -> None:
  leaves = _leaves(state)
  inexact = [p for p in leaves if jnp.issubdtype(leaves[p].dtype, jnp.inexact)]
  finite = jax.device_get(_all_finite([leaves[path] for path in inexact]))
  bad = [path for path, ok in zip(inexact, finite, strict=True) if not ok]
  if bad:
    raise CheckpointError(
      f"step {step} was not saved: {len(bad)} arrays, {bad[0]} the first, hold "
      "values that are not finite. Resume from the checkpoint before."
    )


def _finite(metric: float | None) -> float | None:
  """Returns the metric, None where it ranks nothing."""
  return None if metric is None or not math.isfinite(metric) else float(metric)


def _check_same_arrays(saved: dict, wanted: dict, path: Path) -> None:
  """Orbax would cast silently, and name a shape in a page of text."""
  for name in [*wanted, *saved]:
    if saved.get(name) != wanted.get(name):
      raise CheckpointError(
        f"checkpoint {path} doesn't fit: {name} is {saved.get(name, 'absent')} "
        f"there, {wanted.get(name, 'absent')} here. Use the config that it was "
        "saved with, or another --workdir."
      )


# Reading one step.


def _load_state(
  path: Path, like: State, check: Callable[[dict], None]
) -> tuple[State, dict]:
  record = files.read_record(path)
  check(files.meta(record))
  _check_same_arrays(record["arrays"], _describe(like), path)
  with ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as checkpointer:
    items = checkpointer.restore(
      path,
      args=ocp.args.Composite(
        params=ocp.args.StandardRestore(like.params),
        state=ocp.args.StandardRestore(like._replace(params=())),
      ),
    )
  return items["state"]._replace(params=items["params"]), files.meta(record)


def _load_params(path: Path, subtrees: Sequence[str] | None):
  record = files.read_record(path)
  wanted = {}
  for name in record["arrays"]:
    if name.startswith("params/"):
      *parents, leaf = name.split("/")[1:]
      node = wanted
      for parent in parents:
        node = node.setdefault(parent, {})
      node[leaf] = ocp.RestoreArgs(restore_type=np.ndarray)
  unknown = [name for name in subtrees or () if name not in wanted]
  if unknown:
    raise CheckpointError(
      f"checkpoint {path} has no parameters {unknown[0]!r}; it has "
      f"{', '.join(sorted(wanted))}."
    )
  if subtrees is not None:
    wanted = {name: wanted[name] for name in subtrees}
  # By this process alone: where there are others, it waits for none of them.
  me = jax.process_index()
  alone = ocp.options.MultiprocessingOptions(me, {me})
  with ocp.Checkpointer(
    ocp.PyTreeCheckpointHandler(multiprocessing_options=alone),
    multiprocessing_options=alone,
  ) as checkpointer:
    params = checkpointer.restore(
      path / "params",
      args=ocp.args.PyTreeRestore(
        item=wanted, restore_args=wanted, partial_restore=True
      ),
    )
  return params, files.meta(record)


# The public functions.


def _saving(step: int, directory: Path):
  """Converts errors of the storage to a StorageError of this step."""

  def tell(error: Exception) -> StorageError:
    try:
      intact = f"Steps {files.complete(directory)}"
    except Exception:  # A bucket that can't be reached.
      intact = "The steps before"
    return StorageError(
      f"saving step {step} in {directory} failed: "
      f"{storage_errors.reason(error)}. {intact} are intact: "
      "make room or choose another --workdir, and run "
      "again to resume."
    )

  return storage_errors.raise_as(tell)


def open_checkpoints(
  workdir: str | Path, *, keep_last: int, keep_best: int, log: files.Log
) -> Checkpoints:
  """Opens WORKDIR/checkpoints for writing; clears what a kill left behind.

  The newest `keep_last` steps are kept, and in addition the `keep_best` of
  lowest metric. `log` gets one line for whatever is not as it should be.
  Raises ConfigError for a number out of range, or a folder that may not be
  written; CheckpointError for one that another run is writing; StorageError for
  one that can't be written now.
  """
  directory = buckets.origin(workdir) / "checkpoints"
  primary = multihost.is_primary()
  lock = multihost.run_on_all_hosts(
    lambda: files.lock(directory) if primary else None
  )
  if primary:
    files.clear(directory)
  checkpointer = ocp.AsyncCheckpointer(ocp.CompositeCheckpointHandler())
  background = concurrent.futures.ThreadPoolExecutor(1, "checkpoint")
  pending = None  # The save under way.

  def finish(step: int) -> None:
    """Waits for the files, hashes, names, deletes old; in the background."""
    try:
      with _saving(step, directory):
        checkpointer.wait_until_finished()
        if primary:
          lock.check()
          buckets.upload(workdir)  # Logs first: a complete step has them.
          files.commit(directory, step)
          files.delete_old(directory, keep_last=keep_last, keep_best=keep_best)
    except StorageError:
      if primary:
        with contextlib.suppress(Exception):  # Keep the first error.
          files.clear(directory)  # A full disk gets its space back.
      raise

  def wait() -> None:
    """Waits until the last save is complete; raises its error each time.

    No save follows a failed one: what Orbax left running could write into it.
    """
    if pending is not None:
      pending.result()

  def save(
    step: int, state: State, meta: dict, *, metric: float | None
  ) -> None:
    """Starts saving, and returns; `state` may be donated right away.

    `meta` is a JSON-able dict. `metric`, lower is better, ranks the step; None
    or non-finite is never among the best. Raises StorageError for a failure
    of this or the save before, CheckpointError for a step not newer than every
    complete one, for a state with non-finite values, and for a lost lock.
    """
    nonlocal pending  # One at a time: a second save waits for the first.
    wait()
    with _saving(step, directory):
      newest = max(files.complete(directory), default=-1)
    if step <= newest:
      raise CheckpointError(
        f"step {step} can't be saved: {directory} has step {newest} already. "
        "Resume from that, or choose another --workdir."
      )
    _check_finite(state, step)
    record = {
      "step": int(step),
      "metric": _finite(metric),
      "arrays": _describe(state),
      "meta": meta,
    }
    json.dumps(record)  # What is not JSON fails here, not in the background.
    with _saving(step, directory):
      if primary:
        lock.check()
        files.discard(directory, step)  # What a killed run has left of it.
      checkpointer.save(
        directory / str(step),
        args=ocp.args.Composite(
          params=ocp.args.StandardSave(state.params),
          state=ocp.args.StandardSave(state._replace(params=())),
          meta=ocp.args.JsonSave(record),
        ),
        force=True,  # Where another host is slow to see it discarded.
      )
    pending = background.submit(finish, step)

  def amend(step: int, meta: dict, *, metric: float | None) -> None:
    """Gives a complete step another meta, and a metric if that is one."""
    with _saving(step, directory):
      if primary and metric is not None and step in files.complete(directory):
        lock.check()
        path = directory / str(step)
        old = files.read_record(path)
        new = {**old, "meta": meta, "metric": _finite(metric)}
        buckets.upload(workdir)
        files.replace_record(path, new)

  def restore(
    like: State, check: Callable[[dict], None] = lambda meta: None
  ) -> tuple[State, dict] | None:
    """Loads the newest good step, with shapes and shardings of `like`.

    `like` is the state as jax.ShapeDtypeStruct with shardings, on any mesh.
    `check(meta)` is called before the arrays are looked at, and may raise.
    Returns (state, meta), meta as saved, with its "step" and "metric"; None
    where nothing was ever saved. Damaged steps are logged and set aside; what
    interrupted saves have left of newer ones is deleted.
    Raises CheckpointError when the arrays differ from `like` (and names the
    first that does), or when no step is usable.
    """
    wait()
    loaded, damaged = files.load_newest(
      directory,
      lambda path: _load_state(path, like, check),
      survey=lambda: multihost.broadcast_from_host0(
        lambda: files.survey(directory)
      ),
      log=log,
    )
    if primary:
      for name in damaged:
        if int(name) in files.complete(directory):
          files.set_aside(directory, name)
        else:  # What a killed run has left of it will be saved anew.
          files.discard(directory, int(name))
    return loaded

  def check_room(state: State) -> None:
    # About: Orbax compresses, by a tenth at most, and adds its own files.
    needed = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(state))
    multihost.run_on_all_hosts(
      lambda: primary and files.check_room(directory, needed)
    )

  def close() -> None:
    try:
      wait()
    finally:
      background.shutdown()
      checkpointer.close()
      if lock is not None:
        lock.close()

  return Checkpoints(
    save=save,
    amend=amend,
    restore=restore,
    check_room=check_room,
    steps=lambda: files.complete(directory),
    wait=wait,
    close=close,
  )


def load_params(
  path: str | Path,
  subtrees: Sequence[str] | None = None,
  *,
  step: int | str | None = None,
  log: files.Log = files.warn,
) -> tuple[dict, dict]:
  """Reads parameters alone, as numpy, from a run that may be going on.

  `path` is WORKDIR, WORKDIR/checkpoints or one step's folder. `subtrees` names
  the top-level parts wanted (None: all), `step` a number or "best" (None: the
  newest good one). Returns (params, meta): nested dicts of numpy arrays; meta
  as saved, with its "step" and "metric". Nothing else is read or verified.
  Raises CheckpointError when there is none, when a step that was asked for is
  damaged or absent, and for an unknown subtree.
  """
  return files.load_step(
    buckets.origin(path),
    step,
    lambda folder: _load_params(folder, subtrees),
    items=("params/", "meta/"),
    log=log,
  )
