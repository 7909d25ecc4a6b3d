"""Every task: from a labelled file to a checkpoint, evaluate and predict."""

import dataclasses
import json
import math
import pathlib
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from helpers import finetune_runs as runs
from helpers import in_process, task_files
from maskedlm.cli import main
from maskedlm.config import overrides
from maskedlm.core.errors import ConfigError, DataError
from maskedlm.data.labelled.bio import Entity
from maskedlm.data.labelled.formats.predicates import Predicate
from maskedlm.finetune import config as configs
from maskedlm.finetune import data_files, initial_params, predict, run
from maskedlm.finetune.constituency.metrics import PUNCTUATION
from maskedlm.finetune.contract import Setup, options_that

TASKS = configs.task_names()


# Resuming is the loop's; these differ in their rows and in what they tune. Only
# they have dropout, 8 devices and two evaluations, which take most of the time:
# test_teacher.py traces the dropout of every task.
WHOLE = ("retrieval", "spans")
FROZEN = ("features", "text_features")
# Much like others, which are quick: tagging, classification, multiple_choice
# and retrieval.
RARE = ("features", "multi_label", "relations", "reranking")
RARE += ("similarity", "splade")


class Run(NamedTuple):
  """A short run of a task."""

  task: str
  config: Any
  workdir: pathlib.Path
  result: dict[str, Any]
  line: str


def test_every_task_has_a_file_here():
  assert task_files.task_names() == TASKS


def on_devices(task):
  return in_process.devices(8 if task in WHOLE else 1)


@pytest.fixture(
  scope="module",
  params=[
    pytest.param(task, marks=[pytest.mark.slow] * (task in RARE))
    for task in TASKS
  ],
)
def made(request, encoder, tmp_path_factory) -> Run:
  folder = tmp_path_factory.mktemp(request.param)
  config = configs.default(request.param)
  for part, count, seed in (("train", 40, 1), ("dev", 13, 2)):
    file = task_files.make_file(request.param, count, seed)
    path = folder / f"{part}{file.suffix}"
    path.write_text(file.text)
    config.data[part] = str(path)
  config.init_from = str(encoder)
  config.task.update(file.options)
  config.data.update(length=24, batch_size=8)
  config.model.unroll = False  # Half as much to compile.
  config.optimizer.learning_rate = 1e-2
  config.train.update(epochs=1.2, log_every=1, keep_last=2)  # Of 5 steps.
  config.train.evals_per_epoch = 1.5 if request.param in WHOLE else 0.5
  if request.param in FROZEN:
    config.optimizer.frozen_layers = -1  # As in their configs.
  if request.param not in WHOLE:
    config.model.update(dropout=0.0, attention_dropout=0.0)
  configs.validate(config)
  with on_devices(request.param):
    result = run.finetune(configs.typed(config), folder / "run")
  return Run(request.param, config, folder / "run", result, file.line)


def call(capsys, made, verb, *args):
  capsys.readouterr()
  assert main.main([verb, "--checkpoint", str(made.workdir), *args]) == 0
  return capsys.readouterr().out


def test_a_run_leaves_its_files(made):
  assert made.result["best_metric"] in made.result
  # 1.2 epochs of 5 batches of 8 rows; the windows of some are 46 or 106 rows.
  batches = {"tagging": 6, "features": 6, "question_answering": 14}
  assert made.result["steps"] == math.ceil(1.2 * batches.get(made.task, 5))
  assert (made.result["examples"], made.result["dev_examples"]) == (40, 13)
  model = predict.open_model(made.workdir)
  task = model.task
  assert model.tuned.items() >= {
    (name, value) for name, value in made.result.items() if name in model.tuned
  }
  examples = task.read_examples(made.config.data.dev)
  written = (made.workdir / "predictions.jsonl").read_text().splitlines()
  predictions = list(map(json.loads, written))
  assert len(predictions) == len(examples) == 13
  tables = task.format_tables(examples, predictions)
  assert tables
  for name, text in tables.items():
    assert (made.workdir / name).read_text() == text
  assert all(map(task.format_prediction, predictions))
  if task.export_predictions:
    files = task.export_predictions(predictions)
    assert files and all(files.values())


@pytest.mark.parametrize("made", ["text_features"], indirect=True)
def test_features_leave_the_encoder_as_it_was(made, encoder):
  before, after = (
    predict.load.open_best(path).params["encoder"]
    for path in (encoder, made.workdir)
  )
  jax.tree.map(np.testing.assert_array_equal, after, before)


