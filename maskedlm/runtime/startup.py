"""What a process sets up before it computes: its caches, the other hosts.

Who the hosts of a run are is read from the environment, in this order:

  JAX_COORDINATOR_ADDRESS (host:port of host 0), JAX_NUM_PROCESSES and
  JAX_PROCESS_ID; the variables of TPUs on GKE; those of Slurm; the metadata
  server of a Cloud TPU VM.

What they do together is in hosts.py.
"""

import atexit
import collections
import contextlib
import importlib.metadata
import os
import platform
import re
import sys
import time
import urllib.request
from collections.abc import Mapping
from typing import Any

from maskedlm.core.errors import ConfigError
from maskedlm.runtime import output_files, xla_flags

PATIENCE = 300  # Seconds in which all hosts must have been started.
HEARTBEAT = 30  # Seconds of silence after which a host is taken for dead.
MAX_SKEW = 10.0  # Seconds that clocks may differ by, unremarked.
PACKAGES = ("maskedlm", "jax", "jaxlib", "flax", "numpy", "orbax-checkpoint")


class LostHostError(RuntimeError):
  """Another host has ended, or can't be reached."""

  exit_code = 69  # EX_UNAVAILABLE


def enable_compile_cache() -> None:
  """Keeps compiled programs in the user's cache directory.

  JAX_COMPILATION_CACHE_DIR, where it is set, says where instead; with
  JAX_ENABLE_COMPILATION_CACHE=false there is none
  (docs/results/performance.md).
  """
  import jax

  if not os.environ.get("JAX_COMPILATION_CACHE_DIR"):
    path = output_files.cache_dir("jax")
    jax.config.update("jax_compilation_cache_dir", str(path))


# Who the hosts are.


def find_hosts(environ: Mapping[str, str]) -> dict[str, Any] | None:
  """What jax.distributed.initialize needs to be told; None = one host.

  Empty where JAX finds the hosts itself, as it does on TPUs and with Slurm,
  which may be told the address alone.

  Raises:
    ConfigError: variables that are incomplete, or not numbers.
  """
  address = environ.get("JAX_COORDINATOR_ADDRESS")
  names = ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID")
  given = [name for name in names if name in environ]
  if not given and _jax_finds_hosts(environ):
    return {}
  if given or address:
    try:
      count, index = (int(environ[name]) for name in names)
      valid = 0 <= index < count and (count == 1 or ":" in address)
    except (KeyError, ValueError, TypeError):
      valid = False
    if not valid:
      found = ", ".join(
        f"{name}={environ.get(name, '(not set)')}"
        for name in ("JAX_COORDINATOR_ADDRESS", *names)
      )
      raise ConfigError(
        f"{found}: expected host:port of host 0, the number of hosts, and this "
        "host's number, from 0; or none of the three."
      )
    if count == 1:
      return None
    return {
      "coordinator_address": address,
      "num_processes": count,
      "process_id": index,
    }
  return None


def _jax_finds_hosts(environ: Mapping[str, str]) -> bool:
  return _is_task_of_slurm(environ) or "," in (
    environ.get("TPU_PROCESS_ADDRESSES")
    or environ.get("TPU_WORKER_HOSTNAMES")
    or _tpu_workers(environ)
  )


def _is_task_of_slurm(environ: Mapping[str, str]) -> bool:
  """Of several: under srun, that is; in a shell of salloc there is none."""
  in_step = "SLURM_STEP_NODELIST" in environ and "SLURM_PROCID" in environ
  return in_step and int(environ.get("SLURM_NTASKS", "1")) > 1


def _tpu_workers(environ: Mapping[str, str]) -> str:
  """The workers of this Cloud TPU VM, with commas; "" where this is none."""
  if not xla_flags.has_tpu() or "TPU_SKIP_MDS_QUERY" in environ:
    return ""
  server = environ.get("GCE_METADATA_IP", "metadata.google.internal")
  request = urllib.request.Request(
    f"http://{server}/computeMetadata/v1/instance/attributes/"
    "worker-network-endpoints",
    headers={"Metadata-Flavor": "Google"},
  )
  try:
    with urllib.request.urlopen(request, timeout=10) as answer:
      return answer.read().decode()
  except OSError:  # A machine of another kind.
    return ""


