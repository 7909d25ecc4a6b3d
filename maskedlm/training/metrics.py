"""Converts a run's metrics from (sum, weight) pairs to means, and logs them.

A metric stays a (sum, weight) pair until it is printed, so that means over
microbatches, steps, devices and a padded evaluation set are exact. All values
are written to WORKDIR/metrics.jsonl, to TensorBoard and to train.tracker; a
progress line shows the most important ones.
"""

import functools
import itertools
import math
import os
import pathlib
import re
import socket
import struct
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax

from maskedlm.core.counts import counted
from maskedlm.core.measured import parse_line, to_json
from maskedlm.runtime import chips, output_files
from maskedlm.runtime.console import format_seconds, log, progress
from maskedlm.training import language_metrics, trackers

# Between fsyncs of TensorBoard's file, each of which a mounted bucket uploads.
SYNC_SECONDS = 120


def peak_flops() -> float | None:
  """Returns the peak bf16 FLOP/s of all devices together; None if unknown."""
  flops = chips.peak_flops(jax.devices()[0].device_kind)
  return flops and flops * jax.device_count()


def means(totals: Mapping[str, tuple]) -> dict[str, float]:
  """Returns the means of (sum, weight) pairs, without those of weight 0."""
  return {
    name: float(total) / float(weight)
    for name, (total, weight) in totals.items()
    if float(weight) > 0
  }


def rank(heldout: Mapping[str, float], best: str) -> float | None:
  """Returns -heldout[best], or the loss if `best` is "": lower is better."""
  return -heldout[best] if best and heldout else heldout.get("loss")


def add(a: Mapping[str, tuple], b: Mapping[str, tuple]) -> dict[str, tuple]:
  """Adds two dicts of (sum, weight) pairs."""
  return jax.tree.map(lambda x, y: x + y, dict(a), dict(b))


def sums(pairs):
  """Adds a list of trees of the same structure, as Python floats (float64)."""
  return jax.tree.map(lambda *xs: sum(float(x) for x in xs), *pairs)


class Logbook(NamedTuple):
  """Functions that log the metrics of a run."""

  # (step, metrics summed over the last `count` steps, count)
  train: Callable[[int, Mapping[str, tuple], int], None]
  heldout: Callable[[int, Mapping[str, float]], None]
  exclude: Callable[[float], None]  # Leaves seconds out of the speed.
  tokens_per_second: Callable[[], float | None]  # Over the whole run.
  close: Callable[[], None]


def _log_skipped(step: int, values: Mapping[str, float], count: int) -> None:
  """Logs how many of the last `count` steps were not applied, and why."""
  for share, reason in (
    (
      values["skipped"] - values["spikes"],
      "the loss or the gradient was not finite",
    ),
    (values["spikes"], "the loss was a spike"),
  ):
    if skipped := round(share * count):
      log(
        f"step {step:,}: {skipped} of the last {count} steps were skipped, "
        f"as {reason}"
      )


