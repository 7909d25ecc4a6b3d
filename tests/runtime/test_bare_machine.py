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

from helpers import tiny as tiny_run
from maskedlm.cli import main
from maskedlm.core.errors import CheckpointError, ConfigError, InteropError
from maskedlm.runtime import (
  console,
  output_files,
  output_options,
  startup,
)
from maskedlm.training.checkpoints.lock import lock_folder


@pytest.mark.parametrize("number", output_files._NO_LOCKS)
def test_a_file_system_without_locks(tmp_path, monkeypatch, number):
  def flock(file, operation):
    raise OSError(number, os.strerror(number))

  monkeypatch.setattr(fcntl, "flock", flock)
  for on_wait in (None, pytest.fail):
    with output_files.lock(tmp_path / "a.lock", on_wait=on_wait) as file:
      assert not file.closed
  lock_folder(tmp_path / "run").close()


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


@pytest.fixture
def cache_of_jax(monkeypatch):
  """Collects the cache folders that JAX is given."""
  given = []
  monkeypatch.setattr(jax.config, "update", lambda name, x: given.append(x))
  return given


def test_a_user_without_a_home_folder_has_no_cache(no_home, cache_of_jax):
  startup.enable_compile_cache()
  assert cache_of_jax == []
  with pytest.raises(ConfigError, match="XDG_CACHE_HOME"):
    output_files.cache_dir("corpora")


@pytest.mark.parametrize("home", ["/proc/none", "/dev/null"])
def test_a_home_that_cannot_be_written(
  no_home, cache_of_jax, monkeypatch, home
):
  monkeypatch.setenv("HOME", home)
  startup.enable_compile_cache()
  assert cache_of_jax == []


def test_a_cache_folder_is_used_if_there_is_one(
  no_home, cache_of_jax, monkeypatch, tmp_path
):
  monkeypatch.setenv("HOME", str(tmp_path))
  startup.enable_compile_cache()
  assert cache_of_jax == [str(tmp_path / ".cache" / "maskedlm" / "jax")]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_letter_can_be_printed(monkeypatch, encoding):
  text, out = "naïve \N{DEVANAGARI LETTER YA} \udce9", io.BytesIO()
  stream = io.TextIOWrapper(out, encoding=encoding, errors="strict")
  monkeypatch.setattr(sys, "stdout", stream)
  assert main.run(lambda argv: print(text) or 0, []) == 0
  shown = {
    "ascii": b"na\\xefve \\u092f \\udce9\n",
    "latin-1": b"na\xefve \\u092f \\udce9\n",
    "utf-8": "naïve \N{DEVANAGARI LETTER YA} ".encode() + b"\\udce9\n",
  }
  assert out.getvalue() == shown[encoding]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_json_is_json_in_any_terminal(monkeypatch, encoding):
  value, out = {"a": "naïve 😀 \N{DEVANAGARI LETTER YA}"}, io.BytesIO()
  stream = io.TextIOWrapper(out, encoding=encoding)
  monkeypatch.setattr(sys, "stdout", stream)
  assert main.run(lambda argv: console.print_json(value) or 0, []) == 0
  assert json.loads(out.getvalue().decode(encoding)) == value


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


def test_an_output_never_replaces_the_current_folder(tiny, tmp_path):
  """An empty one was: `ls` showed nothing, and later commands failed."""
  config, _ = tiny
  inside = tmp_path / "a" / "b"
  inside.mkdir(parents=True)
  for out in (".", "..", str(inside), "../b/"):
    made = tiny_run.run(
      "prepare", f"--config={config}", f"--out={out}", cwd=inside
    )
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
