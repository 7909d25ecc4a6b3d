"""Storage that fails: what the user can mend, and what is tried again."""

import errno
import pathlib

import jax
import pytest

from maskedlm.core.errors import CheckpointError, ConfigError, StorageError
from maskedlm.runtime import multihost, startup, storage_errors


class HttpError(Exception):
  """As gcsfs has it."""

  def __init__(self, code):
    super().__init__(f"an answer of the bucket, {code}\nand a page of it")
    self.code = code


def raised_within(context, error):
  with pytest.raises(Exception) as caught, context:
    raise error
  return caught.value


@pytest.mark.parametrize(
  "error",
  [
    FileNotFoundError("bucket/run"),
    FileExistsError(errno.EEXIST, "File exists"),
    PermissionError(errno.EACCES, "Permission denied"),
    OSError(errno.EROFS, "Read-only file system"),
    OSError("Forbidden: bucket/run\nno permission"),
    ValueError("Bad Request: bucket\ninvalid name"),
    HttpError(401),
    HttpError("403"),
  ],
  ids=repr,
)
def test_a_wrong_name_or_right_is_wrong_input(error):
  told = raised_within(storage_errors.bucket_errors("gs://bucket/run"), error)
  assert isinstance(told, ConfigError) and told.exit_code == 2
  assert "gs://bucket/run can't be reached" in str(told)
  assert "spelling" in str(told) and "\n" not in str(told)
  assert isinstance(storage_errors.unwritable("/run", error), ConfigError)


@pytest.mark.parametrize(
  "error",
  [
    OSError(errno.ENOSPC, "No space left on device"),
    OSError(errno.ESTALE, "Stale file handle"),
    ConnectionError("the name could not be resolved"),
    TimeoutError(),
    HttpError(503),
    ValueError("UNAVAILABLE: Error writing gs://bucket/run\na page"),
  ],
  ids=repr,
)
def test_what_may_pass_is_started_again(error):
  told = raised_within(storage_errors.bucket_errors("gs://bucket/run"), error)
  assert isinstance(told, StorageError) and told.exit_code == 74
  assert "the same command" in str(told) and "\n" not in str(told)
  assert not startup._is_loss(told)  # Nor has another host stopped.
  assert isinstance(storage_errors.unwritable("/run", error), StorageError)


def test_a_disk_that_is_full_under_a_run_is_told_wherever_it_is_met(tmp_path):
  full = OSError(errno.ENOSPC, "No space left on device")  # A write's.
  told = raised_within(multihost.workdir(tmp_path), full)
  assert isinstance(told, StorageError) and told.exit_code == 74
  assert f"{tmp_path} can't be written (No space left" in str(told)
  named = OSError(errno.EDQUOT, "Disk quota exceeded", "/logs/events")
  told = raised_within(multihost.workdir(tmp_path), named)
  assert isinstance(told, StorageError) and "/logs/events can't" in str(told)
  locked = OSError(errno.EROFS, "Read-only file system")  # After an error.
  assert isinstance(
    raised_within(multihost.workdir(tmp_path), locked), ConfigError
  )
  bug = FileNotFoundError(errno.ENOENT, "No such file or directory")
  assert raised_within(multihost.workdir(tmp_path), bug) is bug


def test_what_is_told_already_stays():
  told = CheckpointError("another run has begun to write")
  assert raised_within(storage_errors.bucket_errors("/run"), told) is told


def test_a_host_that_has_gone_is_no_failure_of_the_storage():
  """As Orbax tells it: barriers of a save whose other host was killed."""
  gone = jax.errors.JaxRuntimeError("DEADLINE_EXCEEDED: Barrier timed out.")
  late = TimeoutError("Timed out while waiting for async_write_complete")
  late.__cause__ = gone
  for error in gone, late:
    assert raised_within(storage_errors.bucket_errors("/run"), error) is error
    assert startup._is_loss(error)


@pytest.mark.parametrize("error", [ConfigError, CheckpointError])
def test_an_error_with_an_exit_code_is_no_loss_whatever_its_cause(error):
  cause = ValueError("UNAVAILABLE: Error writing")
  assert startup._is_loss(cause)
  told = error("UNAVAILABLE: it can't be reached")
  told.__cause__ = cause
  assert not startup._is_loss(told)


def test_a_workdir_that_cant_be_written_is_told_by_one_host_too(tmp_path):
  (tmp_path / "file").write_text("")
  for path, why in (
    (tmp_path / "file", "File exists"),
    (tmp_path / "file" / "run", "Not a directory"),
    (pathlib.Path("/proc/run"), "No such file or directory"),
  ):
    with pytest.raises(ConfigError, match=f"{path} can't be written .{why}"):
      multihost.check_shared(path)
  multihost.check_shared(tmp_path / "runs" / "new")
  assert list((tmp_path / "runs" / "new").iterdir()) == []
