# ruff: noqa: E501 - the text is the compiler's.
"""Plans from XLA:GPU's text, written by hand; the targets described to XLA."""

import pytest

from maskedlm.core.errors import ConfigError
from maskedlm.planning import (
  collectives,
  compile,
  gpus,
  hlo,
  memory_traffic,
  roofline,
  topologies,
)
from maskedlm.runtime.chips import CHIPS

# 8 GPUs, data=4, fsdp=2.
TEXT = """\
HloModule jit_step, is_scheduled=true

%add.1 (a.1: f32[], b.1: f32[]) -> f32[] {
  %a.1 = f32[] parameter(0)
  %b.1 = f32[] parameter(1)
  ROOT %sum.1 = f32[] add(%a.1, %b.1)
}

%gemm.1 (p.1: bf16[5,7], p.2: bf16[7,11]) -> bf16[5,11] {
  %p.1 = bf16[5,7]{1,0} parameter(0)
  %p.2 = bf16[7,11]{1,0} parameter(1)
  ROOT %dot.1 = bf16[5,11]{1,0} dot(%p.1, %p.2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%gemm.2 (q.1: bf16[3,5,7], q.2: bf16[3,13,7]) -> bf16[3,5,13] {
  %q.1 = bf16[3,5,7]{2,1,0} parameter(0)
  %q.2 = bf16[3,13,7]{2,1,0} parameter(1)
  %q.3 = bf16[3,7,5]{2,1,0} transpose(%q.1), dimensions={0,2,1}
  ROOT %dot.2 = bf16[3,5,13]{2,1,0} dot(%q.3, %q.2), lhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_batch_dims={0}, rhs_contracting_dims={2}
}

%slice_of.1 (r.1: f32[9,10], r.2: s32[]) -> f32[1,10] {
  %r.1 = f32[9,10]{1,0} parameter(0)
  %r.2 = s32[] parameter(1)
  ROOT %slice.1 = f32[1,10]{1,0} dynamic-slice(%r.1, %r.2, %r.2), dynamic_slice_sizes={1,10}
}

%scatter_of.1 (s.1: f32[8,6]) -> f32[4,6] {
  %s.1 = f32[8,6]{1,0} parameter(0)
  ROOT %reduce-scatter.1 = f32[4,6]{1,0} reduce-scatter(%s.1), replica_groups=mesh['axis_0'=4,'axis_1'=2] {'axis_1'}, dimensions={0}, to_apply=%add.1
}

%cond.1 (t.1: (s32[], f32[9,10])) -> pred[] {
  %t.1 = (s32[], f32[9,10]{1,0}) parameter(0)
  %t.2 = s32[] get-tuple-element(%t.1), index=0
  %t.3 = s32[] constant(99)
  ROOT %t.4 = pred[] compare(%t.2, %t.3), direction=LT
}

%body.1 (u.1: (s32[], f32[9,10])) -> (s32[], f32[9,10]) {
  %u.1 = (s32[], f32[9,10]{1,0}) parameter(0)
  %u.2 = s32[] get-tuple-element(%u.1), index=0
  %u.3 = f32[9,10]{1,0} get-tuple-element(%u.1), index=1
  %u.4 = f32[1,10]{1,0} fusion(%u.3, %u.2), kind=kLoop, calls=%slice_of.1
  ROOT %u.5 = (s32[], f32[9,10]{1,0}) tuple(%u.2, %u.3)
}

ENTRY %main.1 (x.1: bf16[5,7], w.1: bf16[7,11], k.1: bf16[3,5,7], v.1: bf16[3,13,7], y.1: f32[9,10]) -> f32[9,10] {
  %x.1 = bf16[5,7]{1,0} parameter(0)
  %w.1 = bf16[7,11]{1,0} parameter(1)
  %k.1 = bf16[3,5,7]{2,1,0} parameter(2)
  %v.1 = bf16[3,13,7]{2,1,0} parameter(3)
  %y.1 = f32[9,10]{1,0} parameter(4)
  %zero.1 = s32[] constant(0)
  %all-gather-start.1 = ((bf16[7,11]{1,0}, f32[5]{0}), (bf16[14,11]{1,0}, f32[10]{0})) all-gather-start(%w.1, %y.1), channel_id=2, replica_groups=mesh['axis_0'=4,'axis_1'=2] {'axis_1'}, dimensions={0}, backend_config={"collective_backend_config":{"is_sync":false}}
  %gemm_fusion.1 = bf16[5,11]{1,0} fusion(%x.1, %w.1), kind=kCustom, calls=%gemm.1, backend_config={"fusion_backend_config":{"kind":"__triton_nested_gemm_fusion"}}
  %all-gather-done.1 = (bf16[14,11]{1,0}, f32[10]{0}) all-gather-done(%all-gather-start.1)
  %gemm_fusion.2 = bf16[3,5,13]{2,1,0} fusion(%k.1, %v.1), kind=kCustom, calls=%gemm.2
  %cublas.1 = (f32[5,11]{1,0}, s8[64]{0}) custom-call(%x.1, %w.1), custom_call_target="__cublas$lt$matmul", backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"],"lhs_batch_dimensions":[]}}}
  %cudnn.1 = (bf16[3,5,7]{2,1,0}, f32[3,5]{1,0}, u8[0]{0}) custom-call(%k.1, %v.1, %v.1), custom_call_target="__cudnn$fmhaSoftmax", backend_config={"cudnn_fmha_backend_config": {"bmm1_dot_dimension_numbers": {"lhs_contracting_dimensions": ["3"]}}}
  %pallas.1 = f32[5,3]{1,0} custom-call(%y.1, %y.1), custom_call_target="__gpu$xla.gpu.triton"
  %start.1 = (s32[], f32[9,10]{1,0}) tuple(%zero.1, %y.1)
  %loop.1 = (s32[], f32[9,10]{1,0}) while(%start.1), condition=%cond.1, body=%body.1, backend_config={"known_trip_count":{"n":"17"}}
  %all-reduce-start.1 = (bf16[7,11]{1,0}, f32[19]{0}) all-reduce-start(%w.1, %y.1), channel_id=3, replica_groups=mesh['axis_0'=4,'axis_1'=2] {'axis_0'}, to_apply=%add.1, backend_config={"collective_backend_config":{"is_sync":true}}
  %all-reduce-done.1 = (bf16[7,11]{1,0}, f32[19]{0}) all-reduce-done(%all-reduce-start.1)
  %reduce-scatter-start.1 = ((f32[8,3]{1,0}, bf16[2]{0}), (f32[4,3]{1,0}, bf16[1]{0})) reduce-scatter-start(%y.1, %w.1), replica_groups=mesh['axis_0'=4,'axis_1'=2] {'axis_1'}, dimensions={0}, to_apply=%add.1
  %reduce-scatter-done.1 = (f32[4,3]{1,0}, bf16[1]{0}) reduce-scatter-done(%reduce-scatter-start.1)
  %async.1 = ((f32[8,6]{1,0}), f32[4,6]{1,0}) async-start(%y.1), calls=%scatter_of.1
  %async.2 = f32[4,6]{1,0} async-done(%async.1)
  ROOT %copy.1 = f32[9,10]{1,0} copy(%y.1)
}
"""
MESH = {"data": 4, "fsdp": 2, "tensor": 1}


