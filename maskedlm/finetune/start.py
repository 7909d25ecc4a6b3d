"""Does a run of fine-tuning, or a sweep: `maskedlm finetune` and Python."""

import os
from collections.abc import Sequence
from typing import Any

from ml_collections import ConfigDict

from maskedlm.config import overrides, resumed
from maskedlm.core.errors import ConfigError
from maskedlm.finetune.config import default, typed, validate
from maskedlm.finetune.options import FinetuneConfig, SweepOptions
from maskedlm.runtime import buckets, startup


def finetune(
  config: ConfigDict | str, workdir: str | os.PathLike
) -> dict[str, Any]:
  """Fine-tunes in a workdir; called again, it continues there.

  Args:
    config: of maskedlm.finetune.config.default(task), or a config file such as
      "configs/glue.py:sst2". Not one with config.suite.
    workdir: the folder of the run, or gs://...

  Returns:
    The content of result.json; of sweep.json for a sweep. {} on hosts other
    than the first.

  Raises:
    ConfigError, DataError, CheckpointError: an option, the data or a checkpoint
      can't be used.
    StoppedError: Ctrl-C; the step is saved, and the same call continues.
  """
  if isinstance(config, str):
    config = overrides.load_config(config, validate=validate)
  if config.suite:
    raise ConfigError(
      f"suite={tuple(config.suite)}: a suite is several runs; give one of them."
    )
  validate(config)
  return run_or_sweep(typed(config), workdir)


def run_or_sweep(
  config: FinetuneConfig, workdir: str | os.PathLike
) -> dict[str, Any]:
  """Does what `finetune` does, with a validated config."""
  with startup.connected(profile=config.profile):
    # After the hosts are connected, as these import jax.
    from maskedlm.finetune import results, run, sweep
    from maskedlm.runtime import multihost

    startup.enable_compile_cache()
    with multihost.workdir(workdir) as folder:
      if any(vars(config.sweep).values()):
        multihost.check_alone("a sweep")
        return sweep.sweep(config, folder)
      result = run.finetune(config, folder)
    if not multihost.is_primary():
      return {}
    print(f"{config.name}, best checkpoint on the development set:")
    results.log_result(result, print)
    print(f"  these figures        {buckets.origin(workdir) / 'result.json'}")
    return result


def continued_config(
  workdir: str | os.PathLike, changes: Sequence[str]
) -> ConfigDict:
  """Returns the config of the run in a workdir, changed by the command line.

  Args:
    workdir: the workdir of a single run, also of one in a sweep or a suite.
    changes: arguments such as "--config.train.epochs=4".

  Raises:
    ConfigError: there is no run of fine-tuning, or a change is wrong or asks
      for several runs.
    StorageError: the address can't be read now.
  """
  config = resumed.load_config(
    workdir,
    kind="fine-tuning",
    default=lambda values: default(values["task"]["kind"]),
  )
  config.sweep.update(vars(SweepOptions()))  # It is one of the sweep's runs.
  for name in overrides.given_options(changes):
    if name.startswith(("suite", "sweep.")):
      raise ConfigError(
        f"--config.{name} asks for several runs, but --workdir={workdir} is "
        "that of one: leave it out, or give --config=FILE and another "
        "--workdir."
      )
  return overrides.change(config, changes, validate, of=str(workdir))
