"""The state that a run begins with: its own checkpoint's, another's or fresh.

config.continue_from takes parameters, moments and the step of another run, and
goes on with other options: a decay branches off a stable run, a finished run
reads other text. config.init_from takes parameters alone (pretraining/initial/
init_from.py), and steps count from 0.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError
from maskedlm.core.task import Params
from maskedlm.runtime import console
from maskedlm.training import sharding, spikes
from maskedlm.training.checkpoints import manager, resume
from maskedlm.training.step import OverMesh, TrainState


class Start(NamedTuple):
  """What a run begins with."""

  state: TrainState
  step: int
  meta: dict[str, Any] | None  # Of the run's own checkpoint, if there is one.


def begin(
  program: OverMesh,
  checkpoints: manager.Checkpoints,
  *,
  identity: Mapping[str, Any],
  frozen: Collection[str],
  start_from: Callable[[Params], Params],
  num_steps: int,
  unverified: bool,
  continue_from: str,
) -> Start:
  """Returns the state of the newest checkpoint, or one to start with.

  It lacks Task.fixed.

  Args:
    program: its `init` and `state` are used.
    checkpoints: those of the run's workdir.
    identity, frozen, start_from: as in loop.run.
    unverified: config.train.resume_unverified.
    continue_from: as in loop.run.

  Raises:
    ConfigError: the config changed in a way that would corrupt the run, or
      continue_from has done all steps or has another tokenizer.
    CheckpointError: no checkpoint can be read, or its arrays are others.
  """
  like = program.state._replace(fixed=())  # No checkpoint has it.
  restored = checkpoints.restore(
    like,
    lambda meta: resume.check_identity(
      meta["identity"], identity, frozen=frozen, log=console.log
    ),
    unverified=unverified,
  )
  if restored is not None:
    state, meta = restored
    step = int(state.step)
    console.log(
      f"continuing from the checkpoint of step {step:,} of {num_steps:,}"
    )
    return Start(state, step, meta)
  if continue_from:
    state, _ = manager.restore_from(
      continue_from,
      like,
      lambda meta: resume.check_continued(
        continue_from, meta["identity"], identity, log=console.log
      ),
      log=console.log,
    )
    step = int(state.step)
    if step >= num_steps:
      raise ConfigError(
        f"continue_from={continue_from} has done {counted(step, 'step')}, and "
        f"train.num_steps={num_steps} counts these too: raise it."
      )
    console.log(
      f"continuing {continue_from} from step {step:,} to {num_steps:,}"
    )
    state = state._replace(losses=spikes.forget(state.losses))
    return Start(state, step, None)
  state = program.init()
  params = sharding.put_on_devices(start_from(state.params), state.params)
  if state.ema:  # A copy: a donated state may not have an array twice.
    state = state._replace(ema=jax.tree.map(jnp.copy, params))
  console.log(f"starting a run of {counted(num_steps, 'step')}")
  return Start(state._replace(params=params), 0, None)
