"""Starts pretrain_peer.py on rows of ours, and lets it take steps."""

import contextlib
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import jax
import numpy as np

from maskedlm.core.task import Task

SCRIPT = pathlib.Path(__file__).parent / "pretrain_peer.py"


class Shape(NamedTuple):
  """A BERT."""

  layers: int
  width: int
  heads: int
  mlp_width: int
  vocab: int


class Taken(NamedTuple):
  """Some steps."""

  seconds: float
  cpu: float  # Seconds of CPU time, of the process.
  loss: float  # Of the last.


class Peer(NamedTuple):
  """The process."""

  device: str  # "cuda" or "cpu".
  run: Callable[[str, int], Taken]  # A variant's name, and how many steps.


def lacking() -> str:
  """Why the peer can't start here; "" if it can."""
  for name in ("torch", "transformers"):
    if importlib.util.find_spec(name) is None:
      return f"{name} isn't installed: install the extra peer"
  return ""


@contextlib.contextmanager
def start(
  shape: Shape, batches: list[Mapping[str, np.ndarray]]
) -> Iterator[Peer]:
  """The peer, until the context ends.

  batches: of masked().

  Raises:
    RuntimeError: it can't start; or, from `run`, a step failed: one line.
  """
  if why := lacking():
    raise RuntimeError(why)
  stacked = {k: np.stack([each[k] for each in batches]) for k in batches[0]}
  with tempfile.TemporaryDirectory() as folder:
    model, rows = f"{folder}/shape.json", f"{folder}/batches.npz"
    pathlib.Path(model).write_text(json.dumps(shape._asdict()))
    np.savez(rows, **stacked)
    command = [sys.executable, str(SCRIPT), model, rows]
    pipe = subprocess.PIPE
    with subprocess.Popen(
      command, stdin=pipe, stdout=pipe, text=True
    ) as process:  # It ends when its stdin does.

      def run(name: str, count: int) -> Taken:
        asked = json.dumps({"name": name, "count": count})
        print(asked, file=process.stdin, flush=True)
        return Taken(**answer(process))

      yield Peer(answer(process)["device"], run)


def answer(process: subprocess.Popen) -> dict:
  """The next one."""
  line = process.stdout.readline()
  if not line:
    raise RuntimeError(f"{SCRIPT.name} ended, exit {process.wait()}")
  found = json.loads(line)
  if "error" in found:
    raise RuntimeError(found["error"])
  return found


def masked(task: Task, batches: list) -> list[dict[str, np.ndarray]]:
  """The batches as the peer reads them: masked, label -100 = no label."""
  corrupt = jax.jit(task.corrupt)
  out = []
  for i, batch in enumerate(batches):
    batch = jax.device_get(corrupt(batch, jax.random.key(i)))
    chosen = batch["masked_weights"] > 0
    slot_labels = np.where(chosen, batch["masked_labels"], -100)
    labels = np.full_like(batch["input_ids"], -100)
    row, slot = np.nonzero(chosen)
    labels[row, batch["masked_positions"][row, slot]] = slot_labels[row, slot]
    out.append({**batch, "slot_labels": slot_labels, "labels": labels})
  return out
