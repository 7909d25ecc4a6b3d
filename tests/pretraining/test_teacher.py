"""Pretraining with a teacher: exact resume, the mesh, costs, refusals."""

import json
import shutil

import jax
import numpy as np
import pytest

from helpers import workdirs
from helpers.any_task import train_on
from helpers.killed_runs import killed_after, train
from maskedlm.config import defaults, overrides
from maskedlm.core.errors import ConfigError
from maskedlm.data.corpus import store
from maskedlm.data.prepare import prepare
from maskedlm.data.tokenizers.tokenizer import load_tokenizer
from maskedlm.modeling.architecture import restored
from maskedlm.planning import compile
from maskedlm.pretraining import objectives
from maskedlm.pretraining.config import split
from maskedlm.pretraining.initial import init_from
from maskedlm.training.checkpoints import files, load

pytestmark = pytest.mark.usefixtures("on_one")


def make_config(tiny, **changes):
  path, corpus = tiny
  objective = changes.pop("objective", "roberta")
  config = overrides.load_config(
    str(path),
    [f"--config.objective.name={objective}", f"--config.corpus.path={corpus}"],
  )
  config.train.update(num_steps=3, eval_every=2, eval_rows=8, keep_last=9)
  config.train.update(checkpoint_every=2, log_every=1)
  config.optimizer.warmup_steps = 0
  config.data.update(length=24, batch_size=8)
  config.update_from_flattened_dict(changes)
  defaults.validate(config)
  return config


LARGE = {"model.num_layers": 4, "model.width": 40}


def untrained(config, folder, seed=0, scale=0.1):
  """Writes the run of a config, as if it had ended; returns its path."""
  task = make_task(config)
  shapes = jax.eval_shape(task.init, jax.random.key(0))
  params = jax.tree.map(lambda x: scale * x, workdirs.randomise(shapes, seed))
  workdirs.save(
    folder,
    params,
    restored(task.describe["encoder"]),
    load_tokenizer(f"{config.corpus.path}/tokenizer"),
    **task.describe,
  )
  return str(folder)


@pytest.fixture(scope="module")
def teacher(tiny, tmp_path_factory):
  folder = tmp_path_factory.mktemp("teacher") / "run"
  return untrained(make_config(tiny, **LARGE), folder)


def student(tiny, path, **changes):
  own = {"teacher": path, "teacher_layers": (2, 4)}
  return make_config(tiny, **{**own, **changes})


def make_task(config):
  return objectives.make_task(
    typed(config), store.open_corpus(config.corpus.path)
  )


def typed(config):
  return split(config)[0].config


def test_a_kill_changes_nothing_and_another_teacher_is_refused(
  tiny, teacher, tmp_path
):
  own = shutil.copytree(teacher, tmp_path / "teacher")
  config = student(tiny, str(own))
  state, heldout = train(config, tmp_path / "whole")
  killed = killed_after(2, tmp_path / "whole", tmp_path / "killed")
  shutil.rmtree(own)
  untrained(make_config(tiny, **LARGE), own, seed=1)
  with pytest.raises(ConfigError, match=r"the teacher was \w+, now ") as error:
    train(config, killed)
  assert "\n" not in str(error.value)
  shutil.rmtree(own)
  shutil.copytree(teacher, own)
  resumed, same = train(config, killed)
  jax.tree.map(np.testing.assert_array_equal, resumed, state)
  assert heldout == same
  # The teacher is on the devices as it was, and in no checkpoint.
  params = load.open_checkpoint(teacher).params
  jax.tree.map(np.testing.assert_array_equal, state.fixed["teacher"], params)
  record = files.load_record(tmp_path / "whole")
  assert not [name for name in record["arrays"] if "fixed" in name]
  assert "params/teacher_head/kernel" in record["arrays"]
  lines = (tmp_path / "whole" / "metrics.jsonl").read_text().splitlines()
  lines = [*map(json.loads, lines)]
  # At first the student's guesses are nearly uniform, the teacher's not so.
  first = next(x for x in lines if "teacher_loss" in x)
  assert 0 < first["teacher_loss"] < 1 and 0.5 < first["layers_loss"] < 1.5
  assert first["loss"] == pytest.approx(
    0.5 * first["mlm_loss"]
    + 0.5 * (first["teacher_loss"] + first["layers_loss"]),
    rel=1e-5,
  )
  # The held-out loss is of the text alone.
  assert heldout["loss"] == heldout["mlm_loss"]


@pytest.mark.parametrize("name", ["mlm_nsp", "spanbert", "gptbert"])
def test_objectives(name, tiny, tmp_path):
  """Each has scores to compare, and those of a copy of itself are no gap."""
  small = {"objective": name, "train.num_steps": 1}
  path = untrained(make_config(tiny, **small), tmp_path / "teacher")
  config = make_config(tiny, **small, teacher=path, teacher_weight=1.0)
  task = make_task(config)
  params = load.open_checkpoint(path).params
  key = jax.random.key(1)
  batch = jax.jit(task.corrupt)(task.batch_at("train", 0), key)
  terms, metrics = jax.jit(lambda p: task.loss(p, batch, key, True))(
    {**params, **task.fixed.load()}
  )
  count = 2 if name == "mlm_nsp" else 1
  assert len(terms) == count and "teacher" in terms
  for total, weight in terms.values():
    np.testing.assert_allclose(total, 0, atol=1e-4)
    assert np.sum(weight) > 0
  assert metrics.keys() > {"teacher_loss"}