@pytest.mark.parametrize("made", WHOLE, indirect=True)
def test_a_resumed_run_ends_with_the_same_bits(made, tmp_path):
  copy = tmp_path / "copy"
  with on_devices(made.task):
    runs.check_resumed(made.config, made.workdir, made.result, copy)


def test_evaluate_gives_the_result_of_the_run(made, capsys):
  data = made.config.data.dev
  scores = json.loads(call(capsys, made, "evaluate", "--data", data, "--json"))
  assert scores.pop("examples") == 13
  for name, value in scores.items():
    assert made.result[name] == pytest.approx(value), name


def test_a_run_from_a_run_of_the_same_task_begins_where_it_ended(made, capsys):
  config = made.config.copy_and_resolve_references()
  config.init_from = str(made.workdir)
  capsys.readouterr()
  prepared = run.prepare_run(configs.typed(config))
  said = capsys.readouterr().err.count(" from init_from, ")
  assert said == (made.task not in ("retrieval", "similarity"))  # No heads.
  start = predict.load.open_best(made.workdir)
  begin = initial_params.from_checkpoint(start, prepared.heads, reinit_layers=0)
  heads = jax.eval_shape(prepared.app.init, jax.random.key(0))
  fresh = {"encoder": start.params["encoder"], **heads}
  jax.tree.map(np.testing.assert_array_equal, begin(fresh), start.params)


WINDOWED = {
  "constituency",
  "coreference_chains",
  "dependency",
  "features",
  "question_answering",
  "semantic_roles",
  "spans",
  "tagging",
}


def test_predict_says_what_it_cuts(made, capsys):
  """Rows of 24 tokens; tasks that can't read windows lose the rest."""
  longer = " the" * 40
  if made.line.startswith("{"):
    line = made.line.replace("said a word", "said a word" + longer)
  else:
    line = made.line + longer
  argv = ["predict", "--checkpoint", str(made.workdir), "--json"]
  capsys.readouterr()
  assert main.main([*argv, made.line, line]) == 0
  shown, said = capsys.readouterr()
  assert len([*map(json.loads, shown.splitlines())]) == 2
  if made.task in WINDOWED:
    assert "cut to 24 tokens" not in said
  else:
    assert said.count("1 example was cut to 24 tokens (the longest has") == 1


@pytest.mark.parametrize("made", ["dependency"], indirect=True)
def test_export_writes_the_official_files(made, tmp_path, capsys):
  args = ["--data", made.config.data.dev, "--export", str(tmp_path / "out")]
  (path,) = call(capsys, made, "predict", *args).splitlines()
  assert path == str(tmp_path / "out" / "predictions.conllu")
  kept = made.workdir / "predictions.conllu"  # The run's.
  assert pathlib.Path(path).read_text() == kept.read_text()


@pytest.mark.parametrize("made", ["retrieval"], indirect=True)
def test_export_is_refused_where_there_is_no_official_file(made, capsys):
  args = ["--data", made.config.data.dev, "--export", "out"]
  argv = ["predict", "--checkpoint", str(made.workdir), *args]
  assert main.main(argv) == 2
  assert "--export: the task retrieval has no" in capsys.readouterr().err


@pytest.mark.parametrize("name", TASKS)
def test_only_overridable_options_can_be_set_beside_a_checkpoint(name):
  options = configs.load_task(name).Options
  names = {field.name for field in dataclasses.fields(options)}
  allowed = {*options_that(options, "overridable")}
  for option in ("no_such_option", *sorted(names - allowed)[:1]):
    token = f"--config.task.{option}=1"
    with pytest.raises(
      ConfigError, match=f"^--config.task.{option}: "
    ) as error:
      data_files.with_overrides(name, {}, [token])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", TASKS)
def test_options(name):
  options, config = configs.load_task(name).Options, configs.default(name)
  assert config.task.kind == config.name == name
  assert configs.task_of(configs.typed(config)).name == name
  configs.validate(config)
  assert {**config.task} == {"kind": name, **dataclasses.asdict(options())}
  with pytest.raises(ConfigError, match=r"task='no_such_option' is unknown"):
    configs.make_task(name, {"no_such_option": 1})
  frozen = configs.frozen_options(configs.typed(config))
  assert {f"task.{option}" for option in config.task} <= frozen
  for field in dataclasses.fields(options):
    assert field.metadata["doc"].endswith(".")
    if field.metadata["choices"]:
      with pytest.raises(ConfigError, match=f"task.{field.name}='xyz'"):
        configs.make_task(name, {field.name: "xyz"})


