# ruff: noqa: E501 - the text is the compiler's.
"""Collectives and traffic parsed from HLO text written by hand."""

import pytest

from maskedlm.planning import collectives, hlo, memory_traffic

# Two scanned layers; 8 chips, data=4, fsdp=2. Sizes are of f32 unless stated.
TEXT = """\
HloModule jit_step, is_scheduled=true, entry_computation_layout={(f32[3]{0})->f32[3]{0}}

%add.1 (a.1: f32[], b.1: f32[]) -> f32[] {
  %a.1 = f32[] parameter(0)
  %b.1 = f32[] parameter(1)
  ROOT %sum.1 = f32[] add(%a.1, %b.1)
}

%cond.1 (p.1: (s32[], bf16[7,11])) -> pred[] {
  %limit.1 = s32[]{:T(128)} constant(2)
  %p.1 = (s32[]{:T(128)}, bf16[7,11]{1,0:T(8,128)(2,1)}) parameter(0)
  %i.1 = s32[]{:T(128)} get-tuple-element(%p.1), index=0
  ROOT %less.1 = pred[]{:T(512)} compare(%i.1, %limit.1), direction=LT
}

%body.1 (p.2: (s32[], bf16[7,11])) -> (s32[], bf16[7,11]) {
  %p.2 = (s32[]{:T(128)}, bf16[7,11]{1,0:T(8,128)(2,1)}) parameter(0)
  %x.2 = bf16[7,11]{1,0:T(8,128)(2,1)} get-tuple-element(%p.2), index=1
  %all-gather.2 = bf16[14,11]{1,0:T(8,128)(2,1)} all-gather(%x.2), channel_id=1, replica_groups=[4,2]<=[8], dimensions={0}
  %all-reduce.2 = (bf16[7,11]{1,0:T(8,128)(2,1)S(1)}, f32[5]{0}) all-reduce(%x.2, /*index=1*/%x.2), channel_id=2, replica_groups=[2,4]<=[4,2]T(1,0), to_apply=%add.1
  ROOT %out.2 = (s32[], bf16[7,11]{1,0}) tuple(%p.2, %x.2)
}

%fused.1 (q.1: f32[6,10], q.2: s32[]) -> f32[1,10] {
  %q.1 = f32[6,10]{1,0} parameter(0)
  %q.2 = s32[] parameter(1)
  ROOT %slice.1 = f32[1,10]{1,0} dynamic-slice(%q.1, %q.2, %q.2), dynamic_slice_sizes={1,10}
}

%fused.2 (r.1: f32[6,10], r.2: f32[1,10], r.3: s32[]) -> f32[6,10] {
  %r.1 = f32[6,10]{1,0} parameter(0)
  %r.2 = f32[1,10]{1,0} parameter(1)
  %r.3 = s32[] parameter(2)
  ROOT %update.1 = f32[6,10]{1,0} dynamic-update-slice(%r.1, %r.2, %r.3, %r.3)
}

%fused.3 (s.1: f32[6,10], s.2: f32[10,4]) -> f32[6,4] {
  %s.1 = f32[6,10]{1,0} parameter(0)
  %s.2 = f32[10,4]{1,0} parameter(1)
  ROOT %dot.1 = f32[6,4]{1,0} convolution(%s.1, %s.2), dim_labels=bf_io->bf
}

%all-reduce-scatter.1 (t.1: f32[8,3]) -> f32[4,3] {
  %t.1 = f32[8,3]{1,0} parameter(0)
  %all-reduce.3 = f32[8,3]{1,0} all-reduce(%t.1), replica_groups={{0,1},{2,3},{4,5},{6,7}}, to_apply=%add.1
  ROOT %cut.1 = f32[4,3]{1,0} slice(%all-reduce.3), slice={[0:4], [0:3]}
}

%async_collective_fusion.5 (u.5: bf16[3,5]) -> bf16[6,5] {
  %u.5 = bf16[3,5]{1,0} parameter(0)
  %all-gather.5 = bf16[6,5]{1,0} all-gather(%u.5), channel_id=7, replica_groups=[4,2]<=[8], dimensions={0}, frontend_attributes={chain_id="1"}
  ROOT %go.5 = bf16[6,5]{1,0} custom-call(%all-gather.5), custom_call_target="AsyncCollective"
}

%async_collective_fusion.6 (u.6: bf16[3,5]) -> bf16[6,5] {
  %u.6 = bf16[3,5]{1,0} parameter(0)
  %all-gather.6 = bf16[6,5]{1,0} all-gather(%u.6), channel_id=7, replica_groups=[4,2]<=[8], dimensions={0}, frontend_attributes={chain_id="1"}
  ROOT %go.6 = bf16[6,5]{1,0} custom-call(%all-gather.6), custom_call_target="AsyncCollective"
}

ENTRY %main.1 (x.1: f32[6,10], w.1: f32[10,4]) -> f32[3] {
  %x.1 = f32[6,10]{1,0} parameter(0)
  %w.1 = f32[10,4]{1,0} parameter(1)
  %one.1 = s32[] constant(1)
  %start.1 = (s32[], bf16[7,11]{1,0}) tuple(%one.1, %x.1)
  %loop.1 = (s32[], bf16[7,11]{1,0}) while(%start.1), condition=%cond.1, body=%body.1, metadata={op_name="jit(step)/while"}
  %cut.2 = f32[1,10]{1,0} fusion(%x.1, %one.1), kind=kLoop, calls=%fused.1
  %put.2 = f32[6,10]{1,0} fusion(%x.1, %cut.2, %one.1), kind=kLoop, calls=%fused.2
  %dot.2 = f32[6,4]{1,0:S(1)} fusion(%put.2, %w.1), kind=kOutput, calls=%fused.3
  %scattered.1 = f32[4,3]{1,0} fusion(%dot.2), kind=kCustom, calls=%all-reduce-scatter.1
  %all-reduce-start.1 = f32[9]{0} all-reduce-start(%x.1), replica_groups=mesh['axis_0'=4,'axis_1'=2] {'axis_0','axis_1'}, to_apply=%add.1
  %all-reduce-done.1 = f32[9]{0} all-reduce-done(%all-reduce-start.1)
  %all-reduce.4 = f32[]{:T(128)} all-reduce(%one.1), replica_groups=mesh['axis_0'=4,'axis_1'=2] {'axis_1'}, to_apply=%add.1
  %permute.1 = (bf16[7,3]{1,0}, bf16[7,3]{1,0}, u32[]{:S(2)}, u32[]{:S(2)}) collective-permute-start(%one.1), source_target_pairs={{0,1},{1,0}}
  %slice-start.1 = ((f32[6,10]{1,0}), f32[2,10]{1,0:S(1)}, s32[]{:S(2)}) slice-start(%x.1), slice={[0:2], [0:10]}
  %slice-done.1 = f32[2,10]{1,0:S(1)} slice-done(%slice-start.1)
  %copy-start.1 = (f32[10,4]{1,0:S(1)}, f32[10,4]{1,0}, u32[]{:S(2)}) copy-start(%w.1)
  %copy-done.1 = f32[10,4]{1,0:S(1)} copy-done(%copy-start.1)
  %chain.1 = bf16[6,5]{1,0} fusion(%one.1), kind=kCustom, calls=%async_collective_fusion.5
  %chain.2 = bf16[6,5]{1,0} fusion(%chain.1), kind=kOutput, calls=%async_collective_fusion.6
  %alone.1 = f32[2]{0} all-reduce(%one.1), replica_groups={{0},{1},{2},{3},{4},{5},{6},{7}}, to_apply=%add.1
  ROOT %copy.1 = f32[3]{0} copy(%all-reduce-done.1)
}
"""
MESH = {"data": 4, "fsdp": 2, "tensor": 1}


