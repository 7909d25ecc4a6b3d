"""Traces a few steps, and checks the time of each component by hand."""

import types

import jax
import numpy as np
import pytest

from helpers import toy, toy_runs
from maskedlm.training import profiling, sharding

HLO = """HloModule jit_step, is_scheduled=true

%body (p: (f32[3])) -> (f32[3]) {
  %p = (f32[3]{0}) parameter(0)
  ROOT %dot.7 = f32[3]{0} dot(%p), metadata={op_name="jit(step)/jvp(Encoder)/while/body/layers/attention/qkv/dot_general"}
}

ENTRY %main (x: f32[3]) -> f32[3] {
  %x = f32[3]{0} parameter(0), metadata={op_name="x"}
  %copy.1 = f32[3]{0} copy(%x)
  %tuple.5 = (s32[], f32[3]{0}) tuple(%constant.4, %copy.1)
  %while.2 = (s32[], f32[3]{0}) while(%tuple.5), body=%body, metadata={op_name="jit(step)/jvp(Encoder)/while"}
  %fusion.9 = f32[3]{0} fusion(%while.2), kind=kLoop, metadata={op_name="jit(step)/optimizer/add"}
  ROOT %copy.3 = f32[3]{0} copy(%fusion.9)
}
"""  # noqa: E501


def test_instructions_have_their_scopes():
  attention = "jit(step)/jvp(Encoder)/while/body/layers/attention/qkv/"
  assert profiling.instructions(HLO) == {
    "p": attention + "dot_general",
    "dot.7": attention + "dot_general",
    "x": "x",
    "copy.1": "jit(step)/jvp(Encoder)/while",  # By way of the tuple.
    "tuple.5": "jit(step)/jvp(Encoder)/while",
    "while.2": None,
    "fusion.9": "jit(step)/optimizer/add",
    "copy.3": "",
  }


@pytest.mark.parametrize(
  ("scopes", "component"),
  [
    ("optimizer/jit(_where)/select_n", "optimizer"),
    ("masking/jit(argsort)/sort", "masking"),
    ("jvp(Encoder)/while/body/layers/attention/Dropout_0/add", "dropout"),
    ("transpose(jvp(Encoder))/layers/Dropout_1/mul", "dropout"),
    ("jvp(Encoder)/layers/attention/qkv/dot", "attention: projections"),
    ("jvp(Encoder)/layers/attention/exp", "attention: the rest"),
    ("transpose(jvp(Encoder))/layers/mlp/up/dot", "mlp"),
    ("jvp(Encoder)/layers/mlp_norm/mul", "norms"),
    ("jvp(Encoder)/embeddings/norm/mul", "embedding"),
    ("jvp(MlmHead)/norm/mul", "head and loss"),
    ("jvp()/reduce_sum", "head and loss"),
    ("jvp(Encoder)/layers/add", "encoder: the rest"),
    ("reduce_sum", "other"),
  ],
)
def test_components_by_scope(scopes, component):
  assert profiling.component_of(f"jit(step)/{scopes}") == component


def event(name, start, end, **stats):
  return types.SimpleNamespace(
    name=name, start_ns=start, end_ns=end, stats=list(stats.items())
  )


def plane(name, **lines):
  return types.SimpleNamespace(
    name=name,
    lines=[
      types.SimpleNamespace(name=line.replace("_", " "), events=events)
      for line, events in lines.items()
    ],
  )


def found(*planes):
  program = profiling.instructions(HLO)
  ran = profiling.operations(planes, "jit_step", program)
  return [(each.begin, each.end, each.over, each.component) for each in ran]


def test_operations_of_a_cpu():
  step = {"hlo_module": "jit_step", "device_ordinal": 0}
  thread = [
    event("while.2", 0, 90, hlo_op="while.2", **step),
    # It returns at once, and is over at the event that names its end.
    event("dot.7", 10, 11, hlo_op="dot.7", _p=5, **step),
    event("end: dot.7", 40, 41, _c=5),
    event("ThunkExecutor::Execute", 0, 100),
    event("copy.1", 50, 60, hlo_op="copy.1", hlo_module="jit_add"),
    event("dot.7", 50, 60, hlo_op="dot.7", **step | {"device_ordinal": 1}),
  ]
  assert found(plane("/host:metadata"), plane("/host:CPU", t=thread)) == [
    (10, 11, 40, "attention: projections"),
    (50, 60, 0, "other"),
  ]


