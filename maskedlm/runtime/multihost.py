"""What the hosts of a run do together; one host is a case of several.

A host, in every message, is a process by its number. All call the same
functions in the same order. Host 0 alone writes, but for checkpoints. What may
fail on one of them only is called through `together`, so that all stop with
its error, and none waits for ever. runtime.py connects them.
"""

import collections
import contextlib
import json
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
from maskedlm.runtime import buckets, output_files, storage_errors

T = TypeVar("T")
SEEN_WITHIN = 30  # Seconds after which a shared folder shows a new file.


def is_primary() -> bool:
  """Is this host 0, which writes and prints?"""
  return jax.process_index() == 0


def check_alone(what: str) -> None:
  """Raises ConfigError if there are several hosts."""
  if jax.process_count() > 1:
    raise ConfigError(
      f"{what} runs on one host, here are {jax.process_count()}: start its "
      "runs apart, one on each host."
    )


def write_text(path: pathlib.Path, text: str) -> None:
  """Writes a file, on host 0, whole or not at all."""
  if is_primary():
    output_files.write_text(path, text)


@contextlib.contextmanager
def workdir(path: str | pathlib.Path) -> Iterator[pathlib.Path]:
  """Within: the folder of a run, or each host's mirror (remote.py).

  Raises:
    ConfigError, StorageError: see remote.workdir; a disk is full.
  """
  with contextlib.ExitStack() as stack:
    folder = run_on_all_hosts(
      lambda: stack.enter_context(buckets.workdir(path))
    )
    stack.enter_context(storage_errors.disk_errors(folder))
    yield folder


def run_on_all_hosts(
  make: Callable[[], T],
  facts: Callable[[T], Mapping[str, Any]] = lambda made: {},
) -> T:
  """make() on every host; facts(made) must be the same on all of them.

  Raises, on every host and with one exit code:
    What make raised there.
    ConfigError: what it raised on another one, or a fact that differs; it names
      the host.
  """
  if jax.process_count() == 1:
    return make()
  made, mine, failure = None, {}, None
  try:
    made = make()
    mine = dict(facts(made))
  except (ValueError, RuntimeError) as error:
    if not hasattr(error, "exit_code"):
      raise  # A bug of ours: this host ends, with a traceback.
    failure = error
  code = failure.exit_code if failure else None
  told = {"error": str(failure or "")[:4000], "code": code, "facts": mine}
  said = exchange({"host": socket.gethostname(), **told})
  names = [f"host {i} ({each['host']})" for i, each in enumerate(said)]
  failed = [i for i, each in enumerate(said) if each["code"]]
  if failed:
    # One code for all: a host that alone is started again waits for the others.
    first = said[failed[0]]
    error = failure or ConfigError(f"{names[failed[0]]}: {first['error']}")
    error.exit_code = min(said[i]["code"] for i in failed)
    raise error
  for fact, first in said[0]["facts"].items():
    for name, each in zip(names, said, strict=True):
      if each["facts"].get(fact) != first:
        raise ConfigError(
          f"hosts differ in {fact}: {first} on {names[0]}, "
          f"{each['facts'].get(fact)} on {name}. Give all of them the same, "
          "and start again."
        )
  return made


def broadcast_from_host0(decide: Callable[[], T]) -> T:
  """What host 0 decides, on every host; JSON-able."""
  return exchange(run_on_all_hosts(lambda: decide() if is_primary() else None))[
    0
  ]


def check_shared(folder: pathlib.Path) -> None:
  """Creates a folder that can be written, and that all hosts see as the same.

  Of a mirror, it is the address that all must be able to read.

  Raises:
    ConfigError: one of them doesn't, or it may not be written.
    StorageError: it can't be written now.
  """
  place = buckets.origin(folder)
  mark = place / ".shared"

  def write_token() -> str:
    token = secrets.token_hex(8)
    try:
      folder.mkdir(parents=True, exist_ok=True)
      mark.write_text(token)
    except Exception as error:  # gcsfs raises many kinds.
      raise storage_errors.unwritable(place, error) from error
    return token

  token = broadcast_from_host0(write_token)

  def read() -> None:
    for _ in range(SEEN_WITHIN):
      with contextlib.suppress(Exception):
        if mark.read_text() == token:
          return
      time.sleep(1)
    raise ConfigError(
      f"{place} is not the folder that host 0 has under this name: the "
      "workdir must be one that all hosts share (NFS, Filestore, a mounted "
      "bucket, an address gs://...); --workdir says where."
    )

  run_on_all_hosts(read)
  if is_primary():
    mark.unlink(missing_ok=True)


def any_host(flag: Callable[[], bool], *, delay: int) -> Callable[[], bool]:
  """-> ask(): was the flag of any host set, `delay` calls ago?

  So that hosts decide the same at the same step, and none waits: an answer is
  read when the devices have had it for long. All hosts must ask equally often.
  One host asks itself, without a delay.
  """
  if jax.process_count() == 1:
    return flag
  devices = Mesh(np.array(jax.devices()), ("devices",))
  count = jax.jit(
    jnp.sum, out_shardings=NamedSharding(devices, PartitionSpec())
  )
  asked: collections.deque = collections.deque()

  def ask() -> bool:
    mine = np.full(jax.local_device_count(), flag(), np.int32)
    each = NamedSharding(devices, PartitionSpec("devices"))
    asked.append(count(jax.make_array_from_process_local_data(each, mine)))
    asked[-1].copy_to_host_async()
    return len(asked) > delay and int(asked.popleft()) > 0

  return ask


def exchange(value) -> list:
  """The values of all hosts, in their order; JSON-able."""
  if jax.process_count() == 1:
    return [value]
  text = json.dumps(value).encode()
  sizes = multihost_utils.process_allgather(np.int32(len(text)))
  # A power of 2, so that few programs are compiled; JSON may end in spaces.
  size = 1 << int(np.max(sizes) - 1).bit_length()
  padded = np.frombuffer(text.ljust(size), np.uint8)
  rows = np.asarray(multihost_utils.process_allgather(padded))
  return [json.loads(row.tobytes()) for row in rows]