def start_hosts() -> None:
  """Connects this process with those of the other hosts, if there are any.

  One host opens no port; several processes of one machine, whose coordinator
  is 127.0.0.1, are reached from nowhere else.

  Raises:
    ConfigError: the environment doesn't say who they are, or they differ in
      what must be the same.
    LostHostError: they don't come.
  """
  import jax

  from maskedlm.runtime import multihost

  if jax.distributed.is_initialized():
    return
  found = find_hosts(os.environ)
  if found is None:
    return
  address = found.get("coordinator_address", "")
  if address.startswith(("127.", "localhost:")):
    found["coordinator_bind_address"] = address
  # JAX gives up by ending the process, in a page that doesn't say so.
  who = (
    f"host {found['process_id']} of {found['num_processes']}, at {address}"
    if found
    else "one of several hosts"
  )
  print(f"{who}: waits for the others, {PATIENCE} s at most", file=sys.stderr)
  # Signals are ours: train.py saves, on every host, at the same step.
  jax.config.update("jax_enable_preemption_service", False)
  try:
    jax.distributed.initialize(
      **found,
      initialization_timeout=PATIENCE,
      heartbeat_timeout_seconds=HEARTBEAT,
      shutdown_timeout_seconds=3600,  # Host 0 may have a result to work out.
    )
  except (RuntimeError, ValueError) as error:
    raise LostHostError(
      f"the other hosts can't be reached ({_first_line(error)}): start the "
      "same command on all of them, where host 0 can be reached by the others."
    ) from error
  devices = collections.Counter(d.process_index for d in jax.devices())
  if len(set(devices.values())) > 1:
    raise ConfigError(
      "hosts have different numbers of devices: "
      + ", ".join(f"host {i} has {n}" for i, n in sorted(devices.items()))
      + ". Use hosts of one kind, or hide devices (CUDA_VISIBLE_DEVICES)."
    )
  multihost.run_on_all_hosts(_versions, facts=dict)
  clocks = multihost.exchange(time.time())  # They left `together` at one time.
  for i, clock in enumerate(clocks):
    if abs(clock - clocks[0]) > MAX_SKEW and multihost.is_primary():
      print(
        f"the clock of host {i} is {clock - clocks[0]:+.0f} s from host 0's",
        file=sys.stderr,
      )


def _versions() -> dict[str, str]:
  import jax

  found = {"python": platform.python_version()}
  for name in PACKAGES:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
      found[name] = importlib.metadata.version(name)
  return {**found, "device": jax.devices()[0].device_kind}


@contextlib.contextmanager
def connected():
  """Within (or of a function, as decorator): connected with the other hosts.

  Whatever is raised on this host alone ends it at once; the others find it
  gone, within HEARTBEAT at the latest, and raise LostHostError.
  """
  if flags := xla_flags.set_up(os.environ):
    print(flags, file=sys.stderr)
  import jax

  start_hosts()
  if jax.process_count() == 1:
    yield
    return
  try:
    yield
  except BaseException as error:
    if _is_loss(error):
      error = LostHostError(
        "another host has stopped: see what it said. The same command goes on "
        "from the newest checkpoint, on as many hosts as there are then. "
        f"({_first_line(error)})"
      )
    # Not by JAX's own end, which waits for the others, who wait for us. A right
    # that is missing is wrong input, as in cli.py: it isn't started again.
    code = 2 if isinstance(error, PermissionError) else 1
    atexit.register(_leave, getattr(error, "exit_code", code))
    raise error


# What JAX raises, as errors of several types, where another process has gone.
_LOSS = re.compile(
  r"gloo|NCCL|coordination service|heartbeat|connection (closed|reset|refused)|"
  r"\b(UNAVAILABLE|DEADLINE_EXCEEDED|ABORTED|CANCELLED): ",
  re.IGNORECASE,
)


def _is_loss(error: BaseException) -> bool:
  if hasattr(error, "exit_code"):  # It has been told what it is: a bucket's ...
    return False
  chain = [error]
  while chain[-1] is not None:
    chain.append(chain[-1].__cause__ or chain[-1].__context__)
  return any(
    isinstance(each, (RuntimeError, ValueError)) and _LOSS.search(str(each))
    for each in chain
  )


def _leave(code: int) -> None:
  import jax

  sys.stdout.flush()
  sys.stderr.flush()
  if jax.process_index() == 0:
    time.sleep(3)  # With it goes the coordinator, which cuts the others short.
  os._exit(code)


def _first_line(error: BaseException) -> str:
  return (str(error).splitlines() or [type(error).__name__])[0][:200]
