"""Layer-wise decay, freezing and unfreezing, worked by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from maskedlm.config import presets
from maskedlm.core.errors import ConfigError
from maskedlm.training import (
  layerwise_rates,
  optimizer,
  optimizer_options,
  sharding,
)

N = 3  # Layers.


def make_params():
  return {
    "encoder": {
      "embeddings": {"token": {"embedding": jnp.ones((7, 5))}},
      "layers": {
        "mlp": {"up": {"kernel": jnp.ones((N, 5, 2)), "bias": jnp.ones((N, 2))}}
      },
      "final_norm": {"scale": jnp.ones(5)},
    },
    "classifier": {"dense": {"kernel": jnp.ones((5, 2))}},
  }


def shares(**options):
  options = {"layer_decay": 1.0, "frozen_layers": 0, **options}
  made = layerwise_rates.layer_multipliers(make_params(), **options)
  layers = made["encoder"]["layers"]["mlp"]["up"]["kernel"]
  return (
    float(made["encoder"]["embeddings"]["token"]["embedding"]),
    np.ravel(layers).tolist(),
    float(made["classifier"]["dense"]["kernel"]),
  )


def test_each_step_down_is_a_power():
  """As in ELECTRA: 2 for the top layer, one more for each below."""
  embeddings, layers, head = shares(layer_decay=0.5)
  assert layers == [0.5**4, 0.5**3, 0.5**2]
  assert (embeddings, head) == (0.5**5, 1.0)
  # The norm above the top layer counts as another layer.
  made = layerwise_rates.layer_multipliers(
    make_params(), layer_decay=0.5, frozen_layers=0
  )
  assert made["encoder"]["final_norm"]["scale"] == 0.5


def test_the_first_layers_freeze_with_the_embeddings():
  assert shares(frozen_layers=2) == (0.0, [0.0, 0.0, 1.0], 1.0)
  assert shares(frozen_layers=3) == (0.0, [0.0, 0.0, 0.0], 1.0)
  assert shares(frozen_layers=-1) == (0.0, [0.0], 1.0)


def test_frozen_parameters_have_no_gradient():
  params = make_params()

  def gradient(**options):
    options = {"layer_decay": 1.0, "frozen_layers": 0, **options}
    by_layer = layerwise_rates.layer_multipliers(params, **options)

    def total(params):
      return optax.tree.sum(layerwise_rates.freeze(params, by_layer))

    made = jax.grad(total)(params)
    up = made["encoder"]["layers"]["mlp"]["up"]
    return (
      made["encoder"]["embeddings"]["token"]["embedding"].sum(),
      up["kernel"].sum(axis=(1, 2)).tolist(),
      up["bias"].sum(axis=1).tolist(),
      made["encoder"]["final_norm"]["scale"].sum(),
      made["classifier"]["dense"]["kernel"].sum(),
    )

  assert gradient() == (35, [10, 10, 10], [2, 2, 2], 5, 10)
  assert gradient(layer_decay=0.5) == gradient()
  assert gradient(frozen_layers=2) == (0, [0, 0, 10], [0, 0, 2], 5, 10)
  assert gradient(frozen_layers=-1) == (0, [0] * 3, [0] * 3, 0, 10)


def first_steps(unfreeze_share):
  made = layerwise_rates.first_steps(
    make_params(), unfreeze_share=unfreeze_share, num_steps=1_000
  )
  up = made["encoder"]["layers"]["mlp"]["up"]
  assert up["kernel"].shape == (N, 1, 1) and up["bias"].shape == (N, 1)
  return (
    made["encoder"]["embeddings"]["token"]["embedding"],
    up["kernel"].ravel().tolist(),
    made["encoder"]["final_norm"]["scale"],
    made["classifier"]["dense"]["kernel"],
  )


def test_layers_are_unfrozen_from_the_top():
  # 4 of 6 epochs: one more for each of 3 layers and the embeddings.
  assert first_steps(4 / 6) == (667, [500, 333, 167], 167, 0)
  assert first_steps(0.5) == (500, [375, 250, 125], 125, 0)
  assert first_steps(0.0) == (0, [0, 0, 0], 0, 0)


def test_updates_before_the_first_step_are_0():
  first = {"a": np.array([[4], [2]], np.int32), "b": 0}
  updates = {"a": jnp.full((2, 3), 7.0), "b": jnp.full(5, 7.0)}
  unfreeze = jax.jit(
    lambda step: layerwise_rates.unfreeze(first, step, updates)
  )
  for step, rows in ((0, [0, 0]), (1, [0, 0]), (2, [0, 7]), (4, [7, 7])):
    made = unfreeze(jnp.int32(step))
    assert made["a"].tolist() == [[x] * 3 for x in rows]
    assert made["b"].tolist() == [7] * 5
  assert unfreeze._cache_size() == 1  # One program for all steps.


def test_frozen_parameters_neither_move_nor_decay():
  params = make_params()
  o = presets.adamw()
  o.frozen_layers, o.warmup_steps, o.no_decay = 2, 0, ("bias",)
  tx, _ = optimizer.make_optimizer(o, 10, params)
  grads = {"encoder": params["encoder"], "classifier": params["classifier"]}
  updates, _ = tx.update(grads, tx.init(params), params)
  moved = updates["encoder"]["layers"]["mlp"]["up"]["kernel"]
  assert (moved[:2] == 0).all()
  assert (moved[2] != 0).all()
  assert (updates["encoder"]["embeddings"]["token"]["embedding"] == 0).all()
  assert (updates["classifier"]["dense"]["kernel"] != 0).all()


@pytest.mark.parametrize("rule", optimizer_options.RULES)
def test_they_do_not_change_the_structure_of_the_state(rule):
  params, o = make_params(), presets.adamw()
  o.rule, o.warmup_steps, o.no_decay = rule, 0, ("bias",)
  init = optimizer.make_optimizer(o, 10, params)[0].init
  plain = jax.eval_shape(init, params)
  # Adam is the second of the chain's four, as in existing checkpoints.
  places = {
    "/".join(sharding.path_of(path).split("/")[:2])
    for path, _ in jax.tree_util.tree_leaves_with_path(plain)
  }
  adams = {"1/count", "1/mu", "1/nu"}
  assert places == {"muon": {"1/inner_states"}}.get(rule, adams)
  assert len(plain) == 4
  o.update(layer_decay=0.5, frozen_layers=1)
  tx, _ = optimizer.make_optimizer(o, 10, params)
  state = jax.eval_shape(tx.init, params)
  assert jax.tree.structure(state) == jax.tree.structure(plain)
  _, state = jax.eval_shape(tx.update, params, state, params)
  assert jax.tree.structure(state) == jax.tree.structure(plain)


@pytest.mark.parametrize(
  ("options", "message"),
  [
    ({"layer_decay": 0.0}, "optimizer.layer_decay=0.0"),
    ({"layer_decay": 1.1}, "optimizer.layer_decay=1.1"),
    ({"frozen_layers": -2}, "optimizer.frozen_layers=-2"),
    ({"frozen_layers": 4}, "optimizer.frozen_layers=4: expected at most 3"),
    ({"unfreeze_share": 1.0}, "optimizer.unfreeze_share=1.0"),
  ],
)
def test_values_out_of_range(options, message):
  o = presets.adamw()
  o.update(warmup_steps=0, no_decay=("bias",), **options)
  with pytest.raises(ConfigError, match=message):
    optimizer.make_optimizer(o, 10, make_params())
