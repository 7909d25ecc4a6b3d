"""Coordinates the hosts of a run; a single host is a special case.

A host is a process; messages give its number. All hosts call the same functions
in the same order. Only host 0 writes, except for checkpoints. Calls that may
fail on one host go through `run_on_all_hosts`, so that all stop with its error
and none waits forever. startup.py connects the hosts.
"""

import collections
import contextlib
import json
import os
import pathlib
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from maskedlm.core.errors import ConfigError
from maskedlm.core.parse_json import parse_json
from maskedlm.runtime import buckets, output_files, storage_errors

T = TypeVar("T")
SHARED = ".shared-"  # What the names of marks in a shared workdir begin with.
SEEN_WITHIN = 30  # Seconds until a shared folder shows a new file.


def is_primary() -> bool:
  """Returns whether this is host 0, which writes and prints."""
  return jax.process_index() == 0


def check_alone(what: str) -> None:
  """Raises ConfigError, naming what needs a single host, if there are more."""
  if jax.process_count() > 1:
    raise ConfigError(
      f"{what} needs a single host, not {jax.process_count()}: start its runs "
      "separately, one on each host."
    )


def write_text(path: pathlib.Path, text: str) -> None:
  """Writes a whole file, on host 0 only."""
  if is_primary():
    output_files.write_text(path, text)


@contextlib.contextmanager
def workdir(path: str | os.PathLike) -> Iterator[pathlib.Path]:
  """Yields the folder of a run, or this host's mirror of it (buckets.py).

  A folder that a refused run has made, and left empty, is removed.

  Raises:
    ConfigError, StorageError: see buckets.workdir; or a disk is full.
  """
  with contextlib.ExitStack() as stack:
    folder = run_on_all_hosts(
      lambda: stack.enter_context(buckets.workdir(path))
    )
    stack.enter_context(storage_errors.disk_errors(folder))
    if is_primary() and not os.path.exists(folder):
      stack.callback(_remove_if_empty, folder)
    yield folder


def _remove_if_empty(folder: pathlib.Path) -> None:
  with contextlib.suppress(OSError):  # It isn't empty, or was never made.
    folder.rmdir()


def run_on_all_hosts(
  make: Callable[[], T],
  facts: Callable[[T], Mapping[str, Any]] = lambda result: {},
) -> T:
  """Returns make() on every host; facts(result) must be equal on all of them.

  Raises, on every host and with one exit code:
    The error that make raised on this host, if any; otherwise
    ConfigError: make failed on another host, or a fact differs; the message
      names the host.
  """
  if jax.process_count() == 1:
    return make()
  result: Any = None
  mine, failure = {}, None
  try:
    result = make()
    mine = dict(facts(result))
  except (ValueError, RuntimeError) as error:
    if not hasattr(error, "exit_code"):
      raise  # A bug in maskedlm: this host ends with a traceback.
    failure = error
  code = failure.exit_code if failure else None
  message, host = str(failure or "")[:4000], socket.gethostname()
  reports = exchange(
    {"host": host, "error": message, "code": code, "facts": mine}
  )
  names = [f"host {i} ({report['host']})" for i, report in enumerate(reports)]
  failed = [i for i, report in enumerate(reports) if report["code"]]
  if failed:
    # One code for all: a host restarted alone would wait for the others.
    first = reports[failed[0]]
    reported: Any = failure or ConfigError(
      f"{names[failed[0]]}: {first['error']}"
    )
    reported.exit_code = min(reports[i]["code"] for i in failed)
    raise reported
  for fact, first in reports[0]["facts"].items():
    for name, report in zip(names, reports, strict=True):
      if report["facts"].get(fact) != first:
        raise ConfigError(
          f"hosts differ in {fact}: {first} on {names[0]}, "
          f"{report['facts'].get(fact)} on {name}. Make them equal, and start "
          "again."
        )
  return result


def broadcast_from_host0(decide: Callable[[], T]) -> T:
  """Returns the result of host 0's decide(), JSON-serializable, on every host.

  Raises:
    As run_on_all_hosts, if decide() raises.
  """
  result = run_on_all_hosts(lambda: decide() if is_primary() else None)
  return exchange(result)[0]


def check_shared(folder: pathlib.Path) -> None:
  """Creates a folder, and checks that all hosts share it and can write it.

  For a mirror, checks that all hosts can read its address.

  Raises:
    ConfigError: a host has another folder, or it may not be written.
    StorageError: it can't be written now.
  """
  place = buckets.origin(folder)

  def write_token() -> str:
    token = secrets.token_hex(8)
    try:
      folder.mkdir(parents=True, exist_ok=True)
      output_files.write_text(place / f"{SHARED}{token}", token)
    except Exception as error:  # gcsfs raises many kinds.
      raise storage_errors.unwritable(place, error) from error
    return token

  token = broadcast_from_host0(write_token)
  mark = place / f"{SHARED}{token}"

  def read() -> None:
    for _ in range(SEEN_WITHIN):
      with contextlib.suppress(Exception):
        if mark.read_text() == token:
          return
      time.sleep(1)
    raise ConfigError(
      f"{place} is not host 0's folder of this name: give a --workdir that all "
      "hosts share (NFS, Filestore, a mounted bucket, an address gs://...)."
    )

  try:
    run_on_all_hosts(read)
  finally:
    if is_primary():
      with contextlib.suppress(Exception):  # It must not hide the first error.
        mark.unlink()


def any_host(flag: Callable[[], bool], *, delay: int) -> Callable[[], bool]:
  """Returns ask() -> whether any host's flag was set `delay` calls ago.

  All hosts get the same answer at the same step, and none waits: an answer is
  read long after the devices computed it. All hosts must ask equally often. A
  single host reads its own flag without a delay.
  """
  if jax.process_count() == 1:
    return flag
  devices = Mesh(np.array(jax.devices()), ("devices",))
  count = jax.jit(
    jnp.sum, out_shardings=NamedSharding(devices, PartitionSpec())
  )
  pending: collections.deque = collections.deque()

  def ask() -> bool:
    mine = np.full(jax.local_device_count(), flag(), np.int32)
    by_device = NamedSharding(devices, PartitionSpec("devices"))
    pending.append(
      count(jax.make_array_from_process_local_data(by_device, mine))
    )
    pending[-1].copy_to_host_async()
    return len(pending) > delay and int(pending.popleft()) > 0

  return ask


def exchange(value) -> list:
  """Returns the values of all hosts, JSON-serializable, in host order."""
  if jax.process_count() == 1:
    return [value]
  text = json.dumps(value).encode()
  sizes = multihost_utils.process_allgather(np.int32(len(text)))
  # A power of 2, so that few programs are compiled; JSON may end in spaces.
  size = 1 << int(np.max(sizes) - 1).bit_length()
  padded = np.frombuffer(text.ljust(size), np.uint8)
  rows = np.asarray(multihost_utils.process_allgather(padded))
  return [parse_json(row.tobytes()) for row in rows]
