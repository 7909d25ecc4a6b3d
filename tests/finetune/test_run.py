"""The run of fine-tuning and its verbs, with classification as the task."""

import collections
import functools
import io
import json
import re
import shutil
import sys

import jax
import numpy as np
import pytest

from helpers import finetune_runs as runs
from helpers.compilations import compiled_programs
from maskedlm.cli import main
from maskedlm.core.errors import ConfigError, DataError
from maskedlm.finetune import config as configs
from maskedlm.finetune import initial_params, predict, results, run, start
from maskedlm.training import sharding
from maskedlm.training.checkpoints import load
from maskedlm.training.step import totals

pytestmark = pytest.mark.usefixtures("on_one")
WORDS = {"good": ("film", "cat", "book"), "bad": ("end", "dog", "table")}


def lines(count):
  """Yields texts, labelled by which of two words they contain."""
  for i in range(count):
    label = "good" if i % 3 else "bad"
    tail = " the house" * (i % 5)
    yield f"the {label} {WORDS[label][i % 2]}{tail}\t{label}"


@pytest.fixture(scope="module")
def folder(encoder, tmp_path_factory):
  """Returns a folder with an encoder and labelled files."""
  path = tmp_path_factory.mktemp("finetune")
  shutil.copytree(encoder, path / "encoder")
  head = "text\tlabel\n"
  (path / "train.tsv").write_text(head + "\n".join(lines(53)) + "\n")
  (path / "dev.tsv").write_text(head + "\n".join(lines(17)) + "\n")
  return path


def make_config(folder):
  c = configs.default("classification")
  c.init_from = str(folder / "encoder")
  c.data.train = str(folder / "train.tsv")
  c.data.dev = str(folder / "dev.tsv")
  c.data.length = 24
  c.data.batch_size = 8
  c.model.update(dropout=0.0, attention_dropout=0.0, unroll=False)
  c.optimizer.learning_rate = 1e-2
  c.train.epochs = 6
  c.train.evals_per_epoch = 0.5
  c.train.log_every = 1
  c.train.keep_last = 5
  return c


@pytest.fixture
def config(folder):
  return make_config(folder)


@pytest.fixture(scope="module")
def compiled(folder):
  """Returns (workdir, result, config) of a run, and its programs."""
  config = make_config(folder)
  workdir = folder / "run"
  with compiled_programs() as names:
    result = run.finetune(configs.typed(config), workdir)
    return (workdir, result, config), collections.Counter(names)


@pytest.fixture(scope="module")
def finished(compiled):
  """Returns (workdir, result, config) of a run."""
  return compiled[0]


def test_a_short_run_compiles_few_programs(compiled):
  # Held-out rows have two lengths, but so few steps get one number of
  # rows for 8 texts. Nothing is compiled outside of these functions.
  known = dict.fromkeys(("init", "step", "add", "outputs", "_all_finite"), 1)
  assert compiled[1] <= collections.Counter(known, heldout_step=2)


def test_a_run_continues_with_the_config_of_its_workdir(finished, tmp_path):
  workdir, result, _ = finished
  config = start.continued_config(workdir, [])
  runs.check_resumed(config, workdir, result, tmp_path / "copy")
  for option in ("suite=('a', 'b')", "sweep.seeds=(1, 2)"):
    with pytest.raises(ConfigError, match=option.partition("=")[0]):
      start.continued_config(workdir, [f"--config.{option}"])


def test_a_run_learns_and_leaves_its_files(finished):
  workdir, result, _ = finished
  assert result["accuracy"] == 1.0  # One word decides the label.
  assert result["steps"] == 6 * 7  # ceil(53 / 8) steps an epoch.
  assert not result["degenerate"]
  assert result["train_seconds"] > 0
  written = json.loads((workdir / "result.json").read_text())
  assert written == result
  predictions = (workdir / "predictions.jsonl").read_text().splitlines()
  places = [json.loads(x)["where"].rpartition("/")[2] for x in predictions]
  assert places == [f"dev.tsv:{i}" for i in range(2, 19)]
  assert (workdir / "confusion.tsv").exists()
  config = json.loads((workdir / "config.json").read_text())
  assert config["train"]["num_steps"] == 42
  assert config["optimizer"]["warmup_steps"] == 0.1
  assert config["train"]["eval_every"] == 2 * 7


