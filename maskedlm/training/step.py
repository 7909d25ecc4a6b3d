"""One update and one evaluation, as pure functions of (state, batch).

loop.py calls them, compiled over the mesh (over_mesh); planning/compile.py
compiles them for chips that are not present. The randomness of a step is
derived from (seed, step) and never stored.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from maskedlm.core.task import OBSERVED, Batch, Key, Metrics, Params, Task
from maskedlm.modeling.arrays import Float, Int
from maskedlm.runtime import xla_flags
from maskedlm.training import (
  gradient_cache,
  language_metrics,
  layerwise_rates,
  optimizer,
  sharding,
  spikes,
  watching,
)
from maskedlm.training.microbatches import join_batch, split_batch

# Independent streams of randomness from one seed.
INIT, TRAIN, HELDOUT = range(3)


class TrainState(NamedTuple):
  """The state of a run, apart from its config and corpus."""

  step: Int[jax.Array, ""]  # Number of steps done.
  params: Params
  opt_state: optax.OptState
  nonfinite: Int[jax.Array, ""]  # Steps that were not, in a row until now.
  losses: spikes.Losses  # Of the last steps.
  # The moving average of params (Polyak averaging); () if there is none. It
  # changes nothing in training: the loop evaluates it beside the weights.
  ema: Any = ()
  carried: Any = ()  # Arrays of Task.carried.
  fixed: Any = ()  # Those of Task.fixed.


class Direction(NamedTuple):
  """The gradient and the optimizer's update of a batch, not applied yet."""

  batch: Batch  # Corrupted.
  gradient: Params
  loss: Float[jax.Array, ""]
  stats: Metrics
  update: Params  # Without the learning rate.
  opt_state: optax.OptState


class OverMesh(NamedTuple):
  """The state of a run as shapes, and the jitted functions of the loop."""

  state: TrainState  # A ShapeDtypeStruct with its sharding for each array.
  init: Callable[[], TrainState]  # Without Task.fixed.
  step: Any  # A jitted (TrainState, Batch) -> (TrainState, Metrics).
  heldout_step: Callable[[Params, Batch, int], tuple]
  watch: Callable[[TrainState, Batch], Metrics]  # For train.watch_every.


def make_init(
  task: Task,
  tx: optax.GradientTransformation,
  seed: int,
  *,
  ema_decay: float = 0.0,
) -> Callable[[], TrainState]:
  """Returns init(), which returns the state before the first step."""

  def init() -> TrainState:
    params = task.init(jax.random.fold_in(jax.random.key(seed), INIT))
    return TrainState(
      step=jnp.zeros((), jnp.int32),
      params=params,
      opt_state=tx.init(params),
      nonfinite=jnp.zeros((), jnp.int32),
      losses=spikes.init(),
      # A copy: the state is donated, and may not have an array twice.
      ema=jax.tree.map(jnp.copy, params) if ema_decay else (),
      carried=task.carried.init(),
    )

  return init


def make_direction(
  task: Task,
  tx: optax.GradientTransformation,
  *,
  seed: int,
  accumulate: int,
  unfreeze: Callable[[jax.Array, Params], Params] = lambda step, update: update,
  gather: Callable[[Params], Params] = lambda params: params,
) -> Callable[[TrainState, Batch], Direction]:
  """Returns direct(state, batch) -> Direction.

  Args:
    task: the Task to train.
    tx: update direction without the learning rate (optimizer.py).
    seed: the seed of masks and dropout.
    accumulate: number of microbatches; without dropout, the update does not
      depend on it.
    unfreeze: (step, update) -> the part of the update that is applied.
    gather: gathers parameters over devices for use (sharding.gather).
  """

  def direct(state: TrainState, batch: Batch) -> Direction:
    mask_key, dropout_key = _train_keys(seed, state.step)
    with jax.named_scope("masking"):
      batch = task.corrupt_with(state.carried, batch, mask_key)
    whole = task.reading(gather(dict(state.fixed)))
    gradient, loss, stats = gradient_of(
      whole, gather(state.params), batch, dropout_key, accumulate
    )
    gradient = gather(gradient)  # Then each device takes its share of the sum.
    with jax.named_scope("optimizer"):
      update, opt_state = tx.update(gradient, state.opt_state, state.params)
      update = unfreeze(state.step, update)
    return Direction(batch, gradient, loss, stats, update, opt_state)

  return direct


