"""Calls to the file system that fail are one line, and leave nothing behind."""

import errno

import pytest

from helpers import faulty_storage, forked_verbs
from helpers.faulty_storage import Fault


@pytest.fixture(scope="module")
def run():
  with forked_verbs.server(faulty_storage.environment(None)) as run:
    yield run


@pytest.mark.parametrize(
  ("number", "calls", "path", "code"),
  [
    (errno.EIO, "write", "/made", 74),
    (errno.EDQUOT, "close", "/made", 74),  # As NFS reports a quota.
    (errno.ESTALE, "rename", "/made", 74),
    (errno.EROFS, "create", "/made", 2),
    (errno.EACCES, "mkdir", "/made", 2),
    # The clean-up fails as well, and the first error is shown.
    (errno.ENOSPC, "write,remove", "/made", 74),
  ],
)
@pytest.mark.parametrize("verb", ["prepare", "tokenizer"])
def test_a_failing_disk(run, tiny, tmp_path, verb, number, calls, path, code):
  log = tmp_path / "failed"
  (tmp_path / "out").mkdir()
  out = tmp_path / "out" / "made"
  fault = Fault(number, calls, path)
  made = run(
    [verb, f"--config={tiny[0]}", f"--out={out}"],
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