def test_the_mesh_and_microbatches_change_nothing(tiny, tmp_path):
  # Its scores are far from uniform: a small loss would be mostly rounding.
  large = make_config(tiny, **LARGE)
  config = student(tiny, untrained(large, tmp_path / "teacher", scale=0.5))
  config.data.batch_size = 16
  task = make_task(config)
  first = train_on(config, task, (1, 1, 1), num_steps=2)
  other = train_on(config, task, (2, 2, 2), num_steps=2, accumulate=2)
  for a, b in zip(first[0], other[0], strict=True):
    for name in ("loss", "teacher_loss", "layers_loss"):
      np.testing.assert_allclose(
        a[name][0] / a[name][1], b[name][0] / b[name][1], rtol=2e-5
      )


def test_no_gradient_reaches_the_teacher_and_its_cost_counts(tiny, teacher):
  config = student(tiny, teacher)
  task, alone = make_task(config), make_task(make_config(tiny))
  large = make_task(make_config(tiny, **LARGE))
  assert task.flops(0) == alone.flops(0) + large.flops(0) / 3
  key = jax.random.key(0)
  batch = jax.jit(task.corrupt)(task.batch_at("train", 0), key)

  def loss(params):
    terms, _ = task.loss(params, batch, key, True)
    return sum(x.sum() for x, _ in terms.values())

  found = jax.jit(jax.grad(loss))({**task.init(key), **task.fixed.load()})
  assert not any(np.any(x) for x in jax.tree.leaves(found.pop("teacher")))
  assert all(np.any(x) for x in jax.tree.leaves(found["teacher_head"]))
  assert np.any(found["encoder"]["layers"]["mlp"]["up"]["kernel"])


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"teacher_layers": (2,)}, r"\(2,\): expected 2 numbers, .* 1 to 4"),
    ({"teacher_layers": (2, 5)}, "expected 2 numbers"),
    ({"teacher_layers": (0, 0)}, "expected 2 numbers"),
    ({"objective": "mlm_nsp"}, "has no nsp_head.*of the same objective"),
    ({"objective": "electra"}, "has no discriminator_head"),
    ({"objective": "bilm", "teacher_layers": ()}, "has no bilm_head"),
    ({"objective": "causal"}, "has no causal=True: expected a model of the"),
    ({"teacher": "/nowhere"}, "/nowhere: no such folder"),
    (
      {"data.length": 4096, "model.max_positions": 4096},
      "data.length=4096 is more than the .* of teacher=",
    ),
  ],
)
def test_refused(tiny, teacher, changes, message):
  config = student(tiny, teacher, **changes)
  with pytest.raises(ConfigError, match=message) as error:
    make_task(config)
  assert "\n" not in str(error.value)


def test_the_tokenizer_is_the_teachers(tiny, teacher, tmp_path):
  """It is copied for text of one's own; a corpus with another is refused."""
  given = [f"--config.teacher={teacher}", "--config.tokenizer.vocab_size=90"]
  config = overrides.load_config(str(tiny[0]), given)
  init_from.copy_architecture(config)
  assert config.tokenizer.path == f"{teacher}/tokenizer"
  assert config.tokenizer.vocab_size == 500
  assert config.model.num_layers == 2  # The architecture stays its own.
  config = student(tiny, teacher)
  config.tokenizer.vocab_size = 300
  made = tmp_path / "corpus"
  corpus = prepare.prepare(typed(config), made, log=print)
  with pytest.raises(ConfigError, match="has the tokenizer"):
    objectives.make_task(typed(config), corpus)


@pytest.mark.parametrize(
  ("name", "lacking"), [("electra", "layers"), ("bilm", "scores")]
)
def test_a_loss_without_anything_to_compare_is_refused(
  name, lacking, tiny, tmp_path
):
  path = untrained(make_config(tiny, objective=name), tmp_path / "teacher")
  layers = (1, 2) if lacking == "layers" else ()
  own = {"teacher": path, "teacher_layers": layers}
  with pytest.raises(ConfigError, match=f"has no {lacking} to compare"):
    make_task(make_config(tiny, objective=name, **own))


def test_a_plan_counts_the_teachers_arrays(tiny, teacher):
  config = student(tiny, teacher, **{"train.accumulate": 1})
  made = compile.step_of_task(typed(config), make_task(config), jax.devices())
  parameters, *_ = compile.held_bytes(made, made.mesh)
  sizes = (load.open_checkpoint(teacher).params, made.program.state.params)
  assert parameters == sum(4 * x.size for x in jax.tree.leaves(sizes))
