"""Options that are given are obeyed or refused, before anything is read."""

import pytest

from maskedlm.core.errors import ConfigError
from maskedlm.finetune import config as configs
from maskedlm.finetune import data_files


@pytest.mark.parametrize(
  ("task", "changes", "refused"),
  [
    ("tagging", {"task.task": "pos"}, {"task.file_scheme": "bio"}),
    ("tagging", {"task.task": "pos"}, {"task.scheme": "bioes"}),
    ("tagging", {"task.task": "pos"}, {"task.repair_bio": True}),
    ("tagging", {"task.tag_column": 2}, {"task.conllu_tag": "xpos"}),
    ("features", {"task.head": "linear"}, {"task.lstm_width": 7}),
    ("spans", {"task.nested": True}, {"task.tag_column": 2}),
    ("multi_label", {"task.columns": ("a", "b")}, {"task.label": "x"}),
    ("multi_label", {"task.columns": ("a", "b")}, {"task.separator": ";"}),
    ("classification", {"task.regression": True}, {"task.positive": "x"}),
    ("classification", {"task.layout": "stsb"}, {"task.positive": "x"}),
    ("tagging", {"data.dev": "x.conll"}, {"data.dev_share": 0.3}),
    ("tagging", {"sweep.epochs": (1,)}, {"train.epochs": 2.0}),
    (
      "tagging",
      {"optimizer.frozen_layers": -1},
      {"optimizer.layer_decay": 0.5},
    ),
    ("tagging", {"pretrained": False}, {"model.reinit_layers": 1}),
  ],
)
def test_an_option_without_an_effect_is_refused(task, changes, refused):
  def unused(values):
    config = configs.default(task)
    config.update_from_flattened_dict(values)
    configs.validate(config)  # A config file may have both.
    return set(configs.unused_options(configs.typed(config)))

  (name,) = refused
  assert name in unused(changes | refused)
  assert not unused(changes) & changes.keys()
  assert name not in unused(refused)  # Alone it has one.


def test_beside_a_checkpoint_only_what_is_given_is_refused():
  options = {"task": "pos", "scheme": "bioes"}  # An older run.
  token = "--config.task.tag_column=3"
  task = data_files.with_overrides("tagging", options, [token])
  assert task.options.tag_column == 3
  for token in (
    "--config.task.repair_bio=True",
    "--config.task.file_scheme=io",
  ):
    with pytest.raises(ConfigError) as error:
      data_files.with_overrides("tagging", options, [token])
    assert str(error.value).startswith(f"{token} has no effect with")


def test_a_threshold_of_no_answer_needs_questions_without_one():
  token = "--config.task.null_threshold=2"
  with_none = {"allow_impossible": True}
  task = data_files.with_overrides("question_answering", with_none, [token])
  assert task.options.null_threshold == 2.0
  with pytest.raises(ConfigError, match="null_threshold=2 has no effect"):
    data_files.with_overrides("question_answering", {}, [token])
