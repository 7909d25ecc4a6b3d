"""The kinds of faults: a trial is (inputs, folder, rng) -> what was wrong.

A trial returns None if the user was served well: the command finished with the
same numbers as without the fault, or one line said what is wrong. It writes
only within its folder.
"""

import errno
import functools
import os
import pathlib
import random
import resource
import shutil
import signal
import time
from collections.abc import Callable

from faults import bucket, inputs, streams, trials
from faults.inputs import Inputs
from helpers import damage, faulty_storage

ERRORS = (
  errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES,
  errno.ESTALE, errno.ETIMEDOUT,
)  # fmt: skip
Trial = Callable[[Inputs, pathlib.Path, random.Random], str | None]


def _copy(path: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
  return shutil.copytree(path, folder / path.name, symlinks=True)


def _judge(whole, workdir, ended, **options) -> str | None:
  """Returns what is wrong with a run that ended by itself."""
  if fault := _untold(ended):
    return fault
  if ended.code == 0 and not trials.same(whole, workdir, **options):
    return "other numbers in silence"
  return None


def _untold(ended, what: str = "") -> str | None:
  """Returns what is wrong with the end of a command, or None."""
  end = ended.stderr.strip()[-300:]
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
  return _judge(
    whole or made.whole,
    workdir,
    ended,
    tolerance=_tolerance(devices),
    since=since,
  )


def _tolerance(devices: int) -> float:
  """Sums over other numbers of devices round otherwise."""
  return 0.0 if devices == 1 else 1e-4


def _files(root: pathlib.Path, rng: random.Random) -> pathlib.Path:
  return rng.choice(sorted(p for p in root.rglob("*") if p.is_file()))


def damaged_corpus(made, folder, rng, devices=1):
  """A file of the corpus is damaged before a run, or inspect, or a check."""
  corpus = _copy(made.corpus, folder)
  what = rng.choice(["pretrain", "inspect", "verify"])
  damaged = _files(corpus, rng)
  rng.choice(damage.ALL)(damaged, rng)
  if what == "pretrain":
    return _run(made, corpus, folder / "run", folder, devices=devices)
  argv = ["prepare", f"--verify={corpus}"]
  if what == "inspect":
    argv = [
      "inspect", f"--config={made.config}", f"--config.corpus.path={corpus}"
    ]  # fmt: skip
  ended = _verb(argv, folder, devices=devices)
  if fault := _untold(ended, what):
    return fault
  if what == "verify" and not ended.code and "rows" not in damaged.parts:
    return f"verify passes over {damaged.relative_to(corpus)}"
  return None


def damaged_run(made, folder, rng, devices=1):
  """A file of a half-finished run is damaged; then it is continued."""
  workdir = _copy(made.half, folder)
  damaged = _files(workdir, rng)
  rng.choice(damage.ALL)(damaged, rng)
  # What a log said before can't be checked.
  since = 5 if damaged.name == "metrics.jsonl" else 0
  return _run(made, made.corpus, workdir, folder, devices=devices, since=since)


def odd_checkpoints(made, folder, rng):
  """Checkpoint folders are swapped, renamed, or stand beside strange files."""
  workdir = _copy(made.half, folder)
  steps = workdir / "checkpoints"

  def swap():
    (steps / "2").rename(steps / "x")
    (steps / "4").rename(steps / "2")
    (steps / "x").rename(steps / "4")

  def unverified():
    for manifest in steps.glob("*/manifest.sha256"):
      manifest.unlink()
    damage.flip(_files(steps / "4", rng), rng)

  rng.choice(
    [
      swap,
      unverified,
      lambda: (steps / "4").rename(steps / rng.choice(["6", "7", "100"])),
      lambda: shutil.copytree(steps / "2", steps / rng.choice("56")),
      lambda: (steps / rng.choice(["6", "²", "6.damaged", "a"])).touch(),
      lambda: (steps / rng.choice(["6", "²", "8.damaged", "a"])).mkdir(),
      lambda: (steps / "4.damaged").touch(),
      lambda: (steps / "6").symlink_to("6"),
      lambda: (steps / "6").symlink_to("4"),
    ]
  )()
  return _run(made, made.corpus, workdir, folder)


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
  if ended.fault:
    return _untold(ended)
  return _run(made, made.corpus, workdir, folder)


def _failing_call(folder, rng) -> dict[str, str]:
  """Returns the variables that make calls fail, once or for good."""
  fault = faulty_storage.Fault(
    rng.choice(ERRORS),
    rng.choice(faulty_storage.CALLS),
    f"{folder}/",
    skip=rng.randrange(12),
    times=rng.choice([0, 1]),
  )
  return faulty_storage.variables(fault)


def failing_call(made, folder, rng):
  """A call to the file system fails once or for good; then the disk is well."""
  workdir = folder / "run"
  if rng.random() < 0.5:
    workdir = _copy(made.half, folder)
  argv = inputs.pretrain(made, made.corpus, workdir)
  ended = _verb(argv, folder, environ=_failing_call(folder, rng))
  fault = _judge(made.whole, workdir, ended)
  return fault or _run(made, made.corpus, workdir, folder)


def failing_output(made, folder, rng):
  """A call fails while a verb writes its output: nothing half is left."""
  out = folder / "out"
  argv = rng.choice(
    [
      ["prepare", f"--config={made.config}", f"--out={out}"],
      ["export", f"--checkpoint={made.whole}", "--to=hf", f"--out={out}"],
    ]
  )
  ended = _verb(argv, folder, environ=_failing_call(folder, rng))
  if fault := _untold(ended, argv[0]):
    return fault
  again = _verb(argv, folder)
  if again.code and out.exists() and not ended.code:
    return None  # It was complete already, and isn't overwritten.
  if again.code:
    return f"{argv[0]} again: {again.stderr.strip()[-300:]}"
  return None


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
    return _untold(ended, verb)
  if verb == "pretrain" and not trials.same(made.whole, workdir):
    return f"{verb}: training ended with its output"
  return None


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
    if ended.fault == "traceback" or ended.code == trials.HUNG:
      return f"host {i}: {ended.fault}: {ended.stderr.strip()[-300:]}"
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
        return _untold(ended)
    time.sleep(2)  # The bucket is well by now.
    again = _verb(argv, folder, environ=environ, seconds=180)
  finally:
    bucket.stop(server)
  return _judge(made.whole, folder / "bucket" / "runs" / "run", again)


KINDS: dict[str, Trial] = {
  "damaged corpus": damaged_corpus,
  "damaged corpus, 4 devices": functools.partial(damaged_corpus, devices=4),
  "damaged run": damaged_run,
  "damaged run, 4 devices": functools.partial(damaged_run, devices=4),
  "odd checkpoints": odd_checkpoints,
  "killed": killed,
  "killed, 4 devices": functools.partial(killed, devices=4),
  "killed, steps of NaN": killed_skipping,
  "signals": signals,
  "failing call": failing_call,
  "failing call, other verbs": failing_output,
  "files that can't grow": small_files,
  "bad streams": bad_streams,
  "two hosts": hosts,
  "bucket": bucket_runs,
}
# Of a campaign's trials, by what they cost.
SHARES = dict(
  zip(KINDS, (30, 10, 20, 5, 8, 4, 3, 3, 6, 8, 8, 3, 10, 1, 1), strict=True)
)
