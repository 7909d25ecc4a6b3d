"""Evaluates parameters on the held-out set."""

from collections.abc import Callable

import jax

from maskedlm.core.errors import ConfigError
from maskedlm.core.task import Params, Task
from maskedlm.training import metrics, sharding

RUN_AHEAD = 2  # Batches whose results may be on the device.


def evaluate(
  task: Task, heldout_step: Callable, params: Params, mesh, stopped
) -> dict[str, float]:
  """Returns {metric: value} on the held-out set; {} if stopped or no set."""
  results = []
  for i in range(task.num_heldout_batches):
    batch = sharding.place(task.batch_at("heldout", i), mesh)
    results.append(heldout_step(params, batch, i))
    if i >= RUN_AHEAD:  # Outputs must not accumulate on the device.
      results[i - RUN_AHEAD] = jax.device_get(results[i - RUN_AHEAD])
    if stopped() and not task.best:
      return {}  # An evaluation that selects the best is short: finish it.
  if not results:
    return {}
  *pairs, outputs = zip(*jax.device_get(results), strict=True)
  terms, stats = (metrics.means(metrics.sums(each)) for each in pairs)
  loss = {"loss": sum(terms.values())} if terms else {}
  values = {**loss, **stats}
  values |= dict(task.score(list(outputs)) if task.score else {})
  own = task.evaluate(params) if task.evaluate else {}
  if twice := values.keys() & own.keys():
    raise ConfigError(
      f"Task.evaluate returns {', '.join(sorted(twice))}, which the held-out "
      "rows have measured: choose another name."
    )
  return values | {name: float(value) for name, value in own.items()}
