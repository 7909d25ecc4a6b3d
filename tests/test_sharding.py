"""Meshes, specs by path, and which rows a host reads."""

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P
from ml_collections import ConfigDict

from maskedlm import sharding
from maskedlm.config import ConfigError


def mesh_of(data, fsdp, tensor):
  return sharding.make_mesh(
    ConfigDict({"data": data, "fsdp": fsdp, "tensor": tensor})
  )


def test_minus_one_takes_the_rest():
  assert dict(mesh_of(-1, 2, 2).shape) == {"data": 2, "fsdp": 2, "tensor": 2}
  assert dict(mesh_of(1, -1, 1).shape) == {"data": 1, "fsdp": 8, "tensor": 1}


@pytest.mark.parametrize("axes", [(3, 1, 1), (-1, -1, 1), (2, 2, 1), (0, 1, 1)])
def test_a_mesh_that_does_not_fit(axes):
  with pytest.raises(ConfigError, match="8 devices"):
    mesh_of(*axes)


def test_one_rule_serves_a_kernel_its_stack_and_its_moments():
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
  with pytest.raises(ConfigError, match=r"no sharding rule.*odd/thing"):
    sharding.spec_of("odd/thing", (3,), mesh)
  with pytest.raises(ConfigError, match=r"7 does not divide by mesh.fsdp=2"):
    sharding.spec_of("mlp/up/kernel", (7, 10), mesh)


def test_batch_must_divide():
  sharding.check_batch(24, 3, mesh_of(4, 2, 1))
  with pytest.raises(ConfigError, match="the nearest is 24"):
    sharding.check_batch(25, 3, mesh_of(4, 2, 1))


def test_place_puts_each_row_once_a_tensor_group():
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


def test_scattered_hosts_are_refused(monkeypatch):
  monkeypatch.setattr(jax, "process_index", lambda: 0)
  with pytest.raises(ConfigError, match="not one equal part"):
    sharding.data_shard(FakeMesh([[[0]], [[1]], [[0]], [[1]]]))