def test_a_stop_does_not_change_whether_a_runis_degenerate(tmp_path):
  """Its lines join to those of 10 steps: a mean of 1.0, then one of 0.955."""
  log = tmp_path / "metrics.jsonl"
  for losses, degenerate in (
    ({10: 1.0, 20: 0.955}, True),
    ({3: 2.0, 10: 4 / 7, 20: 0.955}, True),  # Stopped at step 3.
    ({10: 1.0, 20: 0.945}, False),
    ({10: 1.0, 12: 0.5, 15: 1.2, 20: 0.97}, False),
  ):
    lines = (f'{{"step": {n}, "loss": {x}}}\n' for n, x in losses.items())
    log.write_text("".join(lines))
    assert results.is_degenerate(log, 10) is degenerate


def test_initial_params_with_reinitialised_layers(folder):
  start = load.open_checkpoint(folder / "encoder")
  fresh = jax.tree.map(lambda x: 0 * x + 7, start.params)
  fresh["class_head"] = {"kernel": np.float32(5)}
  made = initial_params.from_checkpoint(start, {}, reinit_layers=1)(fresh)
  old = start.params["encoder"]["layers"]["mlp"]["up"]["kernel"]
  new = made["encoder"]["layers"]["mlp"]["up"]["kernel"]
  np.testing.assert_array_equal(new[0], old[0])
  assert (new[1] == 7).all()
  np.testing.assert_array_equal(
    made["pooler"]["dense"]["kernel"], start.params["pooler"]["dense"]["kernel"]
  )
  assert made["class_head"]["kernel"] == 5


@pytest.mark.parametrize(
  ("changes", "line"),
  [
    ({"model.fresh_head": True}, ""),
    ({"pretrained": False}, ""),
    ({"task.pooler": False}, "task.pooler: True (here False)"),
    ({"data.train": "fine"}, "only in init_from 'good', only here 'fine'"),
  ],
)
def test_a_head_of_another_kind_is_not_taken_over(
  finished, changes, line, tmp_path, capsys
):
  workdir, _, config = finished
  config = config.copy_and_resolve_references()
  config.init_from = str(workdir)
  if "data.train" in changes:
    path = tmp_path / "train.tsv"
    text = (workdir.parent / "dev.tsv").read_text()
    path.write_text(text.replace("\tgood", "\tfine"))
    changes = {"data.train": str(path), "data.dev": str(path)}
  config.update_from_flattened_dict(changes)
  capsys.readouterr()
  assert run.prepare_run(configs.typed(config)).heads == {}
  said = capsys.readouterr().err
  assert line in said and ("head: " in said) == bool(line)


def test_packing_changes_no_loss(config, capsys):
  """Of the first batches, with four rows on each of two devices."""
  loss = {}
  for config.data.pack in (True, False):
    typed = configs.typed(config)
    mesh = sharding.make_mesh(typed.mesh, jax.devices()[:2])
    prepared = run.prepare_run(typed)
    task, _ = run.make_task(prepared, typed, mesh)
    found = r"\(8 texts share (.+) rows of \d+ tokens\)"
    (count,) = re.findall(found, capsys.readouterr().err)
    assert re.fullmatch(r"\d+ to 8" if config.data.pack else "8", count)
    heads = jax.jit(prepared.app.init)(jax.random.key(0))
    params = {**heads, **prepared.start.params}
    compute = jax.jit(functools.partial(task.loss, key=None, train=False))
    batches = (task.batch_at("train", step) for step in range(3))
    made = [totals(compute(params, batch))[0]["class"] for batch in batches]
    loss[config.data.pack] = np.array(made)
  np.testing.assert_allclose(loss[True], loss[False], rtol=1e-5)


def test_predictions_do_not_depend_on_the_batch(finished):
  """An example alone and one among longer ones get the same prediction."""
  workdir, _, config = finished
  model = predict.open_model(workdir)
  examples = model.task.read_examples(config.data.dev)
  together = predict.predict(model, examples, batch_size=16)
  for i in (0, 4, 11):
    (alone,) = predict.predict(model, [examples[i]])
    assert alone["label"] == together[i]["label"]
    assert alone["probability"] == pytest.approx(
      together[i]["probability"], abs=1e-5
    )


