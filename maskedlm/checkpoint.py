"""Checkpoints: saved in the background, hashed, verified, fallen back from.

The loop opens them once and calls `save`, `restore` and `close`; fine-tuning
and fill-mask call `load_params`. Orbax writes and reads the arrays, on any
mesh. What it does not do is here: it reads damaged files as wrong numbers, and
it never falls back. A step gets its final name only after every byte of it is
hashed. Under WORKDIR/checkpoints:

  3000/                      a complete step
    params/                  the parameters, which load without the rest
    state/                   all else: step, optimizer moments
    meta/metadata            JSON: shapes, metric, and what the caller gave
    manifest.sha256          `sha256sum -c manifest.sha256` checks it by hand
  4000.unverified/           written whole, but killed before it was hashed
  4000.unverified.orbax-*/   being written, or killed meanwhile
  2000.damaged/              found damaged and set aside; delete it at will

Every process of a run calls the same functions; the folder is shared by them,
and process 0 alone hashes, renames and deletes.
"""

import concurrent.futures
import fcntl
import hashlib
import json
import logging
import math
import os
import pathlib
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax.experimental import multihost_utils

from maskedlm.config import ConfigError

MANIFEST = "manifest.sha256"
_NAME = re.compile(r"(\d+)(\.unverified)?")
Log = Callable[[str], None]
State = Any  # A NamedTuple of pytrees, one of them `params`.

# Orbax narrates each save, and prints the traceback of an error that it also
# raises; we report those ourselves, in one line.
logging.getLogger("absl").addFilter(lambda r: "/orbax/" not in r.pathname)


class CheckpointError(RuntimeError):
  """A checkpoint that can't be written or used: what, where, what to do."""


class Checkpoints(NamedTuple):
  """The checkpoints of a workdir, opened for writing by this run alone."""

  # save(step, state, meta, *, metric): returns while the files are written.
  save: Callable[..., None]
  # restore(like) -> (state, meta) of the newest good step, or None.
  restore: Callable[[State], tuple[State, dict] | None]
  steps: Callable[[], list[int]]  # Complete steps, in increasing order.
  wait: Callable[[], None]  # Until the last save is complete; its errors.
  close: Callable[[], None]  # wait, and let another run open the workdir.


def open_checkpoints(
  workdir, *, keep_last: int, keep_best: int, log: Log
) -> Checkpoints:
  """Opens WORKDIR/checkpoints for writing and clears what a kill left behind.

  The newest `keep_last` steps are kept, and besides them the `keep_best` of
  lowest metric. `log` gets one line for whatever is not as it should be.
  Raises ConfigError for a number that is out of range, CheckpointError for a
  folder that can't be written or that another run is writing.
  """
  if keep_last < 1 or keep_best < 0:
    raise ConfigError(
      f"train.keep_last={keep_last}, train.keep_best={keep_best}: keep at "
      "least 1 newest and 0 best checkpoints."
    )
  directory = pathlib.Path(workdir).resolve() / "checkpoints"
  primary = jax.process_index() == 0
  lock = _lock(directory) if primary else None
  if primary:
    for path in [*directory.glob("*.orbax-*"), *directory.glob("*.deleted")]:
      shutil.rmtree(path, ignore_errors=True)
  checkpointer = ocp.AsyncCheckpointer(ocp.CompositeCheckpointHandler())
  background = concurrent.futures.ThreadPoolExecutor(1, "checkpoint")
  pending = None  # The future of the save that is under way.

  def save(
    step: int, state: State, meta: dict, *, metric: float | None
  ) -> None:
    """Starts saving and returns; arrays may be donated right away.

    `meta` is JSON-able; `metric` (lower is better; None or non-finite: never
    the best) ranks the step. Raises CheckpointError for the previous save's
    failure, a step that is not newer than every complete one, and non-finite
    values in the state.
    """
    wait()
    newest = max(_steps(directory), default=-1)
    if step <= newest:
      raise CheckpointError(
        f"step {step} can't be saved: {directory} has step {newest} already. "
        "Resume from it, or choose another --workdir."
      )
    _check_finite(state, step)
    if metric is not None and not math.isfinite(metric):
      metric = None
    record = {
      "step": int(step),
      "metric": None if metric is None else float(metric),
      "arrays": _describe(state),
      "meta": json.loads(json.dumps(meta)),
    }
    try:
      checkpointer.save(
        directory / f"{step}.unverified",
        args=ocp.args.Composite(
          params=ocp.args.StandardSave(state.params),
          state=ocp.args.StandardSave(state._replace(params=())),
          meta=ocp.args.JsonSave(record),
        ),
        force=True,  # Replaces what a killed run left under that name.
      )
    except Exception as error:
      raise _save_error(step, directory, error) from error
    nonlocal pending
    pending = background.submit(finish, step)

  def finish(step: int) -> None:
    """In the background: hashes the files, names them, deletes old steps."""
    unverified = directory / f"{step}.unverified"
    try:
      checkpointer.wait_until_finished()
      if primary:
        _write_manifest(unverified)
        unverified.rename(directory / str(step))
        _delete_old(directory, keep_last=keep_last, keep_best=keep_best)
    except Exception as error:
      if primary:  # A full disk gets its space back.
        for path in directory.glob(f"{step}.unverified.orbax-*"):
          shutil.rmtree(path, ignore_errors=True)
      raise _save_error(step, directory, error) from error

  def restore(like: State) -> tuple[State, dict] | None:
    """The newest good step, in the shapes, dtypes and shardings of `like`.

    `like` is the state as jax.ShapeDtypeStruct with shardings, on any mesh.
    Returns (state, meta): meta as saved, and its "step" and "metric"; None
    when nothing was ever saved. Steps that turn out to be damaged are logged
    and set aside. Raises CheckpointError when the state is not of this shape
    or dtype (the first path that differs), or when no step is usable.
    """
    wait()
    loaded, damaged = _load_newest(
      directory, lambda path: _load_state(path, like), log=log
    )
    for name in damaged if primary else ():
      aside = directory / f"{name}.damaged"
      shutil.rmtree(aside, ignore_errors=True)
      (directory / name).rename(aside)
    return loaded

  def wait() -> None:
    nonlocal pending
    if pending is None:
      return
    concurrent.futures.wait([pending])  # Ctrl-C here leaves it pending.
    done, pending = pending, None
    done.result()

  def close() -> None:
    try:
      wait()
    finally:
      background.shutdown()
      checkpointer.close()
      if lock is not None:
        lock.close()

  return Checkpoints(save, restore, lambda: _steps(directory), wait, close)


