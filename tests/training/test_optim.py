"""The optimizer against numbers worked by hand, and against optax's own."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from maskedlm.config import presets
from maskedlm.core.errors import ConfigError
from maskedlm.training import optimizer as optim

N, D, H, K, F, V, T = 2, 24, 3, 8, 40, 128, 17


def shapes():
  """The parameters of an MLM+NSP encoder: path -> shape."""
  return {
    "encoder/embeddings/token/embedding": (V, D),
    "encoder/embeddings/position/embedding": (T, D),
    "encoder/embeddings/token_type/embedding": (2, D),
    "encoder/embeddings/norm/scale": (D,),
    "encoder/embeddings/norm/bias": (D,),
    "encoder/layers/attention/qkv/kernel": (N, D, 3, H, K),
    "encoder/layers/attention/qkv/bias": (N, 3, H, K),
    "encoder/layers/attention/out/kernel": (N, H, K, D),
    "encoder/layers/attention/out/bias": (N, D),
    "encoder/layers/attention_norm/scale": (N, D),
    "encoder/layers/attention_norm/bias": (N, D),
    "encoder/layers/mlp/up/kernel": (N, D, F),
    "encoder/layers/mlp/up/bias": (N, F),
    "encoder/layers/mlp/down/kernel": (N, F, D),
    "encoder/layers/mlp/down/bias": (N, D),
    "encoder/layers/mlp_norm/scale": (N, D),
    "encoder/layers/mlp_norm/bias": (N, D),
    "pooler/dense/kernel": (D, D),
    "pooler/dense/bias": (D,),
    "mlm_head/transform/kernel": (D, D),
    "mlm_head/transform/bias": (D,),
    "mlm_head/norm/scale": (D,),
    "mlm_head/norm/bias": (D,),
    "mlm_head/bias": (V,),
    "nsp_head/dense/kernel": (D, 2),
    "nsp_head/dense/bias": (2,),
  }


DECAYED = {
  "encoder/embeddings/token/embedding",
  "encoder/embeddings/position/embedding",
  "encoder/embeddings/token_type/embedding",
  "encoder/layers/attention/qkv/kernel",
  "encoder/layers/attention/out/kernel",
  "encoder/layers/mlp/up/kernel",
  "encoder/layers/mlp/down/kernel",
  "pooler/dense/kernel",
  "mlm_head/transform/kernel",
  "nsp_head/dense/kernel",
}


def nest(flat):
  """{"a/b": x} -> {"a": {"b": x}}."""
  tree = {}
  for path, value in flat.items():
    *parents, name = path.split("/")
    node = tree
    for parent in parents:
      node = node.setdefault(parent, {})
    node[name] = value
  return tree


def flat(tree):
  """The inverse of nest, in numpy."""
  leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
  return {"/".join(k.key for k in path): np.asarray(x) for path, x in leaves}


def draw(seed):
  rng = np.random.default_rng(seed)
  return nest({p: rng.normal(size=s).astype("f4") for p, s in shapes().items()})


def structs():
  return nest(
    {p: jax.ShapeDtypeStruct(s, jnp.float32) for p, s in shapes().items()}
  )


def option(preset, **values):
  optimizer = preset()
  optimizer.update(values)
  return optimizer


def plain(preset=presets.adamw, **values):
  """A preset for toy parameters: nothing excluded, no warm-up."""
  return option(preset, **{"no_decay": (), "warmup_steps": 0} | values)


def toy(values):
  return {"kernel": jnp.array(values, jnp.float32)}


# Rules.


def test_one_update_of_bert_google_from_given_moments():
  params, grads = toy([0.5, -2.0]), toy([0.3, -0.4])  # Norm 0.5: not clipped.
  tx, _ = optim.make_optimizer(plain(presets.bert_google), 10, params)
  state = tx.init(params)
  moments = state[1]._replace(
    count=jnp.array(7), mu=toy([0.1, 0.2]), nu=toy([0.04, 0.01])
  )
  update, state = tx.update(grads, (state[0], moments, *state[2:]), params)
  # m = .9 * (.1, .2) + .1 * (.3, -.4)
  # v = .999 * (.04, .01) + .001 * (.09, .16)
  np.testing.assert_allclose(state[1].mu["kernel"], [0.12, 0.14], rtol=1e-6)
  np.testing.assert_allclose(
    state[1].nu["kernel"], [0.04005, 0.01015], rtol=1e-6
  )
  # .12 / (sqrt(.04005) + 1e-6) + .01 * .5, .14 / (sqrt(.01015) + 1e-6) - .02;
  # with bias correction, at step 8, the first would be 0.0990.
  np.testing.assert_allclose(
    update["kernel"], [0.6046224, 1.3696029], rtol=1e-6
  )
  assert state[1].count == 8


def test_bert_google_divides_by_sqrt_of_v_plus_eps_outside():
  params, grads = toy([0.0]), toy([1e-4])
  tx, _ = optim.make_optimizer(plain(presets.bert_google), 10, params)
  update, _ = tx.update(grads, tx.init(params), params)
  # m = 1e-5, sqrt(v) = 1e-4 * sqrt(.001) = 3.1622777e-6. Inside, 1e-6 would
  # give 1e-5 / sqrt(1e-11 + 1e-6) = 0.01.
  np.testing.assert_allclose(
    update["kernel"], [1e-5 / (3.1622777e-6 + 1e-6)], rtol=1e-5
  )


def test_two_steps_of_adamw_by_hand_and_by_optax():
  params, gradients = draw(0), [draw(1), draw(2)]
  optimizer = option(presets.adamw, clip_norm=0.0, weight_decay=0.1)
  tx, _ = optim.make_optimizer(optimizer, 10_000, structs())
  peer = optax.adamw(
    0.5,
    weight_decay=0.1,
    mask=nest({path: path in DECAYED for path in shapes()}),
  )
  ours, theirs = params, params
  state, peer_state = tx.init(ours), peer.init(theirs)
  for gradient in gradients:
    update, state = jax.jit(tx.update)(gradient, state, ours)
    ours = jax.tree.map(lambda p, u: p - 0.5 * u, ours, update)
    change, peer_state = jax.jit(peer.update)(gradient, peer_state, theirs)
    theirs = optax.apply_updates(theirs, change)

  def by_hand(p, g1, g2, decay):
    m, v = 0.1 * g1, 0.001 * g1**2
    p = p - 0.5 * (m / 0.1 / (np.sqrt(v / 0.001) + 1e-8) + decay * p)
    m, v = 0.9 * m + 0.1 * g2, 0.999 * v + 0.001 * g2**2
    return p - 0.5 * (m / 0.19 / (np.sqrt(v / 0.001999) + 1e-8) + decay * p)

  p, g1, g2, ours, theirs = map(flat, (params, *gradients, ours, theirs))
  for path in shapes():
    np.testing.assert_allclose(ours[path], theirs[path], rtol=1e-5, atol=1e-6)
    want = by_hand(
      *(np.asarray(x[path], "f8") for x in (p, g1, g2)),
      decay=0.1 if path in DECAYED else 0.0,
    )
    # float32 rounds 1 - b2**count to 5 digits.
    np.testing.assert_allclose(ours[path], want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
  ("clip", "gradient", "kept"),
  [
    (1.0, [3.0, -4.0], [0.6, -0.8]),
    (2.5, [3.0, -4.0], [1.5, -2.0]),
    (1.0, [0.3, -0.4], [0.3, -0.4]),
    (0.0, [3.0, -4.0], [3.0, -4.0]),
  ],
)
def test_gradients_are_scaled_down_to_the_norm(clip, gradient, kept):
  params = toy([0.0, 0.0])
  tx, _ = optim.make_optimizer(plain(clip_norm=clip), 10, params)
  _, state = tx.update(toy(gradient), tx.init(params), params)
  want = 0.1 * np.array(kept)
  np.testing.assert_allclose(state[1].mu["kernel"], want, rtol=1e-6)


def test_the_norm_is_of_all_parameters_together():
  params = {"a": jnp.zeros(1), "b": jnp.zeros(1)}
  tx, _ = optim.make_optimizer(plain(), 10, params)
  grads = {"a": jnp.array([3.0]), "b": jnp.array([4.0])}
  _, state = tx.update(grads, tx.init(params), params)
  np.testing.assert_allclose(state[1].mu["a"], [0.06], rtol=1e-6)
  np.testing.assert_allclose(state[1].mu["b"], [0.08], rtol=1e-6)


def test_a_parameter_without_gradient_only_decays():
  # Rows of the vocabulary's padding never have one: 0 / (0 + eps), not NaN.
  params = toy([2.0])
  for preset in (presets.adamw, presets.bert_google):
    tx, _ = optim.make_optimizer(plain(preset), 10, params)
    update, _ = tx.update(toy([0.0]), tx.init(params), params)
    np.testing.assert_allclose(update["kernel"], [0.02], rtol=1e-6)


@pytest.mark.parametrize("rule", optim.RULES)
@pytest.mark.parametrize("first", [0.0, 1e-30, 1.0, 1e18])
@pytest.mark.parametrize("eps", [1e-8, 1e-30])  # Whose square is 0 in float32.
def test_a_finite_gradient_never_gives_an_infinite_update(rule, first, eps):
  """The step doesn't look at the update: it relies on this."""
  params = toy([[0.0, 1e-30, 3.0]])
  tx, _ = optim.make_optimizer(
    plain(rule=rule, eps=eps, clip_norm=0.0), 10, params
  )
  state = tx.init(params)
  for size in (
    first,
    0.0,
    1e18,
    1e-30,
  ):  # What one leaves, the next divides by.
    update, state = tx.update(toy([[size, 0.0, -size]]), state, params)
    for leaf in jax.tree.leaves((update, state)):
      assert np.isfinite(leaf).all()


