"""A run that continues another one under other options."""

import json

import jax
import pytest

from helpers import in_process, toy
from helpers.toy_runs import (
  assert_same_end,
  killed_at,
  logged_lines,
  make_config,
  run,
)
from maskedlm.config import defaults
from maskedlm.core.errors import CheckpointError, ConfigError
from maskedlm.training.checkpoints import files

# A decay of 3 steps, after 5 of a constant rate.
DECAY = (
  {"steps": 5},
  {
    "optimizer.schedule": "wsd_sqrt",
    "optimizer.decay_share": 1.0,
    "optimizer.warmup_steps": 0,
    "optimizer.weight_decay": 0.3,
  },
)


@pytest.fixture(scope="module")
def stable(tmp_path_factory, mesh):
  """Returns the folder of 10 steps, every fifth of which is kept."""
  folder = tmp_path_factory.mktemp("stable")
  run(config_of(keep_every=5), toy.make_task(), folder, mesh)
  return folder


def config_of(**options):
  config = make_config(**options)
  config.optimizer.schedule = "constant"
  return config


def branch_of(path, **options):
  config = config_of(num_steps=8, **options)
  config.phases = DECAY
  config.continue_from = str(path)
  return config


def test_a_branch_is_the_run_that_decayed_from_the_start(
  tmp_path, mesh, stable, capsys
):
  start = stable / "checkpoints" / "5"
  config = branch_of(start, keep_last=9)
  branch = run(config, toy.make_task(), tmp_path / "branch", mesh)
  told = capsys.readouterr().err
  assert "metrics.jsonl" not in told
  assert "phases=[{'steps': 5}" in told and "train.num_steps=8, was 10" in told
  whole = config_of(num_steps=8)
  whole.phases = DECAY
  whole = run(whole, toy.make_task(), tmp_path / "whole", mesh)
  assert branch.step == 8
  assert_same_end(branch, whole)
  # The start is kept, so a kill before the next save changes nothing.
  assert 5 in files.complete_steps(tmp_path / "branch" / "checkpoints")
  steps = [x["step"] for x in logged_lines(tmp_path / "branch") if "loss" in x]
  assert steps == [6, 8]


def test_a_branch_resumes_from_its_own_checkpoints(tmp_path, mesh, stable):
  config = branch_of(stable / "checkpoints" / "5")
  complete = run(config, toy.make_task(), tmp_path / "a", mesh)
  # Run step 6 of steps 5 to 7; the others are read for their memory, too. All
  # steps have 32,768 tokens, so they are those of the task.
  with pytest.raises(KeyboardInterrupt):
    run(config, killed_at(toy.make_task(), 6), tmp_path / "b", mesh)
  assert files.complete_steps(tmp_path / "b" / "checkpoints") == [5, 6]
  assert_same_end(run(config, toy.make_task(), tmp_path / "b", mesh), complete)


def test_what_cannot_be_continued_is_refused(tmp_path, mesh, stable):
  config = config_of(num_steps=10)
  config.continue_from = str(stable)
  with pytest.raises(ConfigError, match=r"has done 10 steps.*num_steps=10"):
    run(config, toy.make_task(), tmp_path / "a", mesh)
  config.train.num_steps = 12

  def init(key):
    return {"dense": {"kernel": jax.random.normal(key, (3, 2))}}

  with pytest.raises(CheckpointError, match=r"dense/kernel.*\[3,1\].*\[3,2\]"):
    run(config, toy.make_task()._replace(init=init), tmp_path / "b", mesh)
  config.continue_from = str(tmp_path / "nothing")
  with pytest.raises((CheckpointError, ConfigError), match="nothing"):
    run(config, toy.make_task(), tmp_path / "c", mesh)
  for folder in "abc":
    assert not files.complete_steps(tmp_path / folder / "checkpoints")


@pytest.mark.parametrize("other", ["init_from", "init_tokens"])
def test_a_run_has_one_start(other):
  config = defaults.default("roberta")
  config.continue_from, config[other] = "a", "b"
  with pytest.raises(ConfigError, match=f"continue_from='a' and {other}='b'"):
    defaults.validate(config)


def test_the_verb(tiny, tmp_path):
  path, corpus = tiny
  first, second = tmp_path / "first", tmp_path / "second"
  command = ["pretrain", f"--config={path}", f"--config.corpus.path={corpus}"]
  command += ["--config.train.eval_rows=0", "--config.optimizer.warmup_steps=0"]
  done = in_process.run(
    *command,
    f"--workdir={first}",
    "--config.train.num_steps=2",
    "--config.model.mlp_width=44",
  )
  assert done.returncode == 0, done.stderr
  more = in_process.run(
    *command,
    f"--workdir={second}",
    f"--config.continue_from={first}",
    "--config.train.num_steps=3",
    "--config.objective.mask_rate=0.3",
  )
  assert more.returncode == 0, more.stderr
  assert "objective.mask_rate=0.3, was 0.15" in more.stderr
  assert f"continuing {first} from step 2 to 3" in more.stderr
  # The architecture is taken over.
  config = json.loads((second / "config.json").read_text())
  assert config["model"]["mlp_width"] == 44
  assert config["tokenizer"]["path"] == str(first / "tokenizer")
