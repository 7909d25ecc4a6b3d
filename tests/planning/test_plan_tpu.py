"""Steps compiled for TPUs by libtpu, on a machine without one.

Slow: a compilation takes a minute of one core. Skipped without libtpu (extra
`tpu`). They check the statements of docs/results/scaling.md.
"""

import importlib.util

import pytest

from helpers.repository import CONFIGS
from maskedlm.config.overrides import load_config
from maskedlm.planning import planner, topologies
from maskedlm.pretraining.config import split

# Only rows of 512 tokens, 32 on a chip: 16,384 tokens.
LONG_ROWS = ("--config.data.length=512", "--config.phases=()")
ROWS = 32
WIDTH = {"base": 768, "large": 1024}
LAYER = {"base": 12 * 768**2, "large": 12 * 1024**2}
PARAMETERS = {"base": 110.2e6, "large": 336.4e6}

pytestmark = [
  pytest.mark.slow,
  pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None,
    reason="no libtpu: pip install 'maskedlm[tpu]'",
  ),
]


def make(size, topology, *, rows=ROWS, overrides=()):
  topology = topologies.parse_topology(topology)
  overrides = [f"--config.{option}" for option in overrides]
  config = load_config(f"{CONFIGS}/bert.py:{size}", [*LONG_ROWS, *overrides])
  config.data.batch_size = rows * topology.num_chips
  return planner.make_plan(
    split(config), 0, topology, price=None, search=False, log=lambda line: None
  )


def sent(plan, op):
  found = [c for c in plan.sent if c.op == op]
  return sum(c.count * c.bytes for c in found)


def check_pieces(plan):
  total = sum(plan.pieces) - plan.pieces.peak
  assert total == pytest.approx(plan.pieces.peak, rel=0.05)
  assert plan.fits
  assert plan.bytes_per_chip < plan.topology.chip.hbm_bytes


def kept_by_hand(plan, width):
  """Returns bytes at the end of forward, of the gradient and of the program.

  "dots" keeps for each token and layer, in bfloat16: the input, qkv (3), the
  results of attention and its output layer, the MLP's up (4) and down. Then
  come the logits of 77 tokens a row.
  """
  parameters = plan.pieces.parameters
  kept = ROWS * 512 * plan.num_layers * 11 * width * 2
  logits = ROWS * 77 * 30_592 * 4
  return 4 * parameters + kept + logits + plan.pieces.program


@pytest.mark.parametrize(
  ("size", "topology"),
  [
    ("base", "v5e:4x4"),
    ("base", "v5e:16x16"),
    ("large", "v5e:4x4"),
    ("large", "v5e:16x16"),
  ],
)
def test_data_parallelism(size, topology):
  plan = make(size, topology)
  check_pieces(plan)
  if size == "large":  # Base has memory left: see test_memory_by_hand.
    expected = kept_by_hand(plan, WIDTH[size])
    assert plan.bytes_per_chip == pytest.approx(expected, rel=0.05)
  gradient = plan.pieces.parameters
  assert 0.5 * gradient < sent(plan, "all-reduce") <= 1.05 * gradient
  assert not sent(plan, "all-gather")
  assert not sent(plan, "reduce-scatter")
  assert not any(c.trips for c in plan.sent)  # None is in a loop.
  # No activation is sent: those have as many tokens as a chip.
  assert not {d for c in plan.sent for dims in c.arrays for d in dims} & {
    ROWS * 512
  }
  assert plan.recomputed <= 0.15
  assert plan.estimate.efficiency >= 0.97
  alongside = sum(c.count * c.bytes for c in plan.sent if c.is_async)
  assert alongside > 0.5 * sent(plan, "all-reduce")


@pytest.mark.parametrize("size", ["base", "large"])
def test_fsdp(size):
  plan = make(size, "v5e:4x4", overrides=["mesh.fsdp=16"])
  check_pieces(plan)
  assert plan.pieces.parameters < 1.2 * 4 * PARAMETERS[size] / 16
  # A layer is gathered in the forward and backward pass, in bfloat16; no part
  # of it is passed on from chip to chip.
  layers = LAYER[size] * plan.num_layers * 2
  assert 2 * layers <= sent(plan, "all-gather") < 2.5 * layers
  assert not sent(plan, "collective-permute")
  # No activations, which have as many tokens as a chip, or as all chips.
  sizes = {d for c in plan.sent if c.trips for dims in c.arrays for d in dims}
  assert not sizes & {32 * 512, 16 * 32 * 512}


@pytest.mark.parametrize("topology", ["v4:2x2x4", "v5p:2x2x4", "v6e:4x4"])
def test_every_type_of_tpu(topology):
  """One device a chip, also for v4; v6e's compiler needs a larger stack."""
  options = ["model.unroll=False"]  # Compiles in half the time.
  plan = make("base", topology, overrides=options)
  check_pieces(plan)
  assert plan.topology.num_chips == plan.mesh["data"] == 16
  assert plan.estimate.efficiency >= 0.9
