"""What a run takes: memory of a device, and how often it reads its text."""

import types

import jax
import numpy as np
import pytest

from maskedlm.config import defaults
from maskedlm.core.errors import ConfigError
from maskedlm.pretraining import epochs
from maskedlm.pretraining.config import split
from maskedlm.training import step_memory


def small(objective="roberta", **options):
  """Returns a config of 3 layers and of rows of 48 tokens."""
  c = defaults.default(objective)
  c.tokenizer.vocab_size = 500
  c.model.update(num_layers=3, width=24, num_heads=3, mlp_width=40)
  c.data.update(length=48, batch_size=16)
  c.train.num_steps = 5
  c.optimizer.warmup_steps = 0
  c.update_from_flattened_dict(options)
  return c


@pytest.mark.parametrize("backend", ["cpu", "gpu", "tpu"])
def test_a_step_that_does_not_fit_is_an_error(monkeypatch, backend):
  """A GPU has a known size, and two CPU devices share the machine's memory; a
  TPU's compiler raises an error.
  """
  batch = {"segment_ids": np.zeros((6, 5), np.int32)}
  full = jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: 10G of 9G\na page")
  sizes = types.SimpleNamespace(  # Sum 10; the state is counted once.
    argument_size_in_bytes=5e9,
    temp_size_in_bytes=3e9,
    output_size_in_bytes=6e9,
    alias_size_in_bytes=4e9,
    peak_memory_in_bytes=7e9,
  )

  def compile_on(limit):
    def compiled():
      if backend == "tpu" and limit < 10e9:
        raise full
      return types.SimpleNamespace(memory_analysis=lambda: sizes)

    stats = None if backend == "cpu" else {"bytes_limit": limit}
    device = types.SimpleNamespace(platform=backend, memory_stats=lambda: stats)
    monkeypatch.setattr(jax, "local_devices", lambda: [device, device])
    machine = {"SC_PHYS_PAGES": 2 * limit / 4096, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(step_memory.os, "sysconf", machine.get)
    lowered = types.SimpleNamespace(compile=compiled)
    step = types.SimpleNamespace(lower=lambda state, batch: lowered)
    step_memory.check_memory(small(), step, None, batch)

  compile_on(10e9)
  with pytest.raises(ConfigError, match="6 rows of 5 tokens does not") as told:
    compile_on(9e9)
  assert ("10G of 9G" if backend == "tpu" else "10.0 GB of 9.0") in str(told)
  assert "\n" not in str(told.value)


def test_the_remedy_names_the_batch_and_its_parts_first(monkeypatch):
  c = small()
  told = step_memory.less_memory(c)
  names = [
    "data.batch_size (now 16)",
    "train.accumulate (now 1)",
    "model.remat",
  ]
  places = [told.index(name) for name in names]
  assert places == sorted(places)
  assert "mesh.fsdp" in told
  c.model.remat = "full"
  monkeypatch.setattr(jax, "device_count", lambda: 1)
  told = step_memory.less_memory(c)
  assert "model.remat" not in told and "mesh.fsdp" not in told


def make(*rows_per_epoch, phases=()):
  """Returns the phases of 1,000 steps of 32 rows, and tasks of these rows."""
  config = defaults.default()
  config.data.batch_size = 32
  config.train.num_steps = 1_000
  config.phases = phases
  tasks = [types.SimpleNamespace(rows_per_epoch=n) for n in rows_per_epoch]
  return split(config), tasks


def test_epochs_are_those_of_all_phases():
  assert epochs.count_epochs(*make(6_400)) == 5
  phases = ({}, {"share": 0.25, "data.batch_size": 8})
  # 750 steps of 32 of 6,400 rows, and 250 of 8 of 800.
  assert epochs.count_epochs(*make(6_400, 800, phases=phases)) == (
    pytest.approx(3.75 + 2.5)
  )
  assert epochs.count_epochs(*make(0)) == 32_000


def test_many_epochs_are_warned_of_with_numbers_that_help():
  assert not epochs.warnings(*make(320))  # 100 times.
  assert not epochs.warnings(*make(0))
  (line,) = epochs.warnings(*make(19))
  assert "reads its 19 rows 1,684 times" in line
  # 40 times 19 rows are 24 steps of 32.
  assert "--config.train.num_steps=24" in line
