"""Calls to the file system that fail are one line, and leave nothing behind."""

import errno

import pytest

from helpers import faulty_storage
from helpers.faulty_storage import Fault


@pytest.mark.parametrize(
  ("verb", "number", "calls", "code"),
  [
    ("prepare", errno.EIO, "write", 74),
    ("prepare", errno.EDQUOT, "close", 74),  # As NFS reports a quota.
    ("tokenizer", errno.ESTALE, "rename", 74),
    ("tokenizer", errno.EROFS, "create", 2),
    ("prepare", errno.EACCES, "mkdir", 2),
    # The clean-up fails as well, and the first error is shown.
    ("tokenizer", errno.ENOSPC, "write,remove", 74),
  ],
)
def test_a_failing_disk(forked, tiny, tmp_path, verb, number, calls, code):
  faulty_storage.library()  # Skips where it can't be compiled.
  log = tmp_path / "failed"
  (tmp_path / "out").mkdir()
  out = tmp_path / "out" / "made"
  fault = Fault(number, calls, "/made")
  little = ["corpus.source=docstrings:json,logging", "tokenizer.vocab_size=300"]
  made = forked(
    [
      *(verb, f"--config={tiny[0]}", f"--out={out}"),
      *(f"--config.{option}" for option in little),
    ],
    faulty_storage.variables(fault, log),
  )
  assert log.exists(), "no call failed"
  assert made.code == code, made.stderr
  lines = [x for x in made.stderr.splitlines() if x.startswith("error: ")]
  assert len(lines) == 1
  # An error of close(2) has no name.
  assert str(out) in lines[0] or calls == "close"
  assert "Traceback" not in made.stderr
  # Removing a folder closes what it lists, so that clean-up fails as well.
  if "remove" not in calls and calls != "close":
    assert not list((tmp_path / "out").iterdir())
