"""Sets up a process before it computes: the compile cache, the other hosts.

The hosts of a run are found in the environment, in this order:

  JAX_COORDINATOR_ADDRESS (host:port of host 0), JAX_NUM_PROCESSES and
  JAX_PROCESS_ID; the variables of TPUs on GKE; those of Slurm; the metadata
  server of a Cloud TPU VM.

multihost.py coordinates them.
"""

import atexit
import collections
import contextlib
import glob
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
from maskedlm.runtime import (
  console,
  interrupts,
  lost_host,
  output_files,
  xla_flags,
)

CONNECT_TIMEOUT = 300  # Seconds within which all hosts must start.
HEARTBEAT_TIMEOUT = 30  # Seconds of silence until a host counts as dead.
MAX_SKEW = 10.0  # Seconds by which clocks may differ without a warning.
PACKAGES = ("maskedlm", "jax", "jaxlib", "flax", "numpy", "orbax-checkpoint")


class LostHostError(RuntimeError):
  """Another host has ended, or can't be reached."""

  exit_code = 75  # EX_TEMPFAIL: the same command continues.


_LOST = (
  "another host has stopped, or never started: see its log. The same command "
  "continues from the newest checkpoint, on any number of hosts."
)


def enable_compile_cache() -> None:
  """Keeps compiled programs in the user's cache directory.

  JAX_COMPILATION_CACHE_DIR overrides the directory, and
  JAX_ENABLE_COMPILATION_CACHE=false turns the cache off
  (docs/guides/pretrain/running.md).
  """
  import jax

  if os.environ.get("JAX_COMPILATION_CACHE_DIR"):
    return
  # A user without a home folder that can be written has no cache.
  with contextlib.suppress(ConfigError, OSError):
    path = output_files.cache_dir("jax")
    path.mkdir(parents=True, exist_ok=True)
    if os.access(path, os.W_OK):
      jax.config.update("jax_compilation_cache_dir", str(path))


# Finding and connecting the hosts


def find_hosts(environ: Mapping[str, str]) -> dict[str, Any] | None:
  """Returns arguments for jax.distributed.initialize; None = one host.

  They are {} if JAX finds the hosts itself, as it does on TPUs and with Slurm,
  where JAX_COORDINATOR_ADDRESS may be set alone.

  Raises:
    ConfigError: variables are missing, or are not numbers.
  """
  address = environ.get("JAX_COORDINATOR_ADDRESS")
  names = ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID")
  present = [name for name in names if name in environ]
  if not present and _jax_finds_hosts(environ):
    return {}
  if not present and not address:
    return None
  try:
    count, index = (int(environ[name]) for name in names)
    valid = 0 <= index < count and (count == 1 or ":" in (address or ""))
  except (KeyError, ValueError):
    valid = False
  if not valid:
    values = ", ".join(
      f"{name}={environ.get(name, '(not set)')}"
      for name in ("JAX_COORDINATOR_ADDRESS", *names)
    )
    raise ConfigError(
      f"{values}: expected host:port of host 0, the number of hosts, and this "
      "host's number, counted from 0; or none of the three."
    )
  if count == 1:
    return None
  numbers = {"num_processes": count, "process_id": index}
  return {"coordinator_address": address, **numbers}


def _jax_finds_hosts(environ: Mapping[str, str]) -> bool:
  return _is_task_of_slurm(environ) or "," in (
    environ.get("TPU_PROCESS_ADDRESSES")
    or environ.get("TPU_WORKER_HOSTNAMES")
    or _tpu_workers(environ)
  )


def _is_task_of_slurm(environ: Mapping[str, str]) -> bool:
  """Returns whether this is one of several tasks, as under srun, not salloc."""
  in_step = "SLURM_STEP_NODELIST" in environ and "SLURM_PROCID" in environ
  count = environ.get("SLURM_NTASKS", "1")
  if in_step and not (count.isdecimal() and len(count) < 10):
    raise ConfigError(f"SLURM_NTASKS={count}: expected the number of tasks.")
  return in_step and int(count) > 1


def _tpu_workers(environ: Mapping[str, str]) -> str:
  """Returns this Cloud TPU VM's workers, comma-separated; "" elsewhere."""
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
  except OSError:  # Not a Cloud TPU VM.
    return ""