def test_an_option_of_an_earlier_version_is_left_out_or_refused(tmp_path):
  task = configs.make_task("tagging", {"crf_rate": 100.0, "crf": True})
  assert task.options.decode == "crf"
  task = configs.make_task("tagging", {"crf": False, "tag_all_subwords": False})
  assert task.options.decode == "words"
  with pytest.raises(ConfigError, match=r"task\.crf_rate=3.*100 times"):
    configs.make_task("tagging", {"crf_rate": 3})
  configs.make_task("constituency", {"punctuation": list(PUNCTUATION)})
  configs.make_task("dependency", {"arc_width": 500, "label_width": 100})
  with pytest.raises(ConfigError, match=r"arc_width=400: .*it is 500"):
    configs.make_task("dependency", {"arc_width": 400})
  path = tmp_path / "old.py"
  path.write_text(
    "from maskedlm.finetune import config\n"
    "def get_config():\n"
    "  made = config.default('question_answering')\n"
    "  made.task.n_best = 5\n"
  )
  with pytest.raises(ConfigError, match=r"n_best.* it was removed: a pred"):
    overrides.load_config(str(path), validate=configs.validate)
  config = configs.default("tagging")
  with pytest.raises(ConfigError, match=r"crf_rate: .*removed.*100 times"):
    overrides.change(
      config, ["--config.task.crf_rate=3"], configs.validate, of="ner.py"
    )
  with pytest.raises(ConfigError, match=r"'coreference'.*coreference_chains"):
    configs.default("coreference")


@pytest.mark.parametrize("name", TASKS)
def test_a_missing_label_is_noticed(name, encoder):
  """Examples from lines of predict have no labels."""
  file = task_files.make_file(name, 5)
  task = configs.make_task(name, file.options)
  start = predict.load.open_checkpoint(encoder)
  label_info = {"labels": ["O", "B-x"], "choices": 3, "tags": ["x"]}
  label_info |= {"root_labels": ["root"], "root": "TOP"}
  app = task.make_application(Setup(start.tokenizer, start.cfg, label_info, 24))
  with pytest.raises(DataError):
    app.require_labels([task.parse_line(file.line)])
  task.parse_line(task.demo_lines[0])


@pytest.mark.parametrize(
  ("name", "labels", "empty", "some", "metric"),
  [
    ("tagging", ["O", "B-x"], {"tags": ("O",)}, {"tags": ("B-x",)}, "f1"),
    ("features", ["O", "B-x"], {"tags": ("O",)}, {"tags": ("B-x",)}, "f1"),
    ("spans", ["O", "x"], {"spans": ()}, {"spans": (Entity("x", 0, 1),)}, "f1"),
    (
      "relations",
      ["Cause", "Other"],
      {"relation": "Other"},
      {"relation": "Cause"},
      "f1",
    ),
    (
      "constituency",
      ["NULL", "x"],
      {"brackets": ()},
      {"brackets": (("x", 0, 2),)},
      "bracket_f1",
    ),
    (
      "semantic_roles",
      ["O", "B-x", "I-x"],
      {"predicates": (Predicate(0),)},
      {"predicates": (Predicate(0, (Entity("x", 1, 2),)),)},
      "srl_f1",
    ),
    ("multi_label", ["x", "y"], {"label": ()}, {"label": ("y",)}, "micro_f1"),
    (
      "coreference_chains",
      [],
      {"chains": ()},
      {"chains": (((0, 1), (1, 2)),)},
      "conll_f1",
    ),
  ],
)
def test_nothing_to_find_in_what_is_scored_is_one_line(
  name, labels, empty, some, metric, encoder, capsys
):
  task = configs.make_task(
    name, {"pair": "spans"} if name == "relations" else {}
  )
  start = predict.load.open_checkpoint(encoder)
  app = task.make_application(
    Setup(
      start.tokenizer,
      start.cfg,
      {"labels": labels, "tags": ["x"], "root": "TOP"},
      24,
    )
  )
  example = task.parse_line(task.demo_lines[0])._replace(where="dev.txt:3")
  if "tags" in empty:
    example = example._replace(words=("a",), lines=(3,))
  without, with_some = (example._replace(**kind) for kind in (empty, some))
  capsys.readouterr()
  app.require_labels([without, with_some])
  assert not capsys.readouterr().err
  app.require_labels([without, without])
  (shown,) = capsys.readouterr().err.splitlines()
  assert "dev.txt: no " in shown and f"so {metric} is 0" in shown
