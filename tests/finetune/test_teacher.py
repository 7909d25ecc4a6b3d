"""Fine-tuning with a teacher: every task, a whole run, refusals."""

import json
import pathlib

import jax
import pytest

from helpers import finetune_runs, task_files
from maskedlm.core.errors import ConfigError
from maskedlm.finetune import config as configs
from maskedlm.finetune import run
from maskedlm.modeling.reports import hear
from maskedlm.training import sharding
from maskedlm.training.checkpoints import load

# Tasks whose losses compare another number of scores than one: those that
# score in parts have none.
SCORES = {
  "coreference_chains": 0,
  "dependency": 2,
  "question_answering": 2,
  "semantic_roles": 2,
  "similarity": 0,  # Its loss compares all pairs of a batch.
  "spans": 0,
}


@pytest.fixture(autouse=True, scope="module")
def one_device():
  """For one device compiling takes a quarter less."""
  make = sharding.make_mesh

  def on_one(mesh, devices=None):
    return make(mesh, devices or jax.devices()[:1])

  with pytest.MonkeyPatch.context() as patched:
    patched.setattr(sharding, "make_mesh", on_one)
    yield


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
  """Returns two encoders, of 4 layers and of 2."""
  folder = tmp_path_factory.mktemp("encoders")
  large = {"num_layers": 4, "width": 40, "num_heads": 4}
  return [
    finetune_runs.make_encoder(folder / name, init_stddev=0.2, **sizes)
    for name, sizes in (("large", large), ("small", {}))
  ]


def make_config(name, folder, encoder, **changes):
  file = task_files.make_file(name, 8, 1)
  paths = [folder / f"{part}{file.suffix}" for part in ("train", "dev")]
  for path in paths:
    path.write_text(file.text)
  config = configs.default(name)
  config.init_from = str(encoder)
  config.data.update(train=str(paths[0]), dev=str(paths[1]))
  config.data.update(length=32, batch_size=4, pack=False)
  config.task.update(file.options)
  config.train.update(epochs=2.0, log_every=1, keep_last=3)
  config.optimizer.warmup_steps = 0
  if name == "tagging":
    config.task.decode = "first"
  config.update_from_flattened_dict(changes)
  configs.validate(config)
  return config


def train(config, folder):
  return run.finetune(configs.typed(config), folder)


def make_task(config):
  config = configs.typed(config)
  mesh = sharding.make_mesh(config.mesh)
  return run.make_task(run.prepare_run(config), config, mesh)[0]


@pytest.mark.parametrize("name", configs.task_names())
def test_what_a_loss_reports(name, encoders, tmp_path):
  task = make_task(make_config(name, tmp_path, encoders[1]))
  heard = []

  def loss(params, batch):
    found, reported = hear(task.loss, params, batch, jax.random.key(0), True)
    heard.append(reported)
    return found

  params = jax.eval_shape(task.init, jax.random.key(0))
  jax.eval_shape(loss, params, task.batch_at("train", 0))
  assert len(heard[0].scores) == SCORES.get(name, 1)
  of_vectors = name in ("features", "text_features")  # Frozen ones.
  assert len(heard[0].layers) == (not of_vectors)


@pytest.mark.parametrize(
  ("name", "changes"),
  [
    ("classification", {"teacher_layers": (0, 4)}),
    ("retrieval", {"train.accumulate": 2, "data.batch_size": 8}),
    ("spans", {"teacher_layers": (2, 4), "data.pack": True}),
  ],
)
def test_a_run(name, changes, encoders, tmp_path):
  train(make_config(name, tmp_path, encoders[0]), tmp_path / "teacher")
  changes = {**changes, "teacher": str(tmp_path / "teacher")}
  config = make_config(name, tmp_path, encoders[1], **changes)
  result = train(config, tmp_path / "run")
  lines = (tmp_path / "run" / "metrics.jsonl").read_text()
  for term in ("teacher", "layers"):
    there = (
      SCORES.get(name, 1) if term == "teacher" else "teacher_layers" in changes
    )
    assert (f'"{term}_loss"' in lines) == bool(there)
  finetune_runs.check_resumed(config, tmp_path / "run", result, tmp_path / "b")
  found = load.load_params(tmp_path / "run")[0]
  assert ("teacher_head" in found) == ("teacher_layers" in changes)
  train(make_config(name, tmp_path, encoders[0], seed=1), tmp_path / "other")
  (tmp_path / "teacher").rename(tmp_path / "before")
  (tmp_path / "other").rename(tmp_path / "teacher")
  with pytest.raises(ConfigError, match=r"the teacher was \w+, now "):
    train(config, tmp_path / "run")


def test_the_loss_of_vectors_does_not_depend_on_the_parts(encoders, tmp_path):
  train(make_config("retrieval", tmp_path, encoders[0]), tmp_path / "teacher")
  changes = {"teacher": str(tmp_path / "teacher"), "data.batch_size": 8}
  changes |= {"model.dropout": 0.0, "model.attention_dropout": 0.0}
  runs = []
  for count in (1, 2):
    changes["train.accumulate"] = count
    config = make_config("retrieval", tmp_path, encoders[1], **changes)
    train(config, tmp_path / str(count))
    log = (tmp_path / str(count) / "metrics.jsonl").read_text().splitlines()
    runs.append([x for x in map(json.loads, log) if "teacher_loss" in x])
  for name in ("loss", "teacher_loss"):
    first, second = ([x[name] for x in log] for log in runs)
    assert len(first) == 2 and min(first) > 0.01
    assert second == pytest.approx(first, rel=1e-4)


@pytest.fixture(scope="module")
def teacher(encoders, tmp_path_factory):
  folder = tmp_path_factory.mktemp("classification")
  train(make_config("classification", folder, encoders[0]), folder / "run")
  return str(folder / "run")


def test_a_teacher_of_another_task_is_refused(encoders, teacher, tmp_path):
  for name, path, message in (
    ("multi_label", teacher, "is no model of this task: .*classification"),
    ("classification", encoders[0], "is no model of this task: it is of pre"),
  ):
    config = make_config(name, tmp_path, encoders[1], teacher=str(path))
    with pytest.raises(ConfigError, match=message) as error:
      train(config, tmp_path / "run")
    assert "\n" not in str(error.value)
    assert not [*(tmp_path / "run").glob("*")]


def test_a_teacher_with_other_labels_or_tokens(encoders, teacher, tmp_path):
  config = make_config("classification", tmp_path, encoders[1], teacher=teacher)
  for path in map(pathlib.Path, (config.data.train, config.data.dev)):
    path.write_text(path.read_text().replace("\tbad", "\tawful"))
  with pytest.raises(ConfigError, match=r"no model of this task: .*'bad'"):
    train(config, tmp_path / "run")
  other = finetune_runs.make_encoder(tmp_path / "encoder", vocab_size=80)
  config = make_config("classification", tmp_path, other, teacher=teacher)
  with pytest.raises(ConfigError, match="has the tokenizer"):
    train(config, tmp_path / "run")


def test_a_loss_without_scores_is_refused(encoders, tmp_path):
  train(make_config("spans", tmp_path, encoders[0]), tmp_path / "teacher")
  own = {"teacher": str(tmp_path / "teacher")}
  config = make_config("spans", tmp_path, encoders[1], **own)
  with pytest.raises(ConfigError, match=r"no scores .*; set teacher_layers,"):
    train(config, tmp_path / "run")
