"""`maskedlm plan` as users run it, without libtpu: on 8 virtual CPUs.

JAX's CUDA plugin is hidden too, so GPUs are estimated; test_plan_gpu.py has it.
"""

import importlib.util
import json

import jax
import pytest

from helpers import shrunk_configs
from maskedlm.cli import main
from maskedlm.config import overrides
from maskedlm.core.errors import ConfigError
from maskedlm.data.batches import placeholder_corpus
from maskedlm.planning import compile, planner, report, topologies
from maskedlm.pretraining import objectives
from maskedlm.pretraining.config import split
from maskedlm.runtime import xla_flags
from maskedlm.training import spikes

CONFIG = """
from maskedlm.config import defaults as base

def get_config():
  c = base.default("mlm_nsp")
  c.tokenizer.vocab_size = 500
  c.model.num_layers = 3
  c.model.width = 32
  c.model.num_heads = 4
  c.model.mlp_width = 48
  c.model.max_positions = 48
  c.model.update(dropout=0.0, attention_dropout=0.0)
  c.data.length = 40
  c.data.batch_size = 16
  c.optimizer.warmup_steps = 2
  c.train.num_steps = 10
  return c
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory):
  path = tmp_path_factory.mktemp("plan") / "small.py"
  path.write_text(CONFIG)
  return f"--config={path}"


@pytest.fixture(autouse=True)
def without_the_plugin(monkeypatch):
  monkeypatch.setattr(xla_flags, "CUDA_PLUGINS", ("no_such_plugin",))


@pytest.fixture
def on_cpus(monkeypatch):
  """Makes the 8 CPUs of the tests stand for v5e:2x4."""
  monkeypatch.setattr(compile, "tpu_devices", lambda topology: jax.devices())


@pytest.fixture(scope="module")
def compiled(config):
  """Returns the plan of 2 rows a chip, with mesh data=2, fsdp=4."""
  options = ["mesh.fsdp=4", "model.remat=dots", "model.unroll=False"]
  options = [f"--config.{option}" for option in options]
  loaded = overrides.load_config(config.removeprefix("--config="), options)
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(compile, "tpu_devices", lambda topology: jax.devices())
    return planner.make_plan(
      split(loaded),
      0,
      topologies.parse_topology("v5e:2x4"),
      price=1.5,
      search=True,
      log=lambda line: None,
    )


def run(capsys, *argv):
  assert main.main(["plan", *argv]) == 0
  return capsys.readouterr().out


def test_figures_of_a_compiled_step(compiled):
  found = json.loads(json.dumps(report.plan_figures(compiled)))
  assert found["fits"] is True
  assert found["chips"] == 8
  assert found["hbm_bytes"] == 16 * 2**30
  assert found["mesh"] == {"data": 2, "fsdp": 4, "tensor": 1}
  assert found["rows_per_chip"] == 2
  assert found["compiled"] is True
  assert found["predictions_are"] == "model, not measured"
  pieces = found["pieces"]
  assert found["bytes_per_chip"] == pieces["peak"]
  # Two moments of each parameter, the last 128 losses, and some counters.
  held = 2 * pieces["parameters"] + 4 * spikes.WINDOW
  assert pieces["optimizer"] == pytest.approx(held, abs=40)
  total = sum(size for name, size in pieces.items() if name != "peak")
  assert total == pytest.approx(pieces["peak"], rel=0.05)
  sent = {(row["op"], row["axis"]) for row in found["collectives"]}
  assert ("all-gather", "fsdp") in sent
  assert any(op == "all-reduce" and "data" in axis for op, axis in sent)
  assert any(row["in_scan"] for row in found["collectives"])
  assert 0 < found["recomputed_share"] < 0.2
  assert 0 < found["predicted_mfu"] < 1
  assert 0 < found["predicted_efficiency"] < 1
  assert found["predicted_cost"] == 1.5 * found["predicted_chip_hours"]


def test_fsdp_sends_parameters_but_no_rows(compiled):
  """With 16 rows of 40 tokens, an activation would have a dimension of 640."""
  arrays = [dims for c in compiled.sent if c.trips for dims in c.arrays]
  assert (32, 48) in arrays  # A whole layer's mlp/up.
  assert not [dims for dims in arrays if 640 in dims]


def test_a_model_of_two_encoders():
  """DeBERTa's objective, whose generator and discriminator share embeddings."""
  config = shrunk_configs.load("deberta_v3.py:xsmall")
  config.tokenizer.vocab_size = 500
  topology = topologies.parse_topology("h100:8")
  how = {"price": None, "search": False, "log": lambda line: None}
  made = planner.make_plan(split(config), 0, topology, **how)
  plan = report.plan_figures(made)
  assert plan["fits"] and plan["rows_per_chip"] == 1
  corpus = placeholder_corpus.make_corpus(config.tokenizer)
  task = objectives.make_task(split(config)[0].config, corpus)
  params = jax.eval_shape(task.init, jax.random.key(0))
  count = sum(x.size for x in jax.tree.leaves(params))
  assert 4 * count == plan["pieces"]["parameters"]