# LAMB.


def unstacked(path, leaf):
  """The matrices that the published LAMB would see in one of our leaves."""
  layers = list(leaf) if "layers/" in path else [leaf]
  if "qkv/kernel" in path:
    return [layer[:, i] for layer in layers for i in range(3)]
  if "qkv/bias" in path:
    return [layer[i] for layer in layers for i in range(3)]
  return layers


def test_lamb_by_hand_on_unstacked_matrices():
  params, grads = draw(3), draw(4)
  # Layer 1's values are zero: no norm to go by, so their ratio is 1.
  params["encoder"]["layers"]["attention"]["qkv"]["kernel"][1, :, 2] = 0.0
  tx, _ = optim.make_optimizer(
    option(presets.lamb, weight_decay=0.5), 7_038, structs()
  )
  update, _ = jax.jit(tx.update)(grads, tx.init(params), params)

  flat_p, flat_g, got = flat(params), flat(grads), flat(update)
  norm = np.sqrt(sum(np.sum(g.astype("f8") ** 2) for g in flat_g.values()))
  assert norm > 1
  matrices = 0
  for path in shapes():
    for p, g, u in zip(
      *(unstacked(path, tree[path]) for tree in (flat_p, flat_g, got)),
      strict=True,
    ):
      g = g.astype("f8") / norm
      want = g / (np.abs(g) + 1e-6)  # Step 1: both moments are corrected.
      if path in DECAYED:
        matrices += 1
        want += 0.5 * p
        ratio = np.linalg.norm(p) / np.linalg.norm(want)
        want *= ratio or 1.0
      np.testing.assert_allclose(u, want, rtol=1e-4, atol=2e-5, err_msg=path)
  # 3 embeddings, 2 layers of (q, k, v, out, up, down), 3 heads.
  assert matrices == 3 + N * 6 + 3


