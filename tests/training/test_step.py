"""An update: by hand, in microbatches, and if it is not finite."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from helpers import toy
from maskedlm.core.task import OBSERVED, Carried
from maskedlm.training import metrics
from maskedlm.training import step as steps


def build(
  task,
  tx=None,
  *,
  accumulate=1,
  rate=lambda s: 0.1,
  seed=3,
  unfreeze=lambda step, update: update,
  **more,
):
  tx = tx or optax.identity()
  state = steps.make_init(task, tx, seed)()
  direct = steps.make_direction(
    task, tx, seed=seed, accumulate=accumulate, unfreeze=unfreeze
  )
  return state, jax.jit(steps.make_step(task, direct, rate, **more))


def kernel(state):
  return np.asarray(state.params["dense"]["kernel"])[:, 0]


def test_an_update_is_the_rate_times_the_gradient_of_summed_means():
  noise = np.linspace(-1, 2, toy.ROWS)
  task = toy.make_task()._replace(
    corrupt=lambda batch, key: {**batch, "noise": noise}
  )
  state, step = build(task, rate=lambda s: 0.1 + s)
  w = kernel(state)
  batch = task.batch_at("train", 0)
  x, y, a = batch["x"], batch["y"], batch["weights"]
  residual = x @ w - y
  # d/dw of sum(a r^2)/sum(a) + mean(r^2/2 + 0.01 noise x.w).
  gradient = 2 * (a * residual) @ x / a.sum()
  gradient += (residual + 0.01 * noise) @ x / toy.ROWS
  state, stats = step(state, batch)
  np.testing.assert_allclose(kernel(state), w - 0.1 * gradient, rtol=1e-5)
  values = metrics.means(stats)
  assert int(state.step) == 1
  assert values["learning_rate"] == pytest.approx(0.1)
  assert values["gradient_norm"] == pytest.approx(np.linalg.norm(gradient))
  assert values["error"] == pytest.approx(np.mean(residual**2))
  assert values["tokens"] == 18  # 12 rows, of one or two tokens in turn.
  assert values["real_share"] == 18 / 24
  assert values["skipped"] == 0


@pytest.mark.parametrize("parts", [3, 12])
def test_accumulation_gives_the_update_of_the_whole_batch(parts):
  task = toy.make_task()
  state, whole = build(task, optax.scale_by_adam())
  _, split = build(task, optax.scale_by_adam(), accumulate=parts)
  batch = task.batch_at("train", 1)
  weights = batch["weights"].reshape(-1, parts).sum(0)
  assert len(set(weights)) > 1  # Uneven counts.
  expected, expected_stats = whole(state, batch)
  got, stats = split(state, batch)
  np.testing.assert_allclose(kernel(got), kernel(expected), rtol=1e-5)
  a, b = metrics.means(expected_stats), metrics.means(stats)
  assert a.keys() == b.keys()
  for name in a:
    assert a[name] == pytest.approx(b[name], rel=1e-5), name


def test_a_nonfinite_step_changes_nothing_and_is_counted():
  task = toy.make_task(bad_steps=(1, 2))
  state, step = build(task, optax.scale_by_adam())
  seen = []
  for s in range(4):
    before = jax.device_get((state.params, state.opt_state))
    state, stats = step(state, task.batch_at("train", s))
    values = metrics.means(stats)
    after = jax.device_get((state.params, state.opt_state))
    same = jax.tree.all(jax.tree.map(np.array_equal, before, after))
    seen.append((same, int(state.nonfinite), values["skipped"]))
    assert ("loss" in values) == (not same)
    assert all(np.isfinite(v) for v in values.values())
    assert values["tokens"] == 18  # These were read.
  assert seen == [(False, 0, 0), (True, 1, 1), (True, 2, 1), (False, 0, 0)]
  assert int(state.step) == 4


def test_unfreezing_follows_the_step():
  """Of the step's number, not of how many updates there were before."""

  def unfreeze(step, update):
    return jax.tree.map(lambda u: jnp.where(step >= 2, u, 0), update)

  task = toy.make_task(bad_steps=(0,))
  tx = optax.scale_by_adam()
  state, step = build(task, tx, unfreeze=unfreeze)
  _, plain = build(task, tx)
  start = kernel(state)
  for s in range(3):
    before = state
    state, _ = step(state, task.batch_at("train", s))
    if s < 2:
      np.testing.assert_array_equal(kernel(state), start)
  # The moments have followed all gradients.
  expected, _ = plain(before, task.batch_at("train", 2))
  jax.tree.map(np.testing.assert_array_equal, state, expected)
  assert (kernel(state) != start).all()


