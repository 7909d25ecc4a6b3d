"""Storage failures: those the user must fix, and those a retry may fix."""

import errno
import pathlib

import jax
import pytest

from maskedlm.core.errors import CheckpointError, ConfigError, StorageError
from maskedlm.runtime import multihost, startup, storage_errors


class HttpError(Exception):
  """Like gcsfs's error."""

  def __init__(self, code):
    super().__init__(f"an answer of the bucket, {code}\nand a page of it")
    self.code = code


# Orbax reports a lost host as a timeout of a barrier or of a save.
LOSSES = (
  jax.errors.JaxRuntimeError("DEADLINE_EXCEEDED: Barrier timed out."),
  TimeoutError("Timed out while waiting for async_write_complete"),
  TimeoutError(  # asyncio drops its cause.
    "Timeout waiting at barrier '[op=3] x'. The original error raised was: "
    "INTERNAL: Barrier failed because: task is"
  ),
)
LOSSES[1].__cause__ = LOSSES[0]


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
    OSError(errno.ENOSYS, "Function not implemented"),
    OSError(errno.EOPNOTSUPP, "Operation not supported"),
    OSError(errno.EINVAL, "Invalid argument"),
    OSError(errno.EFBIG, "File too large"),
    OSError(errno.ELOOP, "Too many levels of symbolic links"),
    ValueError("PERMISSION_DENIED: Error writing, os_error_code='13'\na page"),
    ValueError("INTERNAL: Error writing, os_error_code='38'"),
    ValueError("NOT_FOUND: Error opening a driver"),
    TypeError("Unable to cast a Python instance"),
  ],
  ids=repr,
)
def test_wrong_names_and_permissions_are_config_errors(error):
  raised = raised_within(storage_errors.bucket_errors("gs://bucket/run"), error)
  assert isinstance(raised, ConfigError) and raised.exit_code == 2
  assert "gs://bucket/run can't be reached" in str(raised)
  assert "spelling" in str(raised) and "\n" not in str(raised)
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
    OSError(errno.EIO, "Input/output error"),
    OSError(errno.EDQUOT, "Disk quota exceeded"),
    OSError(errno.ENOLCK, "No locks available"),
    OSError(errno.ECONNRESET, "Connection reset by peer"),
    ValueError("RESOURCE_EXHAUSTED: Error writing, os_error_code='28'"),
  ],
  ids=repr,
)
def test_temporary_failures_are_storage_errors(error):
  raised = raised_within(storage_errors.bucket_errors("gs://bucket/run"), error)
  assert isinstance(raised, StorageError) and raised.exit_code == 74
  assert "the same command" in str(raised) and "\n" not in str(raised)
  assert isinstance(storage_errors.unwritable("/run", error), StorageError)


def test_a_full_disk_is_one_line_wherever_it_is_noticed(tmp_path):
  full = OSError(errno.ENOSPC, "No space left on device")  # Raised by a write.
  raised = raised_within(multihost.workdir(tmp_path), full)
  assert isinstance(raised, StorageError) and raised.exit_code == 74
  assert f"{tmp_path} can't be written (No space left" in str(raised)
  named = OSError(errno.EDQUOT, "Disk quota exceeded", "/logs/events")
  raised = raised_within(multihost.workdir(tmp_path), named)
  assert isinstance(raised, StorageError) and "/logs/events can't" in str(
    raised
  )
  # ext4 after an I/O error.
  locked = OSError(errno.EROFS, "Read-only file system")
  assert isinstance(
    raised_within(multihost.workdir(tmp_path), locked), ConfigError
  )
  bug = FileNotFoundError(errno.ENOENT, "No such file or directory")
  assert raised_within(multihost.workdir(tmp_path), bug) is bug


def test_errors_that_already_have_an_exit_code_are_kept():
  raised = CheckpointError("another run has begun to write")
  assert raised_within(storage_errors.bucket_errors("/run"), raised) is raised


@pytest.mark.parametrize("error", LOSSES, ids=repr)
def test_a_lost_host_is_not_a_storage_error(error):
  assert raised_within(storage_errors.bucket_errors("/run"), error) is error


@pytest.mark.parametrize(
  ("error", "code"),
  [
    (ConfigError("no such corpus"), 2),
    (PermissionError(13, "Permission denied", "/data/corpus"), 2),
    (startup.LostHostError("gone"), 75),
    (TypeError("a bug"), 1),
    *((error, 75) for error in LOSSES),
    (ValueError("UNAVAILABLE: Error writing"), 75),
    # One of maskedlm's own is no loss, whatever its text.
    (ConfigError("UNAVAILABLE: it can't be reached"), 2),
    (StorageError("UNAVAILABLE: it can't be reached"), 74),
  ],
  ids=repr,
)
def test_a_host_among_several_exits_with_the_code_of_its_error(
  monkeypatch, error, code
):
  codes = []
  monkeypatch.setattr(startup, "start_hosts", lambda: None)
  monkeypatch.setattr(startup.xla_flags, "set_up", lambda environ: "")
  monkeypatch.setattr("jax.process_count", lambda: 2)
  monkeypatch.setattr(
    startup.atexit, "register", lambda leave, code: codes.append(code)
  )
  raised = raised_within(startup.connected(), error)
  assert codes == [code]
  assert isinstance(raised, startup.LostHostError) == (code == 75)


def test_an_unwritable_workdir_is_an_error_on_a_single_host_too(tmp_path):
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


@pytest.mark.parametrize("name", ["metrics.jsonl", "tensorboard", "a/b"])
def test_a_stray_file_or_folder_in_a_workdir_is_one_line(tmp_path, name):
  (tmp_path / "metrics.jsonl").mkdir()
  (tmp_path / "tensorboard").write_text("")
  (tmp_path / "a").write_text("")
  with (
    pytest.raises(ConfigError, match="can't be written"),
    multihost.workdir(tmp_path) as folder,
  ):
    if name == "metrics.jsonl":
      (folder / name).open("a", encoding="utf-8")
    (folder / name).mkdir(exist_ok=True)


def test_an_output_that_nobody_reads_is_no_error_of_a_disk():
  error = BrokenPipeError(errno.EPIPE, "Broken pipe")
  assert storage_errors.unusable(error) is None
  with pytest.raises(BrokenPipeError):
    storage_errors.unwritable("/corpus", error)