def test_trust_ratio_is_per_layer_and_per_query_key_value():
  # |p| of q, k, v is 3, 6, 0 in layer 0 and 30, 60, 90 in layer 1; |u| is 1.
  size = np.array([[3.0, 6.0, 0.0], [30.0, 60.0, 90.0]])
  unit = 1 / np.sqrt(D * H * K)
  param = size[:, None, :, None, None] * unit * np.ones((N, D, 3, H, K))
  update = unit * np.ones((N, D, 3, H, K))
  update[1, :, 2] = 0.0
  tree = {"encoder": {"layers": {"attention": {"qkv": {"kernel": update}}}}}
  params = jax.tree.map(lambda _: param, tree)
  tx = optim.scale_by_trust_ratio()
  out, _ = tx.update(tree, tx.init(params), params)
  kernel = out["encoder"]["layers"]["attention"]["qkv"]["kernel"]
  np.testing.assert_allclose(
    np.asarray(kernel)[:, 5, :, 1, 2] / unit,
    [[3.0, 6.0, 1.0], [30.0, 60.0, 0.0]],
    rtol=1e-5,
  )


def test_trust_ratio_agrees_with_optax_where_a_leaf_is_one_matrix():
  params, grads = draw(5)["pooler"], draw(6)["pooler"]
  ours, theirs = optim.scale_by_trust_ratio(), optax.scale_by_trust_ratio()
  a, _ = ours.update(grads, ours.init(params), params)
  b, _ = theirs.update(grads, theirs.init(params), params)
  jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, 1e-5), a, b)


