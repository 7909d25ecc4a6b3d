"""A run's config.json gives its config back."""

import json

import pytest

from maskedlm.cli import frame, pretrain
from maskedlm.config import defaults, resumed
from maskedlm.core.errors import ConfigError
from maskedlm.finetune import config as finetune_config
from maskedlm.finetune import start
from maskedlm.training.checkpoints import resume


def write(folder, config):
  folder.mkdir(exist_ok=True)
  (folder / "config.json").write_text(config.to_json_best_effort())
  return folder


def parse(*argv):
  return frame.parse(pretrain.Pretrain, "pretrain", argv).config


@pytest.mark.parametrize(
  "name", ["mlm_nsp", "roberta", "spanbert", "electra", "causal"]
)
def test_all_values_return(name, tmp_path):
  config = defaults.default(name)
  config.data.alpha = 0.25
  if "pack" in config.objective:
    config.objective.pack = True
  config.tokenizer.lowercase = False
  config.optimizer.no_decay = ("norm/", "x")
  config.optimizer.learning_rate = 1e-05
  config.model.num_layers = 3
  found = resumed.load_config(write(tmp_path, config))
  assert found.to_dict() == config.to_dict()
  assert found.is_locked
  assert isinstance(found.optimizer.no_decay, tuple)


def test_overrides_apply_on_top(tmp_path):
  config = defaults.default()
  config.model.width = 48
  config.optimizer.b2 = 0.5
  write(tmp_path, config)
  found = parse(
    f"--workdir={tmp_path}",
    "--config.train.num_steps=7",
    "--config.tokenizer.lowercase=False",
  )
  assert found.train.num_steps == 7 and found.tokenizer.lowercase is False
  assert found.model.width == 48 and found.optimizer.b2 == 0.5
  found = parse(f"--workdir={tmp_path}", "--config.optimizer=muon")
  assert found.optimizer.rule == "muon" and found.model.width == 48
  for wrong, words in (
    ("--config.model.witdh=3", "model.witdh"),
    ("--config.model.width=wide", "model.width"),
    ("--config.train.num_steps=0", r"train\.num_steps=0 is out of range"),
  ):
    with pytest.raises(ConfigError, match=words):
      parse(f"--workdir={tmp_path}", wrong)


def test_the_architecture_is_the_runs_own_not_that_of_init_from(tmp_path):
  """It may have been overridden, and init_from may be gone."""
  config = defaults.default()
  config.init_from = str(tmp_path / "gone")
  config.model.width = 36
  assert parse(f"--workdir={write(tmp_path, config)}").model.width == 36
  # Given anew, it is opened.
  with pytest.raises(ConfigError, match="other: no such folder"):
    parse(f"--workdir={tmp_path}", f"--config.init_from={tmp_path / 'other'}")


def test_unverified_checkpoints_are_accepted_for_one_start(tmp_path):
  config = defaults.default()
  config.train.resume_unverified = True
  write(tmp_path, config)
  assert not parse(f"--workdir={tmp_path}").train.resume_unverified
  given = "--config.train.resume_unverified=True"
  assert parse(f"--workdir={tmp_path}", given).train.resume_unverified


def test_options_of_other_versions(tmp_path):
  values = json.loads(defaults.default().to_json_best_effort())
  del values["train"]["keep_best"], values["mesh"]
  values["data"]["gone"] = 3
  values["extinct"] = {"option": 1}
  values["seed"] = 5
  (tmp_path / "config.json").write_text(json.dumps(values))
  found = resumed.load_config(tmp_path)
  assert found.seed == 5
  found.seed = 0
  assert found.to_dict() == defaults.default().to_dict()


