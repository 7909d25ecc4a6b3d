"""How a verb ends: errors the user can fix are one line, bugs a traceback."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

import maskedlm
from maskedlm.cli import main


def test_a_device_out_of_memory_is_one_line(capsys):
  def verb(argv):
    del argv
    jax.jit(lambda: jnp.zeros(1 << 46))().block_until_ready()  # 281 TB.

  assert main.run(verb, []) == 2
  line = capsys.readouterr().err
  assert (
    line.startswith("error: RESOURCE_EXHAUSTED: ") and line.count("\n") == 1
  )
  assert "train.accumulate" in line

  def later(argv):  # As a CPU reports it for a step that runs asynchronously.
    del argv
    raise jax.errors.JaxRuntimeError(
      "INTERNAL: Error dispatching: Out of memory allocating 35 bytes."
    )

  assert main.run(later, []) == 2
  assert "allocating 35 bytes. Give the device less" in capsys.readouterr().err


def test_bugs_have_a_traceback_and_ctrl_c_has_none(capsys):
  def bug(argv):
    raise RuntimeError("an array of [3, 5]")

  def stop(argv):
    raise KeyboardInterrupt

  with pytest.raises(RuntimeError, match=r"\[3, 5\]"):
    main.run(bug, [])
  assert main.run(stop, []) == 130
  assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize(
  ("verb", "log_is_closed", "expected"),
  [
    # `maskedlm prepare ... | head -1 && ...` must not go on.
    ("[print('x' * 99) for _ in range(999)]", False, 141),
    ("print('x')", False, 141),  # Python writes it as it exits.
    ("print('x') or 75", False, 75),
    ("0", False, 0),
    # In `... 2>&1 | tee log`, Ctrl-C ends tee while the run saves.
    ("console.log('saving') or 75", True, 75),
  ],
)
def test_a_closed_output_ends_the_verb(verb, log_is_closed, expected):
  read, write = os.pipe()
  os.close(read)
  code = (
    "import sys\nfrom maskedlm.cli import main\n"
    "from maskedlm.runtime import console\n"
    f"sys.exit(main.run(lambda argv: {verb}, []))"
  )
  buffered = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
  made = subprocess.run(
    [sys.executable, "-c", code],
    env=buffered,
    stdout=write,
    stderr=write if log_is_closed else subprocess.PIPE,
  )
  os.close(write)
  assert (made.returncode, made.stderr or b"") == (expected, b"")


def test_permission_denied_is_one_line(capsys):
  def verb(argv):
    del argv
    raise PermissionError(13, "Permission denied", "/home/ada/runs/bert")

  assert main.run(verb, []) == 2
  line = capsys.readouterr().err
  assert line.startswith("error: /home/ada/runs/bert: Permission denied; ")
  assert line.count("\n") == 1

  def flush(argv):  # A write has no path.
    del argv
    raise PermissionError(13, "Permission denied")

  assert main.run(flush, []) == 2
  assert "can't be written or read (Permission" in capsys.readouterr().err


def test_python_m_is_the_same_command():
  made = subprocess.run(
    [sys.executable, "-m", "maskedlm", "--version"],
    # The allocator restarts the process.
    env={**os.environ, "JAX_PLATFORMS": "cpu"},
    capture_output=True,
    text=True,
  )
  assert (made.returncode, made.stderr) == (0, "")
  first, *more = made.stdout.splitlines()
  assert first == f"maskedlm {maskedlm.__version__}"
  names = ["python", "jax", "jaxlib", "flax", "platform"]
  assert {*names} <= {line.split()[0] for line in more}