@pytest.fixture(scope="module")
def program():
  return hlo.parse_program(TEXT)


def test_a_collective_of_another_core_runs_beside_computation():
  # A TPU v7x's SparseCores reduce gradients; in the order of the compiler.
  text = """\
HloModule jit_step, is_scheduled=true

%called.1 (a.1: f32[7,11], a.2: token[]) -> f32[7,11] {
  %a.2 = token[] parameter(1)
  %a.1 = f32[7,11]{1,0} parameter(0)
  ROOT %all-reduce.1 = f32[7,11]{1,0} all-reduce(%a.1), replica_groups=mesh['axis_0'=4,'axis_1'=2] {'axis_0'}, to_apply=%add.1
}, execution_thread="sparsecore"

ENTRY %main.1 (x.1: f32[7,11]) -> f32[7,11] {
  %x.1 = f32[7,11]{1,0} parameter(0)
  %ready.1 = token[] custom-call(), custom_call_target="PrepareAsyncCallDone"
  %start.1 = ((f32[7,11]{1,0}, token[]), f32[7,11]{1,0}) call-start(%x.1, %ready.1), async_execution_thread="sparsecore", to_apply=%called.1
  ROOT %done.1 = f32[7,11]{1,0} call-done(%start.1)
}
"""
  program = hlo.parse_program(text)
  (found,) = collectives.find_collectives(program, {"data": 4, "fsdp": 2})
  assert (found.op, found.axis, found.is_async) == ("all-reduce", "data", True)
  assert found.bytes == 4 * 7 * 11
  assert memory_traffic.measure_traffic(program).others == 0


