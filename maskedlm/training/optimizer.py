"""The optimizer: update rules, decay by parameter path, rate schedules.

It reads a `config.optimizer` section, never the name of a preset
(config/presets.py; sources in docs/reference/presets.md). step.py applies
p <- p - schedule(step) * update, so the rate is not part of the optimizer's
state: a skipped step doesn't delay it, and the rate that is logged is the rate
that was used.

A parameter's path is its keys joined by "/", as in
encoder/layers/attention/qkv/kernel; rules are regexes on paths.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import optax

from maskedlm.core import options, own_file
from maskedlm.core.errors import ConfigError
from maskedlm.training import layerwise_rates, muon
from maskedlm.training.optimizer_options import RULES, OptimizerOptions
from maskedlm.training.sharding import by_path, path_of

Schedule = Callable[[Any], jax.Array]  # step -> learning rate, f32 scalar.

# An array can hold several matrices: regex -> the axis that numbers them.
# Layers are scanned, [N, ...]; qkv is [N, D, 3, H, K] with a bias [N, 3, H, K]
# (group_key_value has 2 and G for 3 and H), gate_up is [N, D, 2, F], and an
# LSTM's kernels are [N, 2, ...].
_LAYERS = (r"(^|/)layers/", 0)
_STACKED = (
  _LAYERS,
  (r"(^|/)(qkv|group_key_value)/", -3),
  (r"(^|/)gate_up/", -2),
  (r"/lstm/.*kernel$", -3),
)


def make_optimizer(
  optimizer: Any,
  num_steps: int,
  params: Any,
  networks: Sequence[Sequence[str]] = (),
) -> tuple[optax.GradientTransformation, Schedule]:
  """Returns the update direction and the schedule for a `config.optimizer`.

  With g clipped to a global norm of clip_norm, and its moments m and v:
    adam: update = m / (sqrt(v) + eps) + weight_decay * p
    bert_adam: the same, with moments that are not corrected for starting at 0
    lamb: update = |p| / |that update| * that update, for each matrix
    stable_adam: update = that update / max(1, rms(g / max(sqrt(v), eps))), rms
      over each array of a layer (StableAdamW, arXiv:2304.13013, algorithm 2)
    muon: update = orthogonalized m + weight_decay * p, for each matrix of the
      layers (muon.py)
  Parameters that match no_decay have neither decay nor LAMB's ratio.

  Args:
    optimizer: config.optimizer, with the fields of OptimizerOptions.
    num_steps: steps of the whole run, warm-up included.
    params: the parameters, or their ShapeDtypeStructs.
    networks: subtrees whose gradients are clipped apart (Task.networks).

  Returns:
    A transformation without the learning rate, whose state is a count and two
    moments of each parameter (one for Muon's matrices); and the schedule (see
    `make_schedule`).

  Raises:
    ConfigError: a value is unknown or out of range, the phases don't fit in
      num_steps, a no_decay regex matches no parameter, or there are fewer
      layers than frozen_layers.
  """
  o = optimizer
  options.check_options("optimizer", OptimizerOptions, o)
  schedule = make_schedule(o, num_steps)
  decays = decayed(params, o.no_decay)
  mask = jax.tree.map_with_path(lambda path, _: decays[path_of(path)], params)
  clip = _clip_by_global_norm(o.clip_norm, networks)
  adam = optax.scale_by_adam(o.b1, o.b2, o.eps)
  raw_adam = _scale_by_raw_adam(o.b1, o.b2, o.eps)
  decay = optax.add_decayed_weights(o.weight_decay, mask)
  # Always four transformations, and scale_by_layer adds none, so the moments
  # have the same place for all values of the options that a resumed run may
  # change (all but rule).
  rule_file = own_file.load(
    "optimizer.rule", o.rule, list(RULES), has=["make_rule"]
  )
  update = optax.chain(
    clip if o.clip_norm else optax.identity(),
    *(rule_file.make_rule(o, params), decay, optax.identity())
    if rule_file
    else {
      "adam": (adam, decay, optax.identity()),
      "bert_adam": (raw_adam, decay, optax.identity()),
      "lamb": (adam, decay, optax.masked(scale_by_trust_ratio(), mask)),
      "muon": (muon.scale_by_muon(adam, o.b1, params), decay, optax.identity()),
      "stable_adam": (
        _clip_updates(adam, decay, b2=o.b2, eps=o.eps),
        optax.identity(),
        optax.identity(),
      ),
    }[o.rule],
  )
  if o.layer_decay != 1.0 or o.frozen_layers:
    by_layer = layerwise_rates.layer_multipliers(
      params, layer_decay=o.layer_decay, frozen_layers=o.frozen_layers
    )
    update = layerwise_rates.scale_by_layer(update, by_layer)
  return update, schedule


def decayed(params: Any, no_decay: Sequence[str]) -> dict[str, bool]:
  """Returns {path: whether the parameter decays}, False if a regex matches.

  Raises:
    ConfigError: a regex is invalid, or matches no parameter: with a misspelt
      "layernorm", all norms would decay unnoticed. Those of the default may
      match none: there are models without biases, or without norms.
  """
  if isinstance(no_decay, str):  # Each character would be a regex.
    raise ConfigError(
      f"optimizer.no_decay={no_decay!r} must be a tuple of regexes; write "
      f"({no_decay!r},)."
    )
  paths = list(by_path(params))
  for regex in no_decay:
    try:
      matched = any(re.search(regex, path) for path in paths)
    except (re.error, TypeError) as error:  # TypeError for a number.
      raise ConfigError(
        f"optimizer.no_decay: {regex!r} is not a regular expression: {error}."
      ) from None
    if not matched and regex not in OptimizerOptions.no_decay:
      raise ConfigError(
        f"optimizer.no_decay: {regex!r} matches no parameter; correct it or "
        f"leave it out. Paths look like {paths[0]!r}."
      )
  return {
    path: not any(re.search(regex, path) for regex in no_decay)
    for path in paths
  }


def scale_by_trust_ratio() -> optax.GradientTransformation:
  """Multiplies each matrix's update by |p| / |update|, or by 1 if either is 0.

  LAMB, algorithm 2 of arXiv:1904.00962 with phi(z) = z. A norm is taken of each
  matrix, such as one layer's query; optax.scale_by_trust_ratio would take the
  norm of the whole array, which stacks the matrices of all layers.
  """

  def scale(path, update, param):
    axes = _norm_axes(path_of(path), update.ndim)
    p_norm = jnp.sqrt(jnp.sum(jnp.square(param), axes, keepdims=True))
    u_norm = jnp.sqrt(jnp.sum(jnp.square(update), axes, keepdims=True))
    trusted = (p_norm > 0) & (u_norm > 0)
    return update * jnp.where(trusted, p_norm / u_norm, 1.0)

  return optax.stateless(
    lambda updates, params: jax.tree.map_with_path(scale, updates, params)
  )


def make_schedule(optimizer: Any, num_steps: int) -> Schedule:
  """Returns step -> rate: linear warm-up, then decay to end_factor * peak.

  While step < w, the number of `warmup_steps`, the rate is peak *
  (start_factor + (1 - start_factor) * step / w), as in optax and
  google-research/bert: step 0 has rate 0 by default, and step w is the first at
  the peak. From there on, with T = num_steps and the remaining r = (T - step) /
  (T - w), rate = peak * (end_factor + (1 - end_factor) * shape), where shape is

    linear      r
    cosine      (1 + cos(pi * (1 - r))) / 2
    constant    1 (end_factor has no effect)
    wsd         min(1, (T - step) / (decay_share * T)): linear, at the end
    wsd_sqrt    1 - sqrt(1 - wsd's shape) (ModernBERT)
    bert        (T - step) / T: where the warm-up ends, the rate drops from the
                peak to peak * (1 - w / T)
    electra     bert's, by which the warm-up is multiplied too, without a drop
    lamb        sqrt((T - step) / T) (NVIDIA's LAMB)

  From step T on, r is 0.

  The slanted triangular rates of ULM-FiT (arXiv:1801.06146, equation 3) are
  linear, with w = cut_frac * T and start_factor = end_factor = 1 / ratio.

  The schedule accepts numbers and traced steps, returns a float32 scalar, and
  is exact to float32 below 2**24 steps.

  Raises:
    ConfigError: the phases don't fit in num_steps.

  >>> rate = make_schedule(OptimizerOptions(warmup_steps=0.2), 10)
  >>> [f"{rate(step):.1e}" for step in (0, 1, 2, 6, 10)]
  ['0.0e+00', '5.0e-05', '1.0e-04', '5.0e-05', '0.0e+00']
  """
  o = optimizer
  peak, warmup = o.learning_rate, warmup_steps(o, num_steps)
  start, end = o.start_factor, o.end_factor
  _check_phases(o, num_steps)
  from_zero = o.schedule in ("bert", "electra", "lamb")
  span = num_steps if from_zero else max(num_steps - warmup, 1)
  decay_steps = _decay_steps(o, num_steps)
  shape = {  # Functions of the number of steps left, at most span.
    "linear": lambda left: left / span,
    "bert": lambda left: left / span,
    "electra": lambda left: left / span,
    "lamb": lambda left: (left / span) ** 0.5,
    "cosine": lambda left: (1 - jnp.cos(math.pi * left / span)) / 2,
    "constant": jnp.ones_like,
    "wsd": lambda left: jnp.minimum(left / decay_steps, 1.0),
    "wsd_sqrt": lambda left: (
      1 - jnp.sqrt(1 - jnp.minimum(left / decay_steps, 1.0))
    ),
  }[o.schedule]

  def schedule(step):
    step = jnp.asarray(step, jnp.float32)
    decay = end + (1 - end) * shape(jnp.clip(num_steps - step, 0, span))
    warm = start + (1 - start) * step / max(warmup, 1)
    warm = warm * (decay if o.schedule == "electra" else 1)
    return peak * jnp.where(step < warmup, warm, decay)

  return schedule


def warmup_steps(optimizer: Any, num_steps: int) -> int:
  """Returns the steps of the warm-up of a schedule of num_steps steps."""
  steps = optimizer.warmup_steps
  return round(steps * num_steps if steps < 1 else steps)


def follow(
  tx: optax.GradientTransformation, follows: Mapping[str, str]
) -> optax.GradientTransformation:
  """Returns tx for parameters that are the sum of another and a trained delta.

  That is how DeBERTa-v3's networks share an embedding (arXiv:2111.09543,
  section 3.2), E_D = sg(E_G) + delta, but for where the sum is kept: tx sees
  delta, and E_D moves with it and with E_G. `follows` is Task.follows.
  """

  def add(tree, sign):
    leaves = by_path(tree)
    sums = {p: leaves[p] + sign * leaves[base] for p, base in follows.items()}
    return jax.tree.map_with_path(
      lambda path, x: sums.get(path_of(path), x), tree
    )

  def update(grads, state, params):
    updates, state = tx.update(grads, state, add(params, -1))
    return add(updates, 1), state

  return optax.GradientTransformation(tx.init, update) if follows else tx


def _clip_by_global_norm(
  max_norm: float, networks: Sequence[Sequence[str]]
) -> optax.GradientTransformation:
  """Clips as tf.clip_by_global_norm: g * max_norm / max(|g|, max_norm).

  With networks, the gradient of each is clipped by its own norm.

  optax's function selects between two trees, which XLA:CPU does not fuse: with
  it, an update compiled alone took 2.3 times as long and copied the gradients.
  """

  def clip(grads):
    scale = max_norm / jnp.maximum(optax.tree.norm(grads), max_norm)
    return jax.tree.map(lambda g: g * scale, grads)

  def clip_each(grads):
    parts = [clip({name: grads[name] for name in names}) for names in networks]
    return {name: x for part in parts for name, x in part.items()}

  return optax.stateless(lambda g, _: clip_each(g) if networks else clip(g))


def _scale_by_raw_adam(b1, b2, eps) -> optax.GradientTransformation:
  """Scales as optax.scale_by_adam, but without bias correction."""

  def update(grads, state, params=None):
    del params
    mu = optax.tree.update_moment(grads, state.mu, b1, 1)
    nu = optax.tree.update_moment_per_elem_norm(grads, state.nu, b2, 2)
    updates = jax.tree.map(lambda m, v: m / (jnp.sqrt(v) + eps), mu, nu)
    count = optax.safe_increment(state.count)
    return updates, optax.ScaleByAdamState(count, mu, nu)

  return optax.GradientTransformation(optax.scale_by_adam().init, update)


def _clip_updates(adam, decay, *, b2, eps) -> optax.GradientTransformation:
  """Reduces updates where the gradient exceeds its moment (StableAdamW).

  As in optimi, which ModernBERT used, there is one factor for each array of a
  layer, which applies to the decay too. The state is Adam's.
  """

  def update(grads, state, params):
    updates, state = adam.update(grads, state, params)
    updates, _ = decay.update(updates, decay.init(params), params)
    corrected = 1 - b2 ** state.count.astype(jnp.float32)

    def shrink(path, update, grad, nu):
      axes = _norm_axes(path_of(path), update.ndim, stacked=(_LAYERS,))
      share = grad / jnp.maximum(jnp.sqrt(nu / corrected), eps)
      rms = jnp.sqrt(jnp.mean(jnp.square(share), axes, keepdims=True))
      return update / jnp.maximum(rms, 1.0)

    shrunk = jax.tree.map_with_path(shrink, updates, grads, state.nu)
    return shrunk, state

  return optax.GradientTransformation(adam.init, update)


def _norm_axes(path: str, ndim: int, stacked=_STACKED) -> tuple[int, ...]:
  """Returns the axes of a single matrix in an array that stacks several."""
  stacked = {axis % ndim for regex, axis in stacked if re.search(regex, path)}
  return tuple(axis for axis in range(ndim) if axis not in stacked)


def _decay_steps(optimizer, num_steps: int) -> int:
  return max(round(optimizer.decay_share * num_steps), 1)


def _check_phases(o, num_steps: int) -> None:
  """Raises ConfigError unless warm-up and decay fit in num_steps."""
  if num_steps < 1:
    raise ConfigError(f"train.num_steps={num_steps} must be at least 1.")
  warmup = warmup_steps(o, num_steps)
  if warmup > num_steps:
    raise ConfigError(
      f"optimizer.warmup_steps={warmup} is more than the "
      f"{num_steps} steps of the schedule (train.num_steps, or those of its "
      "phases): the peak would not be reached; set "
      f"--config.optimizer.warmup_steps={num_steps // 10} or train longer."
    )
  decay_steps = _decay_steps(o, num_steps)
  if o.schedule.startswith("wsd") and warmup + decay_steps > num_steps:
    raise ConfigError(
      f"optimizer.warmup_steps={warmup} and the last decay_share="
      f"{o.decay_share} of the schedule's {num_steps} steps overlap; "
      f"set --config.optimizer.warmup_steps={num_steps - decay_steps} or less."
    )
