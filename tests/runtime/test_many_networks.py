"""Two hosts in network namespaces of their own, as on separate machines.

A veth pair connects them. Needs root and iproute2; skipped otherwise.
"""

import os
import shutil
import subprocess
import time
from typing import NamedTuple

import pytest

from helpers import host_processes

pytestmark = pytest.mark.slow

# Each host has its own name and an /etc/hosts with its address, for gloo.
ENTER = 'mount --bind "$1" /etc/hosts; hostname "$2"; shift 2; exec "$@"'
ADDRESSES = ("10.231.7.1", "10.231.7.2")


class Networks(NamedTuple):
  names: tuple[str, ...]  # Of the namespaces, and of the ends of the veth pair.
  within: list[list]  # For each, the command that runs another one in it.


def ip(*words):
  """Returns the error message of `ip WORDS`, "" if it succeeds."""
  ended = subprocess.run(
    ["ip", *words], check=False, capture_output=True, text=True
  )
  return ended.stderr.strip() if ended.returncode else ""


@pytest.fixture
def networks(tmp_path):
  if not shutil.which("ip") or not shutil.which("unshare"):
    pytest.skip("needs iproute2 and unshare")
  a, b = names = tuple(f"mlm{os.getpid()}{x}" for x in "ab")
  steps = [f"netns add {name}" for name in names]
  steps.append(f"link add {a} netns {a} type veth peer name {b} netns {b}")
  within = []
  for name, address in zip(names, ADDRESSES, strict=True):
    steps.append(f"-n {name} addr add {address}/24 dev {name}")
    steps += [f"-n {name} link set {wire} up" for wire in (name, "lo")]
    file = tmp_path / name
    file.write_text(f"127.0.0.1 localhost\n{address} {name}\n")
    enter = f"ip netns exec {name} unshare --mount --uts sh -c"
    within.append([*enter.split(), ENTER, "sh", file, name])
  try:
    for step in steps:
      if error := ip(*step.split()):
        pytest.skip(f"no network namespaces here: {error}")
    yield Networks(names, within)
  finally:
    for name in names:
      ip("netns", "delete", name)


def start(networks, *argv):
  address = f"{ADDRESSES[0]}:4567"
  return host_processes.start(2, *argv, within=networks.within, address=address)


def test_hosts_with_different_addresses(networks, tmp_path):
  ended = host_processes.finish(
    start(networks, *host_processes.TOY, "train", tmp_path / "two", 20)
  )
  assert [code for code, _, _ in ended] == [0, 0], ended
  host_processes.run(
    1, *host_processes.TOY, "train", tmp_path / "one", 20, devices=2
  )
  assert host_processes.losses(tmp_path / "two") == host_processes.losses(
    tmp_path / "one"
  )


def test_a_failing_network_stops_both_hosts(networks, tmp_path):
  """Packets are lost, but no connection is closed."""
  hosts = start(networks, *host_processes.TOY, "train", tmp_path, 999, 0.1)
  host_processes.wait_for("step 10/", hosts[0])
  name = networks.names[1]
  assert not ip("-n", name, "link", "set", name, "down")
  began = time.monotonic()
  ended = host_processes.finish(hosts, seconds=120)
  assert time.monotonic() - began < 60
  for code, _, err in ended:
    assert code in (75, -6), err
    assert "another host has stopped" in err or "task" in err, err
  assert host_processes.steps(tmp_path)
