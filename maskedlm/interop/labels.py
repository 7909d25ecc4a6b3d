"""Maps fine-tuned heads to transformers' classes, labels and options.

transformers stores labels and options in config.json (id2label, problem_type),
maskedlm in the checkpoint's meta["task"], from which finetune/predict.py builds
the model.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from maskedlm.core.errors import InteropError
from maskedlm.core.task import Params
from maskedlm.data.labelled import label_scheme, tag_forms
from maskedlm.interop import own_task

# Task -> suffix of the class name in transformers.
CLASSES = {
  "multi_label": "ForSequenceClassification",  # Distinguished by problem_type.
  "classification": "ForSequenceClassification",
  "tagging": "ForTokenClassification",
  "question_answering": "ForQuestionAnswering",
  "multiple_choice": "ForMultipleChoice",
}
# problem_type in config.json.
PROBLEMS = (
  None,
  "single_label_classification",
  "multi_label_classification",
  "regression",
)
_MOST = 1_048_576  # Labels.
TASKS = {ending: task_name for task_name, ending in CLASSES.items()}


def read_task(
  config: Mapping[str, Any], task_name: str, length: int, where
) -> dict[str, Any]:
  """Returns the entries of meta["task"] for a task of CLASSES.

  `config` is config.json of the directory `where`, and `length` the largest
  number of tokens in a row.

  Raises:
    InteropError: maskedlm has no such head, or the labels are invalid.
  """
  problem = config.get("problem_type")
  if task_name == "classification" and problem not in PROBLEMS:
    raise InteropError(
      f"{where}/config.json: problem_type={problem!r}; known: "
      f"{', '.join(filter(None, PROBLEMS))}."
    )
  if task_name == "classification" and problem == "multi_label_classification":
    task_name = "multi_label"
  task = {"kind": task_name, "options": {}, "about": {}, "length": length}
  if task_name in ("question_answering", "multiple_choice"):
    return task
  labels = _read_labels(config, where)
  task["about"] = {"labels": labels}
  if task_name == "classification":
    if problem == "regression" and len(labels) > 1:
      raise InteropError(
        f"{where}: problem_type={problem!r} with {len(labels)} numbers; "
        "maskedlm's regression has one: import the encoder alone with --part "
        "encoder."
      )
    # config.json doesn't state whether inputs are texts or pairs.
    task["options"] = {"layout": "texts"}
    if len(labels) == 1:
      task["options"] = {"layout": "texts", "regression": True}
      # Unscaled scores; the range of the training set is unknown.
      task["about"] = {"mean": 0.0, "stddev": 1.0}
  if task_name == "tagging":
    is_pos = own_task.is_stated_as_pos(config, labels)
    try:
      scheme = "" if is_pos else label_scheme.detect_label_scheme(labels)
    except tag_forms.UnknownTagError as error:
      raise InteropError(
        f"{where}/config.json: the label {error}, but others are; expected O, "
        "B-TYPE and I-TYPE (or S-, E-): rename it in id2label, or import the "
        "encoder alone with --part encoder."
      ) from None
    task["options"] = (
      {"task": "ner", "scheme": scheme} if scheme else {"task": "pos"}
    )
  return task


def notes(task: Mapping[str, Any]) -> Iterator[str]:
  """Yields lines to log about the labels that read_task found."""
  labels = task.get("about", {}).get("labels", ())
  if labels and all(re.fullmatch("LABEL_[0-9]+", label) for label in labels):
    yield (
      f"config.json has no names of the {len(labels)} labels: they are "
      f"{labels[0]}, ...; write their names into id2label before the import"
    )
  if task.get("kind") == "tagging":
    options = task["options"]
    yield (
      f"the {len(labels)} labels are read as entities ({options['scheme']})"
      if options["task"] == "ner"
      else f"the {len(labels)} labels are read as tags of words (pos)"
    )


def write_task(task: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the entries of config.json for a task, from meta["task"]."""
  task_name = task.get("kind")
  labels = list(task.get("about", {}).get("labels", ()))
  written: dict[str, Any] = {}
  if labels:
    written["id2label"] = {str(i): label for i, label in enumerate(labels)}
    written["label2id"] = {label: i for i, label in enumerate(labels)}
  if task_name == "multi_label":
    written["problem_type"] = "multi_label_classification"
  if task_name == "classification":
    written["problem_type"] = (
      "single_label_classification" if labels else "regression"
    )
    if not labels:
      written["id2label"], written["label2id"] = {"0": "score"}, {"score": 0}
  return written


def undo_standardisation(params: Params, task: Mapping[str, Any]) -> Params:
  """Returns parameters of a regression whose output is the score itself.

  maskedlm's regression predicts standardised deviations from the mean of the
  training set, transformers' predicts scores. Other models are unchanged.
  """
  about = task.get("about", {})
  if "stddev" not in about or "class_head" not in params:
    return params
  mean, stddev = np.float32(about["mean"]), np.float32(about["stddev"])
  dense = params["class_head"]["dense"]
  scaled = {
    "kernel": dense["kernel"] * stddev,
    "bias": dense["bias"] * stddev + mean,
  }
  return {**params, "class_head": {"dense": scaled}}


def _read_labels(config: Mapping[str, Any], where) -> list[str]:
  id2label = config.get("id2label")
  if not id2label:  # transformers' default names.
    count = config.get("num_labels") or 2
    if not 0 < count <= _MOST:
      raise InteropError(
        f"{where}/config.json: num_labels={count!r:.40}; expected 1 to "
        f"{_MOST:,}."
      )
    return [f"LABEL_{i}" for i in range(count)]
  try:
    labels = {int(key): str(label) for key, label in id2label.items()}
    names = [labels[i] for i in range(len(id2label))]
  except (KeyError, ValueError):
    names = []
  if len(set(names)) < len(id2label):
    raise InteropError(
      f"{where}/config.json: id2label={id2label!r:.80}; expected distinct "
      'labels numbered from 0, such as {"0": "no", "1": "yes"}.'
    )
  return names