def load_params(
  path,
  subtrees: Sequence[str] | None = None,
  *,
  step: int | str | None = None,
  log: Log = lambda line: print(line, file=sys.stderr),
) -> tuple[dict, dict]:
  """Reads parameters alone, as numpy, without opening the run for writing.

  `path` is WORKDIR, WORKDIR/checkpoints or one step's folder. `subtrees` names
  the top-level parts wanted (None: all), `step` a number or "best" (None: the
  newest good one). Returns (params, meta): nested dicts of numpy arrays; meta
  as saved, and its "step" and "metric". Nothing else is read or verified.
  Raises CheckpointError when there is none, when a step that was asked for is
  damaged or absent, and for an unknown subtree.
  """
  directory, name = _find(pathlib.Path(path).resolve(), step)

  def load(path):
    return _load_params(path, subtrees)

  items = ("params/", "meta/")
  if name is None:
    return _load_newest(directory, load, items=items, log=log)[0]
  chosen = directory / name
  problem = find_damage(chosen, items)
  if problem and (chosen / MANIFEST).exists():
    raise CheckpointError(
      f"checkpoint {chosen} is damaged: {problem}. Complete steps: "
      f"{_steps(directory)}; without a step, the newest good one is chosen."
    )
  if problem:
    log(f"checkpoint {chosen}: {problem}; used without verification")
  return load(chosen)


# Files and names.


def find_damage(path: pathlib.Path, items: Sequence[str] = ("",)) -> str | None:
  """What is wrong with a step's files, by its manifest; None if nothing is.

  `items` are the prefixes of the files to check, all by default.
  """
  try:
    header, _, body = (path / MANIFEST).read_text("utf-8").partition("\n")
  except (OSError, ValueError):
    return f"{MANIFEST} is missing or unreadable"
  if header != _header(body):
    return f"{MANIFEST} is damaged"
  for line in body.splitlines():
    digest, name = line.split("  ", 1)
    if name.startswith(tuple(items)):
      try:
        if _sha256(path / name) != digest:
          return f"{name} differs from its SHA-256"
      except OSError as error:
        return f"{name}: {error.strerror}"
  return None


def _write_manifest(path: pathlib.Path) -> None:
  files = sorted(p for p in path.rglob("*") if p.is_file())
  body = "".join(f"{_sha256(p)}  {p.relative_to(path)}\n" for p in files)
  with (path / MANIFEST).open("w", encoding="utf-8") as file:
    file.write(f"{_header(body)}\n{body}")
    file.flush()
    os.fsync(file.fileno())


def _header(body: str) -> str:
  """A comment for sha256sum; to us it tells a manifest cut short."""
  return f"# {hashlib.sha256(body.encode()).hexdigest()}  the lines below"


def _sha256(path: pathlib.Path) -> str:
  with path.open("rb") as file:
    return hashlib.file_digest(file, "sha256").hexdigest()


