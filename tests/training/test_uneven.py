"""Numbers that don't divide: they give exact results, or a clear error.

tests/runtime/test_many_hosts.py has hosts with different numbers of devices.
"""

import jax
import numpy as np
import pytest
from ml_collections import ConfigDict

from maskedlm import objectives
from maskedlm.config import overrides
from maskedlm.core.errors import ConfigError
from maskedlm.data.corpus import store
from maskedlm.training import sharding
from maskedlm.training import step as steps


def mesh_of(data, fsdp=1, tensor=1):
  axes = {"data": data, "fsdp": fsdp, "tensor": tensor}
  return sharding.make_mesh(ConfigDict(axes), jax.devices()[: data * fsdp])


def test_fewer_heldout_rows_than_devices(tiny):
  """Of 3 rows on 8 devices, each counts once, and fillers don't."""
  path, corpus = tiny
  config = overrides.load_config(str(path), ["--config.train.eval_rows=3"])
  task = objectives.make_task(config, store.open_corpus(corpus))
  assert task.num_heldout_batches == 1
  batch = task.batch_at("heldout", 0)
  assert batch["example_weights"].tolist() == [1] * 3 + [0] * 13
  params = jax.jit(task.init)(jax.random.key(0))
  # The contents of filler rows must not matter.
  other = {name: x.copy() for name, x in batch.items()}
  other["input_ids"][3:] = other["input_ids"][:1]
  other["nsp_labels"][3:] = 1 - other["nsp_labels"][3:]
  found = []
  for axes, rows in [((1,), batch), ((4, 2), batch), ((8,), other)]:
    mesh = mesh_of(*axes)
    heldout_step = jax.jit(
      steps.make_heldout_step(task, seed=config.seed, accumulate=1),
      out_shardings=sharding.replicated(mesh),
    )
    pairs = heldout_step(params, sharding.place(rows, mesh), 0)[:2]
    found.append(jax.device_get(pairs))
  terms, _ = found[0]
  assert terms["nsp"][1] == 3
  for each in found[1:]:
    jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), each, found[0]
    )


@pytest.mark.parametrize(
  ("size", "accumulate", "nearest"),
  [(9, 1, "8 or 16"), (7, 1, "8"), (40, 2, "32 or 48"), (0, 1, "8")],
)
def test_a_batch_that_does_not_divide(size, accumulate, nearest):
  mesh = mesh_of(4, 2)
  with pytest.raises(ConfigError) as caught:
    sharding.check_batch(size, accumulate, mesh)
  message = str(caught.value)
  assert message.startswith(f"a batch of {size} rows must be divisible by")
  assert f"; take {nearest}, or change the mesh." in message
  for each in nearest.split(" or "):
    sharding.check_batch(int(each), accumulate, mesh)
