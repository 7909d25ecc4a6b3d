"""Several hosts, as separate processes that communicate over gloo on the CPU.

Each runs `maskedlm ...`, or one_host.py, the training loop on a toy task.
"""

import functools
import http.server
import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import threading
import time

import pytest

from helpers import in_process, one_host
from helpers import tiny as tiny_run
from helpers.host_processes import (
  TESTS,
  TOY,
  finish,
  losses,
  run,
  start,
  steps,
  wait_for,
)
from maskedlm.core.errors import ConfigError
from maskedlm.runtime import multihost, startup, xla_flags


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
  """Returns a function: number of devices -> workdir of 20 toy steps."""

  @functools.cache
  def workdir(devices):
    folder = tmp_path_factory.mktemp(f"devices{devices}")
    with in_process.devices(devices):
      one_host.train_toy(folder, 20)
    return folder

  return workdir


def test_a_signal_to_one_host_stops_all_and_one_host_can_continue(
  undisturbed, tmp_path
):
  hosts = start(2, *TOY, "train", tmp_path, 20, 0.1)
  wait_for("step 6/", hosts[0])
  hosts[1].send_signal(signal.SIGTERM)
  assert [code for code, _, _ in finish(hosts)] == [75, 75]
  stopped = steps(tmp_path)[-1]
  assert 6 <= stopped < 20
  with in_process.devices(2):
    one_host.train_toy(tmp_path, 20)
  # Two hosts with one device each and one host with two agree to the last bit.
  assert losses(tmp_path) == losses(undisturbed(2))
  assert (tmp_path / "config.json").exists()


def test_hosts_agree_or_all_report_which_one_differs(tmp_path):
  ended = run(2, *TOY, "agree", tmp_path, devices=2, SKEW="-90")
  results = [
    json.loads(line.removeprefix("results "))
    for _, out, _ in ended
    for line in out.splitlines()
    if line.startswith("results ")
  ]
  name = socket.gethostname()
  for me, each in enumerate(results):
    assert each["values"] == [
      {"host": 0, "text": ""},
      {"host": 1, "text": "üüüüü"},
    ]
    assert each["first"] == "by 0" and each["made"] == me
    assert each["failed"].endswith("no such corpus")
    assert (each["code 74"], each["code 2"]) == (74, 2)
    assert f"corpus: 0abc on host 0 ({name}), 1abc on host 1" in each["differ"]
    assert "is not host 0's folder" in each["apart"]
    # Host 1's flag is set at the third call; all hosts see it two calls later.
    assert each["asked"] == [False] * 4 + [True] * 2
    assert each["shard"] == [[me, me + 2], 4]
    assert each["rows"] == list(range(8))
  assert results[0]["failed"] == f"host 1 ({name}): no such corpus"
  # On one machine, hosts listen on the loopback address only.
  assert results[0]["listening"] and results[1]["listening"]
  for each in results:
    assert {x.rpartition(":")[0] for x in each["listening"]} == {"127.0.0.1"}
  (line,) = (x for x in ended[0][2].splitlines() if "clock" in x)
  assert re.fullmatch(
    r"the clock of host 1 is -(89|90|91) s from host 0's", line
  )


def test_one_host_opens_no_port(monkeypatch):
  for name in ("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES"):
    monkeypatch.delenv(name, raising=False)
  before = one_host.listening()
  with startup.connected():
    assert (
      multihost.run_on_all_hosts(lambda: 3, facts=lambda made: {"x": made}) == 3
    )
  assert one_host.listening() == before


@pytest.mark.slow
def test_hosts_with_different_packages_are_refused(tmp_path):
  folders = [tmp_path / "a", tmp_path / "b"]
  other = folders[1] / "packages" / "flax-0.1.dist-info" / "METADATA"
  other.parent.mkdir(parents=True)
  folders[0].mkdir()
  other.write_text("Metadata-Version: 2.1\nName: flax\nVersion: 0.1\n")
  argv = [*TOY, "train", tmp_path / "run", 20]
  path = os.pathsep.join(["packages", str(TESTS), str(TESTS.parent)])
  for code, _, err in finish(start(2, *argv, folders=folders, PYTHONPATH=path)):
    assert code == 2
    assert re.search(
      r"hosts differ in flax: \S+ on host 0 .*, 0\.1 on host 1",
      err.splitlines()[-1],
    )


# Finding the hosts.