# Decay.


@pytest.mark.parametrize("preset", [presets.adamw, presets.bert_google])
def test_exactly_kernels_and_embeddings_decay(preset):
  decayed = optim.decayed(structs(), preset().no_decay)
  assert set(decayed) == set(shapes())
  assert {path for path, decays in decayed.items() if decays} == DECAYED


def test_decay_reaches_exactly_the_decayed():
  params = draw(7)
  tx, _ = optim.make_optimizer(presets.adamw(), 2_000, structs())
  zero = jax.tree.map(np.zeros_like, params)
  update, _ = tx.update(zero, tx.init(params), params)
  for path, value in flat(update).items():
    want = 0.01 * flat(params)[path] if path in DECAYED else 0.0
    np.testing.assert_allclose(value, want + 0 * value, rtol=1e-6, err_msg=path)


@pytest.mark.parametrize(
  ("no_decay", "message"),
  [
    (("norm/", "layernorm"), "'layernorm' matches no parameter"),
    (("bias", "("), r"'\(' is not a regular expression"),
    (("bias", 1), "1 is not a regular expression"),
    ("bias", "must be a tuple"),
  ],
)
def test_no_decay_that_cannot_be_meant(no_decay, message):
  with pytest.raises(ConfigError, match=message):
    optim.decayed(structs(), no_decay)


def test_no_decay_may_be_empty():
  assert all(optim.decayed(structs(), ()).values())


# State.


@pytest.mark.parametrize(
  "preset",
  [presets.adamw, presets.bert_google, presets.lamb, presets.modernbert],
)
def test_state_is_two_moments_a_parameter_and_a_count(preset):
  for clip in (0.0, 1.0):
    tx, _ = optim.make_optimizer(
      option(preset, clip_norm=clip), 20_000, structs()
    )
    state = jax.eval_shape(tx.init, structs())
    assert sorted(x.shape for x in jax.tree.leaves(state)) == sorted(
      [(), *shapes().values(), *shapes().values()]
    )
    assert jax.tree.map(lambda x: x.shape, state[1].mu) == jax.tree.map(
      lambda x: x.shape, structs()
    )


