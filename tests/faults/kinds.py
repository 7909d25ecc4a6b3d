"""The kinds of faults: a trial is (inputs, folder, rng) -> what was wrong.

A trial returns None if the user was served well: the command finished with the
same numbers as without the fault, or one line said what is wrong. It writes
only within its folder.
"""

import contextlib
import functools
import os
import pathlib
import random
import resource
import signal
import time
from collections.abc import Callable

from faults import bucket, inputs, streams, trials, within
from faults.inputs import Inputs

Trial = Callable[[Inputs, pathlib.Path, random.Random], str | None]


def judge(whole, workdir, ended, **options) -> str | None:
  """Returns what is wrong with a run that ended by itself."""
  if fault := untold(ended):
    return fault
  if ended.code == 0 and not trials.same(whole, workdir, **options):
    return "other numbers in silence"
  return None


def untold(ended, what: str = "") -> str | None:
  """Returns what is wrong with the end of a command, or None."""
  at = ended.stderr.rfind("Traceback")
  end = ended.stderr.strip()[-300:] if at < 0 else ended.stderr[at:][:3000]
  if ended.fault:
    return f"{what} {ended.fault}: {end}"
  is_told = any(
    line.startswith(("error: ", "interrupted", "maskedlm"))
    for line in ended.stderr.splitlines()
  )
  if ended.code and not is_told:
    return f"{what} exit code {ended.code} without one line: {end}"
  return None


def _verb(argv, folder, **options) -> trials.Ended:
  """Runs a command to its end."""
  return trials.run(argv, folder.parent / "log", **options)


def _run(
  made, corpus, workdir, folder, whole=None, devices=1, since=0, **options
) -> str | None:
  """Trains to the end; returns what is wrong since a step, or None."""
  argv = inputs.pretrain(made, corpus, workdir)
  ended = _verb(argv, folder, devices=devices, **options)
  return judge(
    whole or made.whole,
    workdir,
    ended,
    tolerance=_tolerance(devices),
    since=since,
  )


def _tolerance(devices: int) -> float:
  """Sums over other numbers of devices round otherwise."""
  return 0.0 if devices == 1 else 1e-4


def any_file(root: pathlib.Path, rng: random.Random) -> pathlib.Path:
  return rng.choice(sorted(p for p in root.rglob("*") if p.is_file()))


def killed(made, folder, rng, whole=None, inject=lambda: None, devices=1):
  """A run is killed at a random moment, and started again."""
  workdir = folder / "run"
  argv = inputs.pretrain(made, made.corpus, workdir)
  pid = trials.start(
    argv, folder.parent / "log", inject=inject, devices=devices
  )
  time.sleep(rng.uniform(0.5, 6))
  os.kill(pid, signal.SIGKILL)
  trials.wait(pid, folder.parent / "log", 60)
  return _run(
    made, made.corpus, workdir, folder, whole, inject=inject, devices=devices
  )


def killed_skipping(made, folder, rng):
  """Killed, while some steps have a loss of NaN and are skipped."""
  return killed(made, folder, rng, made.skipping, inputs.some_steps_not_finite)


def signals(made, folder, rng):
  """One to five signals arrive, mostly in the last moments."""
  workdir = folder / "run"
  argv = inputs.pretrain(made, made.corpus, workdir)
  pid = trials.start(argv, folder.parent / "log")
  time.sleep(rng.uniform(1.5, 6))
  for _ in range(rng.randint(1, 5)):
    try:
      os.kill(pid, rng.choice([signal.SIGTERM, signal.SIGINT]))
    except ProcessLookupError:
      break
    time.sleep(rng.choice([0, 0.01, 0.1, 0.5]))
  ended = trials.wait(pid, folder.parent / "log", 120)
  # Until a run is there to be saved, SIGTERM ends it as any other process.
  if ended.fault not in (None, f"dies of signal {signal.SIGTERM:d}"):
    return untold(ended)
  return _run(made, made.corpus, workdir, folder)


def killed_workers(made, folder, rng):
  """A worker of prepare is killed, or prepare itself; then it runs again."""
  argv = [
    *("prepare", f"--config={made.config}", "--config.corpus.num_workers=2"),
    f"--out={folder / 'corpus'}",
  ]
  pid = trials.start(argv, folder.parent / "log")
  time.sleep(rng.uniform(0.1, 3))
  victims = [pid, *_children(pid)]
  with contextlib.suppress(ProcessLookupError):
    os.kill(rng.choice(victims), signal.SIGKILL)
  ended = trials.wait(pid, folder.parent / "log", 60)
  if ended.code != -signal.SIGKILL and (fault := untold(ended)):
    return fault
  again = _verb(argv, folder)
  if again.code:
    return f"again: {again.stderr.strip()[-300:]}"
  for path in made.corpus.glob("*.npy"):
    if path.read_bytes() != (folder / "corpus" / path.name).read_bytes():
      return f"another {path.name} in silence"
  return within.left(folder)