def make_step(
  task: Task,
  direct: Callable[[TrainState, Batch], Direction],
  schedule: Callable[[jax.Array], jax.Array],
  *,
  ema_decay: float = 0.0,
  spike_sigma: float = 0.0,
) -> Callable[[TrainState, Batch], tuple[TrainState, Metrics]]:
  """Returns step(state, batch) -> (state, metrics), one update.

  Args:
    task: `carried` is read.
    direct: the result of make_direction.
    schedule: step -> learning rate.
    ema_decay: the decay of the moving average; 0 for none.
    spike_sigma: see spikes.add.

  A step whose loss or gradient norm is not finite, or whose loss is a spike,
  changes no parameter and no moment; one that is not finite counts only in
  `skipped` and `tokens`. The update itself is not checked: it is finite if the
  gradient's squares are and eps > 0, and a check would keep a second state in
  memory until the last update is known.
  """

  def step(state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
    batch, gradient, loss, measured, update, opt_state = direct(state, batch)
    stats = dict(measured)
    observed = stats.pop(OBSERVED, None)
    with jax.named_scope("optimizer"):
      rate = schedule(state.step)
      norm = optax.tree.norm(gradient)
      finite = jnp.isfinite(loss + norm)
      is_loss = finite & (stats["loss"][1] > 0)
      losses = spikes.add(state.losses, loss, is_loss, sigma=spike_sigma)
      applies = finite & (losses.spiked == 0)

      def if_applied(new, old):
        return jax.tree.map(lambda n, o: jnp.where(applies, n, o), new, old)

      params = jax.tree.map(lambda p, u: p - rate * u, state.params, update)
      average: Any = ()
      if ema_decay:
        average = _averaged(ema_decay, state.step, state.ema, params)
      carried = task.carried.update(state.carried, observed, state.step + 1)
      state = TrainState(
        step=state.step + 1,
        params=if_applied(params, state.params),
        ema=if_applied(average, state.ema),
        carried=if_applied(carried, state.carried),
        fixed=state.fixed,
        opt_state=if_applied(opt_state, state.opt_state),
        nonfinite=jnp.where(finite, 0, state.nonfinite + 1),
        losses=losses,
      )
    stats = {
      **stats,
      "gradient_norm": (norm, 1.0),
      "learning_rate": (rate, 1.0),
    }
    return state, _step_metrics(stats, batch["segment_ids"], finite, losses)

  return step


def _averaged(decay: float, step, average: Params, params: Params) -> Params:
  """Returns the exponential moving average of the weights after a step.

  At step t, from 0, with d = min(decay, (1 + t) / (10 + t)), it becomes
  d * average + (1 - d) * params. The smaller decay of the first steps, as in
  TensorFlow's ExponentialMovingAverage, forgets the initial weights.
  """
  t = step.astype(jnp.float32)
  share = 1 - jnp.minimum(decay, (1 + t) / (10 + t))
  return jax.tree.map(lambda a, p: a + share * (p - a), average, params)


def _step_metrics(stats: Metrics, segment_ids, finite, losses) -> Metrics:
  """Returns the metrics of a step; only `tokens` counts if it isn't finite."""
  real = jnp.sum(segment_ids > 0, dtype=jnp.float32)
  stats = {**stats, "real_share": (real, float(segment_ids.size))}
  stats = jax.tree.map(lambda x: jnp.where(finite, x, 0.0), stats)
  applies = finite & (losses.spiked == 0)
  return {
    **stats,
    "skipped": (1.0 - applies, 1.0),
    "spikes": (losses.spiked.astype(jnp.float32), 1.0),
    "tokens": (real, 1.0),
  }


def over_mesh(
  config,
  task: Task,
  mesh: jax.sharding.Mesh,
  *,
  rates: tuple[int, int] | None = None,
) -> OverMesh:
  """Returns the update and evaluation of a config, jitted over a mesh.

  Args:
    config: `optimizer`, `train` and `seed` are read.
    task: the Task to train.
    mesh: the device mesh.
    rates: first step, and number of steps, of the schedule of the learning
      rate; None for the whole run.

  Raises:
    ConfigError: as optimizer.make_optimizer and sharding.spec_of.
  """
  first_rate, num_rates = rates or (0, config.train.num_steps)
  task, accumulate = gradient_cache.divide(task, config.train.accumulate)
  params = jax.eval_shape(lambda: task.init(jax.random.key(0)))
  tx, schedule = optimizer.make_optimizer(
    config.optimizer, num_rates, params, task.networks
  )
  tx = optimizer.follow(tx, task.follows)
  ema_decay = config.train.ema_decay
  init = make_init(task, tx, config.seed, ema_decay=ema_decay)
  state = jax.eval_shape(init)._replace(fixed=task.fixed.shapes)
  state = sharding.abstract(state, mesh)
  shardings = jax.tree.map(lambda x: x.sharding, state)
  init = jax.jit(init, out_shardings=shardings._replace(fixed=()))
  trained, unfreeze = layerwise_rates.by_layer(config, task, params)
  direct = make_direction(
    trained,
    tx,
    seed=config.seed,
    accumulate=accumulate,
    unfreeze=unfreeze,
    gather=lambda params: sharding.gather(params, mesh),
  )

  def rate_at(step):
    return schedule(step - first_rate)

  step = make_step(
    task,
    direct,
    rate_at,
    ema_decay=ema_decay,
    spike_sigma=config.train.spike_sigma,
  )
  watch = watching.make_watch(
    task,
    direct,
    rate_at,
    split=lambda batch: split_batch(batch, accumulate),
  )
  compiled = functools.partial(
    jax.jit,
    in_shardings=(shardings, sharding.rows(mesh)),
    compiler_options=xla_flags.step_options(mesh.devices.flat[0].device_kind),
  )
  whole = sharding.replicated(mesh)
  step = compiled(step, out_shardings=(shardings, whole), donate_argnums=0)
  heldout_step = make_heldout_step(
    task, seed=config.seed, accumulate=accumulate
  )
  heldout_step = jax.jit(heldout_step, out_shardings=whole)
  watch = compiled(watch, out_shardings=whole)
  return OverMesh(state, init, step, heldout_step, watch)


def gradient_of(
  task: Task, params: Params, batch: Batch, key: Key, count: int
) -> tuple[Params, Float[jax.Array, ""], Metrics]:
  """Returns (gradient, loss, metrics) of a batch, by `count` microbatches.

  The loss is a metric, too, of weight 0 if no term has a weight: then nothing
  is predicted, and the loss is 0 without a meaning.

  The result is exact for any count: each loss term is divided by its weight
  over the whole batch (such as its number of masked tokens), never by a
  microbatch's.
  """

  def loss(params, batch, key, weights=None):
    terms, stats = map(totals, task.loss(params, batch, key, True))
    term_weights = {name: weight for name, (_, weight) in terms.items()}
    weights = weights or jax.lax.stop_gradient(term_weights)
    total = sum(
      jnp.where(weights[name] > 0, value / jnp.maximum(weights[name], 1e-6), 0)
      for name, (value, _) in terms.items()
    )
    return total, (stats, weights)

  def with_loss(total, stats, weights):
    predicts = jnp.float32(sum(weights.values()) > 0)
    return {**stats, "loss": (total, predicts)}

  gradient = jax.value_and_grad(loss, has_aux=True)
  if count == 1:
    (total, aux), grads = gradient(params, batch, key)
    return grads, total, with_loss(total, *aux)

  # Only the weights are used, so the compiler removes this forward pass.
  terms, stats = map(totals, task.loss(params, batch, key, True))
  weights = {name: weight for name, (_, weight) in terms.items()}

  def add_microbatch(carry, xs):
    index, microbatch = xs
    (total, (stats, _)), grads = gradient(
      params, microbatch, jax.random.fold_in(key, index), weights
    )
    return jax.tree.map(jnp.add, carry, (total, stats, grads)), None

  zeros = jax.tree.map(jnp.zeros_like, (jnp.float32(0), stats, params))
  (total, stats, grads), _ = jax.lax.scan(
    add_microbatch, zeros, (jnp.arange(count), split_batch(batch, count))
  )
  return grads, total, with_loss(total, stats, weights)


def make_heldout_step(
  task: Task, *, seed: int, accumulate: int
) -> Callable[[Params, Batch, jax.Array], tuple]:
  """Returns heldout_step(params, batch, index) -> (terms, metrics, outputs).

  There is no dropout. The outputs are those of Task.outputs, {} if it is None;
  metrics by language are added for Task.languages (language_metrics.py). Masks
  depend only on the seed and the batch's index, so every evaluation of a run
  masks the same tokens. Microbatches are processed one by one as in training,
  so a model that fits in memory there fits here.
  """

  def heldout_step(
    params: Params, batch: Batch, index: Int[jax.Array, ""] | int
  ) -> tuple:
    key = jax.random.fold_in(jax.random.key(seed), HELDOUT)
    mask_key = jax.random.fold_in(key, index)
    corrupted = [corrupt(batch, mask_key) for corrupt, _ in task.measured]

    def measure(microbatches):
      terms, stats = {}, {}
      for (_, loss), rows in zip(task.measured, microbatches, strict=True):
        new_terms, new_stats = loss(params, rows, key, False)
        terms, stats = {**terms, **new_terms}, {**stats, **new_stats}
      first = microbatches[0]
      if task.languages:
        ids = first["language_ids"]
        stats = language_metrics.measure_by_language(task.languages, stats, ids)
      outputs = task.outputs(params, first) if task.outputs else {}
      return totals(terms), totals(stats), outputs

    terms, stats, outputs = jax.lax.map(
      measure, [split_batch(rows, accumulate) for rows in corrupted]
    )
    return totals(terms), totals(stats), join_batch(outputs)

  return heldout_step


def totals(pairs: Any) -> Any:
  """Sums metrics over rows: (sum, weight) become scalars, but for OBSERVED."""

  def total(path, x):
    return x if jax.tree_util.DictKey(OBSERVED) in path else jnp.sum(x)

  return jax.tree_util.tree_map_with_path(total, pairs)


def _train_keys(seed: int, step: Int[jax.Array, ""]) -> tuple[Key, Key]:
  """Returns (corruption key, dropout key) of a training step."""
  key = jax.random.fold_in(jax.random.key(seed), TRAIN)
  return tuple(jax.random.split(jax.random.fold_in(key, step)))
