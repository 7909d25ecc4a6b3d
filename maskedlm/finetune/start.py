"""Does a run of fine-tuning, or a sweep: `maskedlm finetune` and Python."""

import os
from typing import Any

from ml_collections import ConfigDict

from maskedlm.config import overrides
from maskedlm.core.errors import ConfigError
from maskedlm.finetune.config import validate
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
  return run_or_sweep(config, workdir)


def run_or_sweep(
  config: ConfigDict, workdir: str | os.PathLike
) -> dict[str, Any]:
  """Does what `finetune` does, with a validated config."""
  with startup.connected(profile=config.profile):
    return _run_or_sweep(config, workdir)


def _run_or_sweep(
  config: ConfigDict, workdir: str | os.PathLike
) -> dict[str, Any]:
  from maskedlm.finetune import run, sweep
  from maskedlm.runtime import multihost

  startup.enable_compile_cache()
  with multihost.workdir(workdir) as folder:
    if any(config.sweep[name] for name in config.sweep):
      multihost.check_alone("a sweep")
      return sweep.sweep(config, folder)
    result = run.finetune(config, folder)
  if not multihost.is_primary():
    return {}
  print(f"{config.name}, best checkpoint on the development set:")
  run.log_result(result, print)
  print(f"  these figures        {buckets.origin(workdir) / 'result.json'}")
  return result