def start_hosts() -> None:
  """Connects this process to the other hosts, if there are any.

  A single host opens no port. Processes on one machine, whose coordinator is
  127.0.0.1, can't be reached from other machines.

  Raises:
    ConfigError: the environment describes the hosts incompletely, or they
      differ in something that must be equal.
    LostHostError: a host doesn't connect in time.
  """
  import jax

  from maskedlm.runtime import multihost

  if jax.distributed.is_initialized():
    return
  hosts = find_hosts(os.environ)
  if hosts is None:
    return
  address = hosts.get("coordinator_address", "")
  if address.startswith(("127.", "localhost:")):
    hosts["coordinator_bind_address"] = address
  who = (
    f"host {hosts['process_id']} of {hosts['num_processes']}, at {address}"
    if hosts
    else "one of several hosts"
  )
  console.warn(f"{who}: waiting for the others, {CONNECT_TIMEOUT} s at most")
  if interrupts.is_command.is_set():
    lost_host.watch(f"error: {_LOST}", LostHostError.exit_code)
  # training/loop.py handles signals: it saves on every host at the same step.
  jax.config.update("jax_enable_preemption_service", False)
  try:
    jax.distributed.initialize(
      **hosts,
      initialization_timeout=CONNECT_TIMEOUT,
      heartbeat_timeout_seconds=HEARTBEAT_TIMEOUT,
      shutdown_timeout_seconds=3600,  # Host 0 may still compute the result.
    )
  except (RuntimeError, ValueError) as error:
    raise LostHostError(
      f"the other hosts can't be reached ({_first_line(error)}): start the "
      "same command on all hosts, and let all of them reach host 0."
    ) from error
  devices = collections.Counter(d.process_index for d in jax.devices())
  if len(set(devices.values())) > 1:
    raise ConfigError(
      "hosts have different numbers of devices: "
      + ", ".join(f"host {i} has {n}" for i, n in sorted(devices.items()))
      + ". Use equal hosts, or hide devices (CUDA_VISIBLE_DEVICES)."
    )
  multihost.run_on_all_hosts(_versions, facts=dict)
  clocks = multihost.exchange(time.time())  # All just left the call above.
  for i, clock in enumerate(clocks):
    if abs(clock - clocks[0]) > MAX_SKEW and multihost.is_primary():
      console.warn(
        f"the clock of host {i} is {clock - clocks[0]:+.0f} s from host 0's"
      )


def _versions() -> dict[str, str]:
  import jax

  versions = {"python": platform.python_version()}
  for name in PACKAGES:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
      versions[name] = importlib.metadata.version(name)
  return {**versions, "device": jax.devices()[0].device_kind}


def describe_versions() -> list[str]:
  """Returns the lines of a bug report about versions; JAX is not started."""
  lines = [
    f"python {platform.python_version()}, {platform.platform(terse=True)}"
  ]
  for name in PACKAGES[1:]:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
      lines.append(f"{name} {importlib.metadata.version(name)}")
  patterns = ("nvidia[0-9]*", "accel*", "vfio/[0-9]*")
  devices = [
    name for pattern in patterns for name in glob.glob(f"/dev/{pattern}")
  ]
  platforms = [xla_flags.find_platform(os.environ), xla_flags.cuda_plugin()]
  platforms.append(f"{len(devices)} in /dev" if devices else "")
  return [*lines, f"platform {', '.join(filter(None, platforms))}"]


@contextlib.contextmanager
def connected(*, profile: int = 0):
  """Connects to the other hosts; a context manager or a decorator.

  An error on this host alone ends it at once; the others notice within
  HEARTBEAT_TIMEOUT seconds and raise LostHostError.

  Args:
    profile: steps that will be traced.

  Raises:
    ConfigError, LostHostError: as start_hosts; LostHostError also if another
      host stops within the block.
  """
  if flags := xla_flags.set_up(os.environ):
    console.warn(flags)
  if profile:
    xla_flags.set_up_profile(os.environ)
  import jax

  start_hosts()
  if jax.process_count() == 1:
    yield
    return
  try:
    yield
  except BaseException as error:
    if _is_loss(error):
      error = LostHostError(f"{_LOST} ({_first_line(error)})")
    # JAX's own exit would wait for the others, which wait for this host. A
    # missing permission is wrong input, as in cli/main.py: no restart.
    code = 2 if isinstance(error, PermissionError) else 1
    atexit.register(_leave, getattr(error, "exit_code", code))
    raise error


# JAX's messages, in errors of several types, when another process is gone.
_LOSS = re.compile(
  r"gloo|NCCL|coordination service|heartbeat|waiting at barrier|"
  r"connection (closed|reset|refused)|"
  r"\b(UNAVAILABLE|DEADLINE_EXCEEDED|ABORTED|CANCELLED): ",
  re.IGNORECASE,
)


def _is_loss(error: BaseException) -> bool:
  if hasattr(error, "exit_code"):  # One of maskedlm's own.
    return False
  cause: BaseException | None = error
  while cause is not None:
    of_jax = isinstance(cause, (RuntimeError, ValueError, TimeoutError))
    if of_jax and _LOSS.search(str(cause)):
      return True
    cause = cause.__cause__ or cause.__context__
  return False


def _leave(code: int) -> None:
  import jax

  for stream in filter(None, (sys.stdout, sys.stderr)):
    with contextlib.suppress(OSError, ValueError):
      stream.flush()
  if jax.process_index() == 0:
    time.sleep(3)  # It is the coordinator: else the others would be cut off.
  os._exit(code)


def _first_line(error: BaseException) -> str:
  return (str(error).splitlines() or [type(error).__name__])[0][:200]