def test_evaluate_and_predict_from_the_command_line(finished, tmp_path, capsys):
  workdir, result, config = finished
  out = tmp_path / "out.jsonl"
  argv = ["--checkpoint", str(workdir), "--data", config.data.dev]
  assert main.main(["evaluate", *argv, "--json", "--out", str(out)]) == 0
  values = json.loads(capsys.readouterr().out)
  assert values["accuracy"] == result["accuracy"]
  assert len(out.read_text().splitlines()) == 17
  some = tmp_path / "some.csv"  # Rows without a label are no rows of --out.
  some.write_text("id,text,label\n7,the good cat,good\n8,a cat,-\n9,bad,bad\n")
  scored = ["--checkpoint", str(workdir), "--data", str(some)]
  assert main.main(["evaluate", *scored, "--out", str(out)]) == 0
  shown = map(json.loads, out.read_text().splitlines())
  assert [x["where"] for x in shown] == [f"{some}:2", f"{some}:4"]
  capsys.readouterr()
  argv = ["predict", "--checkpoint", str(workdir)]
  assert main.main([*argv, "the good book", "the bad dog"]) == 0
  shown = capsys.readouterr().out.splitlines()
  assert [line.split("\t")[0] for line in shown] == ["good", "bad"]
  source = tmp_path / "lines.txt"
  source.write_text('\ufeff{"text": "the bad end"}\n\nthe good cat\n')
  assert main.main([*argv, "--json", "--input", str(source)]) == 0
  shown = map(json.loads, capsys.readouterr().out.splitlines())
  assert [(p["line"], p["label"]) for p in shown] == [(1, "bad"), (3, "good")]
  assert main.main([*argv, "--json", "--data", config.data.dev]) == 0
  shown = capsys.readouterr().out.splitlines()
  assert len(shown) == 17 and "line" not in json.loads(shown[0])
  assert json.loads(shown[3])["where"] == f"{config.data.dev}:5"
  assert main.main([*argv, "--json", "--input", str(some)]) == 0
  shown = map(json.loads, capsys.readouterr().out.splitlines())
  assert [x["line"] for x in shown] == [2, 3, 4]


def test_input_is_reported_by_line(finished, tmp_path, capsys, monkeypatch):
  def refused(verb, *args):
    capsys.readouterr()
    assert main.main([verb, "--checkpoint", str(finished[0]), *args]) == 2
    return capsys.readouterr().err

  stdin = io.TextIOWrapper(io.BytesIO(b"the cat\ncaf\xe9\n"))
  monkeypatch.setattr(sys, "stdin", stdin)
  assert "error: stdin:2: not UTF-8" in refused("predict")
  missing = refused("predict", "--input", str(tmp_path / "none.txt"))
  assert "none.txt: no such file" in missing
  path = tmp_path / "lines.jsonl"
  path.write_text('{"text": "the cat"}\n\n{"txt": "a dog"}\n')
  assert (f'error: {path}:3: input {{"txt": "a dog"}}: no \'text\'') in refused(
    "predict", "--input", str(path)
  )
  assert "error: input {" in refused("predict", '{"txt": "a dog"}')
  path = tmp_path / "bare.tsv"
  path.write_text("text\nthe good cat\n")
  error = refused("evaluate", "--data", str(path))
  assert "bare.tsv:2: no 'label'" in error


def test_the_held_out_share_does_not_depend_on_the_seed(config):
  config.data.dev = ""
  config.data.dev_share = 0.25
  first = run.prepare_run(configs.typed(config))
  config.seed = 5
  second = run.prepare_run(configs.typed(config))
  assert [e.text for e in first.dev] == [e.text for e in second.dev]
  assert len(first.train) + len(first.dev) == 53
  assert 0 < len(first.dev) < 30
  config.data.max_train = 11
  assert len(run.prepare_run(configs.typed(config)).train) == 11


