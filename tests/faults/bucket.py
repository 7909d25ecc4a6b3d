"""Runs a stand-in for Google Cloud Storage in a process of its own."""

import json
import os
import pathlib
import random
import signal
import threading
import time

from helpers import fake_gcs


def start(folder: pathlib.Path, rng: random.Random) -> tuple[int, dict]:
  """Returns the server's process, and the variables that point to it.

  For a second or so, it refuses to write anything. SIGTERM writes its objects
  to `folder` and ends it.
  """
  refuses_from, refuses_for = rng.uniform(0, 6), rng.uniform(0, 2)
  folder.mkdir()
  pid = os.fork()
  if not pid:
    try:
      _serve(folder, refuses_from, refuses_for)
    finally:
      os._exit(0)
  ready = folder / "environment.json"
  while not ready.exists():
    time.sleep(0.01)
  return pid, json.loads(ready.read_text())


def _serve(folder, refuses_from, refuses_for):
  stop = threading.Event()
  signal.signal(signal.SIGTERM, lambda *_: stop.set())
  with fake_gcs.serve() as gcs:
    part = folder / "part"
    part.write_text(json.dumps(gcs.environment))
    part.rename(folder / "environment.json")
    stop.wait(refuses_from)
    gcs.refused.add("")
    stop.wait(refuses_for)
    gcs.refused.clear()
    stop.wait()
    for key, (content, _) in gcs.objects.items():
      path = folder / key
      path.parent.mkdir(parents=True, exist_ok=True)
      path.write_bytes(content)


def stop(pid: int) -> None:
  os.kill(pid, signal.SIGTERM)
  os.waitpid(pid, 0)
