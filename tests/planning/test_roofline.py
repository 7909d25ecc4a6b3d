"""The model of a step's time by hand, and the topologies."""

import jax
import jax.numpy as jnp
import pytest

from maskedlm.modeling.attention.layer import attend
from maskedlm.modeling.attention.mask import AttentionMask
from maskedlm.planning import (
  compile,
  executed_flops,
  hlo,
  roofline,
  topologies,
)
from maskedlm.planning.collectives import Collective
from maskedlm.planning.memory_traffic import Traffic, measure_traffic

TORUS = [(i // 16, i % 16, 0) for i in range(256)]


def collective(op, size, group, *, trips=(), is_async=False):
  return Collective(op, "data", size, trips, is_async, (), group)


def test_an_all_reduce_over_a_torus():
  """v5e:16x16 wraps: 4 links of 50 GB/s, 8 + 8 hops."""
  c = collective("all-reduce", 400e6, tuple(range(256)))
  seconds = roofline.collective_seconds(
    c, topologies.parse_topology("v5e:16x16"), TORUS
  )
  assert seconds == pytest.approx(2 * 400e6 * 255 / 256 / 200e9 + 2 * 16e-6)


def test_a_gather_along_one_side():
  c = collective("all-gather", 100e6, tuple(range(16)))
  seconds = roofline.collective_seconds(
    c, topologies.parse_topology("v5e:16x16"), TORUS
  )
  assert seconds == pytest.approx(100e6 * 15 / 16 / 100e9 + 8e-6)


@pytest.mark.parametrize(
  ("group", "bandwidth"),
  [
    (range(8), 450e9),  # NVLink.
    (range(16), 400e9),  # 8 adapters of 50 GB/s a node.
    (range(0, 64, 8), 50e9),  # One GPU of each node.
  ],
)
def test_gpu_collectives(group, bandwidth):
  n = len(group)
  c = collective("reduce-scatter", 80e6, tuple(group))
  seconds = roofline.collective_seconds(
    c, topologies.parse_topology("h100:64"), []
  )
  assert seconds == pytest.approx(80e6 * (n - 1) / n / bandwidth)


def test_a_step_by_hand():
  topology = topologies.parse_topology("v5e:16x16")
  waited = collective("all-gather", 100e6, tuple(range(16)), trips=(12,))
  hidden = waited._replace(is_async=True)
  one = 100e6 * 15 / 16 / 100e9 + 8e-6
  estimate = roofline.estimate_step(
    topology,
    flops=19.7e12,  # 100 ms.
    traffic=Traffic(matmuls=8.19e9, others=16.38e9),  # 10 ms, 20 ms.
    collectives=[waited, hidden],
    coords=TORUS,
  )
  assert estimate.matmuls == pytest.approx(0.1)
  assert estimate.memory == pytest.approx(0.02)
  assert estimate.collectives == pytest.approx(24 * one)
  assert estimate.exposed == pytest.approx(12 * one)
  assert estimate.step == pytest.approx(0.12 + 12 * one)
  assert estimate.efficiency == pytest.approx(0.12 / (0.12 + 12 * one))


def test_collectives_longer_than_computation_are_exposed():
  c = collective("all-gather", 100e9, tuple(range(16)), is_async=True)
  estimate = roofline.estimate_step(
    topologies.parse_topology("v5e:16x16"),
    flops=19.7e12,
    traffic=Traffic(0, 0),
    collectives=[c],
    coords=TORUS,
  )
  assert estimate.exposed == pytest.approx(estimate.collectives - 0.1)


def test_the_slices_wrap():
  assert topologies.parse_topology("v5e:16x16").wraps == (True, True)
  assert topologies.parse_topology("v6e:8x16").wraps == (False, True)
  assert topologies.parse_topology("v5p:4x4x8").wraps == (True,) * 3
  assert topologies.parse_topology("v4:2x2x4").wraps == (False,) * 3
  assert topologies.parse_topology("tpu7x:4x4x8").wraps == (True,) * 3


def test_a_chip_of_tpu7x_is_two_devices():
  slice_ = topologies.parse_topology("tpu7x:2x2x2")
  assert slice_.num_chips == 16  # Of 8 chips; 2,307 TFLOP/s and 192 GiB each.
  assert slice_.chip.flops * 16 == 8 * 2307e12
  assert slice_.chip.hbm_bytes * 16 == 8 * 192 * 2**30


def test_executed_flops():
  """Three rematerialised layers: forward, again, two matmuls backward."""

  def layer(x, w):
    return jnp.sin(x @ w), None

  def loss(ws, x):
    body = jax.checkpoint(layer)
    return jnp.sum(jax.lax.scan(body, x, ws)[0])

  mesh = jax.sharding.Mesh(jax.devices()[:1], ("data",))
  x, ws = jnp.ones((5, 7)), jnp.ones((3, 7, 7))
  step = jax.jit(jax.grad(loss, argnums=(0, 1)))
  count = executed_flops.count_executed(step, mesh, ws, x)
  assert count == 3 * 4 * (2 * 5 * 7 * 7)


def test_blockwise_attention_counts_all_blocks():
  """256 tokens, 2 heads of 8, in 2 blocks: 2 matmuls forward, 5 backward."""
  mesh = jax.sharding.Mesh(jax.devices()[:1], ("data",))
  x, segments = jnp.ones((3, 256, 2, 8)), jnp.ones((3, 256), jnp.int32)

  def total(x):
    mask = AttentionMask(segments)
    y = attend(x, x, x, mask, implementation="blockwise")
    return y.sum()

  step = jax.jit(jax.grad(total))
  whole = 7 * (2 * 3 * 2 * 256 * 256 * 8)
  assert executed_flops.count_executed(step, mesh, x, rounds=2) == whole
  assert executed_flops.count_executed(step, mesh, x) == whole / 2


@pytest.mark.parametrize(
  ("message", "needed"),
  [
    (
      "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory "
      "in memory space hbm. Used 19.50G of 15.75G hbm. Exceeded by 3.75G.",
      19.5,
    ),
    (
      "RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required "
      "for HLO temporaries (24.00G) exceeds available HBM (15.75G).",
      24.0,
    ),
  ],
)
def test_out_of_memory_errors_are_parsed(message, needed):
  found = compile.parse_out_of_memory(message)
  assert found == (int(needed * 2**30), int(15.75 * 2**30))
  assert compile.parse_out_of_memory("INTERNAL: something else") is None


@pytest.mark.parametrize("rounds", [1, 7])
def test_xla_counts_the_body_of_a_loop_once(rounds):
  """Why programs are walked here (docs/design/decisions/0032)."""

  def loop(x, matrices):
    step = lambda x, matrix: (jnp.tanh(x @ matrix), None)  # noqa: E731
    return jax.lax.scan(step, x, matrices)[0]

  args = jnp.ones((64, 48)), jnp.ones((rounds, 48, 48))
  found = jax.jit(loop).lower(*args).compile()
  (moved,) = measure_traffic(hlo.parse_program(found.as_text())).counted
  assert moved.flops == rounds * 2 * 64 * 48 * 48
  xla = found.cost_analysis()["flops"]
  assert xla == pytest.approx(moved.flops / rounds, rel=0.02)