def _saved(directory: pathlib.Path) -> list[pathlib.Path]:
  """The folders of complete and of unverified steps, newest first."""
  if not directory.is_dir():
    return []
  found = [p for p in directory.iterdir() if _NAME.fullmatch(p.name)]
  return sorted(found, key=lambda p: _step(p.name), reverse=True)


def _step(name: str) -> int:
  return int(name.partition(".")[0])


def _steps(directory: pathlib.Path) -> list[int]:
  return [int(p.name) for p in _saved(directory)[::-1] if p.name.isdigit()]


def _ranked(directory: pathlib.Path) -> list[int]:
  """The complete steps that have a metric, best (lowest) first."""
  metrics = {}
  for step in _steps(directory):
    try:
      metrics[step] = _read_record(directory / str(step))["metric"]
    except (OSError, ValueError, KeyError):  # Damaged: restore will say so.
      metrics[step] = None
  ranked = [step for step in metrics if metrics[step] is not None]
  return sorted(ranked, key=lambda step: (metrics[step], -step))


def _delete_old(
  directory: pathlib.Path, *, keep_last: int, keep_best: int
) -> None:
  """Deletes what is neither new nor best, and what was never verified.

  Orbax's own retention by metric deletes the newest step when it is not among
  the best, and a resume would go back.
  """
  steps = _steps(directory)
  kept = {*steps[-keep_last:], *_ranked(directory)[:keep_best]}
  for path in _saved(directory):
    superseded = _step(path.name) <= steps[-1]
    if superseded and path.name not in {str(step) for step in kept}:
      # Renamed first: a kill meanwhile leaves nothing that looks whole.
      doomed = path.rename(path.with_name(f"{path.name}.deleted"))
      shutil.rmtree(doomed, ignore_errors=True)


def _lock(directory: pathlib.Path):
  """The lock file, locked until it is closed or this process ends."""
  try:
    directory.mkdir(parents=True, exist_ok=True)
    file = (directory / ".lock").open("a")
  except OSError as error:
    raise CheckpointError(
      f"{directory} can't be written ({error.strerror}): choose another "
      "--workdir, or make it writable."
    ) from error
  try:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except (BlockingIOError, PermissionError) as error:
    file.close()
    raise CheckpointError(
      f"{directory} is being written by another run: wait until it ends, or "
      "choose another --workdir."
    ) from error
  except OSError:  # A file system without locks.
    pass
  return file


def _find(path: pathlib.Path, step) -> tuple[pathlib.Path, str | None]:
  """The folder of the steps, and the name of one if one was asked for."""
  if (path / "meta").is_dir():
    return path.parent, path.name
  directory = path / "checkpoints"
  directory = directory if directory.is_dir() else path
  if not _saved(directory):
    raise CheckpointError(
      f"{path} holds no checkpoint: expected a run's workdir, the checkpoints "
      "folder in it, or the folder of one step."
    )
  if step is None:
    return directory, None
  steps = _steps(directory)
  if step == "best":
    steps = _ranked(directory)
    step = steps[0] if steps else step
  if step not in steps:
    raise CheckpointError(
      f"step={step!r} is not in {directory}: it has {_steps(directory)}, with "
      f"a held-out loss {_ranked(directory)}, best first."
    )
  return directory, str(step)


# Arrays.


def _describe(state: State) -> dict[str, str]:
  """path -> "float32[5,13]", for every array of a state (or its like)."""
  return {
    jax.tree_util.keystr(path, simple=True, separator="/"): (
      f"{x.dtype}[{','.join(map(str, x.shape))}]"
    )
    for path, x in jax.tree_util.tree_leaves_with_path(state)
  }


@jax.jit
def _all_finite(leaves):
  return [jnp.isfinite(x).all() for x in leaves]


def _check_finite(state: State, step: int) -> None:
  leaves = {
    jax.tree_util.keystr(path, simple=True, separator="/"): x
    for path, x in jax.tree_util.tree_leaves_with_path(state)
    if jnp.issubdtype(x.dtype, jnp.inexact)
  }
  flags = jax.device_get(_all_finite(list(leaves.values())))
  for path, finite in zip(leaves, flags, strict=True):
    if not finite:
      raise CheckpointError(
        f"step {step} was not saved: {path} holds values that are not finite. "
        "Resume from the checkpoint before, with a lower learning rate."
      )


def _check_same_arrays(saved: dict, wanted: dict, path: pathlib.Path) -> None:
  """Orbax would cast silently, and name a shape in a page of text."""
  for name in [*wanted, *saved]:
    if saved.get(name) != wanted.get(name):
      raise CheckpointError(
        f"checkpoint {path} doesn't fit this model: {name} is "
        f"{saved.get(name, 'absent')} there, {wanted.get(name, 'absent')} "
        "here. Use the config that it was saved with, or another --workdir."
      )


