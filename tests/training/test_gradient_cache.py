"""The loss of a whole batch, whose vectors are computed in parts."""

import functools
import re
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import encoder_reference as reference
from helpers import letters, toy
from maskedlm.data.labelled.formats.passages import Example
from maskedlm.finetune.contract import Setup
from maskedlm.finetune.retrieval import retrieval
from maskedlm.training import gradient_cache, sharding
from maskedlm.training import step as steps

LENGTH, ROWS = 9, 24
CFG = reference.config(num_heads=4)


def make_task(cfg):
  app = retrieval.make_application(
    Setup(letters.TOKENIZER, cfg, {}, LENGTH), retrieval.Options()
  )
  task = toy.make_task()._replace(
    loss=app.loss, vectors=app.vectors, loss_of_vectors=app.loss_of_vectors
  )
  words = np.random.default_rng(0).choice([*"abcdefghijk"], (ROWS, 8))
  examples = [Example(" ".join(x[:3]), (" ".join(x[3:]),)) for x in words]
  batch = letters.make_batch(app, examples=examples, length=LENGTH)
  return task, letters.make_params(app, cfg), batch


def gradient(cfg, axes, count):
  """Returns (loss, gradient, the compiled program) over a mesh."""
  task, params, batch = make_task(cfg)
  sizes = dict(zip(sharding.AXES, axes, strict=True))
  mesh = sharding.make_mesh(
    types.SimpleNamespace(**sizes), jax.devices()[: int(np.prod(axes))]
  )
  task, parts = gradient_cache.divide(task, count)
  with jax.set_mesh(mesh):
    shardings = sharding.tree_shardings(params, mesh)
    program = (
      jax.jit(
        lambda params, batch: steps.gradient_of(
          task, params, batch, jax.random.key(3), parts
        ),
        in_shardings=(shardings, sharding.rows(mesh)),
        out_shardings=(shardings, *[sharding.replicated(mesh)] * 2),
      )
      .lower(params, batch)
      .compile()
    )
    grads, loss, _ = jax.device_get(program(params, batch))
  return float(loss), grads, program.as_text()


@functools.cache
def undivided():
  return gradient(CFG, (1, 1, 1), 1)[:2]


def assert_close(found, expected):
  assert found[0] == pytest.approx(expected[0], rel=1e-5)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5),
    found[1],
    expected[1],
  )


def test_the_gradient_is_that_of_the_undivided_batch():
  assert_close(gradient(CFG, (2, 2, 2), 2), undivided())


def test_devices_sum_their_gradients_once():
  *found, program = gradient(CFG, (8, 1, 1), 3)
  assert_close(found, undivided())
  sums = re.findall(r"= (.*?) all-reduce(?:-start)?\(", program)
  # Of what is summed, all but the loss and the vectors, which all share.
  of_params = [x for x in sums if f"f32[256,{CFG.width}]" in x]
  assert len(of_params) == 1
  # It is outside of the loop over the parts.
  before = program.partition(of_params[0] + " all-reduce")[0]
  assert before.rpartition("\n\n")[2].startswith("ENTRY")
  others = {x.partition("{")[0] for x in sums} - {
    of_params[0].partition("{")[0]
  }
  assert others <= {"f32[]", f"f32[{ROWS},1,{CFG.width}]"}


@pytest.mark.parametrize(
  ("axes", "devices", "count"),
  [((4, 1, 2), 4, 2), ((2, 2, 2), 1, 3)],
)
def test_dropout_is_the_same_in_both_passes(axes, devices, count):
  """The reference keeps all parts, with equal keys, and derives their loss.

  Each of so many devices has its own parts.
  """
  cfg = reference.config(num_heads=4, dropout=0.3, attention_dropout=0.2)
  task, params, batch = make_task(cfg)
  order = np.arange(ROWS).reshape(devices, -1, count).swapaxes(1, 2)
  parts = {n: x[order.reshape(-1, order.shape[-1])] for n, x in batch.items()}

  def loss(params, key):
    keys = jax.random.split(key, devices)
    keys = jax.vmap(lambda key: jax.random.split(key, count))(keys).ravel()
    made = jax.lax.map(
      lambda xs: task.vectors(params, *xs, True), (parts, keys)
    )
    x = jnp.zeros((ROWS, 2, cfg.width)).at[order.ravel()]
    x = x.set(made.reshape(ROWS, 2, -1))
    return steps.totals(task.loss_of_vectors(x, batch)[0])["retrieval"][0]

  whole = jax.jit(jax.value_and_grad(lambda *args: loss(*args) / ROWS))
  expected, grads = whole(params, jax.random.key(3))
  assert_close(gradient(cfg, axes, count)[:2], (float(expected), grads))
  # There is dropout: other keys give another loss.
  assert abs(whole(params, jax.random.key(6))[0] - expected) > 1e-3


def test_a_large_batch_takes_the_memory_of_a_small_one():
  """1,024 pairs in parts of 16 take less than twice the memory of 16."""
  cfg = reference.config(num_layers=4, width=96, mlp_width=384)
  task, params, batch = make_task(cfg)

  def temporaries(rows, count):
    many = jax.tree.map(lambda x: np.resize(x, (rows, *x.shape[1:])), batch)
    divided, parts = gradient_cache.divide(task, count)
    program = jax.jit(
      lambda params, batch: steps.gradient_of(
        divided, params, batch, jax.random.key(0), parts
      )
    ).lower(params, many)
    return program.compile().memory_analysis().temp_size_in_bytes

  small = temporaries(16, 1)
  assert temporaries(1024, 64) < 2 * small + 4 * 3 * 1024**2 * 4
  assert temporaries(1024, 1) > 8 * small


def test_outputs_are_those_of_the_undivided_batch():
  task, params, batch = make_task(CFG)
  task = task._replace(
    outputs=lambda params, batch: {
      "x": task.vectors(params, batch, None, False)
    }
  )
  divided, count = gradient_cache.divide(task, 4)
  step = steps.make_heldout_step(divided, seed=1, accumulate=count)
  whole = steps.make_heldout_step(task, seed=1, accumulate=1)
  batch = {**batch, "weights": np.ones(ROWS)}
  found, expected = (
    jax.jit(f)(params, batch, 0)
    for f in (
      step,
      whole,
    )
  )
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6),
    found,
    expected,
  )


def test_other_losses_are_not_divided():
  task = toy.make_task()
  assert gradient_cache.divide(task, 3) == (task, 3)
