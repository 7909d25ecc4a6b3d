"""A new option is a decision: these numbers may only fall without one."""

import dataclasses

from maskedlm.config import defaults
from maskedlm.finetune import config as finetuning
from maskedlm.pretraining import objectives

SECTIONS = {
  "": 12,
  "corpus": 20,
  "tokenizer": 11,
  "model": 34,
  "data": 4,
  "optimizer": 16,
  "train": 16,
  "mesh": 3,
}
OBJECTIVES, FINE_TUNING, TASKS = 64, 45, 116


def count(classes):
  return sum(len(dataclasses.fields(cls)) for cls in classes)


def test_of_pretraining():
  assert defaults.SECTIONS.keys() == SECTIONS.keys()
  for name, cls in defaults.SECTIONS.items():
    assert count([cls]) <= SECTIONS[name], f"config.{name}"
  loaded = map(objectives.load_objective, objectives.names())
  assert count(module.Options for module in loaded) <= OBJECTIVES


def test_of_fine_tuning():
  shared = finetuning.SECTIONS.keys() - {"optimizer", "mesh"}
  assert count(finetuning.SECTIONS[name] for name in shared) <= FINE_TUNING
  loaded = map(finetuning.load_task, finetuning.task_names())
  assert count(task.Options for task in loaded) <= TASKS
