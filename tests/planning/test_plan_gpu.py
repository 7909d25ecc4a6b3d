"""Steps compiled for GPUs by JAX's CUDA plugin, on a machine without one.

Skipped without the plugin (extra `cuda`; docs/guides/pretrain/planning.md has a
smaller set). BERT-base is slow: half a minute to two minutes of a core.
"""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from helpers.repository import CONFIGS
from maskedlm.cli import main
from maskedlm.config.overrides import load_config
from maskedlm.planning import (
  collectives,
  compile,
  executed_flops,
  gpus,
  hlo,
  memory_traffic,
  planner,
  topologies,
)
from maskedlm.pretraining.config import split
from maskedlm.training import sharding

pytestmark = [
  pytest.mark.skipif(
    not gpus.can_compile(),
    reason="no CUDA plugin for JAX: pip install 'maskedlm[cuda]'",
  ),
  # The tests' compile cache can't hold these programs.
  pytest.mark.filterwarnings("ignore:Error reading persistent compilation"),
]


def compile_for(name, function, *arrays):
  """Returns a function's HLO over the GPUs; arrays: (shape, dtype, spec)."""
  devices = gpus.gpu_devices(topologies.parse_topology(name))
  mesh = Mesh(np.array(devices).reshape(-1, 1, 1), sharding.AXES)
  arguments = [
    jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))
    for shape, dtype, spec in arrays
  ]
  whole = NamedSharding(mesh, PartitionSpec())
  lowered = jax.jit(function, out_shardings=whole).lower(*arguments)
  options = gpus.compiler_options()
  return hlo.parse_program(lowered.compile(compiler_options=options).as_text())


@pytest.mark.parametrize("name", ["a100:1", "h100:1", "h200:1"])
def test_traffic_of_a_matmul_and_its_epilogue(name):
  """[104, 72] x [72, 40] in bfloat16, then sin and an addition in float32."""

  def f(x, w, b):
    return jnp.sin((x @ w).astype(jnp.float32)) + b

  whole = PartitionSpec()
  program = compile_for(
    name,
    f,
    ((104, 72), jnp.bfloat16, whole),
    ((72, 40), jnp.bfloat16, whole),
    ((104, 40), jnp.float32, whole),
  )
  moved = memory_traffic.measure_traffic(program)
  (matmul,) = moved.counted
  assert matmul.flops == 2 * 104 * 72 * 40
  assert matmul.bytes == 2 * (104 * 72 + 72 * 40 + 104 * 40)
  assert moved.others == (2 + 4 + 4) * 104 * 40
  assert moved.matmuls == 0


@pytest.mark.parametrize("name", ["h200:8", "a100:16"])
def test_a_gradient_is_summed_over_all_gpus(name):
  """The gradient of w [72, 40] in bfloat16; nothing overlaps with its sum."""

  def f(x, w):
    return jax.grad(lambda w: jnp.sum(jnp.sin(x @ w)))(w)

  count = topologies.parse_topology(name).num_chips
  program = compile_for(
    name,
    f,
    ((104 * count, 72), jnp.bfloat16, PartitionSpec("data")),
    ((72, 40), jnp.bfloat16, PartitionSpec()),
  )
  mesh = {"data": count, "fsdp": 1, "tensor": 1}
  (found,) = collectives.find_collectives(program, mesh)
  assert (found.op, found.axis, found.bytes) == ("all-reduce", "data", 5_760)
  assert not found.is_async
  assert found.group == tuple(range(count))


def test_plan_of_bert_tiny(capsys):
  argv = [f"--config={CONFIGS}/bert.py:tiny", "--topology=h200:8"]
  assert main.main(["plan", *argv, "--rows=5", "--json"]) == 0
  found = json.loads(capsys.readouterr().out)
  assert found["compiled"] and found["fits"]
  assert found["mesh"] == {"data": 8, "fsdp": 1, "tensor": 1}
  assert found["rows_per_chip"] == 5
  pieces = found["pieces"]
  total = sum(size for name, size in pieces.items() if name != "peak")
  assert total == pytest.approx(pieces["peak"], rel=0.01)
  assert {row["op"] for row in found["collectives"]} == {"all-reduce"}
  # Float32: each parameter's gradient, the token embedding's at most twice
  # (head and lookup), and a few sums of the loss.
  sent = sum(row["bytes"] for row in found["collectives"])
  words = 4 * 128 * 30_592
  assert sent > 0.99 * pieces["parameters"]
  assert sent < pieces["parameters"] + words + 10_000
  assert 0 < found["predicted_mfu"] < 1
  assert 0 < found["predicted_efficiency"] < 1


def test_a_target_that_xla_refuses(capsys, monkeypatch):
  monkeypatch.setattr(gpus, "target_config", lambda chip: "no such field: 1")
  argv = [f"--config={CONFIGS}/bert.py:tiny", "--topology=h200:8"]
  assert main.main(["plan", *argv]) == 2
  error = capsys.readouterr().err.splitlines()[-1]
  assert "error: --topology=h200:8: the CUDA plugin can't compile" in error


def bert_base(name, *, rows, overrides=()):
  topology = topologies.parse_topology(name)
  overrides = [f"--config.{option}" for option in overrides]
  config = load_config(f"{CONFIGS}/bert.py:base", overrides)
  config.data.batch_size = rows * topology.num_chips
  return planner.make_plan(
    split(config)[:1],
    0,
    topology,
    price=None,
    search=True,
    log=lambda line: None,
  )


@pytest.mark.slow
def test_bert_base_on_eight_gpus():
  made = bert_base("h200:8", rows=64)
  assert {(c.op, c.axis) for c in made.sent} == {("all-reduce", "data")}
  sent = sum(c.count * c.bytes for c in made.sent)
  # In bfloat16, as in the matmuls: layers, the head's gradient of the token
  # embedding, its transform, the pooler. In float32: the lookup's gradient of
  # tokens and positions. The rest are biases and norms.
  layers, words = 12 * 12 * 768**2, 30_592 * 768
  by_hand = 2 * (layers + words + 2 * 768**2) + 4 * (words + 512 * 768)
  assert by_hand < sent < 1.002 * by_hand
  assert 0.9 < made.estimate.efficiency <= 1


@pytest.mark.slow
def test_every_matmul_of_the_step_is_in_the_program():
  """The FLOPs in the text equal those of the traced step."""
  config = load_config(
    f"{CONFIGS}/bert.py:base", ["--config.model.num_layers=2"]
  )
  topology = topologies.parse_topology("h200:1")
  config.data.batch_size = 32
  step = compile.make_step(config, compile.devices(topology))
  found = compile.compile_step(step, topology)
  moved = memory_traffic.measure_traffic(hlo.parse_program(found.text))
  counted = sum(x.flops for x in moved.counted)
  executed = executed_flops.count_executed(
    step.program.step.__wrapped__, step.mesh, step.program.state, step.batch
  )
  assert counted == pytest.approx(executed, rel=1e-3)
  assert moved.matmuls == 0