def open_logbook(
  workdir: pathlib.Path,
  start: int,
  config: Mapping[str, Any],
  flops: Callable[[int], float],
  *,
  logged: int | None = None,
) -> Logbook:
  """Opens metrics.jsonl, tensorboard/, tracker and progress line of a run.

  Args:
    start: number of steps done before.
    config: the effective config, as config.json has it.
    flops: step -> FLOPs of its matmuls, for the MFU if the peak is known.
    logged: how many of these steps this workdir has a log of; None for all.
      Lines of later steps, of a killed run, are removed: these are repeated.
  """
  write, close = _open_files(
    workdir, start if logged is None else logged, config
  )
  num_steps = config["train"]["num_steps"]
  peak = peak_flops()
  clock = {"mark": time.perf_counter(), "seconds": 0.0, "tokens": 0.0}
  compiled = False

  def train(step: int, totals: Mapping[str, tuple], count: int) -> None:
    nonlocal compiled
    now = time.perf_counter()
    seconds, clock["mark"] = max(now - clock["mark"], 1e-9), now
    values = means(totals)
    tokens = values.pop("tokens") * count
    # The first interval includes compilation: unless it is the only one, it is
    # left out of the run's speed.
    if not compiled and step > start + count:
      clock.update(seconds=0.0, tokens=0.0)
      compiled = True
    clock["seconds"] += seconds
    clock["tokens"] += tokens
    values["tokens"] = tokens  # Since the line before.
    values["tokens_per_second"] = tokens / seconds
    if peak:
      done = sum(flops(s) for s in range(step - count, step))
      values["mfu"] = done / seconds / peak
    _log_skipped(step, values, count)
    write(step, values)
    eta = format_seconds((num_steps - step) * seconds / count)
    progress(
      f"step {step:,}/{num_steps:,} | ETA {eta} | {format_values(values)}"
    )

  def heldout(step: int, values: Mapping[str, float]) -> None:
    if not values:
      return
    write(step, {f"heldout/{name}": v for name, v in values.items()})
    whole, by_language = language_metrics.split_by_language(values)
    log(f"step {step:,} held out | {format_values(whole)}")
    if bits := language_metrics.format_line(by_language):
      log(f"step {step:,} held out, bits/character | {bits}")

  def exclude(seconds: float) -> None:
    clock["mark"] += seconds

  def tokens_per_second() -> float | None:
    return clock["tokens"] / clock["seconds"] if clock["seconds"] else None

  return Logbook(train, heldout, exclude, tokens_per_second, close)


def _open_files(workdir: pathlib.Path, start: int, config: Mapping[str, Any]):
  """Returns (write(step, values), close()); only host 0 writes."""
  if jax.process_index() != 0:
    return lambda step, values: None, lambda: None
  path = workdir / "metrics.jsonl"
  lines: list[bytes] = []
  if path.exists():
    content = path.read_bytes()
    lines = content.splitlines()
    kept = b"".join(b"%s\n" % x for x in lines if _step_of(x) <= start)
    # A kill loses no line, nor does a run that is still appending to the file.
    if content.startswith(kept):
      os.truncate(path, len(kept))
    else:
      output_files.write_bytes(path, kept)
  if lost := _lost_lines(lines, start):
    log(f"{path}: {lost}; training is not affected, only its log")
  jsonl = path.open("a", encoding="utf-8")
  # Opened by the first line, so that the first steps don't wait for its import.
  board = functools.cache(lambda: _open_board(workdir / "tensorboard", start))
  tracker = trackers.open_tracker(workdir, config, resumed=start > 0)

  def write(step: int, values: Mapping[str, float]) -> None:
    jsonl.write(to_json({"step": step, **values}) + "\n")
    jsonl.flush()
    board()[0](step, values)
    if tracker:
      tracker.write(step, values)

  def close() -> None:
    jsonl.close()
    board()[1]()
    if tracker:
      tracker.close()

  return write, close


def _lost_lines(lines: Sequence[bytes], start: int) -> str:
  """Returns what a log of the first `start` steps lacks, or ''.

  A kill cuts only the last line, and steps are logged at a fixed distance.
  """
  steps = [s for s in map(_step_of, lines) if s <= start]
  damaged = sum(_step_of(line) == float("inf") for line in lines[:-1])
  if damaged:
    return f"{counted(damaged, 'damaged line')} removed"
  if start and not steps:
    return f"no line of steps 1 to {start:,} is there"
  distance = max((b - a for a, b in itertools.pairwise([0, *steps])), default=0)
  if start and start - steps[-1] > distance:
    return f"no line of steps {steps[-1] + 1:,.0f} to {start:,} is there"
  return ""


