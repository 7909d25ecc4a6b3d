"""The optimizer, and LAMB, against numbers worked by hand and against optax."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from helpers.toy_optimizers import (
  DECAYED,
  N,
  draw,
  flat,
  nest,
  option,
  plain,
  shapes,
  structs,
  toy,
)
from maskedlm.config import presets
from maskedlm.core.errors import ConfigError
from maskedlm.training import optimizer as optim
from maskedlm.training import optimizer_options


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
def test_gradients_are_clipped_by_their_norm(clip, gradient, kept):
  params = toy([0.0, 0.0])
  tx, _ = optim.make_optimizer(plain(clip_norm=clip), 10, params)
  _, state = tx.update(toy(gradient), tx.init(params), params)
  want = 0.1 * np.array(kept)
  np.testing.assert_allclose(state[1].mu["kernel"], want, rtol=1e-6)


def test_a_parameter_without_gradient_only_decays():
  # As rows that pad the vocabulary: 0 / (0 + eps), not NaN.
  params = toy([2.0])
  for preset in (presets.adamw, presets.bert_google):
    tx, _ = optim.make_optimizer(plain(preset), 10, params)
    update, _ = tx.update(toy([0.0]), tx.init(params), params)
    np.testing.assert_allclose(update["kernel"], [0.02], rtol=1e-6)


@pytest.mark.parametrize("rule", optimizer_options.RULES)
@pytest.mark.parametrize("first", [0.0, 1e18])
@pytest.mark.parametrize("eps", [1e-8, 1e-30])  # Whose square is 0 in float32.
def test_a_finite_gradient_never_gives_an_infinite_update(rule, first, eps):
  """The step relies on this, as it doesn't check the update."""
  params = toy([[0.0, 1e-30, 3.0]])
  tx, _ = optim.make_optimizer(
    plain(rule=rule, eps=eps, clip_norm=0.0), 10, params
  )
  state = tx.init(params)
  for size in (first, 0.0, 1e18, 1e-30):  # Each divides by earlier moments.
    update, state = tx.update(toy([[size, 0.0, -size]]), state, params)
    for leaf in jax.tree.leaves((update, state)):
      assert np.isfinite(leaf).all()


@pytest.mark.parametrize("preset", [presets.adamw, presets.bert_google])
def test_exactly_kernels_and_embeddings_decay(preset):
  decayed = optim.decayed(structs(), preset().no_decay)
  assert set(decayed) == set(shapes())
  assert {path for path, decays in decayed.items() if decays} == DECAYED


@pytest.mark.parametrize(
  ("no_decay", "message"),
  [
    (("norm/", "layernorm"), "'layernorm' matches no parameter"),
    (("bias", "("), r"'\(' is not a regular expression"),
    (("bias", 1), "1 is not a regular expression"),
    ("bias", "must be a tuple"),
  ],
)
def test_wrong_no_decay_is_refused(no_decay, message):
  with pytest.raises(ConfigError, match=message):
    optim.decayed(structs(), no_decay)


@pytest.mark.parametrize(
  ("values", "message"),
  [
    (
      {"rule": "lam"},
      r"rule='lam' is unknown \(did you mean \"lamb\"\?\); known",
    ),
    ({"schedule": "cosin"}, r"did you mean \"cosine\"\?\); known: linear, "),
    ({"learning_rate": -1e-4}, "optimizer.learning_rate=-0.0001 "),
    ({"learning_rate": 1e4}, "optimizer.learning_rate=10000.0 "),
    ({"learning_rate": float("nan")}, "optimizer.learning_rate=nan "),
    ({"warmup_steps": -1}, "optimizer.warmup_steps=-1.0 "),
    ({"b1": 1.0}, "optimizer.b1=1.0 "),
    ({"eps": 0.0}, "optimizer.eps=0.0 "),
    ({"end_factor": 1.5}, "optimizer.end_factor=1.5 "),
    ({"decay_share": 0.0}, "optimizer.decay_share=0.0 "),
    (
      {"schedule": "wsd_sqrt", "decay_share": 0.5, "warmup_steps": 1_001},
      "overlap",
    ),
    (
      {"warmup_steps": 2_001},
      "warmup_steps=2001 is more than the 2000 steps.*"
      "--config.optimizer.warmup_steps=200 or train longer",
    ),
    (
      {"schedule": "wsd", "decay_share": 0.5, "warmup_steps": 1_001},
      "overlap; set --config.optimizer.warmup_steps=1000 or less",
    ),
  ],
)
def test_wrong_values_are_named(values, message):
  with pytest.raises(ConfigError, match=message):
    optim.make_optimizer(option(presets.adamw, **values), 2_000, structs())


def test_a_run_of_no_steps_is_refused():
  with pytest.raises(ConfigError, match="num_steps=0 must be at least 1"):
    optim.make_optimizer(plain(), 0, toy([1.0]))


def unstacked(path, leaf):
  """Returns the matrices that an array holds, as LAMB was published for."""
  layers = list(leaf) if "layers/" in path else [leaf]
  if "qkv/kernel" in path:
    return [layer[:, i] for layer in layers for i in range(3)]
  if "qkv/bias" in path:
    return [layer[i] for layer in layers for i in range(3)]
  return layers


def test_lamb_by_hand_on_unstacked_matrices():
  params, grads = draw(3), draw(4)
  # Layer 1's values are zero, so their ratio is 1.
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


def test_trust_ratio_equals_optax_s_if_an_array_is_one_matrix():
  params, grads = draw(5)["pooler"], draw(6)["pooler"]
  ours, theirs = optim.scale_by_trust_ratio(), optax.scale_by_trust_ratio()
  a, _ = ours.update(grads, ours.init(params), params)
  b, _ = theirs.update(grads, theirs.init(params), params)
  jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, 1e-5), a, b)
