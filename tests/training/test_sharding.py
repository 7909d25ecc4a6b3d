"""Meshes, specs by path, and the rows that a host reads."""

import types

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P
from ml_collections import ConfigDict

from maskedlm.core.errors import ConfigError
from maskedlm.data.batches import batching
from maskedlm.training import sharding


def mesh_of(data, fsdp, tensor):
  return sharding.make_mesh(
    ConfigDict({"data": data, "fsdp": fsdp, "tensor": tensor})
  )


def test_minus_one_takes_the_rest():
  assert dict(mesh_of(-1, 2, 2).shape) == {"data": 2, "fsdp": 2, "tensor": 2}
  assert dict(mesh_of(1, -1, 1).shape) == {"data": 1, "fsdp": 8, "tensor": 1}


@pytest.mark.parametrize(
  ("axes", "message"),
  [
    ((3, 1, 1), "mesh.data=3, .* does not fit 8 devices"),
    ((3, -1, 1), "does not fit 8 devices"),
    ((-1, -1, 1), "does not fit 8 devices.*leave one of them -1"),
    ((0, 1, 1), "does not fit 8 devices"),
    ((2, 2, 1), "does not fit 8 devices"),
  ],
)
def test_a_mesh_that_does_not_fit(axes, message):
  with pytest.raises(ConfigError, match=message):
    mesh_of(*axes)


def test_a_kernel_its_stack_and_its_moments_share_a_rule():
  mesh = mesh_of(2, 2, 2)
  spec = sharding.spec_of
  assert spec("mlp/up/kernel", (6, 10), mesh) == P("fsdp", "tensor")
  stacked = P(None, "fsdp", "tensor")
  path = "encoder/layers/mlp/up/kernel"
  assert spec(path, (3, 6, 10), mesh) == stacked
  assert spec(f"opt_state/1/mu/{path}", (3, 6, 10), mesh) == stacked
  assert spec("opt_state/1/count", (), mesh) == P()


def test_unknown_parameter_and_indivisible_dimension():
  mesh = mesh_of(2, 2, 2)
  with pytest.raises(ConfigError, match=r"no sharding rule.*encoder/odd"):
    sharding.spec_of("opt_state/mu/encoder/odd", (3,), mesh)
  assert sharding.spec_of("my_head/odd", (3,), mesh) == P(None)
  with pytest.raises(ConfigError, match=r"7 does not divide by mesh.fsdp=2"):
    sharding.spec_of("mlp/up/kernel", (7, 10), mesh)


@pytest.mark.parametrize(
  ("size", "accumulate", "nearest"),
  [(9, 1, "8 or 16"), (7, 1, "8"), (40, 2, "32 or 48"), (0, 1, "8")],
)
def test_a_batch_that_does_not_divide(size, accumulate, nearest):
  mesh = mesh_of(4, 2, 1)
  with pytest.raises(ConfigError) as caught:
    sharding.check_batch(size, accumulate, mesh)
  message = str(caught.value)
  assert message.startswith(f"a batch of {size} rows must be divisible by")
  assert f"; take {nearest}, or change the mesh." in message
  for each in nearest.split(" or "):
    sharding.check_batch(int(each), accumulate, mesh)


def test_each_row_is_placed_once_per_tensor_group():
  mesh = mesh_of(2, 2, 2)
  placed = sharding.place({"x": np.arange(12).reshape(4, 3)}, mesh)["x"]
  assert placed.shape == (4, 3)
  rows = sorted(int(s.data[0, 0]) for s in placed.addressable_shards)
  assert rows == [0, 0, 3, 3, 6, 6, 9, 9]
  assert sharding.data_shard(mesh) == (0, 1)


class FakeDevice:
  def __init__(self, process_index):
    self.process_index = process_index


class FakeMesh:
  def __init__(self, processes):
    self.devices = np.vectorize(FakeDevice)(np.array(processes))
    self.shape = dict(zip(sharding.AXES, self.devices.shape, strict=True))


@pytest.mark.parametrize(
  ("processes", "shards"),
  [
    # [data, fsdp, tensor] of process numbers -> (index, count) by process.
    ([[[0], [0]], [[1], [1]]], [(0, 2), (1, 2)]),
    ([[[0, 1]], [[2, 3]]], [(0, 2), (0, 2), (1, 2), (1, 2)]),
    ([[[0]], [[1]], [[2]], [[3]]], [(0, 4), (1, 4), (2, 4), (3, 4)]),
  ],
)
def test_hosts_read_equal_parts(monkeypatch, processes, shards):
  for process, expected in enumerate(shards):
    monkeypatch.setattr(jax, "process_index", lambda p=process: p)
    assert sharding.data_shard(FakeMesh(processes)) == expected


def test_hosts_that_share_only_some_rows_are_refused(monkeypatch):
  monkeypatch.setattr(jax, "process_index", lambda: 0)
  with pytest.raises(ConfigError, match=r"mesh.tensor=.*would share some"):
    sharding.data_shard(FakeMesh([[[0, 1]], [[1, 2]], [[2, 0]]]))


def test_hosts_of_a_pod_read_the_rows_of_their_devices(monkeypatch):
  """The mesh is a ring over the 4 x 4 chips of v5e-16; a host has 2 x 2."""
  chips = [
    types.SimpleNamespace(
      id=x + 4 * y,
      coords=(x, y, 0),
      core_on_chip=0,
      process_index=x // 2 + 2 * (y // 2),
      platform="tpu",
      device_kind="TPU v5 lite",
    )
    for y in range(4)
    for x in range(4)
  ]
  mesh = FakeMesh(np.zeros((16, 1, 1), int))
  monkeypatch.setattr(sharding, "Mesh", lambda devices, *_, **__: devices)
  options = ConfigDict({"data": -1, "fsdp": 1, "tensor": 1})
  mesh.devices = sharding.make_mesh(options, chips)
  hosts = [device.process_index for device in mesh.devices.flat]
  assert hosts == [0, 0, 1, 1, 1, 1, 0, 2, 3, 3, 3, 3, 2, 2, 2, 0]
  for host in range(4):
    monkeypatch.setattr(jax, "process_index", lambda host=host: host)
    shard = sharding.data_shard(mesh)
    # Two rows, of a batch of 32, for each of its devices, in order.
    assert batching.host_slice(np.arange(32), shard).tolist() == [
      row for row in range(32) if hosts[row // 2] == host
    ]