@pytest.fixture(scope="module")
def program():
  return hlo.parse_program(TEXT)


def test_find_collectives(program):
  found = [
    (c.op, c.axis, c.bytes, c.is_async)
    for c in collectives.find_collectives(program, MESH)
  ]
  assert found == [
    ("all-gather", "fsdp", 14 * 11 * 2 + 10 * 4, True),
    ("all-reduce", "data", 7 * 11 * 2 + 19 * 4, False),
    ("reduce-scatter", "fsdp", 8 * 3 * 4 + 2 * 2, True),
    ("reduce-scatter", "fsdp", 8 * 6 * 4, True),
  ]


def test_traffic_by_hand(program):
  moved = memory_traffic.measure_traffic(program)
  # Operands and result of each; the library's kernel also has a workspace.
  sizes = 2 * (5 * 7 + 7 * 11)
  assert [(x.bytes, x.flops) for x in moved.counted] == [
    (sizes + 2 * 5 * 11, 2 * 5 * 7 * 11),
    (2 * 3 * (5 * 7 + 13 * 7 + 5 * 13), 2 * 3 * 5 * 7 * 13),
    (sizes + 4 * 5 * 11 + 64, 2 * 5 * 7 * 11),
  ]
  # cuDNN and Pallas: each operand once, as their FLOPs aren't in the text.
  cudnn = 2 * 3 * (5 * 7 + 13 * 7 + 5 * 7) + 4 * 3 * 5
  assert moved.matmuls == cudnn + 4 * (9 * 10 + 5 * 3)
  # 17 times a row of 10 read and written, and the index; then the copy.
  assert moved.others == 17 * (40 + 40 + 4) + 2 * 4 * 9 * 10


