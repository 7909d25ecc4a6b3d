"""Sends a run's metrics to W&B, MLflow or trackio as well (train.tracker).

TRACKERS has a function for each, which opens a Tracker; its library is imported
only then. Where it stores a run is up to the library and its own environment
variables, such as WANDB_MODE=offline or MLFLOW_TRACKING_URI. WORKDIR/tracker.
json has the tracker's id of the run, with which a resumed run continues it.
"""

import atexit
import contextlib
import contextvars
import importlib
import importlib.util
import os
import pathlib
import queue
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from maskedlm.core.errors import ConfigError
from maskedlm.runtime import console, output_files

PROJECT = "maskedlm"  # The project or experiment, unless a variable names one.
CLOSING = 60  # Seconds that the end of a run waits for its tracker.
_PARAMS = 100  # In a request to MLflow, at most.


class Tracker(NamedTuple):
  """A run in a tracker. Its functions are called by one thread, in order."""

  run: str  # The tracker's id of the run.
  write: Callable[[int, Mapping[str, float]], None]  # (step, values)
  close: Callable[[], None]


Config = Mapping[str, Any]  # The effective config, as config.json has it.


def open_run(library: str, *, key: str, **arguments: Any) -> Tracker:
  """Opens a run in Weights & Biases, or in a library of its interface.

  Args:
    key: the attribute that is the run's id there.
    **arguments: of the library's init.
  """
  quiet = contextlib.redirect_stdout(sys.stderr)  # stdout is for results.
  with quiet:
    # In a context of its own, trackio doesn't finish the run, and print, once
    # more at exit.
    init = importlib.import_module(library).init
    run = contextvars.copy_context().run(init, resume="allow", **arguments)

  def close() -> None:
    with quiet:  # The run waits meanwhile, and prints nothing itself.
      run.finish()

  def write(step: int, values: Mapping[str, float]) -> None:
    run.log(dict(values), step=step)

  return Tracker(getattr(run, key), write, close)


def open_wandb(config: Config, run: str) -> Tracker:
  """Opens a run in Weights & Biases; WANDB_PROJECT names the project."""
  return open_run(
    "wandb",
    key="id",
    project=os.environ.get("WANDB_PROJECT", PROJECT),
    name=config["name"],
    id=run or secrets.token_hex(8),
    config=dict(config),
    settings={"console": "off"},  # Output is the run's own.
  )


def open_trackio(config: Config, run: str) -> Tracker:
  """Opens a run in trackio, in the project PROJECT."""
  return open_run(
    "trackio",
    key="name",
    project=PROJECT,
    name=run or f"{config['name']}-{secrets.token_hex(4)}",
    config=dict(config),
    embed=False,
  )


def open_mlflow(config: Config, run: str) -> Tracker:
  """Opens a run in MLflow; MLFLOW_EXPERIMENT_NAME names the experiment."""
  import mlflow
  from mlflow.entities import Metric, Param

  client = mlflow.MlflowClient()
  if run:
    client.update_run(run, status="RUNNING")
  else:
    experiment = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
    known = client.get_experiment_by_name(experiment)
    experiment_id = (
      known.experiment_id if known else client.create_experiment(experiment)
    )
    run = client.create_run(experiment_id, run_name=config["name"]).info.run_id
    params = [
      Param(f"{section}.{name}" if section else name, str(value))
      for section, values in _sections(config)
      for name, value in values.items()
    ]
    for i in range(0, len(params), _PARAMS):
      client.log_batch(run, params=params[i : i + _PARAMS])

  def write(step: int, values: Mapping[str, float]) -> None:
    now = int(time.time() * 1000)
    metrics = [Metric(name, x, now, step) for name, x in values.items()]
    client.log_batch(run, metrics=metrics)

  return Tracker(run, write, lambda: client.set_terminated(run))


# Name, of the library and of the extra too -> (config, id of the run, or "" for
# a new one) -> the open run.
TRACKERS: Mapping[str, Callable[[Config, str], Tracker]] = {
  "mlflow": open_mlflow,
  "trackio": open_trackio,
  "wandb": open_wandb,
}


def check_installed(name: str) -> None:
  """Raises ConfigError if a tracker's library is missing; "" needs none."""
  if name and importlib.util.find_spec(name) is None:
    raise ConfigError(
      f"train.tracker={name!r} needs {name}: pip install 'maskedlm[{name}]'."
    )


def open_tracker(
  workdir: pathlib.Path, config: Config, *, resumed: bool
) -> Tracker | None:
  """Opens the tracker of train.tracker, which a thread of its own writes to.

  If it fails later, or on opening a run that is resumed, there is one warning,
  and training goes on without it.

  Args:
    workdir: has tracker.json, or receives it.
    resumed: whether the run was started before.

  Returns:
    The tracker, whose functions raise nothing; None for train.tracker="".

  Raises:
    ConfigError: the library is missing; or a new run can't be opened.
  """
  name = config["train"]["tracker"]
  if not name:
    return None
  check_installed(name)
  path = workdir / "tracker.json"
  runs = output_files.read_object(path)
  try:
    tracker = TRACKERS[name](config, runs.get(name, ""))
  except Exception as error:  # Of any library, such as no account.
    if not resumed:
      raise ConfigError(
        f"train.tracker={name!r} can't be opened: {_reason(error)}; correct "
        "that, or leave it out."
      ) from error
    _warn(name, error)
    return None
  output_files.write_json(path, {**runs, name: tracker.run})
  return _in_background(name, tracker)


def _in_background(name: str, tracker: Tracker) -> Tracker:
  """Returns the tracker with functions that neither wait nor raise.

  A server that does not answer would otherwise hold up every step that is
  logged: MLflow, for one, tries for minutes.
  """
  waiting: queue.SimpleQueue = queue.SimpleQueue()

  def work() -> None:
    try:
      while (item := waiting.get()) is not None:
        tracker.write(*item)
      tracker.close()
    except Exception as error:
      _warn(name, error)

  thread = threading.Thread(target=work, name="tracker", daemon=True)
  thread.start()

  def write(step: int, values: Mapping[str, float]) -> None:
    if thread.is_alive():
      waiting.put((step, dict(values)))

  def close() -> None:
    atexit.unregister(close)
    waiting.put(None)
    thread.join(CLOSING)
    if thread.is_alive():
      _warn(name, TimeoutError(f"it was not done in {CLOSING} seconds"))

  atexit.register(close)  # For a run that ends with an error.
  return Tracker(tracker.run, write, close)


def _warn(name: str, error: Exception) -> None:
  console.warn(
    f"train.tracker={name!r} failed and gets no more numbers; training goes "
    f"on, and metrics.jsonl has them all: {_reason(error)}"
  )


def _reason(error: Exception) -> str:
  """Returns the first line of an error's message, with its type."""
  message = str(error).strip().partition("\n")[0]
  return f"{type(error).__name__}: {message}"


def _sections(config: Config):
  """Yields (name, options) of each section; "" is the top level."""
  yield "", {n: x for n, x in config.items() if not isinstance(x, Mapping)}
  yield from ((n, x) for n, x in config.items() if isinstance(x, Mapping))