def _open_board(folder: pathlib.Path, start: int):
  """Returns (write(step, values), close()) for a TensorBoard event file.

  tensorboardX's writers are not used: a full disk ends their thread, after
  which their full queue blocks the run forever, and a kill loses the queue.
  """
  tensorboardX = import_tensorboardx()
  Event = tensorboardX.proto.event_pb2.Event
  SessionLog = tensorboardX.proto.event_pb2.SessionLog
  Summary = tensorboardX.proto.summary_pb2.Summary
  folder.mkdir(exist_ok=True)
  name = f"events.out.tfevents.{time.time():.0f}.{socket.gethostname()}"
  file = (folder / name).open("ab")
  synced = 0.0

  def add(**event) -> None:
    nonlocal synced
    data = Event(wall_time=time.time(), **event).SerializeToString()
    size = struct.pack("<Q", len(data))
    checksums = (
      struct.pack("<I", tensorboardX.record_writer.masked_crc32c(x))
      for x in (size, data)
    )
    file.write(b"".join((size, next(checksums), data, next(checksums))))
    file.flush()
    if time.monotonic() - synced > SYNC_SECONDS:
      os.fsync(file.fileno())
      synced = time.monotonic()

  def write(step: int, values: Mapping[str, float]) -> None:
    pairs = [Summary.Value(tag=k, simple_value=v) for k, v in values.items()]
    add(step=step, summary=Summary(value=pairs))

  add(file_version="brain.Event:2")
  # So that TensorBoard doesn't show a killed run's events of later steps.
  add(step=start + 1, session_log=SessionLog(status=SessionLog.START))
  return write, file.close


def import_tensorboardx():
  """Imports tensorboardX, hiding PyTorch from it.

  If PyTorch is installed, tensorboardX imports it to draw models, which takes
  two seconds at each start and is not needed here.
  """
  names = () if "torch" in sys.modules else ("torch",)
  sys.modules.update(dict.fromkeys(names))  # None raises ImportError.
  try:
    import tensorboardX.proto.event_pb2
    import tensorboardX.proto.summary_pb2
    import tensorboardX.record_writer
  finally:
    for name in names:
      del sys.modules[name]
  return tensorboardX


def _step_of(line: bytes) -> float:
  """Returns the step of a line of metrics.jsonl; infinity if it is none."""
  try:
    return parse_line(line)[0]
  except ValueError:
    return math.inf


def format_values(values: Mapping[str, float]) -> str:
  """Returns the progress line's values: "loss 7.312 | mlm_accuracy 12.1%".

  Without a loss, as no token was predicted, it begins with "no predictions".
  If a single term is the whole loss, only the loss is shown. (In training one
  is a mean over steps and the other over tokens, so they differ a little.)
  """
  forms = (  # In the order shown; other metrics are only in the files.
    (r"^loss$", "{} {:.3f}"),
    (r"loss$", "{} {:.3f}"),
    (r"accuracy$", "{} {:.1%}"),
    # Fine-tuning.
    (r"(^|_)(f1|exact_match|mcc|pearson|spearman|uas|las)$", "{} {:.3f}"),
    (r"^learning_rate$", "lr {1:.2e}"),
    (r"^mfu$", "MFU {1:.1%}"),
    (r"^tokens_per_second$", "{1:,.0f} tokens/s"),
  )
  terms = {n: x for n, x in values.items() if n.endswith("_loss")}
  if len(terms) > 1 or not math.isclose(
    values.get("loss", 0.0), sum(terms.values()), rel_tol=0.01
  ):
    terms = {}
  values = {n: x for n, x in values.items() if n not in terms}
  shown = {}
  if "loss" not in values and values.get("skipped", 0) < 1:
    shown["loss"] = "no predictions"
  for pattern, form in forms:
    for name, value in values.items():
      if re.search(pattern, name) and name not in shown:
        is_small = "loss" in name and 0 < value < 0.01  # T^2 KL, T = 0.05.
        digits = ".2e" if is_small else ".3f"
        shown[name] = form.replace(".3f", digits).format(name, value)
  return " | ".join(shown.values())
