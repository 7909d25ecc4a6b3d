"""Runs verbs in this process, which has imported jax, on few of its devices."""

import contextlib
import io
import subprocess

import jax
import pytest

from maskedlm.cli import main
from maskedlm.training import sharding


@contextlib.contextmanager
def devices(count=1):
  """Makes meshes of so many devices; for one, compiling takes less."""
  make = sharding.make_mesh
  with pytest.MonkeyPatch.context() as patched:
    patched.setattr(
      sharding,
      "make_mesh",
      lambda mesh, given=None: make(mesh, given or jax.devices()[:count]),
    )
    yield


def run(*argv) -> subprocess.CompletedProcess:
  """Runs `maskedlm ...` on one device, as a program that calls main does."""
  out, err = io.StringIO(), io.StringIO()
  with (
    contextlib.redirect_stdout(out),
    contextlib.redirect_stderr(err),
    devices(),
  ):
    code = main.main([*map(str, argv)])
  return subprocess.CompletedProcess(argv, code, out.getvalue(), err.getvalue())
