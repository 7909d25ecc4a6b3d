"""Checks that a function of rows does the same on any number of devices."""

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec


def check_same_on_8_devices(function, *batch):
  """Checks that results are equal and that devices don't communicate.

  Args:
    function: a jitted function of arrays of rows.
    batch: arrays whose first dimension 8 divides.
  """
  mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
  rows = NamedSharding(mesh, PartitionSpec("data"))
  split = jax.device_put(batch, rows)
  together = function(*split)
  jax.tree.map(np.testing.assert_array_equal, function(*batch), together)
  for x in jax.tree.leaves(together):
    assert x.sharding.is_equivalent_to(rows, x.ndim)
  assert "all-" not in function.lower(*split).compile().as_text()