def estimated(config, topology, *options, phase=0, **rest):
  """Returns an estimate, as for GPUs without the plugin."""
  options = [f"--config.{option}" for option in options]
  loaded = overrides.load_config(config.removeprefix("--config="), options)
  rest = {"price": None, "search": False, "log": lambda line: None, **rest}
  return planner.make_plan(
    split(loaded), phase, topologies.parse_topology(topology), **rest
  )


LONG = ("model.max_positions=1024", "data.length=1024")


@pytest.mark.parametrize(
  ("attention", "dtype", "multiplied"),
  [
    ("xla", "float32", 6),  # 2 matmuls forward, 4 backward.
    ("auto", "bfloat16", 7),  # cuDNN computes the scores again.
  ],
)
def test_a_plan_counts_all_matmuls_of_attention(
  config, attention, dtype, multiplied
):
  """16 rows of 1,024 tokens, 3 layers of 32: most FLOPs are attention's."""
  options = (f"model.attention={attention}", f"model.dtype={dtype}")
  made = estimated(config, "h100:8", *LONG, *options)
  executed = made.estimate.matmuls * 8 * made.topology.chip.flops
  pairs = 3 * 16 * 2 * 1024 * 1024 * 32  # FLOPs of one matmul of scores.
  more = (multiplied - 6) * pairs
  assert executed == pytest.approx(made.model_flops + more, rel=0.01)
  assert report.plan_figures(made)["predicted_mfu"] < 1


def test_an_estimate_refuses_what_the_gpu_does_not_support(config):
  with pytest.raises(ConfigError, match="'splash' runs on TPUs, not on NVIDIA"):
    estimated(config, "h100:8", *LONG, "model.attention=splash")


def test_estimated_microbatches(config):
  """Each of 4 microbatches gathers, sums and moves as much as a single one."""
  options = ("mesh.fsdp=4", "model.dtype=float32")
  one = estimated(config, "h100:8", *options)
  four = estimated(
    config, "h100:8", *options, "train.accumulate=4", "data.batch_size=64"
  )
  assert one.rows == four.rows == 2
  # The sum of their gradients is kept beside them.
  more = four.pieces.temporaries - one.pieces.temporaries
  assert more == one.pieces.parameters
  state = 2 * (one.pieces.parameters + one.pieces.optimizer)
  bandwidth = one.topology.chip.hbm_bandwidth
  for made, parts in ((one, 1), (four, 4)):
    moved = 3 * parts * made.pieces.temporaries + state
    assert made.estimate.memory == pytest.approx(moved / bandwidth)
  for single, several in zip(one.sent, four.sent, strict=True):
    assert several[:3] == single[:3]
    # All but the gather of parameters outside the layers.
    once = single.op == "all-gather" and not single.trips
    assert several.trips == (single.trips if once else (4, *single.trips))
  # Along fsdp a layer is gathered twice and its gradient scattered.
  assert [c.op for c in one.sent if c.trips and c.axis == "fsdp"] == [
    *("all-gather", "all-gather", "reduce-scatter"),
  ]


# 5 steps of 16 rows of 40 tokens, then 5 of 8 rows of 48.
TWO = "phases=({}, {'share': 0.5, 'data.length': 48, 'data.batch_size': 8})"


def test_each_phase_is_planned(capsys, config):
  argv = (config, "--topology=h100:8", f"--config.{TWO}")
  first, last = json.loads(run(capsys, *argv, "--json"))
  assert (first["length"], first["rows_per_chip"]) == (40, 2)
  assert (last["length"], last["rows_per_chip"]) == (48, 1)
  # One alone stands for the run; of several, each has its own rows.
  alone = json.loads(run(capsys, *argv, "--json", "--phase=2"))
  own = last["predicted_hours"]
  both = own * (1 + first["flops_per_step"] / last["flops_per_step"])
  assert alone["predicted_hours"] == pytest.approx(both)
  assert {n: x for n, x in alone.items() if "hours" not in n} == {
    n: x for n, x in last.items() if "hours" not in n
  }
  shown = run(capsys, *argv)
  assert "phase 2 of 2, to step 10: data.length=48" in shown
  total = first["predicted_hours"] + own
  assert shown.splitlines()[-2:] == [
    "all 2 phases",
    f"  {'hours':<20}{total:.3g} for the config's 120 rows, "
    f"{first['predicted_chip_hours'] + last['predicted_chip_hours']:,.1f} "
    "chip-hours",
  ]