EXPLICIT = {
  "JAX_COORDINATOR_ADDRESS": "10.0.0.1:1234",
  "JAX_NUM_PROCESSES": "4",
  "JAX_PROCESS_ID": "3",
}
SLURM = {
  "SLURM_JOB_ID": "7",
  "SLURM_STEP_NODELIST": "node[1-2]",
  "SLURM_NTASKS": "16",
  "SLURM_PROCID": "5",
  "SLURM_LOCALID": "5",
}


@pytest.mark.parametrize(
  ("environ", "found"),
  [
    ({}, None),
    (
      EXPLICIT,
      {
        "coordinator_address": "10.0.0.1:1234",
        "num_processes": 4,
        "process_id": 3,
      },
    ),
    ({"JAX_NUM_PROCESSES": "1", "JAX_PROCESS_ID": "0"}, None),
    (SLURM, {}),
    ({**SLURM, "JAX_COORDINATOR_ADDRESS": "10.0.0.1:1234"}, {}),
    ({**SLURM, "SLURM_NTASKS": "1"}, None),
    # A shell started by salloc.
    ({"SLURM_JOB_ID": "7", "SLURM_NTASKS": "16"}, None),
    ({"TPU_WORKER_HOSTNAMES": "a,b", "TPU_WORKER_ID": "0"}, {}),
    ({"TPU_WORKER_HOSTNAMES": "localhost"}, None),
  ],
)
def test_hosts_are_found_in_the_environment(environ, found):
  assert startup.find_hosts(environ) == found


@pytest.mark.parametrize(
  "change",
  [
    {"JAX_PROCESS_ID": "4"},
    {"JAX_PROCESS_ID": "first"},
    {"JAX_COORDINATOR_ADDRESS": "10.0.0.1"},
  ],
)
def test_an_incomplete_environment_is_an_error(change):
  with pytest.raises(ConfigError, match="expected host:port of host 0"):
    startup.find_hosts({**EXPLICIT, **change})
  for name in EXPLICIT:
    with pytest.raises(ConfigError, match=r"=\(not set\)"):
      startup.find_hosts({name: EXPLICIT[name]})


@pytest.mark.parametrize("count", ["abc", "", "-1", "9" * 5_000])
def test_a_number_of_tasks_that_is_none_is_an_error(count):
  environ = {"SLURM_STEP_NODELIST": "a", "SLURM_PROCID": "0"}
  with pytest.raises(ConfigError, match=f"^SLURM_NTASKS={count}: expected"):
    startup.find_hosts({**environ, "SLURM_NTASKS": count})


@pytest.mark.parametrize(
  ("workers", "found"), [("10.0.0.2,10.0.0.3", {}), ("10.0.0.2", None)]
)
def test_a_tpu_vm_finds_its_workers_in_the_metadata(
  monkeypatch, workers, found
):
  class Metadata(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
      assert self.headers["Metadata-Flavor"] == "Google"
      assert self.path.endswith("/attributes/worker-network-endpoints")
      self.send_response(200)
      self.end_headers()
      self.wfile.write(workers.encode())

    def log_message(self, *args):
      pass

  server = http.server.HTTPServer(("127.0.0.1", 0), Metadata)
  threading.Thread(target=server.handle_request, daemon=True).start()
  monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
  monkeypatch.setattr(xla_flags.glob, "glob", lambda pattern: ["/dev/accel0"])
  address = f"127.0.0.1:{server.server_port}"
  assert startup.find_hosts({"GCE_METADATA_IP": address}) == found
  server.server_close()


# Failures of several hosts.


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 2])
def test_a_killed_host_stops_the_others(undisturbed, tmp_path, killed):
  """Fewer hosts continue, with the same losses."""
  hosts = start(4, *TOY, "train", tmp_path, 20, 0.2)
  wait_for("step 10/", hosts[0])
  hosts[killed].send_signal(signal.SIGKILL)
  killed_at = time.monotonic()
  ended = finish(hosts)
  assert time.monotonic() - killed_at < 60
  for i, (code, _, err) in enumerate(ended):
    if i != killed:
      # 75 is maskedlm's code. In a program that calls it, JAX may be quicker,
      # above all if host 0 is gone: it aborts the process.
      assert code in (75, -signal.SIGABRT), err
      assert "another host has stopped" in err or "another task died" in err
  # The last checkpoint may be incomplete.
  assert steps(tmp_path)[-1] in (4, 5, 8, 10, 12)
  run(2, *TOY, "train", tmp_path, 20, devices=2)
  same_losses(tmp_path, undisturbed(4))