def test_the_state_is_updated_in_place_without_hidden_copies():
  params = {
    "a": jax.ShapeDtypeStruct((256, 301), jnp.float32),
    "b": jax.ShapeDtypeStruct((257, 403), jnp.float32),
  }
  tx, _ = optim.make_optimizer(plain(presets.bert_google), 20, params)

  def step(params, state, grads):
    update, state = tx.update(grads, state, params)
    return jax.tree.map(lambda p, u: p - 1e-4 * u, params, update), state

  donating = jax.jit(step, donate_argnums=(0, 1))
  state = jax.eval_shape(tx.init, params)
  memory = donating.lower(params, state, params).compile().memory_analysis()
  size = 4 * (256 * 301 + 257 * 403)
  # Three times: the parameters and both moments.
  assert 3 * size <= memory.alias_size_in_bytes <= 3 * size + 64
  assert memory.temp_size_in_bytes < size / 100


# Schedules.


def rates(steps, num_steps, preset=presets.adamw, **values):
  schedule = optim.make_schedule(option(preset, **values), num_steps)
  return [float(schedule(step)) for step in steps]


def check(got, want):
  np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-12)


def test_bert_google_jumps_down_where_its_warm_up_ends():
  steps = [0, 1, 9_999, 10_000, 10_001, 500_000, 999_999, 1_000_000, 2_000_000]
  want = [0, 1e-8, 9.999e-5, 9.9e-5, 9.89999e-5, 5e-5, 1e-10, 0, 0]
  check(rates(steps, 1_000_000, presets.bert_google), want)


def test_lamb_follows_nvidia_phase_1():
  steps = [0, 2_000, 2_001, 3_519, 7_038]
  want = [
    0,
    6e-3 * 2_000 / 2_001,
    6e-3 * np.sqrt(1 - 2_001 / 7_038),
    6e-3 * np.sqrt(0.5),
    0,
  ]
  check(rates(steps, 7_038, presets.lamb), want)


STEPS = [0, 1, 19, 20, 40, 60, 100, 140]  # Of 100, 20 of them warm-up.
SCHEDULES = [
  ({"schedule": "linear"}, [0, 0.05, 0.95, 1, 0.75, 0.5, 0, 0]),
  (
    {"schedule": "linear", "end_factor": 0.2},
    [0, 0.05, 0.95, 1, 0.8, 0.6, 0.2, 0.2],
  ),
  (
    {"schedule": "linear", "decay_from_zero": True},
    [0, 0.05, 0.95, 0.8, 0.6, 0.4, 0, 0],
  ),
  (  # cos(pi/4) = 0.70710678.
    {"schedule": "cosine"},
    [0, 0.05, 0.95, 1, 0.85355339, 0.5, 0, 0],
  ),
  (
    {"schedule": "cosine", "end_factor": 0.1},
    [0, 0.05, 0.95, 1, 0.1 + 0.9 * 0.85355339, 0.55, 0.1, 0.1],
  ),
  (
    {"schedule": "polynomial", "power": 2.0},
    [0, 0.05, 0.95, 1, 0.5625, 0.25, 0, 0],
  ),
  (
    {"schedule": "constant"},
    [0, 0.05, 0.95, 1, 1, 1, 1, 1],
  ),
  (  # The last 50 steps decay: half way down at 75.
    {"schedule": "wsd", "decay_share": 0.5},
    [0, 0.05, 0.95, 1, 1, 0.8, 0, 0],
  ),
  (
    {"schedule": "wsd", "decay_share": 0.5, "end_factor": 0.5},
    [0, 0.05, 0.95, 1, 1, 0.9, 0.5, 0.5],
  ),
  (  # At 60, a fifth of the decay: 1 - sqrt(.2).
    {"schedule": "wsd_sqrt", "decay_share": 0.5},
    [0, 0.05, 0.95, 1, 1, 1 - 0.2**0.5, 0, 0],
  ),
  (
    {
      "schedule": "linear",
      "decay_from_zero": True,
      "warmup_times_decay": True,
    },
    [0, 0.05 * 0.99, 0.95 * 0.81, 0.8, 0.6, 0.4, 0, 0],
  ),
  (  # Nothing has decayed before the warm-up's end.
    {"schedule": "linear", "warmup_times_decay": True},
    [0, 0.05, 0.95, 1, 0.75, 0.5, 0, 0],
  ),
]


