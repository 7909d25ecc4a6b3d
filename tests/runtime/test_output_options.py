"""Output paths are checked before the work starts, and written as a whole."""

import contextlib
import errno
import fcntl
import os
import pathlib
import signal
import time
import uuid

import pytest

from helpers.repository import ROOT
from maskedlm.cli import main
from maskedlm.core.errors import ConfigError, StorageError
from maskedlm.runtime import output_files, output_options


@pytest.mark.parametrize(
  ("check", "good", "wrong"),
  [
    (
      output_options.check_file,
      ("new", "old"),
      {
        "": "--out=.* is a folder; name a file",
        "x/a": "there is no folder .*x",
      },
    ),
    (
      output_options.check_folder,
      ("", "a/new"),
      dict.fromkeys(("old", "old/new"), "old is a file; name a folder"),
    ),
  ],
)
def test_outputs_are_checked(tmp_path, monkeypatch, check, good, wrong):
  (tmp_path / "old").write_text("")
  for name in good:
    check(tmp_path / name, option="--out")
  for name, message in wrong.items():
    with pytest.raises(ConfigError, match=message):
      check(tmp_path / name, option="--out")
  monkeypatch.setattr(os, "access", lambda path, mode: False)
  with pytest.raises(ConfigError, match="permission denied"):
    check(tmp_path / "new", option="--out")


def test_links_and_devices_are_written_through(tmp_path):
  (tmp_path / "file").write_text("old")
  (tmp_path / "link").symlink_to("file")
  (tmp_path / "null").symlink_to("/dev/null")
  for name in ("link", "null"):
    output_options.check_file(tmp_path / name, option="--json")
    output_files.write_text(tmp_path / name, "new")
    assert (tmp_path / name).is_symlink()
  assert (tmp_path / "file").read_text() == "new"
  assert pathlib.Path("/dev/null").is_char_device()


@pytest.mark.parametrize(
  ("number", "kind"), [(errno.ENOSPC, StorageError), (errno.EROFS, ConfigError)]
)
def test_failures_at_the_end_name_the_option(number, kind):
  with (
    pytest.raises(kind, match=r"--out=a can't be written \("),
    output_options.named_errors("a", option="--out"),
  ):
    raise OSError(number, "no")


@pytest.mark.parametrize(
  "argv",
  [
    ["inspect", f"--config={ROOT}/configs/bert.py", "--html=/none/a.html"],
    ["evaluate", "--data=d.tsv", "--out=none/p.jsonl"],
    ["predict", "--data=d.tsv", "--export=d.tsv"],
    ["isotropy", "--input=d.tsv", "--out=."],
    ["embed", "--input=d.jsonl", "--out=d.jsonl"],
    ["embed", "--input=d.tsv", "--out=v.npz", "--fit=./v.npz"],
    ["embed", "--input=d.tsv", "--standardise=f.npz", "--out=f.npz"],
  ],
)
def test_verbs_check_outputs_before_they_open_the_checkpoint(
  argv, tmp_path, monkeypatch, capsys
):
  monkeypatch.chdir(tmp_path)
  for name in ("d.tsv", "d.jsonl"):
    (tmp_path / name).write_text("text\n")
  if argv[0] != "inspect":
    argv = [*argv, "--checkpoint=absent"]
  assert main.main(argv) == 2
  err = capsys.readouterr().err
  assert err.count("\n") == 1 and "absent" not in err
  assert (tmp_path / "d.jsonl").read_text() == "text\n"


def test_new_folder_keeps_other_files(tmp_path):
  """Even if the name looks like that of an unfinished folder."""
  other = tmp_path / "out.tmp"
  other.mkdir()
  (other / "notes.txt").write_text("mine")
  for error in (ValueError, None):
    with (
      contextlib.suppress(ValueError),
      output_options.new_folder(tmp_path / "out") as made,
    ):
      (made / "x").write_text("whole")
      if error:
        raise error
    assert (tmp_path / "out").exists() == (error is None)
    assert len(list(tmp_path.iterdir())) == 1 + (error is None)
  assert (other / "notes.txt").read_text() == "mine"
  assert (tmp_path / "out" / "x").read_text() == "whole"
  # The permissions are those of any new folder.
  assert (tmp_path / "out").stat().st_mode == other.stat().st_mode