@pytest.mark.parametrize(
  ("change", "message"),
  [
    ({"init_from": ""}, "init_from is empty"),
    ({"init_from": "nowhere"}, "nowhere: no such folder"),
    ({"data.train": ""}, "data.train is empty"),
    ({"data.length": 64}, "data.length=64 is more than the 48 positions"),
    ({"data.dev": "", "data.dev_share": 0.0}, "no example is left for dev"),
    ({"model.reinit_layers": 3}, "model.reinit_layers=3: expected 0 to 2"),
    # Before training, and before other files are predicted.
    ({"data.dev": "bare.tsv"}, "bare.tsv:2: no 'label'"),
    ({"data.also_score": ("bare.tsv",)}, "bare.tsv:2: no 'label'"),
    ({"data.also_score": ("none.tsv",)}, "none.tsv: No such file"),
  ],
)
def test_errors_are_one_line(config, change, message, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  (tmp_path / "bare.tsv").write_text("text\nthe good cat\n")
  config.update_from_flattened_dict(change)
  with pytest.raises((ConfigError, DataError)) as error:
    run.prepare_run(configs.typed(config))
  assert message in str(error.value)
  assert "\n" not in str(error.value)


def test_a_workdir_of_pretraining_is_left_alone(config, tmp_path):
  (tmp_path / "config.json").write_text('{"objective": {}}')
  with pytest.raises(ConfigError, match="run: pretraining, and this is fine-t"):
    run.finetune(configs.typed(config), tmp_path)
  assert [path.name for path in tmp_path.iterdir()] == ["config.json"]
  assert (tmp_path / "config.json").read_text() == '{"objective": {}}'


def test_also_score(finished, tmp_path):
  workdir, result, config = finished
  copy = tmp_path / "copy"
  shutil.copytree(workdir, copy)
  config = config.copy_and_resolve_references()
  config.data.also_score = (config.data.dev,)
  again = run.finetune(configs.typed(config), copy)
  scored = again.pop("also_scored")[config.data.dev]
  assert again == {k: v for k, v in result.items() if k != "also_scored"}
  assert scored == {name: result[name] for name in scored}
  assert scored["accuracy"] == 1.0


def test_the_result_is_written_before_also_score(
  finished, tmp_path, monkeypatch
):
  workdir, result, config = finished
  copy = tmp_path / "copy"
  shutil.copytree(workdir, copy)
  made = ("result.json", "predictions.jsonl", "confusion.tsv")
  (copy / "predictions.jsonl").unlink()
  (copy / "confusion.tsv").unlink()
  config = config.copy_and_resolve_references()
  config.data.also_score = (config.data.train,)
  original = predict.predict

  def fail(model, examples, **kwargs):
    if len(examples) == 53:
      raise MemoryError
    return original(model, examples, **kwargs)

  monkeypatch.setattr(predict, "predict", fail)
  with pytest.raises(MemoryError):
    run.finetune(configs.typed(config), copy)
  assert all((copy / name).exists() for name in made)
  written = json.loads((copy / "result.json").read_text())
  assert written["accuracy"] == result["accuracy"]
  assert "also_scored" not in written


def test_a_pretrained_checkpoint_can_not_predict(folder, capsys):
  code = main.main(["predict", "--checkpoint", str(folder / "encoder"), "x"])
  assert code == 2
  assert "was pretrained, not fine-tuned" in capsys.readouterr().err


def test_the_command_line_may_name_the_task(tmp_path, capsys, monkeypatch):
  path = tmp_path / "c.py"
  path.write_text(
    "from maskedlm.finetune import config\n"
    "def get_config():\n  return config.default('classification')\n"
  )
  names = []
  monkeypatch.setattr(
    start, "run_or_sweep", lambda config, workdir: names.append(config.seed)
  )
  argv = [f"--config={path}", "--config.seed", "3"]
  for form in (argv, ["classification", *argv], [*argv, "classification"]):
    assert main.main(["finetune", *form]) == 0
  assert names == [3, 3, 3]
  assert main.main(["finetune", "clasification", *argv]) == 2
  assert 'did you mean "classification"' in capsys.readouterr().err
  assert main.main(["finetune", "tagging", *argv]) == 2
  error = capsys.readouterr().err
  assert "is for 'classification', not for 'tagging'" in error
  assert error.count("\n") == 1


def test_progress_is_at_most_twenty_lines(capsys):
  for done in range(1, 1001):
    predict.show_progress(done, 1000)
  lines = capsys.readouterr().err.splitlines()
  assert lines[0] == "50 of 1,000 batches"
  assert lines[-2:] == ["950 of 1,000 batches", "1,000 batches done"]
  assert len(lines) == 20
