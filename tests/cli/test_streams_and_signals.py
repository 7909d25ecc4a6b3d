"""Closed and full streams, and signals until the process is gone."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from helpers.forked_verbs import BROKEN, CLOSED

FULL = "/dev/full"


@pytest.mark.parametrize(
  ("streams", "code"),
  [
    ({"stdout": CLOSED}, 0),
    ({"stdout": FULL}, 74),
    ({"stdout": BROKEN}, 141),
    ({"stdin": CLOSED, "stdout": CLOSED, "stderr": CLOSED}, 0),
    # The usage after an unknown verb is on stderr.
    ({"stderr": CLOSED}, 2),
    ({"stderr": FULL}, 2),
    ({"stderr": BROKEN}, 2),
  ],
  ids=str,
)
def test_a_stream_that_is_closed_or_full(forked, tiny, streams, code):
  argv = ["xyz"] if code == 2 else ["prepare", f"--verify={tiny[1]}"]
  made = forked(argv, **streams)
  assert made.code == code, made.stderr
  assert "Traceback" not in made.stderr and "Exception" not in made.stderr
  if made.code == 74:
    assert made.stderr.startswith("error: stdout ")
    assert made.stderr.count("\n") == 1


def test_training_goes_on_without_its_log(forked, tiny, tmp_path):
  made = forked(
    [
      "pretrain",
      f"--config={tiny[0]}",
      f"--config.corpus.path={tiny[1]}",
      "--workdir=run",
      "--config.train.num_steps=4",
      "--config.optimizer.warmup_steps=1",
    ],
    cwd=tmp_path,
    stderr=FULL,
  )
  assert made.code == 0, made.stdout
  assert (tmp_path / "run" / "result.json").exists()
  assert "held out, after 4 steps" in made.stdout


def test_no_file_gets_the_number_of_a_closed_stream(forked, tiny, tmp_path):
  """What a library prints to stderr would be written to that file."""
  lock = tmp_path / "corpus.lock"

  def watch(pid, _):
    for _ in range(3000):
      open_files = [
        os.readlink(f"/proc/{pid}/fd/{n}")
        for n in (0, 1, 2)
        if os.path.lexists(f"/proc/{pid}/fd/{n}")
      ]
      assert str(lock) not in open_files
      if lock.exists():
        return
      time.sleep(0.01)

  made = forked(
    ["prepare", f"--config={tiny[0]}", f"--out={tmp_path / 'corpus'}"],
    stdin=CLOSED,
    stdout=CLOSED,
    stderr=CLOSED,
    watch=watch,
  )
  assert made.code == 0


def _send_until_gone(pid, path, text, numbers):
  """Sends signals in turn, the first when `text` is in the log."""
  for _ in range(6000):
    with contextlib.suppress(FileNotFoundError):
      if text in pathlib.Path(path).read_text():
        break
    time.sleep(0.01)
  with contextlib.suppress(ProcessLookupError):
    for i in range(10**6):
      os.kill(pid, numbers[i % len(numbers)])
      time.sleep(0.01)


@pytest.mark.parametrize(
  ("steps", "text"),
  [(100_000, "step 3/"), (3, "step 3/3")],
  ids=["training", "the last step"],
)
def test_many_signals_are_as_one(forked, tiny, tmp_path, steps, text):
  """They arrive as it saves, writes results, and while Python ends."""
  numbers = [signal.SIGTERM, signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
  made = forked(
    [
      "pretrain",
      f"--config={tiny[0]}",
      f"--config.corpus.path={tiny[1]}",
      f"--workdir={tmp_path}",
      f"--config.train.num_steps={steps}",
      "--config.optimizer.warmup_steps=1",
    ],
    watch=lambda pid, path: _send_until_gone(pid, path, text, numbers),
  )
  assert made.code == 75, made.stderr
  assert "Traceback" not in made.stderr and "Exception" not in made.stderr
  assert "the same command continues" in made.stderr
  names = [path.name for path in (tmp_path / "checkpoints").iterdir()]
  step = max(int(name) for name in names if name.isdigit())
  assert step >= 3 and f"step {step:,} is saved" in made.stderr


def test_threads_of_a_failed_save_do_not_keep_the_process():
  code = (
    "import sys, threading, time\n"
    "from maskedlm.cli import main\n"
    "main._PATIENCE = 0.1\n"
    "def wait(argv):\n"
    "  threading.Thread(target=time.sleep, args=[100]).start()\n"
    "  return 74\n"
    "main.call = wait\n"
    "sys.exit(main.main())\n"
  )
  assert (
    subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 74
  )
