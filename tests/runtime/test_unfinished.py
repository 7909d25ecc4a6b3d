"""What killed processes leave of files and folders is removed, no more."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

from maskedlm.runtime import output_files

# Writes a file and a folder, and is killed before they are whole.
KILLED = """
import pathlib, sys
from maskedlm.runtime import output_files
out = pathlib.Path(sys.argv[1])
with output_files.whole_file(out / "a.json") as file:
  with output_files.whole_folder(out / "b") as folder:
    (folder / "inside").touch()
    print(flush=True)
    input()
"""


@pytest.fixture
def writing(tmp_path):
  """A process in the midst of writing tmp_path/a.json and tmp_path/b."""
  process = subprocess.Popen(
    [sys.executable, "-c", KILLED, tmp_path],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
  )
  process.stdout.readline()
  yield process
  process.kill()
  process.wait()


def write(out: pathlib.Path):
  output_files.write_text(out / "a.json", "whole")
  with output_files.whole_folder(out / "b") as folder:
    (folder / "c").touch()


def names(folder: pathlib.Path) -> list[str]:
  return sorted(os.listdir(folder))


def test_the_next_writer_removes_what_a_killed_one_left(tmp_path, writing):
  writing.send_signal(signal.SIGKILL)
  writing.wait()
  assert len(names(tmp_path)) == 2
  write(tmp_path)
  assert names(tmp_path) == ["a.json", "b"]


def test_what_another_is_writing_stays_and_is_finished(tmp_path, writing):
  write(tmp_path)
  assert len(names(tmp_path)) == 4
  output_files.clear_unfinished(tmp_path)
  assert len(names(tmp_path)) == 4
  writing.communicate(b"\n")
  assert writing.returncode == 0
  assert names(tmp_path) == ["a.json", "b"]
  # The last file wins; a folder that is there stays.
  assert (tmp_path / "a.json").read_bytes() == b""
  assert names(tmp_path / "b") == ["c"]


def test_files_of_other_names_stay(tmp_path):
  others = [f".b.json.{'0' * 32}", f".a.json.{'g' * 32}", ".a.json.0", "a"]
  for name in others:
    (tmp_path / name).touch()
  (tmp_path / f".a.json.{'0' * 32}").symlink_to(tmp_path / "a")
  output_files.write_text(tmp_path / "a.json", "")
  assert {*others, "a.json"} < {*names(tmp_path)}
