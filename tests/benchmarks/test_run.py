"""Tests that the benchmarks run; nothing is timed.

`pytest -m slow` runs them all in small. Otherwise their commands are parsed,
their configs are made, and what they ask of maskedlm is looked up in it: that
finds a change of names or arguments in seconds.
"""

import ast
import importlib
import inspect
import json
import os
import subprocess
import sys
import types

import finetune_rows
import goal_runs
import input_pipeline
import jax  # noqa: F401 - first, so that allocator.py doesn't restart pytest.
import objectives
import packing
import pretrain_step
import pytest
import quickstart
import retrieval
import run
import start
import table
import trained

from helpers.repository import ROOT
from maskedlm.config import defaults, overrides
from maskedlm.finetune import config as finetuning
from maskedlm.pretraining.config import split
from maskedlm.pretraining.objectives import make_task

FOLDER = ROOT / "benchmarks"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py"))
COMMANDS = {
  (device, each.name, kind): command
  for device, chosen in run.BENCHMARKS.items()
  for each in chosen
  for kind, command in (("full", each.command), ("quick", run.QUICK[each.name]))
}


def find_misuses(module, packages):
  """Returns "line: what is wrong" of an imported module's source.

  Attributes of modules must exist, and calls must fit the signatures of the
  functions and classes of `packages` by the number and names of arguments.
  """
  found = []

  def resolve(node, local):
    """Returns the object of a name or an attribute of a module, or None."""
    if isinstance(node, ast.Name):
      return None if node.id in local else vars(module).get(node.id)
    if not isinstance(node, ast.Attribute):
      return None
    owner = resolve(node.value, local)
    return (
      getattr(owner, node.attr, None)
      if isinstance(owner, types.ModuleType)
      else None
    )

  def check(node, local):
    if isinstance(node, ast.Attribute):
      owner = resolve(node.value, local)
      if isinstance(owner, types.ModuleType) and not hasattr(owner, node.attr):
        found.append(f"{node.lineno}: {ast.unparse(node)} doesn't exist")
    elif isinstance(node, ast.Call):
      called = resolve(node.func, local)
      home = getattr(called, "__module__", None) or ""
      is_ours = callable(called) and home.partition(".")[0] in packages
      if is_ours and (why := misfit(called, node)):
        found.append(f"{node.lineno}: {ast.unparse(node.func)}: {why}")

  def walk(node, local):
    check(node, local)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
      local = local | local_names(node)
    for child in ast.iter_child_nodes(node):
      walk(child, local)

  walk(ast.parse(inspect.getsource(module)), frozenset())
  return found


def local_names(function):
  """Returns the names that a function binds, in nested functions too."""
  nodes = list(ast.walk(function))
  return {n.arg for n in nodes if isinstance(n, ast.arg)} | {
    n.id
    for n in nodes
    if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
  }


def misfit(called, call):
  """Returns why the arguments of an ast.Call don't fit, or ""."""
  try:
    signature = inspect.signature(called)
  except (TypeError, ValueError):
    return ""
  names = {k.arg: None for k in call.keywords if k.arg}
  is_open = len(names) < len(call.keywords) or any(
    isinstance(x, ast.Starred) for x in call.args
  )
  try:
    if is_open:  # The rest is unknown.
      signature.bind_partial(**names)
    else:
      signature.bind(*call.args, **names)
  except TypeError as error:
    return str(error)
  return ""


@pytest.mark.parametrize("key", COMMANDS, ids="-".join)
def test_commands_are_understood(key, tmp_path):
  command = COMMANDS[key].format(json=tmp_path / "x.json", out=tmp_path)
  script, *argv = command.split()
  args = importlib.import_module(script.removesuffix(".py")).parse(argv)
  assert args.json == tmp_path / "x.json"  # Else results.md has no rows.


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_scripts_use_exists(name):
  for package in ("torch", "transformers"):
    if name.endswith("_peer"):
      pytest.importorskip(package, reason="the extra `peer`")
  module = importlib.import_module(name)
  assert not find_misuses(module, {"maskedlm", *SCRIPTS})


def from_command_line(config, options):
  path, *given = trained.arguments(config, options)
  return overrides.load_config(path.removeprefix("--config="), given)


def pretraining_configs(folder):
  """Yields the configs that benchmarks of run.py pretrain with."""
  for shapes in goal_runs.SIZES.values():
    yield from map(goal_runs.configure, shapes.values())
  for shape, rows in pretrain_step.SHAPES.values():
    yield pretrain_step.configure(shape, rows, "bfloat16")
  yield packing.configure(64, pack=True)
  yield input_pipeline.configure(folder, mode="lines", tokenizer=folder)
  for shape in start.SHAPES:
    yield from_command_line(start.CONFIG, start.options(shape))
  for argv in ([], ["--steps=4", "--source=docstrings:json"]):
    options = quickstart.options(quickstart.parse(argv))
    yield from_command_line(quickstart.CONFIG, options)
  for config, options in objectives.ROWS.values():
    given = dict(option.split("=", 1) for option in options)
    yield from_command_line(config, given)