def test_gpus_are_estimated(capsys, config):
  out = run(
    capsys,
    config,
    "--topology=h100:8,h100:16",
    "--sweep",
    "--rows=2",
  )
  rows = [line for line in out.splitlines() if line.startswith("| h100")]
  meshes = [line.split(" | ")[1] for line in rows]
  assert meshes == ["data=8", "fsdp=8", "data=16", "data=2, fsdp=8", "fsdp=16"]
  assert "model, not measured" in out
  assert "pip install 'maskedlm[cuda]'" in out


def test_an_estimate_says_how_to_compile_it(capsys, config):
  out = run(capsys, config, "--topology=h200:8", "--rows=2")
  first, second = out.splitlines()[:2]
  assert first.endswith("; estimated without compiling")
  assert "pip install 'maskedlm[cuda]'" in second
  # Three quarters of 139 GiB.
  assert "of 112 GB a chip" in out
  assert "JAX takes 75% of its 149 GB: XLA_CLIENT_MEM_FRACTION" in out


def test_a_compiler_error_is_one_line(capsys, monkeypatch, config, on_cpus):
  """As for v4, whose vmem (not HBM) some flags exceed."""

  def compile_it(lowered, compiler_options):
    raise jax.errors.JaxRuntimeError(
      "RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem.\n\nProgram"
    )

  monkeypatch.setattr(jax.stages.Lowered, "compile", compile_it)
  assert main.main(["plan", config, "--topology=v5e:2x4", "--rows=2"]) == 2
  (line,) = (
    line
    for line in capsys.readouterr().err.splitlines()
    if line.startswith("error: ")
  )
  assert "this step for cpu failed: RESOURCE_EXHAUSTED: Ran out" in line
  assert "LIBTPU_INIT_ARGS" in line and "--rows" in line


def test_a_step_that_does_not_fit(capsys, monkeypatch, config, on_cpus):
  """The compiler refuses over 5 rows a chip, which take 3 GB each."""

  def compile_step(step, topology):
    rows = step.config.data.batch_size // 8
    if rows > 5:
      return compile.TooLarge(3_000 * rows, 16_000)
    return compile.Compiled(
      compile.Pieces(0, 0, 0, 0, 0, 3_000 * rows), "ENTRY"
    )

  monkeypatch.setattr(compile, "compile_step", compile_step)
  found = json.loads(
    run(capsys, config, "--topology=v5e:2x4", "--rows=40", "--json")
  )
  assert found["fits"] is False
  assert found["bytes_per_chip"] == 120_000
  assert found["rows_per_chip"] == 40
  assert found["largest_rows_per_chip"] == 5
  assert found["predicted_mfu"] is None
  options = [change["option"] for change in found["changes"]]
  assert "model.remat=full" in options
  assert "mesh.fsdp=8" in options


@pytest.mark.parametrize(
  ("capacity", "rows", "fixed", "expected", "tries"),
  [
    # A straight line through two points is exact: 3 + 2 * 6 = 15 <= 16.
    (16, 40, 3, 6, 4),
    # The state alone is too large: not even one row fits.
    (16, 2, 20, 0, 1),
    (16, 7, 3, 6, 1),
  ],
)
def test_largest_batch(capacity, rows, fixed, expected, tries):
  tries_made = []

  def needs(count):
    tries_made.append(count)
    return fixed + 2 * count <= capacity, fixed + 2 * count

  needed = fixed + 2 * rows
  assert planner.largest_batch(needs, rows, needed, capacity) == expected
  assert len(tries_made) <= tries


@pytest.mark.parametrize(
  ("argv", "message"),
  [
    (["--topology=v5x:4x4"], r"unknown chip 'v5x' \(did you mean.*v5e:2x2\|"),
    (["--topology=v5e:3x5"], r"no slice '3x5'; known: v5e:2x2, .*v5e:16x16"),
    (["--topology=h100:12"], r"1, 2, 4 or a multiple of the 8"),
    (["--topology=h100:8", "--rows=0"], r"--rows=0: expected 1 or more"),
    (
      ["--topology=h100:8", "--config.mesh.fsdp=3"],
      r"mesh.data=-1, mesh.fsdp=3, mesh.tensor=1 does not fit 8 devices",
    ),
    (
      ["--topology=h100:8", "--config.data.batch_size=17"],
      r"a batch of 17 rows must be divisible",
    ),
  ],
)
def test_bad_input(argv, message, config):
  with pytest.raises(ConfigError, match=message):
    main.call(["plan", config, *argv])


def test_without_libtpu_the_extra_is_named(capsys, monkeypatch, config):
  monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
  assert main.main(["plan", config, "--topology=v5e:4x4"]) == 2
  error = capsys.readouterr().err
  assert error.count("\n") == 1 and "pip install 'maskedlm[tpu]'" in error