def test_a_term_of_weight_0_counts_nothing():
  def loss(params, batch, key, train):
    kernel = params["dense"]["kernel"]
    none = (0 * kernel[1, 0], jnp.zeros(()))
    return {"a": (3 * kernel[0, 0], jnp.full((), 2.0)), "none": none}, {}

  task, key = toy.make_task()._replace(loss=loss), jax.random.key(5)
  params, batch = task.init(key), task.batch_at("train", 0)
  gradient, total, stats = steps.gradient_of(task, params, batch, key, 1)
  np.testing.assert_allclose(total, 1.5 * params["dense"]["kernel"][0, 0])
  assert gradient["dense"]["kernel"].tolist() == [[1.5], [0], [0]]
  assert stats["loss"] == (total, 1)


@pytest.mark.parametrize("accumulate", [1, 3])
def test_a_loss_without_predictions_is_not_a_number_to_average(accumulate):
  """Steps 0 and 2 predict nothing: the mean of three steps is that of one."""

  def loss(params, batch, key, train):
    weight = jnp.where(batch["weights"] > 0, 1.0, 0.0)
    return {"a": (weight * params["dense"]["kernel"][0, 0] ** 2, weight)}, {}

  task = toy.make_task()._replace(loss=loss)
  state, step = build(task, accumulate=accumulate)
  expected = float(kernel(state)[0] ** 2)
  batch, none, totals = task.batch_at("train", 0), {}, []
  none = {**batch, "weights": np.zeros_like(batch["weights"])}
  for each in (none, batch, none):
    state, stats = step(state, each)
    totals.append(stats)
  assert "loss" not in metrics.means(totals[0])
  mean = metrics.means(metrics.sums(totals))
  assert mean["loss"] == pytest.approx(expected)
  assert mean["learning_rate"] == pytest.approx(np.mean([0.1] * 3))


def test_parameters_depend_on_the_seed():
  one, same, other = (build(toy.make_task(), seed=s)[0] for s in (3, 3, 4))
  np.testing.assert_array_equal(kernel(one), kernel(same))
  assert not np.array_equal(kernel(one), kernel(other))


def test_each_microbatch_has_its_own_key():
  def loss(params, batch, key, train):
    made = {"a": (params["dense"]["kernel"][0, 0], jnp.ones(()))}
    return made, {"drawn": (jax.random.uniform(key), jnp.ones(()))}

  task, key = toy.make_task()._replace(loss=loss), jax.random.key(5)
  params, batch = task.init(key), task.batch_at("train", 0)
  *_, stats = steps.gradient_of(task, params, batch, key, 3)
  drawn = [jax.random.uniform(jax.random.fold_in(key, i)) for i in range(3)]
  np.testing.assert_allclose(stats["drawn"], (sum(drawn), 3), rtol=1e-6)


@pytest.mark.parametrize(
  ("slope", "offset", "skipped"),
  [(1e18, 0, 0), (1e20, 0, 1), (1, np.inf, 1)],
)
def test_an_infinite_loss_or_square_of_the_gradient_is_skipped(
  slope, offset, skipped
):
  """A finite gradient may leave an infinite moment forever."""

  def loss(params, batch, key, train):
    del batch, key, train
    total = offset + slope * params["dense"]["kernel"][0, 0]
    return {"a": (total, jnp.ones(()))}, {}

  task = toy.make_task()._replace(loss=loss)
  state, step = build(task, optax.scale_by_adam())
  before = kernel(state)
  state, _ = step(state, task.batch_at("train", 0))
  assert int(state.nonfinite) == skipped
  assert (before[0] != kernel(state)[0]) == (not skipped)
  assert all(np.isfinite(x).all() for x in jax.tree.leaves(state))