def test_the_rows_of_a_measured_step():
  shape, rows = pretrain_step.SHAPES["small"]
  config = pretrain_step.configure(shape, rows, "float32")
  task = make_task(config, pretrain_step.random_corpus(config))
  batch = task.batch_at("train", 0)
  assert batch["input_ids"].shape == (rows, pretrain_step.LENGTH)
  assert batch["input_ids"].max() < pretrain_step.VOCAB


def test_configs_are_valid(tmp_path):
  for config in pretraining_configs(tmp_path):
    defaults.validate(config)
    assert split(config)
  for name, row in finetune_rows.ROWS.items():
    for contender in row.contenders:
      made = finetune_rows.configure(
        name, contender, 0, files=("a", "b"), encoder="run"
      )
      finetuning.validate(made)
  for task, config, _, options in retrieval.ROWS.values():
    if task:
      given = [f"--config.{x}" for x in (*retrieval.COMMON, *options)]
      path = str(ROOT / "configs" / config)
      overrides.load_config(path, given, finetuning.validate)


SCRIPT = """
from maskedlm.training import phases, step
def f(config, *names, **more):
  phases.split(config, str)
  phases.split()
  phases.split(config, str, of=2)
  phases.divide(config)
  phases.split(*names)
  return phases.split(*names, of=3, **more)
g = lambda step: step.anything
"""


def test_misuses_are_found(tmp_path, monkeypatch):
  monkeypatch.syspath_prepend(tmp_path)
  (tmp_path / "some_script.py").write_text(SCRIPT.lstrip())
  module = importlib.import_module("some_script")
  found = find_misuses(module, {"maskedlm"})
  assert [int(each.partition(":")[0]) for each in found] == [4, 5, 6, 8]


def test_tables_have_a_line_for_each_row(tmp_path):
  rows = [
    table.against("a step", 2.0, 3.0, "ms"),
    table.against("a rate", 20_000.5, 1_000, "rows/s", "why"),
    table.Row("a share", 12.34, unit="%"),
    table.Row("masking", 1.5, 90_000, 1.5 / 90_000, "ms"),
    table.Row("the peer", None, note="no torch"),
  ]
  path = tmp_path / "rows.json"
  table.write(path, rows)
  made = [table.line(x, "a CPU", "today") for x in json.loads(path.read_text())]
  assert table.head("machine", "date").splitlines() == [
    "| what | ours | peer | ratio | machine | date |",
    "|---|---|---|---|---|---|",
  ]
  assert made == [
    "| a step | 2 ms | 3 ms | 1.50 | a CPU | today |",
    "| a rate (why) | 20,000 rows/s | 1,000 rows/s | 20.00 | a CPU | today |",
    "| a share | 12.3% |  |  | a CPU | today |",
    "| masking | 1.5 ms | 90,000 ms | 0.0017% | a CPU | today |",
    "| the peer (no torch) |  |  |  | a CPU | today |",
  ]


# Each command once; those of a GPU's list run on a CPU too.
QUICK = {
  run.QUICK[each.name]: (device, each.name)
  for device in ("gpu", "cpu")
  for each in run.BENCHMARKS[device]
}


@pytest.mark.slow
@pytest.mark.parametrize("key", QUICK.values(), ids="-".join)
def test_benchmarks_run(key, tmp_path):
  device, name = key
  if name in ("pretrain_step", "finetune"):
    pytest.importorskip("torch", reason="the extra `peer`")
  if name == "finetune" and (file := finetune_rows.missing(["mrpc"])):
    pytest.skip(f"no {file}: set MASKEDLM_DATA to the folder")
  ended = subprocess.run(
    [
      *(sys.executable, FOLDER / "run.py", f"--device={device}", "--quick"),
      *(f"--only={name}", f"--out={tmp_path}"),
    ],
    env={
      **os.environ,
      "JAX_PLATFORMS": "cpu",
      "CUDA_VISIBLE_DEVICES": "",
      # One device, as users have; conftest.py's eight don't divide 5 rows.
      "XLA_FLAGS": os.environ["XLA_FLAGS"]
      + " --xla_force_host_platform_device_count=1",
    },
    capture_output=True,
    text=True,
    check=False,
  )
  assert ended.returncode == 0, ended.stdout
  (found,) = json.loads((tmp_path / "results.json").read_text())
  assert found["numbers"]
  for record in found["numbers"]:
    assert {"work", "ours", "peer", "ratio", "unit"} <= record.keys()
