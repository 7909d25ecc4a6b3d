"""Folders import only those before them; the host side needs no jax."""

import ast
import functools
import re
import subprocess
import sys

from helpers.repository import ROOT

PACKAGE = ROOT / "maskedlm"
# A folder may import itself and the folders before it.
FOLDERS = (
  "core",
  "runtime",
  "modeling",
  "data",
  "training",
  "pretraining",
  "config",
  "planning",
  "finetune",
  "inference",
  "interop",
  "cli",
)
# They may import all folders, and no file below them imports them but
# `python -m maskedlm.finetune.TASK`, which is the program.
TOP = ("__init__.py", "__main__.py", "in_python.py")
# Also, data runs without jax, and data and modeling don't know each other.
NOT_ALLOWED = {"data": {"modeling"}}
FILES = sorted(PACKAGE.rglob("*.py"))
NEVER = {"configs", "torch", "tensorflow", "clu"}
ACCELERATOR = ("jax", "flax", "grain")


@functools.cache
def imported(path):
  """Returns the dotted names that a file imports anywhere in it.

  Includes importlib.import_module("maskedlm.x"); in an f-string, the part
  before the first {} counts.
  """
  found = []
  for node in ast.walk(ast.parse(path.read_text())):
    if isinstance(node, ast.Import):
      found += [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
      assert node.level == 0, f"{path}:{node.lineno}: a relative import"
      found += [f"{node.module}.{alias.name}" for alias in node.names]
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
      ("import_module", "__import__")
    ):
      name = node.args[0]
      if isinstance(name, ast.JoinedStr):
        name = name.values[0]
      if isinstance(name, ast.Constant):
        found.append(name.value.rstrip("."))
  return found


@functools.cache
def folder_of(name):
  """Returns the folder of a dotted name in maskedlm; None for its top."""
  _, *rest = name.split(".")
  return rest[0] if rest and (PACKAGE / rest[0]).is_dir() else None


def test_the_folders_are_those_listed():
  found = {p.name for p in PACKAGE.iterdir() if not p.name.startswith("__pyc")}
  assert found == {*FOLDERS, *TOP, "py.typed"}


def test_imports_point_down():
  for path in FILES:
    own, names = path.relative_to(PACKAGE).parts[0], imported(path)
    never = NEVER | ({*ACCELERATOR} if own in ("core", "data") else set())
    assert not {n.split(".")[0] for n in names} & never, path
    if own in TOP:
      continue
    allowed = {*FOLDERS[: FOLDERS.index(own) + 1], None}
    allowed -= NOT_ALLOWED.get(own, set())
    used = {n: folder_of(n) for n in names if n.split(".")[0] == "maskedlm"}
    assert not {n: f for n, f in used.items() if f not in allowed}, path


def test_no_task_imports_another():
  tasks = {p.parent.name for p in PACKAGE.glob("finetune/*/*.py")} - {"common"}
  for path in PACKAGE.glob("finetune/*/*.py"):
    for name in imported(path):
      parts = name.split(".")
      if parts[:2] == ["maskedlm", "finetune"] and parts[2] in tasks:
        assert parts[2] == path.parent.name, f"{path}: {name}"


def test_no_two_files_import_each_other():
  modules = {
    ".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(
      ".__init__"
    ): p
    for p in FILES
    if p.parent != PACKAGE  # maskedlm/__init__.py imports on demand.
  }

  def targets(path):
    for name in imported(path):
      for known in (name, name.rpartition(".")[0]):
        if known in modules and modules[known] != path:
          yield known
          break

  arrows = {name: set(targets(path)) for name, path in modules.items()}
  while True:  # Removes the files that import none of the others.
    leaves = {name for name, to in arrows.items() if not to & arrows.keys()}
    if not leaves:
      break
    arrows = {n: to - leaves for n, to in arrows.items() if n not in leaves}
  assert not arrows


def test_file_sizes():
  long = {p.name for p in FILES if len(p.read_text().splitlines()) > 400}
  assert not long
  loop = (PACKAGE / "training" / "loop.py").read_text()
  assert len(loop.splitlines()) <= 250


def test_the_log_of_a_run_needs_no_torch():
  """tensorboardX imports it if installed: two seconds at every start."""
  code = (
    "import sys\n"
    "from maskedlm.training import metrics\n"
    "metrics.import_tensorboardx().record_writer.masked_crc32c\n"
    "assert 'torch' not in sys.modules\n"
  )
  subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_host_side_and_help_need_no_jax():
  code = (
    "import sys, pkgutil, importlib, maskedlm.data as d\n"
    "for m in pkgutil.walk_packages(d.__path__, 'maskedlm.data.'):\n"
    "  importlib.import_module(m.name)\n"
    "import maskedlm.cli.main\n"
    "assert maskedlm.cli.main.main(['--help']) == 0\n"
    "assert 'jax' not in sys.modules and 'torch' not in sys.modules\n"
    "assert 'tensorflow_datasets' not in sys.modules\n"
  )
  subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_no_test_names_what_is_private():
  """Files of the package have private functions, classes and constants."""
  private = {
    name
    for path in FILES
    for name in re.findall(
      r"^(?:def |class )?(_[a-zA-Z]\w*)\b", path.read_text(), re.MULTILINE
    )
  } - {"_fields"}  # NamedTuples have _fields, too.
  for path in sorted((ROOT / "tests").rglob("*.py")):
    text = path.read_text()
    if not private & set(re.findall(r"\b_\w+", text)):
      continue
    for node in ast.walk(ast.parse(text)):
      names = set()
      if isinstance(node, ast.ImportFrom):
        names = {alias.name for alias in node.names}
      elif isinstance(node, ast.Attribute) and "self" not in ast.unparse(node):
        names = {node.attr}
      elif isinstance(node, ast.Call) and "setattr" in ast.unparse(node.func):
        names = {getattr(x, "value", None) for x in node.args}
      assert not private & names, f"{path}:{node.lineno}: {private & names}"
