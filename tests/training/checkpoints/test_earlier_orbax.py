"""Orbax's earlier interface, which maskedlm wrote and read checkpoints with."""

import json
import subprocess
import sys

import jax
import numpy as np
import orbax.checkpoint as v0
import pytest

from helpers.checkpoint_states import (
  META,
  assert_same,
  like,
  make_state,
  opened,
  save_steps,
)
from maskedlm.training.checkpoints import arrays, manifest
from maskedlm.training.checkpoints import state as state_of
from maskedlm.training.checkpoints.load import load_params

needs_v0 = pytest.mark.skipif(
  not hasattr(v0, "args"), reason="this Orbax lacks its earlier interface"
)


@needs_v0
def test_a_checkpoint_of_before_is_read_to_the_bit(tmp_path):
  state, steps = make_state(7), tmp_path / "checkpoints"
  save_steps(tmp_path / "now", 7)
  record = manifest.read_record(tmp_path / "now" / "checkpoints" / "7")
  record = record | {"metric": 0.5}
  with v0.AsyncCheckpointer(v0.CompositeCheckpointHandler()) as checkpointer:
    checkpointer.save(
      steps / "7",
      args=v0.args.Composite(
        params=v0.args.StandardSave(state.params),
        state=v0.args.StandardSave(state_of.beside_params(state)),
        meta=v0.args.JsonSave(record),
      ),
    )
  assert json.loads((steps / "7" / "meta" / "metadata").read_text()) == record
  manifest.commit(steps, record)
  with opened(tmp_path) as checkpoints:
    for devices in 8, 2:
      expected = make_state(7, devices)
      restored, meta = checkpoints.restore(like(expected))
      assert_same(restored, expected)
      assert meta == {**META, "step": 7, "metric": 0.5}
    checkpoints.save(8, make_state(8), META, metric=None)  # The run goes on.
  params, _ = load_params(tmp_path, step=7)
  for a, b in zip(
    jax.tree.leaves(params), jax.tree.leaves(state.params), strict=True
  ):
    assert a.dtype == b.dtype and a.tobytes() == np.asarray(b).tobytes()
  (skipped,) = arrays.read_arrays(steps / "7" / "state", ["skipped"]).values()
  assert skipped == 2**31 + 5


@needs_v0
def test_maskedlm_of_before_reads_what_is_saved_now(tmp_path):
  save_steps(tmp_path, 7)
  state = make_state(7)
  wanted = like(state)
  with v0.Checkpointer(v0.CompositeCheckpointHandler()) as checkpointer:
    items = checkpointer.restore(
      tmp_path / "checkpoints" / "7",
      args=v0.args.Composite(
        params=v0.args.StandardRestore(wanted.params),
        state=v0.args.StandardRestore(state_of.beside_params(wanted)),
      ),
    )
  found = {**items["state"], "params": items["params"]}
  assert_same(state._replace(**found), state)


def test_the_interface_is_found_where_1_0_0_has_it():
  code = """
import sys, types
orbax, package = types.ModuleType("orbax"), types.ModuleType("orbax.checkpoint")
orbax.checkpoint = package
sys.modules.update({"orbax": orbax, "orbax.checkpoint": package})
from maskedlm.training.checkpoints.arrays import ocp
assert ocp is package
"""
  subprocess.run([sys.executable, "-c", code], check=True)
