"""Imports point one way; the host side needs no jax; --help is quick."""

import ast
import pathlib
import subprocess
import sys

import pytest

PACKAGE = pathlib.Path(__file__).parent.parent / "maskedlm"
# layer -> layers of maskedlm that it must not import.
FORBIDDEN = {
  "corpus": ("modeling", "objectives", "train", "step", "sharding"),
  "modeling": ("corpus", "objectives", "train", "step", "sharding"),
  "objectives": ("train", "step", "sharding", "checkpoint", "pretrain"),
  "config": ("corpus", "modeling", "objectives", "train", "step", "sharding"),
  "presets": ("corpus", "modeling", "objectives", "train", "config"),
  "task": ("corpus", "modeling", "objectives", "train", "config"),
  "train": ("corpus", "modeling", "objectives", "pretrain", "fill_mask"),
  "step": ("corpus", "modeling", "objectives", "pretrain", "fill_mask"),
}
FILES = sorted(PACKAGE.rglob("*.py"))


def imported(path):
  """Dotted names that a file imports anywhere in it."""
  for node in ast.walk(ast.parse(path.read_text())):
    if isinstance(node, ast.Import):
      yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
      yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize(
  "path", FILES, ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_imports_point_one_way(path):
  layer = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
  names = list(imported(path))
  for other in FORBIDDEN.get(layer, ()):
    prefix = f"maskedlm.{other}"
    assert not [n for n in names if n == prefix or n.startswith(prefix + ".")]
  assert not [n for n in names if n.split(".")[0] == "configs"]
  assert not [
    n for n in names if n.split(".")[0] in ("torch", "tensorflow", "clu")
  ]
  if layer == "corpus":
    assert not [n for n in names if n.split(".")[0] in ("jax", "flax", "grain")]


def test_file_sizes():
  long = {p.name for p in FILES if len(p.read_text().splitlines()) > 400}
  assert not long
  assert len((PACKAGE / "train.py").read_text().splitlines()) <= 250


def test_the_log_of_a_run_needs_no_torch():
  """tensorboardX imports it where it is: two seconds of each start."""
  code = (
    "import sys\n"
    "from maskedlm import metrics\n"
    "metrics._import_tensorboardx().record_writer.masked_crc32c\n"
    "assert 'torch' not in sys.modules\n"
  )
  subprocess.run([sys.executable, "-c", code], check=True, cwd=PACKAGE.parent)


def test_host_side_and_help_need_no_jax():
  code = (
    "import sys, pkgutil, importlib, maskedlm.corpus as c\n"
    "for m in pkgutil.iter_modules(c.__path__):\n"
    "  importlib.import_module('maskedlm.corpus.' + m.name)\n"
    "import maskedlm.cli\n"
    "assert maskedlm.cli.main(['--help']) == 0\n"
    "assert 'jax' not in sys.modules and 'torch' not in sys.modules\n"
    "assert 'tensorflow_datasets' not in sys.modules\n"
  )
  subprocess.run([sys.executable, "-c", code], check=True, cwd=PACKAGE.parent)
