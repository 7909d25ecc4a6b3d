"""Which options a resumed run may change, and which it may not."""

import json
import os
import pathlib

import pytest

from maskedlm.config import defaults as config_lib
from maskedlm.core.errors import ConfigError
from maskedlm.training.checkpoints import resume

FROZEN = config_lib.frozen_options(config_lib.default())


def identity(**config):
  flat = {"model": {"width": 8, "dropout": 0.1}, "seed": 3, "train": {}}
  flat.update(config)
  return {"config": flat, "corpus": "c" * 64, "tokenizer": "t" * 64}


@pytest.mark.parametrize(
  ("old", "new", "changes"),
  [
    (identity(), identity(), []),
    (
      identity(train={"log_every": 5}),
      identity(train={"log_every": 7}, model={"width": 8, "dropout": 0.0}),
      ["model.dropout was 0.1, now 0.0", "train.log_every was 5, now 7"],
    ),
    (  # An option that is newer than the checkpoint.
      identity(),
      identity(model={"width": 8, "dropout": 0.1, "norm_epsilon": 1e-12}),
      ["model.norm_epsilon was '(absent)', now 1e-12"],
    ),
  ],
)
def test_allowed_changes_are_printed(old, new, changes):
  lines = []
  resume.check_identity(old, new, frozen=FROZEN, log=lines.append)
  assert lines == [f"changed since the checkpoint: {x}" for x in changes]


def test_frozen_changes_are_refused_with_the_difference():
  new = identity(model={"width": 16, "dropout": 0.0}, seed=4)
  lines = []  # Allowed changes are not logged as well.
  with pytest.raises(ConfigError) as caught:
    resume.check_identity(identity(), new, frozen=FROZEN, log=lines.append)
  assert lines == []
  assert "model.width was 8, now 16" in str(caught.value)
  assert "Undo the change: --config.model.width=8 " in str(caught.value)
  assert "seed was 3, now 4" in str(caught.value)
  assert "--workdir" in str(caught.value)


def test_model_options_that_may_change():
  free = {"init_stddev", "scaled_init"}  # Initialisation is over.
  free |= {"dropout", "attention_dropout", "dtype"}
  free |= {"attention", "remat", "unroll", "vocab_block"}  # Equal results.
  names = set(config_lib.default().model)
  assert free < names
  for name in names:
    old, new = identity(model={name: 1}), identity(model={name: 2})
    if name in free:
      resume.check_identity(old, new, frozen=FROZEN, log=lambda line: None)
      continue
    with pytest.raises(ConfigError, match=f"model.{name} was 1, now 2"):
      resume.check_identity(old, new, frozen=FROZEN, log=print)


@pytest.mark.parametrize("name", ["corpus", "tokenizer"])
def test_another_corpus_or_tokenizer_is_refused(name):
  new = {**identity(), name: "x" * 64}
  with pytest.raises(ConfigError, match=f"the {name} was .*, now xxx"):
    resume.check_identity(identity(), new, frozen=FROZEN, log=print)


def test_another_kind_of_run_is_not_compared_by_option():
  kinds = {"objective": {"name": "roberta"}, "task": {"kind": "tagging"}}
  pretraining, tuning = (identity(**{k: kinds[k]}) for k in kinds)
  imported = identity(imported={"directory": "bert"})
  respelled = identity(retokenized={"checkpoint": "bert"})
  another = "a model with another vocabulary, and this is"
  for old, new, words in (
    (pretraining, tuning, "another run: pretraining, and this is fine-tuning."),
    (tuning, pretraining, "another run: fine-tuning, and this is pretraining."),
    (imported, tuning, "another run: an import, and this is fine-tuning."),
    (
      respelled,
      pretraining,
      f"another run: {another} pretraining.",
    ),
  ):
    with pytest.raises(ConfigError) as caught:
      resume.check_identity(old, new, frozen=FROZEN, log=print)
    assert str(caught.value) == (
      f"this workdir holds {words} Choose another --workdir."
    )