def test_operations_of_devices_with_a_plane_of_their_own():
  gpu = plane(
    "/device:GPU:0",
    Stream_1=[
      event("gemm_kernel", 3, 9, hlo_op="dot.7", hlo_module="jit_step")
    ],
    Stream_2=[event("MemcpyH2D", 4, 5)],
  )
  other = plane("/device:GPU:1", Stream_1=[event("fusion.9", 1, 2)])
  host = plane("/host:CPU", t=[event("x", 0, 9, hlo_op="fusion.9")])
  assert found(host, other, gpu) == [(3, 9, 0, "attention: projections")]
  tpu = plane(
    "/device:TPU:0",
    XLA_Modules=[event("jit_step(123)", 0, 9)],
    XLA_Ops=[event("%fusion.9 = f32[3]{0} fusion(%x)", 2, 7)],
  )
  assert found(host, tpu) == [(2, 7, 0, "optimizer")]


def test_each_moment_counts_once():
  def ran(begin, end, component, over=0):
    return profiling.Operation(begin, end, "x", component, over)

  spent = profiling.divide_time(
    [ran(10, 30, "mlp"), ran(20, 40, "norms", over=45), ran(-5, 2, "mlp")],
    [(0, 5), (35, 50)],
    0,
    60,
  )
  # 0-2 mlp; 2-5 and 45-50 waiting; 5-10 and 50-60 idle; 20-30 halved; 40-45
  # norms, whose work other threads finish.
  assert spent == {
    ("mlp", "x"): 2 + 10 + 5,
    ("norms", "x"): 5 + 10 + 5,
    (profiling.INPUT, ""): 3 + 5,
    (profiling.IDLE, ""): 5 + 10,
  }
  # Unfinished work doesn't count while another operation runs.
  spent = profiling.divide_time(
    [ran(0, 1, "mlp", over=50), ran(1, 40, "norms")], [(0, 0)], 0, 50
  )
  assert spent == {("mlp", "x"): 1 + 10, ("norms", "x"): 39}


def train(workdir, *, num_steps, profile):
  """Trains the toy on one device; returns its parameters."""
  c = toy_runs.make_config(num_steps=num_steps)
  c.profile = profile
  mesh = sharding.make_mesh(c.mesh, jax.devices()[:1])
  result = toy_runs.run(c, toy.make_task(), workdir, mesh)
  return jax.device_get(result.params["dense"]["kernel"])


def test_a_run_with_profile_writes_a_trace_and_a_table(tmp_path, capsys):
  plain = train(tmp_path / "a", num_steps=12, profile=0)
  traced = train(tmp_path / "b", num_steps=12, profile=3)
  np.testing.assert_array_equal(plain, traced)
  assert not (tmp_path / "a" / "profile").exists()
  folder = tmp_path / "b" / "profile"
  assert len(list(folder.rglob("*.xplane.pb"))) == 1
  assert len(list(folder.rglob("perfetto_trace.json.gz"))) == 1
  table = (folder / "table.txt").read_text()
  assert table in capsys.readouterr().err
  assert "(of 3 traced)" in table
  shares = {
    line[:24].strip(): float(line[24:34].replace(",", ""))
    for line in table.split("longest")[0].splitlines()[3:-2]
  }
  assert list(shares) == list(profiling.ROWS)
  assert "(optimizer)" in table
  total = float(table.split()[3].replace(",", ""))
  # 13 values, each rounded to a hundredth.
  assert sum(shares.values()) == pytest.approx(total, abs=0.07)


def test_an_interrupted_run_stops_the_trace(tmp_path):
  _, batches = profiling.watch(
    lambda state, batch: (state, {}),
    iter(range(99)),
    3,
    tmp_path,
    num_steps=99,
  )
  for _ in range(profiling.WARMUP + 1):  # The last one is traced.
    next(batches)
  batches.close()
  # Another trace can be started.
  jax.profiler.start_trace(tmp_path / "next")
  jax.profiler.stop_trace()


def test_a_run_without_enough_steps_has_no_trace(tmp_path, capsys):
  train(tmp_path / "run", num_steps=7, profile=3)  # 5 + 3 are needed.
  assert "profile=3 has no effect: " in capsys.readouterr().err
  assert not (tmp_path / "run" / "profile").exists()
