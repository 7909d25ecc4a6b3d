"""The program of each process in test_many_hosts.py: `one_host.py WHAT ...`.

Environment variables say which host it is, as in a user's run.
"""

import contextlib
import ipaddress
import json
import os
import pathlib
import sys
import time

import jax
import numpy as np
from jax.sharding import AxisType, Mesh

from helpers import toy, toy_runs
from maskedlm.cli import exit_codes, main
from maskedlm.config import defaults
from maskedlm.core.errors import ConfigError, StorageError
from maskedlm.pretraining.config import split
from maskedlm.runtime import multihost, startup
from maskedlm.training import loop, sharding


def make_config(num_steps):
  c = toy_runs.make_config(
    num_steps=num_steps, log_every=1, eval_every=5, checkpoint_every=4
  )
  c.optimizer.schedule = "constant"
  return c


def shared(task, shard, seconds):
  """Returns the task; a host reads only its own rows, slowly."""
  index, count = shard

  def batch_at(split, step):
    time.sleep(seconds if split == "train" else 0)
    batch = task.batch_at(split, step)
    if split == "train" and step < 40:
      batch["x"] = batch["x"] * (1 + step % 3)  # The numbers differ by step.
    return {
      name: np.concatenate(
        np.split(x, count)[index : index + 1]
        if isinstance(index, int)
        else [np.split(x, count)[i] for i in index]
      )
      for name, x in batch.items()
    }

  return task._replace(batch_at=batch_at)


@startup.connected()
def train_toy(workdir, num_steps, seconds="0", fails_on="-1"):
  """Runs the loop on the toy task; host `fails_on` fails at step 6."""
  with multihost.workdir(workdir) as folder:
    multihost.check_shared(folder)
    return train_in(folder, int(num_steps), float(seconds), int(fails_on))


def train_in(workdir, num_steps, seconds, fails_on):
  c = make_config(num_steps)
  mesh = sharding.make_mesh(c.mesh)
  task = shared(toy.make_task(), sharding.data_shard(mesh), seconds)
  if jax.process_index() == fails_on:
    whole = task.batch_at

    def failing(split, step):
      if step == 6:
        raise OSError("the disk of this host is gone")
      return whole(split, step)

    task = task._replace(batch_at=failing)
  result = loop.run(
    split(c),
    [task],
    workdir,
    mesh=mesh,
    identity=toy_runs.identity(c),
    frozen=defaults.frozen_options(c),
  )
  return exit_codes.INTERRUPTED_AND_SAVED if result.interrupted else 0


def listening():
  """Returns the TCP addresses that this process listens on, as host:port."""
  mine = set()
  for file in pathlib.Path("/proc/self/fd").iterdir():
    with contextlib.suppress(OSError):
      mine.add(os.readlink(file))
  found = set()
  for name in ("tcp", "tcp6"):
    for line in pathlib.Path("/proc/net", name).read_text().splitlines()[1:]:
      _, local, _, state, *_, inode = line.split()[:10]
      if state == "0A" and f"socket:[{inode}]" in mine:
        found.add(_address(*local.split(":")))
  return found


def _address(host, port):
  """Parses the kernel's hexadecimal: words in the machine's byte order."""
  packed = b"".join(
    int(host[i : i + 8], 16).to_bytes(4, sys.byteorder)
    for i in range(0, len(host), 8)
  )
  ip = ipaddress.ip_address(packed)
  return f"{getattr(ip, 'ipv4_mapped', None) or ip}:{int(port, 16)}"


def _refused(make):
  try:
    make()
  except ConfigError as error:
    return str(error)
  return None


@startup.connected()
def agree(folder):
  """Prints, as JSON, the results of multihost.py's functions on this host."""
  me, count = jax.process_index(), jax.process_count()
  results = {}
  results["values"] = multihost.exchange({"host": me, "text": "ü" * 5 * me})
  results["first"] = multihost.broadcast_from_host0(lambda: f"by {me}")
  results["made"] = multihost.run_on_all_hosts(
    lambda: me, facts=lambda made: {"corpus": "x"}
  )

  def fail():
    if me == 1:
      raise ConfigError("no such corpus")

  results["failed"] = _refused(lambda: multihost.run_on_all_hosts(fail))

  def lose():
    raise StorageError("no room") if me == 1 else ConfigError("no name")

  for number, make in ((74, lambda: me == 1 and lose()), (2, lose)):
    try:
      multihost.run_on_all_hosts(make)
    except (ConfigError, StorageError) as error:
      results[f"code {number}"] = error.exit_code
  results["differ"] = _refused(
    lambda: multihost.run_on_all_hosts(
      lambda: me, facts=lambda made: {"seed": 3, "corpus": f"{made // 1}abc"}
    )
  )
  multihost.check_shared(pathlib.Path(folder, "shared"))
  multihost.SEEN_WITHIN = 1
  results["apart"] = _refused(
    lambda: multihost.check_shared(pathlib.Path(folder, str(me)))
  )
  flag = [False]
  ask = multihost.any_host(lambda: flag[0], delay=2)
  results["asked"] = []
  for i in range(6):
    flag[0] = flag[0] or (me == 1 and i == 2)
    results["asked"].append(ask())
  # A mesh that alternates between the hosts' devices, as on a TPU pod.
  size = jax.device_count()
  order = np.arange(size).reshape(count, -1).T.ravel()
  mesh = Mesh(
    np.array(jax.devices())[order].reshape(size, 1, 1),
    sharding.AXES,
    axis_types=(AxisType.Auto,) * 3,
  )
  index, parts = sharding.data_shard(mesh)
  results["shard"] = [index, parts]
  rows = np.arange(2 * size).reshape(parts, -1)[np.atleast_1d(index)].ravel()
  placed = sharding.place({"rows": rows}, mesh)["rows"]
  whole = jax.jit(lambda x: x, out_shardings=sharding.replicated(mesh))(placed)
  results["rows"] = np.asarray(whole.addressable_data(0)).tolist()
  results["listening"] = sorted(listening())
  print("results " + json.dumps(results))
  return 0


if __name__ == "__main__":
  if os.environ.get("JAX_PROCESS_ID") == "1":
    clock, skew = time.time, float(os.environ.get("SKEW", 0))
    time.time = lambda: clock() + skew  # This host's clock is wrong.
  what = {"train": train_toy, "agree": agree}[sys.argv[1]]
  sys.exit(main.run(lambda argv: what(*argv[1:])))