def same_losses(workdir, other):
  """Compares to float tolerance: the order of a sum over four hosts varies."""
  pairs = list(zip(losses(workdir), losses(other), strict=True))
  assert len(pairs) > 20
  for a, b in pairs:
    assert a == pytest.approx(b, rel=1e-5)
    assert a.get("real_share") == b.get("real_share")  # The same rows.


@pytest.mark.slow
def test_an_error_on_one_host_ends_all(tmp_path):
  hosts = start(2, *TOY, "train", tmp_path, 20, 0, 1)
  (first, _, other), (second, _, err) = finish(hosts)
  assert second == 1 and "the disk of this host is gone" in err
  assert first in (75, -signal.SIGABRT)
  assert "another host has stopped" in other or "another task died" in other


@pytest.mark.slow
@pytest.mark.parametrize(
  ("devices", "option", "expected"),
  [
    ([2, 1], "--config.seed=0", "host 0 has 2, host 1 has 1"),
    (1, "--config.data.batch_size=9", "a batch of 9 rows must be divisible"),
  ],
)
def test_hosts_that_cant_share_a_batch_are_refused(
  pretrain, tmp_path, devices, option, expected
):
  argv = [*pretrain, f"--workdir={tmp_path}", option]
  for code, _, err in finish(start(2, *argv, devices=devices)):
    assert code == 2
    assert expected in err


@pytest.fixture(scope="module")
def pretrain(tiny):
  config, corpus = tiny
  return [
    *tiny_run.command("pretrain", f"--config={config}"),
    f"--config.corpus.path={corpus}",
    "--config.optimizer.schedule=constant",
    "--config.train.eval_rows=3",  # Fewer rows than hosts.
  ]


@pytest.mark.slow
def test_checkpoints_of_four_hosts_are_restored_by_one_and_two(
  pretrain, tmp_path
):
  """12 steps as a user runs them, 8 of them on 4 hosts."""
  whole, four, two = (tmp_path / name for name in ("whole", "four", "two"))
  run(1, *pretrain, f"--workdir={whole}", devices=4)
  ended = run(4, *pretrain, f"--workdir={four}", "--config.train.num_steps=8")
  assert "held out, after 8 steps" in ended[0][1]
  for _, out, _ in ended[1:]:
    assert not out
  shutil.copytree(four, two)
  run(1, *pretrain, f"--workdir={four}", devices=4)
  run(2, *pretrain, f"--workdir={two}", devices=2)
  expected = [x for x in losses(whole) if "loss" in x]
  for workdir in (four, two):
    found = [x for x in losses(workdir) if "loss" in x]
    assert [x["step"] for x in found] == list(range(1, 13))
    for a, b in zip(found, expected, strict=True):
      assert a["real_share"] == b["real_share"]
      assert a["loss"] == pytest.approx(b["loss"], rel=2e-5)
    results = [
      json.loads((w / "result.json").read_text()) for w in (workdir, whole)
    ]
    assert results[0]["heldout_mlm_loss"] == pytest.approx(
      results[1]["heldout_mlm_loss"], rel=2e-5
    )


@pytest.mark.slow
def test_corpora_that_differ_or_are_absent_are_refused(
  pretrain, tiny, tmp_path
):
  config, corpus = tiny
  here, there = tmp_path / "here", tmp_path / "there"
  for folder in (here, there):
    folder.mkdir()
  shutil.copytree(corpus, here / "corpus")
  argv = [
    *pretrain,
    "--config.corpus.path=corpus",
    f"--workdir={tmp_path / 'run'}",
  ]
  for code, _, err in finish(start(2, *argv, folders=[here, there])):
    assert code == 2
    nothing = f"corpus.path='corpus': nothing is at {there / 'corpus'}"
    assert nothing in err and "Traceback" not in err
  for code, _, err in finish(start(2, *argv, "--config.corpus.path=")):
    assert code == 2
    assert "several hosts don't prepare one" in err.splitlines()[-1]
  made = tiny_run.run(
    "prepare",
    f"--config={config}",
    f"--out={there / 'corpus'}",
    "--config.corpus.source=docstrings:json,logging",
  )
  assert made.returncode == 0, made.stderr
  for code, _, err in finish(start(2, *argv, folders=[here, there])):
    assert code == 2
    assert "hosts differ in corpus: " in err and "on host 1 (" in err