@pytest.mark.parametrize(
  ("text", "words"),
  [
    (None, "has no config.json: to start one there, give --config"),
    ("{", "not one of pretraining. Give --config"),
    ("[" * 100_000, "not one of pretraining. Give --config"),
    ("[1]", "not one of pretraining. Give --config"),
    ('{"model_type": "bert"}', "not one of pretraining. Give --config"),
    ('{"task": {"kind": "tagging"}}', "with `maskedlm finetune`"),
    ('{"imported": {}}', "--config.init_from="),
    ('{"retokenized": {}}', "--config.init_from="),
    ('{"objective": {"name": "roberta"}, "seed": "x"}', "is not the config"),
    ('{"objective": {"name": "roberta"}, "data": 3}', "is not the config"),
    ('{"objective": 3}', "is not the config"),
    ('{"objective": {"name": "rberta"}}', "objective"),
  ],
)
def test_what_is_no_run_of_pretraining(tmp_path, text, words):
  if text is not None:
    (tmp_path / "config.json").write_text(text)
  with pytest.raises(ConfigError) as caught:
    parse(f"--workdir={tmp_path}")
  assert words in str(caught.value) and str(tmp_path) in str(caught.value)


def test_a_run_of_pretraining_is_not_fine_tuned(tmp_path):
  write(tmp_path, defaults.default())
  with pytest.raises(ConfigError, match="with `maskedlm pretrain`"):
    start.continued_config(tmp_path, [])


def earlier(folder, optimizer, **train):
  """Writes the config.json of fine-tuning by an earlier version."""
  config = finetune_config.default("classification")
  config.init_from = "encoder"
  values = json.loads(config.to_json_best_effort())
  values["optimizer"] |= optimizer
  values["train"] |= {"warmup_share": 0.1, "num_steps": 30, "eval_every": 10}
  values["train"] |= train
  (folder / "config.json").write_text(json.dumps(values))
  return folder


def test_a_fine_tuning_of_an_earlier_version_goes_on(tmp_path):
  """Its numbers of steps follow from its epochs, as far as they did."""
  path = earlier(tmp_path, {"warmup_steps": 3}, epochs=5.0, evals_per_epoch=2)
  found = start.continued_config(path, [])
  assert (found.train.epochs, found.train.evals_per_epoch) == (5, 2)
  assert found.optimizer.warmup_steps == 0.1
  # Given as a number, not by a share.
  path = earlier(tmp_path, {"warmup_steps": 7})
  assert start.continued_config(path, []).optimizer.warmup_steps == 7
  for name in ("num_steps", "eval_every", "checkpoint_every", "warmup_share"):
    with pytest.raises(ConfigError, match=f"train.{name}: .*; it was removed"):
      start.continued_config(path, [f"--config.train.{name}=1"])


@pytest.mark.parametrize(
  ("before", "now"),
  [
    ("linear False False 1.0", "linear"),
    ("wsd True True 2.0", "wsd"),  # The others had no effect.
    ("linear True False 1.0", "bert"),
    ("linear True True 1.0", "electra"),
    ("polynomial True False 0.5", "lamb"),
    ("polynomial True False 2.0", None),
    ("polynomial False False 0.5", None),
    ("cosine True False 1.0", None),
  ],
)
def test_a_schedule_of_an_earlier_version_has_a_name_now(before, now, tmp_path):
  config = defaults.default()
  values = json.loads(config.to_json_best_effort())
  names = "schedule", "decay_from_zero", "warmup_times_decay", "power"
  curve = before.split()
  values["optimizer"] |= dict(
    zip(
      names,
      (curve[0], *map(json.loads, map(str.lower, curve[1:]))),
      strict=True,
    )
  )
  values["optimizer"]["bias_correction"] = False
  (tmp_path / "config.json").write_text(json.dumps(values))
  if now is None:
    with pytest.raises(ConfigError, match="there is no such schedule now"):
      parse(f"--workdir={tmp_path}")
    return
  found = parse(f"--workdir={tmp_path}").optimizer
  assert (found.schedule, found.rule) == (now, "bert_adam")
  identity = {"corpus": "a", "tokenizer": "b"}
  new = {**values, "optimizer": json.loads(found.to_json_best_effort())}
  said = []
  resume.check_identity(
    {**identity, "config": values},
    {**identity, "config": new},
    frozen=defaults.frozen_options(config),
    log=said.append,
  )
  assert not said


def test_a_run_of_a_sweep_is_continued_alone(tmp_path):
  config = finetune_config.default("classification")
  config.sweep.seeds = (1, 2)
  config.sweep.learning_rate = (1e-5,)
  found = start.continued_config(write(tmp_path, config), [])
  assert not any(found.sweep[name] for name in found.sweep)
