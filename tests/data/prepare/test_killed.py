"""A killed prepare leaves nothing that looks like a finished corpus."""

import pathlib
import signal
import subprocess
import sys
import time

import pytest

from helpers.prepare_corpus import make_text
from helpers.repository import ROOT
from maskedlm.core.errors import CorpusError
from maskedlm.data.corpus import store

# No `if __name__` guard: workers must not run the program again.
PROGRAM = """
import sys
from maskedlm.config import defaults
from maskedlm.data.prepare import documents, prepare
print("started", flush=True)
config = defaults.default()
config.corpus.update(
  source=f"text:{sys.argv[1]}", sentences="lines", num_workers=2)
config.tokenizer.vocab_size = 60
documents.CHUNK_BYTES = 1000
prepare.prepare(config, sys.argv[2])
print("finished", flush=True)
"""


def children(pid):
  command = ["ps", "-o", "pid=", "--ppid", str(pid)]
  found = subprocess.run(command, capture_output=True, text=True, check=False)
  return [int(word) for word in found.stdout.split()]


def is_alive(pid):
  try:
    # A killed process stays as a zombie until its parent waits for it.
    return ") Z " not in pathlib.Path(f"/proc/{pid}/stat").read_text()
  except (FileNotFoundError, ProcessLookupError):  # Gone before it was read.
    return False


def test_a_killed_prepare_leaves_nothing_that_looks_finished(tmp_path):
  text = tmp_path / "text.txt"
  text.write_text(make_text(9, 3_000))
  program = tmp_path / "program.py"
  program.write_text(PROGRAM)
  path = tmp_path / "corpus"

  def start():
    return subprocess.Popen(
      [sys.executable, program, text, path],
      stdout=subprocess.PIPE,
      stderr=subprocess.DEVNULL,
      cwd=ROOT,
      text=True,
    )

  process = start()
  tokens = pathlib.Path(store.work_folder(path)) / "train-00000.tokens.npy"
  while not (tokens.exists() and tokens.stat().st_size > 9_000):
    assert process.poll() is None, process.stdout.read()
    time.sleep(0.01)
  started = children(process.pid)
  process.send_signal(signal.SIGKILL)
  assert process.wait() == -signal.SIGKILL
  assert process.stdout.read().splitlines()[0] == "started"
  assert not path.exists()
  with pytest.raises(CorpusError, match="not a finished corpus"):
    store.open_corpus(store.work_folder(path))
  # The workers end by themselves.
  assert len(started) >= 2
  deadline = time.monotonic() + 60
  while any(map(is_alive, started)):
    assert time.monotonic() < deadline
    time.sleep(0.05)

  process = start()
  out, _ = process.communicate()
  assert process.returncode == 0
  assert out.splitlines().count("started") == 1
  assert out.splitlines()[-1] == "finished"
  assert store.verify_corpus(path) == []
  names = sorted(p.name for p in tmp_path.iterdir())
  assert names == ["corpus", "program.py", "text.txt"]
