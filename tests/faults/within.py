"""Runs maskedlm within this process, thousands of times.

A process that is killed makes no further call that changes the disk. So a kill
is a disk on which, from some call on, every such call fails: what is there then
is what a kill would leave, at each of the places where one can fall. The
command is repeated on a copy, as the threads of the one that failed live on.
"""

import contextlib
import errno
import io
import pathlib
import random
import re
import shutil
import time
import traceback

from faults.trials import Ended
from helpers import faulty_storage

_CHANGES = ",".join(faulty_storage.CHANGES)
# What a command may leave only until the next one.
_LEFT = re.compile(
  r"\..+\.[0-9a-f]{32}|.*\.orbax-.*|\d+\.unfinished|\.shared-.*|.*\.tmp"
)


def prepare() -> None:
  """Keeps the programs of equal configs from trial to trial.

  What would trace them again is left out: checks of options and memory, and the
  words that a run fills in at its end.
  """
  from maskedlm.pretraining import predictions, run
  from maskedlm.training import sharding, step, step_memory

  whole = run.run

  def kept(make, key):
    made = {}

    def find(*args, **options):
      found = key(*args, **options)
      if found not in made:
        made[found] = make(*args, **options)
      return made[found]

    return find

  def without_examples(*args, **options):
    return whole(*args, **{**options, "show_examples": lambda *_: None})

  run.run = without_examples
  run.objectives.make_task = kept(
    run.objectives.make_task, lambda c, corpus, *_: (repr(c), corpus.path)
  )
  step.over_mesh = kept(
    step.over_mesh,
    lambda c, task, mesh, **_: (
      repr(c),
      str(task.describe),
      mesh.devices.shape,
    ),
  )
  run.check = lambda config: sharding.make_mesh(config.mesh)
  step_memory.check_phases = lambda *_: None
  predictions.check_rows = lambda *_, **__: None


def verb(argv, inside=contextlib.nullcontext) -> Ended:
  """Runs `maskedlm ARGV`, within inside(), in this process."""
  from maskedlm.cli import main

  return call(main.call, [str(word) for word in argv], inside)


def call(act, argv=(), inside=contextlib.nullcontext) -> Ended:
  """Runs act(argv) as if it were a verb, whose errors are told in one line."""
  from maskedlm.cli import main

  out, err, began = io.StringIO(), io.StringIO(), time.time()
  code = 1
  with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
    try:
      with inside():
        code = main.run(act, argv) or 0
    except BaseException:  # Of a bug, or of SystemExit.
      traceback.print_exc()
  return Ended(code, out.getvalue(), err.getvalue(), time.time() - began)


def failing(folder: pathlib.Path, rng: random.Random):
  """Returns a context in which a call below the folder fails."""
  fault = faulty_storage.Fault(
    rng.choice(ERRORS),
    rng.choice(faulty_storage.CALLS),
    f"{folder}/",
    skip=rng.randrange(20),
    times=rng.choice([0, 1]),
  )
  return lambda: faulty_storage.injected(fault)


ERRORS = (
  errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES,
  errno.ESTALE, errno.ETIMEDOUT, errno.EMFILE,
)  # fmt: skip


def count_changes(argv, folder: pathlib.Path) -> int:
  """Returns how many calls of a command change something in a folder."""
  ended: list[Ended] = []
  act = lambda: ended.append(verb(argv))  # noqa: E731
  count = faulty_storage.count_calls(_CHANGES, f"{folder}/", act)
  assert ended[0].code == 0, ended[0].stderr[-900:]
  return count


def killed(argv, folder: pathlib.Path, at: int) -> tuple[Ended, pathlib.Path]:
  """Runs a command that is killed at a call that changes the folder.

  Returns:
    (how it ended, a copy of what it left in the folder)
  """
  fault = faulty_storage.Fault(errno.EIO, _CHANGES, f"{folder}/", skip=at)
  with faulty_storage.injected(fault):
    ended = verb(argv)
    # Before the threads that it left can write again.
    copy = folder.with_name(f"{folder.name}-left")
    shutil.copytree(folder, copy, symlinks=True)
  return ended, copy


def left(folder: pathlib.Path) -> str | None:
  """Returns what a killed command left that is still there, or None."""
  names = [p.name for p in folder.rglob("*") if _LEFT.fullmatch(p.name)]
  return f"leaves {', '.join(sorted(names))}" if names else None