def test_the_check_for_finite_steps_holds_no_second_state():
  task = toy.make_task()
  size = 257 * 403

  def init(key):
    return {
      name: {"kernel": jax.random.normal(key, (257, 403))} for name in "ab"
    }

  def loss(params, batch, key, train):
    del key, train
    made = jnp.sum(batch["x"][:, :1] * params["a"]["kernel"][:12, :1])
    made += sum(jnp.sum(p["kernel"] ** 2) for p in params.values())
    return {"a": (made, jnp.ones(()))}, {}

  task = task._replace(init=init, loss=loss)
  tx = optax.scale_by_adam()
  init, step = steps.make_init(task, tx, 3), build(task, tx)[1]
  step = jax.jit(step, donate_argnums=0)
  memory = step.lower(jax.eval_shape(init), task.batch_at("train", 0))
  memory = memory.compile().memory_analysis()
  state = 4 * 3 * 2 * size
  assert state <= memory.alias_size_in_bytes < state + 1000  # In place.
  gradient = 4 * 2 * size
  # In addition to the gradient, XLA:CPU holds the update; by the schedule of
  # conftest.py, another half of it (2.0006 without). A state has three.
  assert memory.temp_size_in_bytes < 2.51 * gradient


def test_heldout_masks_do_not_depend_on_training():
  task = toy.make_task()
  step = jax.jit(steps.make_heldout_step(task, seed=3, accumulate=1))
  state, train_step = build(task)
  batch = task.batch_at("heldout", 1)
  first = step(state.params, batch, 1)
  params = jax.tree.map(jnp.copy, state.params)
  train_step(state, task.batch_at("train", 0))
  second = step(params, batch, 1)
  other = step(params, batch, 0)
  assert first[0]["b"][0] == second[0]["b"][0]
  assert first[0]["b"][0] != other[0]["b"][0]


def test_heldout_batches_can_be_corrupted_differently():
  def of_one(batch, key):
    return {**batch, "noise": jnp.ones(toy.ROWS)}

  task = toy.make_task()
  params, batch = task.init(jax.random.key(2)), task.batch_at("heldout", 1)
  task = task._replace(heldout=((of_one, task.loss),))
  step = jax.jit(steps.make_heldout_step(task, seed=3, accumulate=1))
  terms, _, _ = step(params, batch, 1)
  out = batch["x"] @ params["dense"]["kernel"][:, 0]
  expected = 0.5 * (out - batch["y"]) ** 2 + 0.01 * out
  np.testing.assert_allclose(terms["b"][0], expected.sum(), rtol=1e-6)


def test_heldout_microbatches_change_nothing():
  def outputs(params, batch):
    return {"x": batch["x"] @ params["dense"]["kernel"]}

  task = toy.make_task()._replace(outputs=outputs)
  params, batch = task.init(jax.random.key(2)), task.batch_at("heldout", 1)
  whole, parts = (
    jax.jit(steps.make_heldout_step(task, seed=3, accumulate=n))(
      params, batch, 1
    )
    for n in (1, 4)
  )
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), whole, parts
  )
  expected = batch["x"] @ params["dense"]["kernel"]  # In the order of rows.
  np.testing.assert_allclose(parts[2]["x"], expected, rtol=1e-6)


def test_means_over_uneven_sets_are_exact():
  pairs = [{"m": (6.0, 3.0)}, {"m": (1.0, 1.0)}, {"m": (0.0, 0.0)}]
  assert metrics.means(metrics.sums(pairs)) == {"m": 7 / 4}
  assert metrics.means({"none": (0.0, 0.0)}) == {}


@pytest.mark.parametrize("parts", [1, 3])
def test_steps_carry_state(parts):
  """It is the sum of what was read; a step that is not applied adds nothing."""
  plain = toy.make_task(bad_steps=[1])

  def corrupt(carried, batch, key):
    return {**plain.corrupt(batch, key), "before": jnp.full(toy.ROWS, carried)}

  def loss(params, batch, key, train):
    terms, metrics = plain.loss(params, batch, key, train)
    return terms, {**metrics, OBSERVED: batch["x"].sum() + batch["before"][0]}

  task = plain._replace(
    loss=loss,
    carried=Carried(
      init=lambda: jnp.float32(2),
      corrupt=corrupt,
      update=lambda carried, observed, step: carried + step * observed,
    ),
  )
  state, step = build(task, accumulate=parts)
  expected = 2.0
  for i in range(4):
    batch = task.batch_at("train", i)
    state, stats = step(state, batch)
    assert OBSERVED not in stats
    if i != 1:  # Each microbatch adds what was carried before.
      expected += (i + 1) * (batch["x"].sum() + parts * expected)
    assert float(state.carried) == pytest.approx(expected)
