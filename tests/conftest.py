# ruff: noqa: E402
"""Shared fixtures: 8 virtual CPU devices, a compile cache, the real data."""

import gc
import importlib.metadata
import os
import pathlib

# Before jax is imported anywhere: sharding tests need several devices. Most of
# the time goes into compiling tiny programs, half of it into making them fast;
# XLA_FLAGS="--xla_backend_optimization_level=3
# --xla_cpu_use_fusion_emitters=true" tests what users run.
_QUICK = "--xla_backend_optimization_level=0 "
if importlib.metadata.version("jaxlib").startswith("0.10."):
  # The older of two emitters takes a third less time to compile the tests;
  # later versions have one only, and don't know the flag. Each program is
  # small: to split it for several threads takes a tenth more. With the other
  # schedule, devices begin collectives in different orders where cores are
  # busy, and wait for each other for ever.
  _QUICK += "--xla_cpu_use_fusion_emitters=false "
  _QUICK += "--xla_cpu_parallel_codegen_split_count=1 "
  _QUICK += "--xla_cpu_enable_concurrency_optimized_scheduler=false "
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = (
  _QUICK
  + os.environ.get("XLA_FLAGS", "")
  + " --xla_force_host_platform_device_count=8"
)

ROOT = pathlib.Path(__file__).parent.parent
# Shared by the tests, the processes they start, and the next run.
os.environ.setdefault(
  "JAX_COMPILATION_CACHE_DIR", str(ROOT / ".pytest_cache" / "jax")
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

import jaxtyping
import pytest

# What annotations say of arrays' types and shapes is checked, where a function
# is traced (maskedlm/modeling/arrays.py).
jaxtyping.install_import_hook(
  ["maskedlm.modeling", "maskedlm.training.step"], "checked_types.checked"
)

from helpers import deprecations

deprecations.install()

# Marker -> the names by which a test, or its file, uses what it stands for.
_MARKS = {
  "peer": {"torch", "transformers", "sentence_transformers", "peers"},
  "hosts": {"host_processes"},
  "browser": {"chromium"},
}


@pytest.hookimpl(tryfirst=True)  # Before -m is applied.
def pytest_collection_modifyitems(items):
  """Marks tests by what they use."""
  for item in items:
    code = item.function.__code__
    used = {*vars(item.module), *code.co_names, *map(str, code.co_consts)}
    marks = {mark for mark, names in _MARKS.items() if used & names}
    if item.path.parent.name == "faults":
      marks.add("faults")
    for mark in marks:
      item.add_marker(mark)


def pytest_collection_finish():
  """Keeps the collector from libraries, which no test frees."""
  gc.freeze()


DATA = pathlib.Path(
  os.environ.get("MASKEDLM_DATA", ROOT.parent / "shared" / "data")
)


@pytest.fixture(scope="session")
def data_dir():
  """Returns the folder of real and labelled text; skips if it is absent."""
  if not DATA.is_dir():
    pytest.skip(f"no data at {DATA}: set MASKEDLM_DATA to the folder")
  return DATA


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
  """Returns (config file, prepared corpus) of helpers/tiny.py."""
  from helpers import in_process, tiny

  folder = tmp_path_factory.mktemp("tiny")
  path, corpus = folder / "tiny.py", folder / "corpus"
  path.write_text(tiny.CONFIG)
  made = in_process.run("prepare", f"--config={path}", f"--out={corpus}")
  assert made.returncode == 0, made.stderr
  return path, corpus


@pytest.fixture(scope="module")
def on_one():
  """Makes runs in this process take one device: that compiles sooner."""
  from helpers import in_process

  with in_process.devices():
    yield


@pytest.fixture
def uncompiled(monkeypatch):
  """Makes up what a step takes of memory: planning/inspect tests that."""
  from maskedlm.training import step_memory

  made = step_memory.StepMemory(70_000_000, None)
  monkeypatch.setattr(step_memory, "measure_memory", lambda *args: made)


@pytest.fixture(scope="session")
def any_kind(tmp_path_factory):
  """Maps tokenizer_kinds.NAMES to (tokenizer, library's ids), when asked."""
  from helpers import tokenizer_kinds

  found = {}

  def get(name):
    if name not in found:
      folder = tmp_path_factory.mktemp("tokenizer")
      found[name] = tokenizer_kinds.make(name, folder)
    return found[name]

  return get


@pytest.fixture
def file(tmp_path):
  """Writes a file and returns its path: (text or bytes, name)."""

  def write(content, name="f.tsv"):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)

  return write
