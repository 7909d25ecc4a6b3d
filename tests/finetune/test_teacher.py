"""Fine-tuning with a teacher: every task, a whole run, refusals."""

import functools
import pathlib
import shutil

import jax
import numpy as np
import pytest

from helpers import finetune_runs, task_files, untrained
from maskedlm.core.errors import ConfigError
from maskedlm.finetune import config as configs
from maskedlm.finetune import run
from maskedlm.modeling.reports import hear
from maskedlm.training import gradient_cache, sharding
from maskedlm.training import step as steps
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

pytestmark = pytest.mark.usefixtures("on_one")
NO_DROPOUT = {"model.dropout": 0.0, "model.attention_dropout": 0.0}


def make_teacher(name, folder, metrics=(None,)):
  """Saves an untrained model of a task, of 4 layers; returns its path.

  Args:
    name: the task's.
    folder: where it is saved as `teacher`.
    metrics: of its checkpoints, which all differ.
  """
  file = task_files.make_file(name, 8, 1)
  path = folder / f"teacher{file.suffix}"
  path.write_text(file.text)
  task = configs.make_task(name, file.options)
  about = task.describe_labels(task.read_examples(str(path)))
  sizes = {"num_layers": 4, "width": 40, "num_heads": 4, "metrics": metrics}
  path = folder / "teacher"
  return untrained.save_tuned(path, name, file.options, about, **sizes)


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
  config.model.unroll = False
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
def test_what_a_loss_reports(name, encoder, tmp_path):
  task = make_task(make_config(name, tmp_path, encoder))
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


def test_a_run_is_resumed_with_its_teacher_only(encoder, tmp_path):
  teacher = make_teacher("classification", tmp_path)
  changes = {"teacher": str(teacher), "teacher_layers": (0, 4), **NO_DROPOUT}
  config = make_config("classification", tmp_path, encoder, **changes)
  result = train(config, tmp_path / "run")
  log = (tmp_path / "run" / "metrics.jsonl").read_text()
  assert '"teacher_loss"' in log and '"layers_loss"' in log
  finetune_runs.check_resumed(config, tmp_path / "run", result, tmp_path / "b")
  assert "teacher_head" in load.load_params(tmp_path / "run")[0]
  shutil.rmtree(teacher)
  make_teacher("classification", tmp_path, (None, None))
  with pytest.raises(ConfigError, match=r"the teacher was \w+, now "):
    train(config, tmp_path / "run")


def test_spans_have_no_scores_but_layers(encoder, tmp_path):
  teacher = make_teacher("spans", tmp_path)
  own = {"teacher": str(teacher), "data.pack": True, **NO_DROPOUT}
  config = make_config("spans", tmp_path, encoder, **own)
  with pytest.raises(ConfigError, match=r"no scores .*; set teacher_layers,"):
    make_task(config)
  config.teacher_layers = (2, 4)
  task = make_task(config)
  key = jax.random.key(0)
  params = {**jax.eval_shape(task.init, key), **task.fixed.shapes}
  terms, _ = jax.eval_shape(
    lambda *args: task.loss(*args, key, True),
    params,
    task.batch_at("train", 0),
  )
  assert terms.keys() == {"spans", "layers"}


def test_the_loss_of_vectors_does_not_depend_on_the_parts(encoder, tmp_path):
  teacher = make_teacher("retrieval", tmp_path)
  changes = {"teacher": str(teacher), "data.batch_size": 8, **NO_DROPOUT}
  params = {"encoder": load.open_best(encoder).params["encoder"]}

  def gradient(count):
    changes["train.accumulate"] = count
    task = make_task(make_config("retrieval", tmp_path, encoder, **changes))
    task, parts = gradient_cache.divide(task, count)
    task = task.reading(jax.device_put(task.fixed.load()))
    of_batch = functools.partial(steps.gradient_of, task, count=parts)
    batch = task.batch_at("train", 0)
    grads, loss, stats = jax.jit(of_batch)(params, batch, jax.random.key(0))
    return grads, loss, stats["teacher_loss"]

  whole, parts = gradient(1), gradient(2)
  assert min(whole[1], whole[2][0]) > 0.01
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5),
    whole,
    parts,
  )


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
  return make_teacher("classification", tmp_path_factory.mktemp("teacher"))


def test_a_teacher_of_another_task_is_refused(encoder, teacher, tmp_path):
  for name, path, message in (
    ("multi_label", teacher, "is no model of this task: .*classification"),
    ("classification", encoder, "is no model of this task: it is of pre"),
  ):
    config = make_config(name, tmp_path, encoder, teacher=str(path))
    with pytest.raises(ConfigError, match=message) as error:
      train(config, tmp_path / "run")
    assert "\n" not in str(error.value)
    assert not [*(tmp_path / "run").glob("*")]


def test_a_teacher_with_other_labels_or_tokens(encoder, teacher, tmp_path):
  config = make_config(
    "classification", tmp_path, encoder, teacher=str(teacher)
  )
  for path in map(pathlib.Path, (config.data.train, config.data.dev)):
    path.write_text(path.read_text().replace("\tbad", "\tawful"))
  with pytest.raises(ConfigError, match=r"no model of this task: .*'bad'"):
    train(config, tmp_path / "run")
  other = finetune_runs.make_encoder(tmp_path / "encoder", vocab_size=80)
  config = make_config("classification", tmp_path, other, teacher=str(teacher))
  with pytest.raises(ConfigError, match="has the tokenizer"):
    train(config, tmp_path / "run")