def test_find_collectives(program):
  found = [
    (c.op, c.axis, c.bytes, c.trips, c.is_async)
    for c in collectives.find_collectives(program, MESH)
  ]
  assert found == [
    ("all-gather", "fsdp", 14 * 11 * 2, (2,), False),
    ("all-reduce", "data", 7 * 11 * 2 + 5 * 4, (2,), False),
    ("reduce-scatter", "fsdp", 8 * 3 * 4, (), False),
    ("all-reduce", "data+fsdp", 9 * 4, (), True),
    ("all-reduce", "fsdp", 4, (), False),
    ("collective-permute", "fsdp", 7 * 3 * 2, (), True),
    ("all-gather", "fsdp", 6 * 5 * 2, (), True),  # One gather in two parts.
  ]


def test_summary(program):
  table = collectives.summarise(collectives.find_collectives(program, MESH), 2)
  assert table[0] == {
    "op": "all-gather",
    "axis": "fsdp",
    "in_scan": True,
    "async": False,
    "count": 2,
    "bytes": 2 * 308,
  }
  assert [row["bytes"] for row in table] == [616, 348, 96, 60, 42, 36, 4]
  assert not any(row["in_scan"] for row in table[2:])


@pytest.mark.parametrize(
  ("written", "group"),
  [
    ("replica_groups=[2,4]<=[8]", (0, 1, 2, 3)),
    ("replica_groups=[2,4]<=[4,2]T(1,0), use", (0, 2, 4, 6)),
    ("replica_groups=mesh['a'=2,'b'=2,'c'=2] {'a','c'}", (0, 1, 4, 5)),
    (
      "replica_groups=mesh['a'=4,'b'=1,'c'=2], device_ids=([2,4]T(1,0)) {'a'}",
      (0, 1, 2, 3),
    ),
    (
      "replica_groups=mesh['a'=4,'b'=2], device_ids=(0,4,1,5,2,6,3,7) {'b'}",
      (0, 4),
    ),
    ("replica_groups={}, to_apply=%add", tuple(range(8))),
    ("source_target_pairs={{0,2},{2,4},{4,6},{6,0}}", (0, 2, 4, 6)),
  ],
)
def test_first_group(written, group):
  assert collectives.first_group(written, 8) == group


def test_axis_of():
  assert collectives.axis_of((0, 2, 4, 6), MESH) == "data"
  assert collectives.axis_of((0, 1), MESH) == "fsdp"
  assert collectives.axis_of(range(8), MESH) == "data+fsdp"
  assert collectives.axis_of((3,), MESH) == ""


def test_traffic_by_hand(program):
  # dot.2 reads 240 and 160 bytes; its result stays on the chip.
  assert memory_traffic.measure_traffic(program).matmuls == 240 + 160
  # cut.2: a slice of 40 bytes read and written, and 4 of the index; put.2: 40
  # read, 40 written in place, 4; scattered.1: 48 written; copy.1: 36 + 12;
  # chain.1: 4 + 60; chain.2: 60 + 60; slice-start.1 reads the slice, 80;
  # copy-start.1 reads 160; their results stay on the chip.
  others = 84 + 84 + 48 + 48 + 64 + 120 + 80 + 160
  assert memory_traffic.measure_traffic(program).others == others
