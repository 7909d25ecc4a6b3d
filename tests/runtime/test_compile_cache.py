"""Compiled programs are cached, shared by processes, and compiled only once."""

import os
import subprocess
import sys

import jax
import pytest

from helpers import toy
from helpers.toy_runs import make_config, run
from maskedlm import objectives
from maskedlm.config import defaults
from maskedlm.data.batches import placeholder_corpus
from maskedlm.runtime import startup
from maskedlm.training import sharding

PROGRAM = """
from maskedlm.runtime import startup
startup.enable_compile_cache()
import jax, jax.numpy as jnp
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
found = []
jax.monitoring.register_event_listener(lambda event, **_: found.append(event))
print(float(jax.jit(lambda x: jnp.sum(jnp.sort(x) * 2))(jnp.arange(7.0))))
print(found.count("/jax/compilation_cache/cache_hits"))
"""


def start(cache, **environ):
  environ = {**os.environ, "XDG_CACHE_HOME": str(cache), **environ}
  environ.pop("JAX_COMPILATION_CACHE_DIR")
  return subprocess.Popen(
    [sys.executable, "-c", PROGRAM],
    env=environ,
    text=True,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
  )


def finish(process):
  """Returns (result, number of cache hits, stderr)."""
  out, err = process.communicate(timeout=120)
  assert process.returncode == 0, err
  result, hits = out.split()
  return float(result), int(hits), err


def test_processes_share_the_users_cache(tmp_path):
  folder = tmp_path / "maskedlm" / "jax"
  # Two at once, with an empty cache.
  made = [finish(p) for p in [start(tmp_path), start(tmp_path)]]
  entries = sorted(folder.iterdir())
  assert entries and all(result == 42 for result, _, _ in made)
  # A file that a kill or a full disk cut short is ignored.
  entries[0].write_bytes(entries[0].read_bytes()[:100])
  result, hits, err = finish(start(tmp_path))
  assert result == 42 and hits == len(entries) - 1
  assert "Error reading persistent compilation cache" in err


def test_the_cache_can_be_moved(monkeypatch, tmp_path):
  before = jax.config.jax_compilation_cache_dir
  try:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    startup.enable_compile_cache()  # conftest.py has set the folder.
    assert jax.config.jax_compilation_cache_dir == before
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    startup.enable_compile_cache()
    found = jax.config.jax_compilation_cache_dir
    assert found == str(tmp_path / "x" / "maskedlm" / "jax")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    startup.enable_compile_cache()
    found = jax.config.jax_compilation_cache_dir
    assert found == str(tmp_path / ".cache" / "maskedlm" / "jax")
  finally:
    jax.config.update("jax_compilation_cache_dir", before)


# The functions that were compiled or found in the cache.
compiled: list[str] = []


@pytest.fixture(scope="module")
def listener():
  def listen(event, seconds, **about):
    del seconds
    if event == "/jax/core/compile/backend_compile_duration":
      compiled.append(about["fun_name"])

  jax.monitoring.register_event_duration_secs_listener(listen)


def test_nothing_is_compiled_after_the_first_steps(tmp_path, listener):
  # A second run has three times the steps, evaluations and checkpoints.
  counts = []
  for num_steps in (4, 12):
    c = make_config(
      num_steps=num_steps, eval_every=2, checkpoint_every=2, log_every=2
    )
    mesh = sharding.make_mesh(c.mesh, jax.devices()[:1])
    jax.clear_caches()
    compiled.clear()
    run(c, toy.make_task(), tmp_path / str(num_steps), mesh)
    counts.append(sorted(compiled))
    assert [compiled.count(f"jit({n})") for n in ("step", "heldout_step")] == [
      1,
      1,
    ], compiled
  assert counts[0] == counts[1]


@pytest.mark.parametrize(
  "objective", ["mlm_nsp", "roberta", "spanbert", "electra"]
)
def test_all_batches_have_the_same_shapes(objective):
  config = defaults.default(objective)
  config.tokenizer.vocab_size = 300
  config.data.update(length=21, batch_size=5)
  config.train.update(num_steps=40, eval_rows=12)
  task = objectives.make_task(
    config, placeholder_corpus.make_corpus(config.tokenizer)
  )

  def shapes(split, step):
    batch = task.batch_at(split, step)
    return {name: (x.shape, x.dtype) for name, x in batch.items()}

  for split, count in (("train", 40), ("heldout", task.num_heldout_batches)):
    assert all(shapes(split, i) == shapes(split, 0) for i in range(count))
