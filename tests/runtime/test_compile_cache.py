"""What is compiled is kept, is shared by processes, and is compiled once."""

import os
import pathlib
import subprocess
import sys

import jax
import pytest

from helpers import toy
from helpers.toy_runs import make_config, run
from maskedlm import objectives
from maskedlm.config import defaults as config_lib
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
  """(result, programs found in the cache, what it said)."""
  out, said = process.communicate(timeout=120)
  assert process.returncode == 0, said
  result, hits = out.split()
  return float(result), int(hits), said


def test_processes_share_the_cache_of_the_user(tmp_path):
  folder = tmp_path / "maskedlm" / "jax"
  # Two at once, on an empty cache.
  made = [finish(p) for p in [start(tmp_path), start(tmp_path)]]
  entries = sorted(folder.iterdir())
  assert entries and all(result == 42 for result, _, _ in made)
  # One that a kill or a full disk has cut short is passed over.
  entries[0].write_bytes(entries[0].read_bytes()[:100])
  result, hits, said = finish(start(tmp_path))
  assert result == 42 and hits == len(entries) - 1
  assert "Error reading persistent compilation cache" in said


def test_the_cache_can_be_moved(monkeypatch):
  before = jax.config.jax_compilation_cache_dir
  try:
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    startup.enable_compile_cache()  # conftest.py has set where it is.
    assert jax.config.jax_compilation_cache_dir == before
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    startup.enable_compile_cache()
    assert jax.config.jax_compilation_cache_dir == "/x/maskedlm/jax"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(pathlib.Path, "home", lambda: pathlib.Path("/home/x"))
    startup.enable_compile_cache()
    found = jax.config.jax_compilation_cache_dir
    assert found == "/home/x/.cache/maskedlm/jax"
  finally:
    jax.config.update("jax_compilation_cache_dir", before)


compiled: list[str] = []  # The functions that were, or were found in the cache.


@pytest.fixture(scope="module")
def listener():
  def listen(event, seconds, **about):
    del seconds
    if event == "/jax/core/compile/backend_compile_duration":
      compiled.append(about["fun_name"])

  jax.monitoring.register_event_duration_secs_listener(listen)


def test_nothing_is_compiled_after_the_first_steps(tmp_path, listener):
  # The same again, with three times the steps, evaluations and checkpoints.
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
def test_batches_have_one_shape(objective):
  config = config_lib.default(objective)
  config.tokenizer.vocab_size = 300
  config.data.update(length=21, batch_size=5)
  config.train.update(num_steps=40, eval_rows=12)
  task = objectives.make(
    config, placeholder_corpus.make_corpus(config.tokenizer)
  )

  def shapes(split, step):
    batch = task.batch_at(split, step)
    return {name: (x.shape, x.dtype) for name, x in batch.items()}

  for split, count in (("train", 40), ("heldout", task.num_heldout_batches)):
    assert all(shapes(split, i) == shapes(split, 0) for i in range(count))