def test_a_workdir_of_another_kind_of_run_is_refused(tmp_path):
  """So no corpus is prepared there, and no model's config.json is replaced."""
  new = config_lib.default()
  resume.check_workdir(tmp_path, new)  # It is new.
  config = tmp_path / "config.json"
  config.write_text(new.to_json_best_effort())
  resume.check_workdir(tmp_path, new)
  for text, words in (
    (json.dumps({"task": {}}), "another run: fine-tuning"),
    (json.dumps({"model_type": "bert"}), "a config.json that no run wrote"),
    ("[1]", "a config.json that no run wrote"),
    ("{", "a config.json that no run wrote"),
  ):
    config.write_text(text)
    with pytest.raises(ConfigError) as caught:
      resume.check_workdir(tmp_path, new)
    assert str(caught.value) == (
      f"{tmp_path} holds {words}, and this is pretraining. Choose another "
      "--workdir."
    )


def test_files_scored_after_the_last_step_may_change():
  lines = []
  old, new = (
    identity(data={"length": 8, "also_score": [name]})
    for name in ("test.tsv", "other.tsv")
  )
  resume.check_identity(old, new, frozen=FROZEN, log=lines.append)
  assert lines == [
    "changed since the checkpoint: data.also_score was ['test.tsv'], now "
    "['other.tsv']"
  ]
  new["config"]["data"]["length"] = 16
  with pytest.raises(ConfigError, match=r"data\.length was 8, now 16"):
    resume.check_identity(old, new, frozen=FROZEN, log=print)


@pytest.mark.parametrize(
  ("before", "now", "same"),
  [
    ("r", "./r", True),
    ("r", "r/", True),
    ("./x/../r", "{here}/r", True),
    ("link", "r", True),
    ("gs://bucket/r", "gs://bucket/r/", True),
    ("r", "r/checkpoints/10", False),
    ("r", "R", False),
    ("gs://bucket/r", "gs://bucket/s", False),
    ("", "", True),
    ("", ".", False),  # None is not the current folder.
    (".", "", False),
  ],
)
def test_init_from_may_be_spelt_otherwise(
  tmp_path, monkeypatch, before, now, same
):
  monkeypatch.chdir(tmp_path)
  (tmp_path / "r").mkdir()
  (tmp_path / "link").symlink_to("r")
  old = identity(init_from=before)
  new = identity(init_from=now.format(here=tmp_path))
  try:
    resume.check_identity(old, new, frozen=FROZEN, log=pytest.fail)
  except ConfigError as error:
    assert not same and f"init_from was '{before}'" in str(error)
  else:
    assert same


@pytest.mark.parametrize(
  ("section", "name", "before", "now"),
  [
    ("corpus", "source", "text:a", "text:./a/"),
    ("corpus", "parts", "en:a,de:b", "en:text:./a,de:{here}/b"),
    ("corpus", "path", "corpus", "{here}/corpus/"),
    ("tokenizer", "path", "x/../t", "t"),
    ("data", "train", "a.tsv,b.tsv", "./a.tsv,{here}/b.tsv"),
    ("data", "dev", "d*.tsv", "./d*.tsv"),
  ],
)
def test_files_may_be_spelt_otherwise(
  tmp_path, monkeypatch, section, name, before, now
):
  monkeypatch.chdir(tmp_path)
  old = identity(**{section: {name: before}})
  new = identity(**{section: {name: now.format(here=tmp_path)}})
  frozen = {f"{section}.{name}"}
  resume.check_identity(old, new, frozen=frozen, log=pytest.fail)
  other = identity(**{section: {name: now.format(here=tmp_path) + "x"}})
  with pytest.raises(ConfigError, match=f"{section}.{name} was"):
    resume.check_identity(old, other, frozen=frozen, log=pytest.fail)
  # Nor is the path to blame where the text has changed.
  with pytest.raises(ConfigError, match="the corpus was ccc") as caught:
    resume.check_identity(
      old, {**new, "corpus": "d" * 64}, frozen=frozen, log=pytest.fail
    )
  assert f"{section}.{name}" not in str(caught.value)


@pytest.mark.parametrize(
  ("make", "name", "kind"),
  [
    (os.mkdir, "metrics.jsonl", "file"),
    (os.mkdir, "result.json", "file"),  # Written after the last step.
    (os.mkfifo, "metrics.jsonl", "file"),
    (os.mkfifo, "config.json", "file"),
    (pathlib.Path.touch, "checkpoints", "folder"),
    (pathlib.Path.touch, "tokenizer", "folder"),
  ],
)
def test_strange_files_are_found_at_the_start(tmp_path, make, name, kind):
  make(tmp_path / name)
  with pytest.raises(ConfigError, match=f"{name} is not a {kind}"):
    resume.check_workdir(tmp_path, {"objective": {}})