def test_a_loop_without_a_trip_count():
  text = TEXT.replace(', backend_config={"known_trip_count":{"n":"17"}}', "")
  text = text.replace("constant(99)", "get-tuple-element(%t.1), index=0")
  for rounds in (1, 5):
    moved = memory_traffic.measure_traffic(hlo.parse_program(text, rounds))
    assert moved.others == rounds * (40 + 40 + 4) + 2 * 4 * 9 * 10


def test_time_of_matmuls():
  """Two counted matmuls, one bound by memory, and 3 ms of other FLOPs."""
  topology = topologies.parse_topology("h200:1")
  peak, bandwidth = topology.chip.flops, topology.chip.hbm_bandwidth
  fast = memory_traffic.Operation(int(1e-3 * bandwidth), True, 2e-3 * peak)
  slow = memory_traffic.Operation(int(5e-3 * bandwidth), True, 1e-3 * peak)
  moved = memory_traffic.Traffic(int(2e-3 * bandwidth), 0, (fast, slow))
  found = roofline.estimate_step(
    topology, flops=6e-3 * peak, traffic=moved, collectives=[]
  )
  assert found.matmuls == pytest.approx(2e-3 + 5e-3 + 3e-3)


# Such an all-reduce takes 7 ms on 8 GPUs of a node, a copy 2 ms.
ORDER = """\
ENTRY %main.1 (x.1: f32[450000000], y.1: f32[1200000000]) -> f32[1200000000] {
  %x.1 = f32[450000000]{0} parameter(0)
  %y.1 = f32[1200000000]{0} parameter(1)
  %s.1 = f32[450000000]{0} all-reduce-start(%x.1), replica_groups=[1,8]<=[8]
  %s.2 = f32[450000000]{0} all-reduce-start(%x.1), replica_groups=[1,8]<=[8]
  %c.1 = f32[1200000000]{0} copy(%y.1)
  %d.1 = f32[450000000]{0} all-reduce-done(%s.1)
  %c.2 = f32[1200000000]{0} copy(%c.1)
  %c.3 = f32[1200000000]{0} copy(%c.2)
  %c.4 = f32[1200000000]{0} copy(%c.3)
  %c.5 = f32[1200000000]{0} copy(%c.4)
  %d.2 = f32[450000000]{0} all-reduce-done(%s.2)
  %s.3 = f32[450000000]{0} all-reduce-start(%x.1), replica_groups=[1,8]<=[8]
  %d.3 = f32[450000000]{0} all-reduce-done(%s.3)
  ROOT %c.6 = f32[1200000000]{0} copy(%c.5)
}
"""


def test_exposed_collectives_in_program_order():
  """5 ms of the first are exposed, none of the second, all of the third."""
  topology = topologies.parse_topology("h200:8")
  program = hlo.parse_program(ORDER)
  sent = collectives.find_collectives(
    program, {"data": 8, "fsdp": 1, "tensor": 1}
  )
  assert len(sent) == 3
  waited = roofline.exposed(program, topology, sent)
  assert waited == pytest.approx(5e-3 + 0 + 7e-3)


def test_collectives_in_asynchronous_calls(program):
  """They end with the call; nothing in this program overlaps with them."""
  topology = topologies.parse_topology("h200:8")
  (last,) = collectives.find_collectives(program, MESH)[3:]
  seconds = roofline.collective_seconds(last, topology, ())
  assert roofline.exposed(program, topology, [last]) == pytest.approx(seconds)


def test_target_config():
  text = gpus.target_config(CHIPS["h100"])
  assert "core_count: 132" in text
  assert "device_memory_size: 84942979072" in text
  assert "memory_bandwidth: 3350000000000" in text
  assert "shared_memory_per_block_optin: 232448" in text  # 227 KiB.
  assert text.count("{") == text.count("}")
  assert set(gpus.TARGETS) == set(CHIPS) - set(topologies.SLICES)


def test_a_wrong_memory_share():
  with pytest.raises(ConfigError, match=r"XLA_CLIENT_MEM_FRACTION=90: expect"):
    gpus.memory_share({"XLA_CLIENT_MEM_FRACTION": "90"})


def test_available_bytes(monkeypatch):
  monkeypatch.setenv("XLA_CLIENT_MEM_FRACTION", "0.5")
  assert (
    compile.available_bytes(topologies.parse_topology("a100:1"))
    == 85_100_068_864 // 2
  )
  assert (
    compile.available_bytes(topologies.parse_topology("v5e:2x2")) == 16 * 2**30
  )