@pytest.mark.parametrize(("values", "want"), SCHEDULES)
def test_schedules_by_hand(values, want):
  values = values | {"warmup_steps": 20, "learning_rate": 0.5}
  check(rates(STEPS, 100, **values), 0.5 * np.array(want))
  schedule = optim.make_schedule(option(presets.adamw, **values), 100)
  traced = jax.jit(jax.vmap(schedule))(jnp.array(STEPS))
  check(traced, 0.5 * np.array(want))


def test_no_warm_up_starts_at_the_peak():
  got = rates([0, 1, 10], 10, warmup_steps=0, learning_rate=0.5)
  check(got, [0.5, 0.45, 0])


def test_warm_up_may_take_the_whole_run():
  got = rates([0, 5, 9, 10, 11], 10, warmup_steps=10, learning_rate=0.5)
  check(got, [0, 0.25, 0.45, 0, 0])


def test_wsd_may_decay_from_the_end_of_the_warm_up():
  values = {"schedule": "wsd", "decay_share": 0.75, "warmup_steps": 2}
  got = rates([1, 2, 5, 8], 8, learning_rate=0.5, **values)
  check(got, [0.25, 0.5, 0.25, 0])


def test_wsd_decays_over_the_nearest_number_of_steps():
  values = {"schedule": "wsd", "decay_share": 0.29, "warmup_steps": 0}
  got = rates([6, 7, 8, 9, 10], 10, learning_rate=0.3, **values)
  check(got, [0.3, 0.3, 0.2, 0.1, 0])  # Of 2.9 steps 3.


# Errors.


@pytest.mark.parametrize(
  ("values", "message"),
  [
    ({"rule": "lam"}, r"rule='lam' is unknown; did you mean \"lamb\"\?"),
    ({"schedule": "cosin"}, r"did you mean \"cosine\"\?; known: linear, "),
    ({"learning_rate": -1e-4}, "optimizer.learning_rate=-0.0001 "),
    (
      {"learning_rate": 1e4},
      "optimizer.learning_rate=10000.0 ",
    ),
    ({"learning_rate": float("nan")}, "optimizer.learning_rate=nan "),
    ({"warmup_steps": -1}, "optimizer.warmup_steps=-1 "),
    ({"b1": 1.0}, "optimizer.b1=1.0 "),
    ({"b2": -0.1}, "optimizer.b2=-0.1 "),
    ({"eps": 0.0}, "optimizer.eps=0.0 "),
    ({"weight_decay": -0.01}, "optimizer.weight_decay=-0.01 "),
    ({"clip_norm": -1.0}, "optimizer.clip_norm=-1.0 "),
    ({"end_factor": 1.5}, "optimizer.end_factor=1.5 "),
    ({"power": 0.0}, "optimizer.power=0.0 "),
    ({"decay_share": 0.0}, "optimizer.decay_share=0.0 "),
    (
      {"rule": "stable_adam", "bias_correction": False},
      "stable_adam.*set --config.optimizer.bias_correction=True",
    ),
    (
      {"schedule": "wsd_sqrt", "decay_share": 0.5, "warmup_steps": 1_001},
      "overlap",
    ),
    (
      {"warmup_steps": 2_001},
      "warmup_steps=2001 is more than train.num_steps=2000.*"
      "--config.optimizer.warmup_steps=200 or train longer",
    ),
    (
      {"schedule": "wsd", "decay_share": 0.5, "warmup_steps": 1_001},
      "overlap; set --config.optimizer.warmup_steps=1000 or less",
    ),
  ],
)
def test_values_that_cannot_be_meant(values, message):
  with pytest.raises(ConfigError, match=message):
    optim.make_optimizer(option(presets.adamw, **values), 2_000, structs())


def test_a_run_has_at_least_one_step():
  with pytest.raises(ConfigError, match="num_steps=0 must be at least 1"):
    optim.make_optimizer(plain(), 0, toy([1.0]))