def _children(pid: int) -> list[int]:
  found = []
  for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
    with contextlib.suppress(OSError):
      number, _, rest = path.read_text().partition(" (")
      if int(rest.rpartition(") ")[2].split()[1]) == pid:
        found.append(int(number))
  return found


def small_files(made, folder, rng):
  """The kernel refuses to let files grow beyond a size; then it does not."""
  workdir = folder / "run"
  size = rng.choice([0, 1, 100, 1000, 5000, 20_000, 60_000])

  def limit():
    streams.discard()
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

  argv = inputs.pretrain(made, made.corpus, workdir)
  ended = _verb(argv, folder, inject=limit)
  if ended.code < 0 or ended.code not in trials.EXPECTED_CODES:
    return f"exit code {ended.code}"
  return _run(made, made.corpus, workdir, folder)


def bad_streams(made, folder, rng):
  """Standard streams are closed, full, or pipes that nobody reads."""
  workdir = folder / "run"
  verb = rng.choice(["pretrain", "inspect", "verify", "fill-mask", "embed"])
  argv = {
    "pretrain": inputs.pretrain(made, made.corpus, workdir),
    "inspect": [
      "inspect",
      f"--config={made.config}",
      f"--config.corpus.path={made.corpus}",
    ],
    "verify": ["prepare", f"--verify={made.corpus}"],
    "fill-mask": [
      "fill-mask", f"--checkpoint={made.whole}", "--text=the [MASK] of it"
    ],
    "embed": [
      "embed", f"--checkpoint={made.whole}", f"--input={made.text}",
      f"--out={folder / 'v.npz'}",
    ],
  }[verb]  # fmt: skip
  ended = _verb(argv, folder, inject=streams.damaged(rng), seconds=60)
  if ended.fault and "without a message" not in ended.fault:
    return untold(ended, verb)
  if verb == "pretrain" and not trials.same(made.whole, workdir):
    return f"{verb}: training ended with its output, in silence"
  return None


# Killed; stopped; without another host.
_OF_HOSTS = (0, 75, -signal.SIGKILL, -signal.SIGTERM)


def hosts(made, folder, rng):
  """One of two hosts is killed, or both; then both start again."""
  workdir = folder / "run"

  def start():
    port = str(20_000 + rng.randrange(20_000))
    return [
      trials.start(
        inputs.pretrain(made, made.corpus, workdir),
        folder.parent / f"log{i}",
        environ={
          "JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{port}",
          "JAX_NUM_PROCESSES": "2",
          "JAX_PROCESS_ID": str(i),
        },
      )
      for i in range(2)
    ]

  pids = start()
  time.sleep(rng.uniform(2, 8))
  for pid in rng.choice([pids, pids[:1], pids[1:]]):
    os.kill(pid, rng.choice([signal.SIGKILL, signal.SIGTERM]))
  for i, pid in enumerate(pids):
    ended = trials.wait(pid, folder.parent / f"log{i}", 180)
    if ended.code not in _OF_HOSTS or ended.fault == "traceback":
      return f"host {i}: {ended.code}: {ended.stderr.strip()[-300:]}"
  for i, pid in enumerate(start()):
    ended = trials.wait(pid, folder.parent / f"log{i}", 180)
    if ended.fault or ended.code:
      return f"host {i} again: {ended.code} {ended.stderr.strip()[-300:]}"
  if not trials.same(made.whole, workdir, tolerance=_tolerance(2)):
    return "other numbers in silence"
  return None


def bucket_runs(made, folder, rng):
  """A bucket refuses to write for a while; the run may be killed, too."""
  server, environ = bucket.start(folder / "bucket", rng)
  argv = inputs.pretrain(made, made.corpus, "gs://runs/run")
  try:
    pid = trials.start(argv, folder.parent / "log", environ=environ)
    if rng.random() < 0.5:
      time.sleep(rng.uniform(2, 8))
      os.kill(pid, signal.SIGKILL)
      trials.wait(pid, folder.parent / "log", 60)
    else:
      ended = trials.wait(pid, folder.parent / "log", 180)
      if ended.fault:
        return untold(ended)
    time.sleep(2)  # The bucket is well by now.
    again = _verb(argv, folder, environ=environ, seconds=180)
  finally:
    bucket.stop(server)
  return judge(made.whole, folder / "bucket" / "runs" / "run", again)


# Kind -> (trial, of 10,000).
KINDS: dict[str, tuple[Trial, int]] = {
  "killed": (killed, 12),
  "killed, 4 devices": (functools.partial(killed, devices=4), 4),
  "killed, steps of NaN": (killed_skipping, 4),
  "killed workers of prepare": (killed_workers, 15),
  "signals": (signals, 10),
  "files that can't grow": (small_files, 5),
  "bad streams": (bad_streams, 15),
  "two hosts": (hosts, 4),
  "bucket": (bucket_runs, 5),
}