def test_sigterm_removes_the_unfinished_folder(tmp_path):
  before = signal.getsignal(signal.SIGTERM)
  with (
    pytest.raises(SystemExit) as info,
    output_options.new_folder(tmp_path / "out") as made,
  ):
    (made / "x").write_text("half")
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(5)  # The signal ends it.
  assert info.value.code == 143
  assert not list(tmp_path.iterdir())
  assert signal.getsignal(signal.SIGTERM) == before


def test_an_unfinished_file_is_new_and_of_an_unknown_name(tmp_path):
  """Someone else's link at a name that can be guessed would be followed."""
  umask = os.umask(0o027)
  try:
    names = set()
    for _ in range(2):
      with output_files.whole_file(tmp_path / "y.html") as file:
        (name,) = set(os.listdir(tmp_path)) - {"y.html"}
        flags = fcntl.fcntl(file, fcntl.F_GETFL)
        names.add(name)
        file.write(b"whole")
      assert flags & os.O_ACCMODE == os.O_WRONLY
    assert len(names) == 2
    assert os.listdir(tmp_path) == ["y.html"]
    assert (tmp_path / "y.html").stat().st_mode & 0o777 == 0o640
  finally:
    os.umask(umask)


def test_nothing_that_stands_at_the_unfinished_name_is_opened(
  tmp_path, monkeypatch
):
  """Neither a file nor a link, even if the name were known."""
  (tmp_path / "theirs").write_text("theirs")
  known = uuid.uuid4()
  unfinished = tmp_path / f".y.html.{known.hex}"
  monkeypatch.setattr(uuid, "uuid4", lambda: known)
  for target in ("theirs", "absent"):
    unfinished.symlink_to(target)
    with pytest.raises(FileExistsError):
      output_files.write_text(tmp_path / "y.html", "mine")
    assert unfinished.is_symlink()
    unfinished.unlink()
  assert (tmp_path / "theirs").read_text() == "theirs"
  assert [p.name for p in tmp_path.iterdir()] == ["theirs"]


def test_the_longest_names_can_be_written(tmp_path):
  for letter in ("x", "\u0915"):
    name = letter * (255 // len(letter.encode()))
    output_files.write_text(tmp_path / name, "whole")
    assert os.listdir(tmp_path) == [name]
    (tmp_path / name).unlink()


def test_a_failing_clean_up_keeps_the_first_error(tmp_path, monkeypatch):
  """On a disk with I/O errors, closing and removing fail as well."""

  def fail(*args, **options):
    raise OSError(errno.EIO, "Input/output error")

  with (
    monkeypatch.context() as patch,
    pytest.raises(ValueError, match="first"),
    output_files.whole_file(tmp_path / "y.html") as file,
  ):
    file.write(b"half")
    patch.setattr(os, "unlink", fail)
    patch.setattr(pathlib.Path, "unlink", fail)
    raise ValueError("first")
  assert file.closed


def test_a_new_folder_is_removed_again_if_nothing_is_written(tmp_path):
  (tmp_path / "old").mkdir()
  for name, kept in (("new", False), ("old", True)):
    with contextlib.suppress(ValueError), output_files.folder(tmp_path / name):
      raise ValueError
    assert (tmp_path / name).exists() == kept


def test_a_lock_follows_no_link_and_waits_for_no_reader(tmp_path):
  (tmp_path / "link").symlink_to("theirs")
  os.mkfifo(tmp_path / "fifo")
  for name, number in (("link", errno.ELOOP), ("fifo", errno.ENXIO)):
    with pytest.raises(OSError) as caught:
      output_files.lock(tmp_path / name)
    assert caught.value.errno == number
  assert not (tmp_path / "theirs").exists()


def test_a_link_to_itself_is_replaced(tmp_path):
  path = tmp_path / "out.json"
  path.symlink_to(path.name)
  output_options.check_file(path, option="--out")
  output_files.write_text(path, "text")
  assert path.read_text() == "text" and not path.is_symlink()


@pytest.mark.parametrize(
  ("number", "kind"), [(errno.EIO, StorageError), (errno.EROFS, ConfigError)]
)
@pytest.mark.parametrize("late", [False, True])
def test_a_new_folder_on_a_failing_disk(
  tmp_path, monkeypatch, number, kind, late
):
  def fail(*args, **options):
    raise OSError(number, "no")

  out = tmp_path / "out"
  if not late:
    monkeypatch.setattr(pathlib.Path, "mkdir", fail)
  with (
    pytest.raises(kind, match="out can't be written"),
    output_options.new_folder(out),
  ):
    fail()
  assert not list(tmp_path.iterdir())