def _read_record(path: pathlib.Path) -> dict:
  return json.loads((path / "meta" / "metadata").read_text("utf-8"))


def _meta(record: dict) -> dict:
  return {**record["meta"], "step": record["step"], "metric": record["metric"]}


def _load_state(path: pathlib.Path, like: State) -> tuple[State, dict]:
  record = _read_record(path)
  _check_same_arrays(record["arrays"], _describe(like), path)
  with ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as checkpointer:
    items = checkpointer.restore(
      path,
      args=ocp.args.Composite(
        params=ocp.args.StandardRestore(like.params),
        state=ocp.args.StandardRestore(like._replace(params=())),
      ),
    )
  return items["state"]._replace(params=items["params"]), _meta(record)


def _load_params(path: pathlib.Path, subtrees) -> tuple[dict, dict]:
  record = _read_record(path)
  params = {}
  for name in record["arrays"]:
    first, *parents, leaf = name.split("/")
    if first == "params":
      node = params
      for parent in parents:
        node = node.setdefault(parent, {})
      node[leaf] = ocp.RestoreArgs(restore_type=np.ndarray)
  for name in subtrees or ():
    if name not in params:
      raise CheckpointError(
        f"checkpoint {path} has no parameters {name!r}; it has: "
        f"{', '.join(sorted(params))}."
      )
  wanted = params if subtrees is None else {n: params[n] for n in subtrees}
  with ocp.Checkpointer(ocp.PyTreeCheckpointHandler()) as checkpointer:
    restored = checkpointer.restore(
      path / "params",
      args=ocp.args.PyTreeRestore(
        item=wanted, restore_args=wanted, partial_restore=True
      ),
    )
  return restored, _meta(record)


# Which step.


def _load_newest(
  directory: pathlib.Path,
  load: Callable[[pathlib.Path], Any],
  *,
  items: Sequence[str] = ("",),
  log: Log,
) -> tuple[Any, list[str]]:
  """load(path) of the newest good step, and the damaged steps newer than it.

  An unverified step is used only when no good one is left. (None, []) when
  there is nothing at all; CheckpointError when there is nothing usable.
  """
  usable, problems = _agree(lambda: _survey(directory, items))
  for name in usable:
    try:
      loaded = load(directory / name)
    except CheckpointError:
      raise
    except Exception as error:  # Orbax and TensorStore raise many kinds.
      problems[name] = f"it can't be read: {_reason(error)}"
      continue
    newer = [other for other in problems if _step(other) > _step(name)]
    for other in newer:
      log(f"checkpoint {other} is not used: {problems[other]}")
    if name in problems:
      log(f"checkpoint {name} is used without verification: none is verified")
    elif newer:
      log(f"falling back to checkpoint {name}")
    return loaded, [other for other in newer if other.isdigit()]
  if problems:
    raise CheckpointError(
      f"no usable checkpoint in {directory}: "
      + "; ".join(f"{name}: {problems[name]}" for name in problems)
      + ". Put a good copy there, or choose another --workdir to start anew."
    )
  return None, []


def _survey(directory, items) -> tuple[list[str], dict[str, str]]:
  """Names worth loading, best first, and name -> problem of those newer."""
  unverified, problems = [], {}
  for path in _saved(directory):
    if path.name.isdigit():
      problem = find_damage(path, items)
    else:
      problem = "its save was interrupted before it was verified"
    if problem is None:
      return [path.name], problems
    problems[path.name] = problem
    if not (path / MANIFEST).exists() or not path.name.isdigit():
      unverified.append(path.name)
  return unverified, problems


def _agree(decide: Callable[[], Any]) -> Any:
  """decide() of process 0, on every process; JSON-able, at most 64 kB."""
  if jax.process_count() == 1:
    return decide()
  text = np.zeros(1 << 16, np.uint8)
  if jax.process_index() == 0:
    encoded = json.dumps(decide()).encode()
    text[: len(encoded)] = np.frombuffer(encoded, np.uint8)
  text = np.asarray(multihost_utils.broadcast_one_to_all(text))
  return json.loads(text.tobytes().rstrip(b"\0"))


# Errors.


def _reason(error: Exception) -> str:
  """The cause in one line; TensorStore's message is a page that holds it."""
  system = re.search(r"OS error \d+: (?:[A-Z]+ )?([^\]]+)", str(error))
  lines = str(error).splitlines() or [type(error).__name__]
  return system[1] if system else lines[0][:200]


def _save_error(step: int, directory, error: Exception) -> CheckpointError:
  return CheckpointError(
    f"step {step} was not saved in {directory}: {_reason(error)}. Steps "
    f"{_steps(directory)} are intact; make room or choose another --workdir, "
    "and run again to resume."
  )
