"""A larger model from a smaller one: what of it is equal."""

import jax
import numpy as np
import pytest

from helpers import untrained, workdirs
from maskedlm.config import defaults
from maskedlm.core.errors import ConfigError
from maskedlm.pretraining.initial import grow, init_from


def test_an_axis_is_filled_from_its_middle():
  # ModernBERT's own test: 3 numbers in 8 places.
  old, fresh = {"scale": np.array([1, 2, 3])}, {"scale": np.zeros(8)}
  assert grow.tile(old, fresh)["scale"].tolist() == [2, 3, 1, 2, 3, 1, 2, 3]


def test_layers_are_repeated_in_their_order():
  old = {"encoder": {"layers": {"scale": np.arange(22)[:, None]}}}
  fresh = {"encoder": {"layers": {"scale": np.zeros((28, 1))}}}
  made = grow.tile(old, fresh)["encoder"]["layers"]["scale"][:, 0]
  # round(22 i / 28): base's 22 layers in large's 28.
  assert made[:9].tolist() == [0, 1, 2, 2, 3, 4, 5, 6, 6]
  assert made[-1] == 21 and sorted(set(made)) == list(range(22))


def test_layers_are_picked_evenly_up_to_the_last():
  layers = {"scale": np.arange(12)[:, None]}
  old = {"encoder": {"layers": layers, "norm": 7}, "mlm_head": 5}
  for count, picked in (
    (12, [*range(12)]),
    (6, [1, 3, 5, 7, 9, 11]),
    (5, [1, 4, 6, 9, 11]),  # Each fifth ends at 2.4, 4.8, 7.2, 9.6, 12.
    (1, [11]),
  ):
    fresh = {"encoder": {"layers": {"scale": np.zeros((count, 1))}}}
    made = grow.METHODS["pick"](old, fresh)
    assert made["encoder"]["layers"]["scale"][:, 0].tolist() == picked
    assert made["encoder"]["norm"] == 7 and made["mlm_head"] == 5


def test_more_layers_can_not_be_picked():
  model = defaults.default().model
  model.num_layers = 3
  old = workdirs.config(untrained.make_tokenizer(), num_layers=2, width=12)
  with pytest.raises(ConfigError, match=r"num_layers=3 of the 2 of init_from"):
    grow.check_sizes(model, old, "pick")


def make(seed=0, **sizes):
  tokenizer = untrained.make_tokenizer()
  cfg = workdirs.config(tokenizer, num_layers=2, width=12, **sizes)
  shapes = workdirs.make_params(cfg, ("mlm_head",))
  return workdirs.randomise(shapes, seed)


def test_a_whole_small_model_is_in_the_middle_of_the_large_one():
  small = make(num_heads=3)
  wide = workdirs.config(
    untrained.make_tokenizer(),
    num_layers=5,
    width=20,
    num_heads=5,
    mlp_width=46,
  )
  large = workdirs.make_params(wide, ("mlm_head",))
  made = grow.tile(small, large)
  assert jax.tree.map(np.shape, made) == jax.tree.map(np.shape, large)
  kernel = made["encoder"]["layers"]["attention"]["qkv"]["kernel"]
  old = small["encoder"]["layers"]["attention"]["qkv"]["kernel"]
  # Width 12 in 20, and 3 heads in 5: from 4 and from 1.
  np.testing.assert_array_equal(kernel[0, 4:16, :, 1:4], old[0])
  np.testing.assert_array_equal(kernel[:, :, :, 0], kernel[:, :, :, 3])
  np.testing.assert_array_equal(kernel[0], kernel[1])  # round(0.4) is 0.
  up, old = (
    params["encoder"]["layers"]["mlp"]["up"]["kernel"]
    for params in (made, small)
  )
  np.testing.assert_array_equal(up[-1, 4:16, 3:43], old[1])
  vectors, old = (
    params["encoder"]["embeddings"]["token"]["embedding"]
    for params in (made, small)
  )
  np.testing.assert_array_equal(vectors[:, 4:16], old)


def test_whole_groups_of_heads_are_copied():
  # 4 heads of 3 in 2 groups become 10 in 5, of which 1 and 2 are the old ones.
  small = make(num_heads=4, num_kv_heads=2)
  large = workdirs.make_params(
    workdirs.config(
      untrained.make_tokenizer(),
      num_layers=2,
      width=30,
      num_heads=10,
      num_kv_heads=5,
    ),
    ("mlm_head",),
  )
  made = grow.tile(small, large)
  assert jax.tree.map(np.shape, made) == jax.tree.map(np.shape, large)
  new, old = (x["encoder"]["layers"]["attention"] for x in (made, small))
  inside = slice(9, 21)
  np.testing.assert_array_equal(
    new["group_query"]["kernel"][:, inside, 1:3], old["group_query"]["kernel"]
  )
  np.testing.assert_array_equal(
    new["group_key_value"]["kernel"][:, inside, :, 1:3],
    old["group_key_value"]["kernel"],
  )
  np.testing.assert_array_equal(
    new["group_out"]["kernel"][:, 1:3, ..., inside], old["group_out"]["kernel"]
  )


def test_groups_can_be_neither_added_nor_removed():
  tokenizer = untrained.make_tokenizer()
  plain, grouped = (
    workdirs.config(tokenizer, width=12, num_heads=4, num_kv_heads=G)
    for G in (0, 2)
  )
  grow.check_sizes(grouped, grouped)
  for model, old in ((plain, grouped), (grouped, plain)):
    with pytest.raises(ConfigError, match=r"grow: model.num_kv_heads="):
      grow.check_sizes(model, old)


def test_a_model_of_the_same_size_is_unchanged():
  small = make(num_heads=3)
  made = grow.tile(small, jax.eval_shape(lambda: small))
  jax.tree.map(np.testing.assert_array_equal, made, small)


@pytest.mark.parametrize(
  ("sizes", "name"),
  [({"mlp_width": 39}, "mlp/down"), ({"max_positions": 29}, "position")],
)
def test_what_does_not_grow_is_refused(sizes, name):
  small = make(num_heads=3)
  other = make(num_heads=3, **sizes)
  with pytest.raises(ConfigError, match=f"grow=tile: .*{name}"):
    grow.tile(small, other)


def test_the_sizes_are_the_configs_own_and_the_rest_init_froms(tmp_path):
  tokenizer = untrained.make_tokenizer()
  cfg = workdirs.config(
    tokenizer, num_layers=2, width=12, num_heads=3, position="rope"
  )
  params = workdirs.make_params(cfg, ("mlm_head",))
  path = workdirs.save(tmp_path / "small", params, cfg, tokenizer)
  config = defaults.default("roberta")
  config.model.update(num_layers=3, width=20, num_heads=5, mlp_width=60)
  config.init_from, config.grow = str(path), "tile"
  init_from.copy_architecture(config)
  model = config.model
  assert (model.num_layers, model.width, model.num_heads) == (3, 20, 5)
  assert model.position == "rope" and model.mlp_width == 60
  model.update(width=9, num_heads=3)  # Before any text is prepared.
  with pytest.raises(ConfigError, match=r"model.width=9 .* 12 .*width=12"):
    init_from.copy_architecture(config)
  config.grow = ""
  init_from.copy_architecture(config)
  assert (model.num_layers, model.width, model.num_heads) == (2, 12, 3)


def test_growing_from_nothing_is_refused():
  config = defaults.default("roberta")
  config.grow = "tile"
  with pytest.raises(ConfigError, match=r"grow=.*init_from"):
    defaults.validate(config)
