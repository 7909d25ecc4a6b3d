"""Tells from a workdir alone, a folder or an address, how far its run is."""

import datetime
import os
from typing import Any

from maskedlm.core.errors import ConfigError
from maskedlm.core.measured import parse_line
from maskedlm.core.parse_json import parse_json
from maskedlm.runtime import buckets, console, storage_errors
from maskedlm.training.checkpoints import resume

_HELD_OUT = "heldout/"


def read_status(workdir: str | os.PathLike) -> dict[str, Any]:
  """Returns the state of a run, of pretraining or fine-tuning.

  Keys, of which those that aren't known yet are None:
    workdir, name, kind: as given; the config's; resume.writer's.
    complete: whether the run has its result.
    step, num_steps: the last logged step, and that of the end.
    loss, tokens_per_second: of the last logged training line.
    heldout_loss, heldout_step: of the last evaluation.
    checkpoint: the newest complete step.
    written: when a log or a checkpoint was last written, ISO 8601 in UTC.
    seconds_since: seconds from then until now.
    seconds_left: from the times of the two newest checkpoints.

  Args:
    workdir: the workdir. In a bucket, the log is as new as the newest
      checkpoint (runtime/buckets.py).

  Raises:
    ConfigError: there is no run, or its config.json can't be used.
    StorageError: the address can't be read now.
  """
  place = str(workdir)
  is_address = buckets.is_address(place)
  place = buckets.normalize(place) if is_address else str(buckets.folder(place))
  fs, root = buckets.filesystem(place)
  with storage_errors.bucket_errors(place):
    text = _read(fs, f"{root}/config.json")
    log = _read(fs, f"{root}/metrics.jsonl") or b""
    complete = fs.exists(f"{root}/result.json")
    saved = _checkpoints(fs, f"{root}/checkpoints")
    times = [_modified(fs, f"{root}/metrics.jsonl"), *saved.values()]
  try:
    config = parse_json(text or b"{}")
    kind = resume.writer(config)
    num_steps = int(float(config["train"]["num_steps"]))
  except (ValueError, KeyError, TypeError, OverflowError):
    raise ConfigError(
      f"{workdir} holds no run: expected a workdir of pretrain or finetune, "
      "with a config.json, which is written before the first step."
    ) from None
  train, heldout = _last_lines(log)
  step, newest = train.get("step"), max(saved, default=None)
  written = max((t for t in times if t), default=None)
  now = datetime.datetime.now(datetime.UTC)
  return {
    "workdir": str(workdir),
    "name": config.get("name"),
    "kind": kind,
    "complete": complete and step is not None and step >= num_steps,
    "step": step if step is not None else newest,
    "num_steps": num_steps,
    "loss": train.get("loss"),
    "tokens_per_second": train.get("tokens_per_second"),
    "heldout_loss": heldout.get(f"{_HELD_OUT}loss"),
    "heldout_step": heldout.get("step"),
    "checkpoint": newest,
    "written": written and written.isoformat(timespec="seconds"),
    "seconds_since": written and max(round((now - written).total_seconds()), 0),
    "seconds_left": _seconds_left(saved, num_steps),
  }


def format_status(status: dict[str, Any]) -> str:
  """Returns a status in one line."""
  parts = [f"step {status['step'] or 0:,} of {status['num_steps']:,}"]
  if status["loss"] is not None:
    parts.append(f"loss {status['loss']:.3f}")
  if status["heldout_loss"] is not None:
    parts.append(
      f"held out {status['heldout_loss']:.3f} at {status['heldout_step']:,}"
    )
  if status["tokens_per_second"] is not None:
    parts.append(f"{status['tokens_per_second']:,.0f} tokens/s")
  newest = status["checkpoint"]
  parts.append("no checkpoint" if newest is None else f"checkpoint {newest:,}")
  if status["seconds_since"] is not None:
    ago = console.format_seconds(status["seconds_since"])
    parts.append(f"written {ago} ago")
  if status["complete"]:
    parts.append("complete")
  elif status["seconds_left"]:
    left = console.format_seconds(status["seconds_left"])
    parts.append(f"about {left} left if it runs")
  return f"{status['workdir']}: {' | '.join(parts)}"


def _read(fs, path: str) -> bytes | None:
  """Returns a file's content; None if there is none."""
  try:
    return fs.cat_file(path)
  except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
    return None


def _modified(fs, path: str) -> datetime.datetime | None:
  """Returns when a file was written; None if it is missing or not known."""
  try:
    modified = fs.modified(path)
  except (FileNotFoundError, NotADirectoryError, NotImplementedError, KeyError):
    return None
  except (ValueError, OverflowError):  # In the year 10,000.
    return None
  return modified if modified.tzinfo else modified.replace(tzinfo=datetime.UTC)


def _checkpoints(fs, folder: str) -> dict[int, datetime.datetime | None]:
  """Returns {complete step: when its manifest was written}, ascending."""
  try:
    names = [os.path.basename(p.rstrip("/")) for p in fs.ls(folder, False)]
  except (FileNotFoundError, NotADirectoryError):
    return {}
  steps = sorted(int(n) for n in names if n.isascii() and n.isdigit())
  manifests = {step: f"{folder}/{step}/manifest.sha256" for step in steps}
  return {
    s: _modified(fs, path) for s, path in manifests.items() if fs.exists(path)
  }


def _last_lines(log: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
  """Returns the last line of training and the last evaluation of a log."""
  train: dict[str, Any] = {}
  heldout: dict[str, Any] = {}
  for line in reversed(log.splitlines()):
    try:
      step, values = parse_line(line)
    except ValueError:
      continue  # Being written, or cut off when killed.
    values["step"] = step
    if any(name.startswith(_HELD_OUT) for name in values):
      heldout = heldout or values
    else:
      train = train or values
    if train and heldout:
      break
  return train, heldout


def _seconds_left(saved: dict[int, Any], num_steps: int) -> int | None:
  """Returns the seconds until the end, at the pace of the two newest steps."""
  pairs = [(step, time) for step, time in saved.items() if time][-2:]
  if len(pairs) < 2 or pairs[1][0] >= num_steps:
    return None
  (a, before), (b, after) = pairs
  pace = (after - before).total_seconds() / (b - a)
  return round(pace * (num_steps - b)) if pace > 0 else None
