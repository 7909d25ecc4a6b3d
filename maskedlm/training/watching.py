"""Measures a step from inside: norms by layer, attention, rare tokens.

With train.watch_every, `observe` makes every so many steps of the loop measured
by a program of its own (make_watch), before the step. The step's own program is
the same, and so are its numbers. Metrics are named watch/WHAT/WHERE, such as
watch/gradient_norm/layer_3.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.core.task import Batch, Metrics, Params, Task
from maskedlm.modeling import architecture, masked_lm
from maskedlm.training.sharding import by_path

# What a batch may predict: (labels, their weights, the metric of Task.loss that
# is the share of right ones).
PREDICTIONS = (
  ("masked_labels", "masked_weights", "mlm_accuracy"),
  ("next_labels", "next_weights", "lm_accuracy"),
)


def observe(
  updates: Sequence[Callable], programs: Sequence[Any], every: int, step: int
) -> list[Callable]:
  """Returns the updates with metrics of the watched steps among theirs.

  A metric has weight 0 in the other steps, so that metrics can be added.

  Args:
    updates: of each phase, (state, batch) -> (state, metrics).
    programs: of each phase, with `watch`, the jitted result of make_watch.
    every: steps between watched ones; 0 to return the updates unchanged.
  """
  if not every:
    return list(updates)
  zero = None

  def observed(update, watch):
    def run(state, batch):
      nonlocal step, zero
      step += 1
      names = jax.eval_shape(watch, state, batch)
      # First, as the update may overwrite the state.
      values = watch(state, batch) if step % every == 0 else None
      state, stats = update(state, batch)
      if zero is None:
        zero = stats["tokens"][0] * 0
      return state, {**stats, **(values or dict.fromkeys(names, (zero, zero)))}

    return run

  return [
    observed(update, program.watch)
    for update, program in zip(updates, programs, strict=True)
  ]


def make_watch(
  task: Task,
  direct: Callable,
  schedule: Callable[[jax.Array], jax.Array],
  *,
  split: Callable[[Batch], Any],
) -> Callable[[Any, Batch], Metrics]:
  """Returns watch(state, batch) -> metrics, of the step that is next.

  With the Task's token_counts there are accuracies by frequency. `direct` makes
  a step.Direction of (state, batch), `split` the microbatches of a batch.
  """

  def watch(state, batch: Batch) -> Metrics:
    direction = direct(state, batch)
    rate = schedule(state.step)
    stats = {
      **norms("gradient_norm", direction.gradient),
      **norms("parameter_norm", state.params),
      **norms(
        "update_norm", jax.tree.map(lambda x: rate * x, direction.update)
      ),
    }

    def measure(microbatch):
      return {
        **attention_entropy(task, state.params, microbatch),
        **accuracy_by_frequency(task, state.params, microbatch),
      }

    sums = jax.lax.map(measure, split(direction.batch))
    stats |= jax.tree.map(lambda x: x.sum(axis=0), sums)
    return {f"watch/{name}": _if_finite(*pair) for name, pair in stats.items()}

  return watch


def norms(what: str, tree: Params) -> Metrics:
  """Returns {WHAT/PLACE: (norm, 1)}, the L2 norms by layer and by module.

  Args:
    tree: like the parameters. Arrays under "layers/" are of all layers,
      [N, ...].
  """
  squares: dict[str, Any] = {}
  for path, x in by_path(tree).items():
    above, layers, _ = path.partition("/layers/")
    if layers:
      by_layer = jnp.sum(jnp.square(x), axis=tuple(range(1, x.ndim)))
      above = "" if above == "encoder" else f"{above}/"
      places = {f"{above}layer_{n + 1}": s for n, s in enumerate(by_layer)}
    else:
      module = above.removeprefix("encoder/").partition("/")[0]
      places = {module: jnp.sum(jnp.square(x))}
    for place, square in places.items():
      squares[place] = squares.get(place, 0) + square
  return {f"{what}/{p}": (jnp.sqrt(x), 1.0) for p, x in squares.items()}


def attention_entropy(task: Task, params: Params, batch: Batch) -> Metrics:
  """Returns {attention_entropy/layer_N: (sum, weight)}, nats, without dropout.

  It is the mean over heads and over positions that aren't padding; {} if the
  Task has no encoder with attention, by the architecture that it describes.
  """
  if "encoder" not in task.describe or "encoder" not in params:
    return {}
  cfg = architecture.restored(task.describe["encoder"])
  if cfg.family != "transformer" or not cfg.num_layers:
    return {}
  entropies = masked_lm.attention_entropy(cfg, params, batch)
  real = masked_lm.encoder_inputs(batch)["segment_ids"] > 0
  count = jnp.sum(real, dtype=jnp.float32)
  return {
    f"attention_entropy/layer_{n + 1}": (jnp.sum(jnp.where(real, x, 0)), count)
    for n, x in enumerate(entropies)
  }


def accuracy_by_frequency(task: Task, params: Params, batch: Batch) -> Metrics:
  """Returns {accuracy/rank_A-B: (sum, weight)} of a corrupted batch.

  {} unless the batch has one of PREDICTIONS, and the Task token_counts. The
  loss is computed once for each band of ranks, with weights of 0 elsewhere: so
  no objective needs to know of bands.
  """
  if task.token_counts is None:
    return {}
  names, band = frequency_bands(task.token_counts)
  accuracies: dict[str, tuple[Any, Any]] = {}
  for labels, weights, metric in PREDICTIONS:
    if labels not in batch:
      continue

    def measure(index, labels=labels, weights=weights, metric=metric):
      inside = jnp.asarray(band)[batch[labels]] == index
      selected = {**batch, weights: batch[weights] * inside}
      # Without dropout, the key is not used.
      _, metrics = task.loss(params, selected, jax.random.key(0), False)
      return jax.tree.map(jnp.sum, metrics.get(metric, (0.0, 0.0)))

    total, weight = jax.lax.map(measure, jnp.arange(len(names)))
    accuracies |= {
      f"accuracy/{name}": (total[i], weight[i]) for i, name in enumerate(names)
    }
  return accuracies


def frequency_bands(counts) -> tuple[list[str], np.ndarray]:
  """Returns names of bands and the band of each token, [V] int32.

  Tokens are ranked by their counts [V], from 1; of equal ones, the one with the
  smaller id is first. Bands are ranks 1-10, 11-100, 101-1000, and so on.
  """
  ranks = np.empty(len(counts), np.int64)
  ranks[np.argsort(-np.asarray(counts), kind="stable")] = np.arange(len(counts))
  tops = [10]
  while tops[-1] < len(counts):
    tops.append(tops[-1] * 10)
  starts = [1, *(top + 1 for top in tops)]
  names = [f"rank_{a}-{b}" for a, b in zip(starts, tops, strict=False)]
  return names, np.searchsorted(tops, ranks + 1).astype(np.int32)


def _if_finite(total, weight):
  """Returns the pair in float32, or (0, 0) if the total is not finite."""
  finite = jnp.isfinite(total)
  return tuple(jnp.where(finite, jnp.float32(x), 0.0) for x in (total, weight))
