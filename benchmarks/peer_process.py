"""Starts pretrain_peer.py on given rows, and runs its steps."""

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
  """Sizes of a BERT."""

  layers: int
  width: int
  heads: int
  mlp_width: int
  vocab: int


class Taken(NamedTuple):
  """What some steps took."""

  seconds: float
  cpu: float  # CPU seconds of the process.
  loss: float  # Of the last step.


class Peer(NamedTuple):
  """The peer's process."""

  device: str  # "cuda" or "cpu".
  run: Callable[[str, int], Taken]  # (variant, number of steps).


def lacking() -> str:
  """Returns why the peer can't start here, or ""."""
  for name in ("torch", "transformers"):
    if importlib.util.find_spec(name) is None:
      return f"{name} is not installed: install the extra peer"
  return ""


@contextlib.contextmanager
def start(
  shape: Shape, batches: list[Mapping[str, np.ndarray]]
) -> Iterator[Peer]:
  """Starts the peer; it ends with the context.

  Args:
    shape: of the model.
    batches: from masked().

  Raises:
    RuntimeError: it can't start; or, from `run`, a step failed.
  """
  if why := lacking():
    raise RuntimeError(why)
  stacked = {k: np.stack([batch[k] for batch in batches]) for k in batches[0]}
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
        request = json.dumps({"name": name, "count": count})
        print(request, file=process.stdin, flush=True)
        return Taken(**answer(process))

      yield Peer(answer(process)["device"], run)


def answer(process: subprocess.Popen) -> dict:
  """Returns the next answer."""
  line = process.stdout.readline()
  if not line:
    raise RuntimeError(f"{SCRIPT.name} ended, exit {process.wait()}")
  reply = json.loads(line)
  if "error" in reply:
    raise RuntimeError(reply["error"])
  return reply


def masked(task: Task, batches: list) -> list[dict[str, np.ndarray]]:
  """Returns the batches masked, as the peer reads them; -100 = no label."""
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
