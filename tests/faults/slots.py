"""Runs trials one after another, as a half of a campaign does.

Most are done within one process that lives on, which is replaced when a trial
ends or blocks it. It is a fork of one in which JAX has not started, as those
processes are in which the other trials run their commands.
"""

import multiprocessing
import os
import pathlib
import random
import shutil
import sys
import time
import traceback
from typing import NamedTuple

from faults import inputs, kinds, kinds_within, within

SECONDS = 120.0  # Of a trial within a process.
MOST = 800  # Trials of a process, whose memory grows.
FORK = multiprocessing.get_context("fork")


class Result(NamedTuple):
  kind: str
  number: int
  fault: str | None
  seconds: float


def work(plan, made, folder: pathlib.Path, seed: int, until: float, results):
  """Runs trials, (kind, number) each; sends a Result of each.

  Args:
    plan: the trials.
    made: inputs.make's.
    folder: where they write.
    seed: of the campaign.
    until: the time after which none begins.
    results: a Connection.
  """
  folder.mkdir()
  worker = None
  for kind, number in plan:
    began = time.time()
    if began > until:
      break
    inside = folder / f"{kind.replace(' ', '-').replace(',', '')}-{number}"
    inside.mkdir()
    if kind in kinds_within.KINDS:
      worker = worker or Worker(made)
      fault = worker.run(kind, inside, f"{seed} {kind} {number}")
      if worker.is_spent():
        worker = worker.close()
    else:
      trial = kinds.KINDS[kind][0]
      fault = run(trial, made, inside, f"{seed} {kind} {number}")
    results.send(Result(kind, number, fault, time.time() - began))
    if len(plan) > 1:  # The files of a single trial stay.
      shutil.rmtree(inside, ignore_errors=True)
  if worker:
    worker.close()


def prepare(made):
  """Returns the inputs with those that are made within a process, too."""
  here, there = FORK.Pipe()
  process = FORK.Process(target=_prepare, args=(made, there))
  process.start()
  there.close()
  changes = here.recv()
  process.join()
  return made._replace(changes=changes)


def _prepare(made, there):
  _begin(made)
  inputs.make_within(made)
  there.send(made.changes)


def run(trial, made, inside: pathlib.Path, seed: str) -> str | None:
  """Returns the fault that a trial finds, or the campaign's own."""
  try:
    return trial(made, inside, random.Random(seed))
  except Exception:
    return f"the campaign fails: {traceback.format_exc()[-600:]}"


class Worker:
  """A process in which trials run, one after another."""

  def __init__(self, made):
    self._here, there = FORK.Pipe()
    self._process = FORK.Process(target=_serve, args=(made, there))
    self._process.start()
    there.close()
    self._count = 0

  def run(self, kind: str, inside: pathlib.Path, seed: str) -> str | None:
    """Runs a trial; returns its fault, as if the process dies or hangs."""
    self._here.send((kind, inside, seed))
    self._count += 1
    try:
      if self._here.poll(SECONDS):
        return self._here.recv()
      fault = "hangs"
    except EOFError:
      self._process.join()
      fault = f"the process ends with {self._process.exitcode}"
    self._count = MOST
    return fault

  def is_spent(self) -> bool:
    return self._count >= MOST

  def close(self) -> None:
    self._process.kill()
    self._process.join()


def _serve(made, there):
  _begin(made)
  while True:
    kind, inside, seed = there.recv()
    there.send(run(kinds_within.KINDS[kind][0], made, inside, seed))


def _begin(made):
  """Makes this process one in which trials run."""
  os.environ["XLA_FLAGS"] += " --xla_force_host_platform_device_count=2"
  name = made.folder / f"worker-{os.getpid()}.log"
  os.dup2(os.open(name, os.O_CREAT | os.O_RDWR), 2)  # For libraries in C++.
  sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
  within.prepare()
