"""A train step with a large vocabulary, compiled for 1 and 4 devices."""

import re

import jax
import numpy as np
import pytest
from ml_collections import ConfigDict

from helpers import encoder_reference
from maskedlm.config import defaults
from maskedlm.data.batches import placeholder_corpus
from maskedlm.pretraining import objectives
from maskedlm.training import optimizer as optim
from maskedlm.training import sharding
from maskedlm.training import step as steps

# V is padded to 384; P is 2. Tokens of a batch: 104, of which 16 are predicted.
B, L, D, V, PADDED, PREDICTIONS = 8, 13, 24, 300, 384, 16
WHOLE, BLOCK = 384, 200  # 200 makes two blocks of 256 tokens.


def make_task(block):
  """Returns (config, task) of a tiny model."""
  config = defaults.default("roberta")
  config.tokenizer.vocab_size = V
  config.model.update(
    num_layers=2, width=D, num_heads=4, mlp_width=40, max_positions=L
  )
  # Without dropout, which is half of the time to compile.
  config.model.update(dropout=0.0, attention_dropout=0.0, vocab_block=block)
  config.model.unroll = False
  config.data.update(length=L, batch_size=B)
  config.train.num_steps = 9
  config.optimizer.warmup_steps = 2
  return config, objectives.make_task(
    config, placeholder_corpus.make_corpus(config.tokenizer)
  )


def gradient_on(block, axes):
  """Returns (gradient, loss, metrics) of a batch over a mesh, and the HLO."""
  _, task = make_task(block)
  mesh = sharding.make_mesh(
    ConfigDict(dict(zip(sharding.AXES, axes, strict=True))),
    jax.devices()[: int(np.prod(axes))],
  )
  key = jax.random.key(0)
  params = encoder_reference.randomise(jax.eval_shape(task.init, key))
  shardings = sharding.tree_shardings(params, mesh)

  def gradient(params, batch):
    batch = task.corrupt(batch, key)
    made = steps.gradient_of(task, sharding.gather(params, mesh), batch, key, 1)
    return sharding.gather(made[0], mesh), *made[1:]

  inputs = (
    jax.device_put(params, shardings),
    sharding.place(task.batch_at("train", 0), mesh),
  )
  compiled = jax.jit(
    gradient,
    in_shardings=(shardings, sharding.rows(mesh)),
    out_shardings=(shardings, *[sharding.replicated(mesh)] * 2),
  )
  compiled = compiled.lower(*inputs).compile()
  return jax.device_get(compiled(*inputs)), compiled.as_text()


def test_blocks_over_devices_equal_the_whole_on_one(capfd):
  (gradient, loss, stats), _ = gradient_on(WHOLE, (1, 1, 1))
  (ours, loss_of_blocks, found), text = gradient_on(BLOCK, (1, 2, 2))
  np.testing.assert_allclose(loss_of_blocks, loss, rtol=1e-5)
  assert found["mlm_accuracy"] == stats["mlm_accuracy"]
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5),
    ours,
    gradient,
  )
  assert "rematerialization" not in capfd.readouterr().err
  # Each device has its 192 tokens; the table is never gathered.
  assert f"f32[{PADDED // 2},{D}]" in text
  assert f"f32[{PADDED},{D}]" not in text
  assert f",{PADDED}]" not in text  # Nor the logits.


@pytest.mark.parametrize("block", [WHOLE, BLOCK])
def test_no_one_hot_matrix_and_no_array_of_all_logits(block):
  config, task = make_task(block)
  shapes = jax.eval_shape(task.init, jax.random.key(0))
  tx, schedule = optim.make_optimizer(config.optimizer, 9, shapes)
  direct = steps.make_direction(task, tx, seed=0, accumulate=1)
  step = steps.make_step(task, direct, schedule)
  state = jax.eval_shape(steps.make_init(task, tx, 0))
  batch = task.batch_at("train", 0)
  text = jax.jit(step).lower(state, batch).as_text()
  shapes = {
    tuple(map(int, dims.rstrip("x").split("x")))
    for dims in re.findall(r"tensor<((?:\d+x)+)\w+>", text)
  }
  words = {V, PADDED}
  over_words = [dims for dims in shapes if words & set(dims)]
  assert (PADDED, D) in over_words  # The table.
  assert not [dims for dims in over_words if {B * L, L} & set(dims)]
  logits = [
    dims for dims in over_words if {PREDICTIONS, PREDICTIONS // B} & set(dims)
  ]
  assert bool(logits) == (block == WHOLE)
  # The gradient of the lookup adds rows in place.
  scatters = re.findall(r'"stablehlo.scatter"[^\n]*(?:\n.*?)*?-> [^\n]*', text)
  table = f"tensor<{PADDED}x{D}xf32>"
  sums = [s for s in scatters if s.endswith(table) and "stablehlo.add" in s]
  assert len(sums) == 1
  assert f"tensor<{B * L}x{D}xf32>" in sums[0].splitlines()[-1]
