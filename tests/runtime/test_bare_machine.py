"""Machines without locks, home folders, caches, or letters in the terminal."""

import errno
import fcntl
import io
import json
import os
import pwd
import sys

import jax
import pytest

from helpers import in_process
from maskedlm.cli import main
from maskedlm.core.errors import CheckpointError, ConfigError, InteropError
from maskedlm.runtime import console, output_files, output_options, startup
from maskedlm.runtime.folder_lock import lock_folder


@pytest.mark.parametrize(
  "number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL]
)
def test_a_file_system_without_locks(tmp_path, monkeypatch, capsys, number):
  """There the run that started last goes on; it is said once."""
  output_files.warn_of_no_locks.cache_clear()

  def flock(file, operation):
    raise OSError(number, os.strerror(number))

  monkeypatch.setattr(fcntl, "flock", flock)
  for on_wait in (None, pytest.fail):
    with output_files.lock(tmp_path / "a.lock", on_wait=on_wait) as file:
      assert not file.closed
  first, second = (lock_folder(tmp_path / "run") for _ in range(2))
  second.check()
  with pytest.raises(CheckpointError, match="has started to write to"):
    first.check()
  second.close()
  said = capsys.readouterr().err
  assert said.count("\n") == said.count("has no locks") == 1


def test_a_lock_is_held_where_there_are_locks(tmp_path, monkeypatch):
  held = output_files.lock(tmp_path / "a.lock")
  with pytest.raises(BlockingIOError):
    output_files.lock(tmp_path / "a.lock")
  waited = []
  with monkeypatch.context() as patch:

    def then_without_locks(file, operation, flock=fcntl.flock):
      if waited:
        raise OSError(errno.ENOLCK, "No locks available")
      flock(file, operation)

    patch.setattr(fcntl, "flock", then_without_locks)
    output_files.lock(
      tmp_path / "a.lock", on_wait=lambda: waited.append(1)
    ).close()
  assert waited == [1]
  held.close()
  opened = lock_folder(tmp_path / "run")
  with pytest.raises(CheckpointError, match="another run"):
    lock_folder(tmp_path / "run")
  opened.close()


@pytest.fixture
def no_home(monkeypatch):
  """A user without a home folder and without an entry in passwd."""

  def unknown(user):
    raise KeyError(f"getpwuid(): uid not found: {user}")

  for name in ("HOME", "XDG_CACHE_HOME", "JAX_COMPILATION_CACHE_DIR"):
    monkeypatch.delenv(name, raising=False)
  monkeypatch.setattr(pwd, "getpwuid", unknown)


@pytest.mark.parametrize("home", ["", "/proc/none", "/dev/null"])
def test_a_user_without_a_home_folder_has_no_cache(no_home, monkeypatch, home):
  folders = []
  monkeypatch.setattr(jax.config, "update", lambda name, x: folders.append(x))
  if home:
    monkeypatch.setenv("HOME", home)
  startup.enable_compile_cache()
  assert folders == []
  if not home:
    with pytest.raises(ConfigError, match="XDG_CACHE_HOME"):
      output_files.cache_dir("corpora")


SHOWN = {
  "ascii": b"na\\xefve \\u092f \\udce9\n",
  "latin-1": b"na\xefve \\u092f \\udce9\n",
  "utf-8": "naïve \N{DEVANAGARI LETTER YA} ".encode() + b"\\udce9\n",
}


@pytest.mark.parametrize("encoding", SHOWN)
def test_any_letter_can_be_printed(monkeypatch, encoding):
  def printed(show):
    out = io.BytesIO()
    stream = io.TextIOWrapper(out, encoding=encoding, errors="strict")
    monkeypatch.setattr(sys, "stdout", stream)
    assert main.run(lambda argv: show() or 0, []) == 0
    return out.getvalue()

  text = "naïve \N{DEVANAGARI LETTER YA} \udce9"
  assert printed(lambda: print(text)) == SHOWN[encoding]
  value = {"a": "naïve 😀 \N{DEVANAGARI LETTER YA}"}
  json_text = printed(lambda: console.print_json(value)).decode(encoding)
  assert json.loads(json_text) == value


def test_a_current_folder_that_is_gone_is_one_line(
  tmp_path, monkeypatch, capsys
):
  (tmp_path / "here").mkdir()
  monkeypatch.chdir(tmp_path / "here")
  (tmp_path / "here").rmdir()
  assert main.run(lambda argv: 0, []) == 2
  error = capsys.readouterr().err
  assert error.startswith("error: the current folder") and "cd" in error
  monkeypatch.chdir(tmp_path)


def test_an_output_never_replaces_the_current_folder(
  tiny, tmp_path, monkeypatch
):
  """An empty one was: `ls` showed nothing, and later commands failed."""
  config, _ = tiny
  inside = tmp_path / "a" / "b"
  inside.mkdir(parents=True)
  monkeypatch.chdir(inside)
  for out in (".", "..", str(inside), "../b/"):
    made = in_process.run("prepare", f"--config={config}", f"--out={out}")
    assert made.returncode == 2 and made.stderr.count("error: ") == 1
    assert "current folder" in made.stderr and "\n" not in made.stderr.strip()
  assert not any(inside.iterdir())


@pytest.mark.parametrize("out", [".", "..", "./", "../b"])
def test_a_new_folder_never_replaces_the_current_one(
  tmp_path, monkeypatch, out
):
  (tmp_path / "a" / "b").mkdir(parents=True)
  monkeypatch.chdir(tmp_path / "a" / "b")
  with (
    pytest.raises(InteropError, match="current folder"),
    output_options.new_folder(out),
  ):
    pass
  with output_options.new_folder("c") as folder:
    (folder / "file").write_text("")
  assert os.listdir("c") == ["file"]
