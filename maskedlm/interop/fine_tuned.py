"""Fine-tuned heads: our kinds and their classes, with labels and options.

Theirs are in config.json (id2label, problem_type), ours in the checkpoint's
meta["task"], from which finetune/inference.py makes the model again.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from maskedlm.finetune import tag_labels
from maskedlm.interop.errors import InteropError
from maskedlm.task import Params

# Our kind -> the end of their class's name.
CLASSES = {
  "classification": "ForSequenceClassification",
  "tagging": "ForTokenClassification",
  "question_answering": "ForQuestionAnswering",
  "multiple_choice": "ForMultipleChoice",
}
KINDS = {ending: kind for kind, ending in CLASSES.items()}
MAX_LENGTH = 512  # Tokens of a row, of models that take very long ones.


def num_labels(config: Mapping[str, Any], ending: str) -> int:
  """The outputs of a class that config.json describes."""
  if ending in ("ForQuestionAnswering", "ForMultipleChoice"):
    return {"ForQuestionAnswering": 2, "ForMultipleChoice": 1}[ending]
  return len(config.get("id2label") or range(config.get("num_labels", 2)))


def read_task(
  config: Mapping[str, Any], kind: str, max_positions: int, where
) -> dict[str, Any]:
  """What meta["task"] says of a kind, from config.json.

  Raises:
    InteropError: a head that we don't have.
  """
  pooling = config.get("classifier_pooling", "cls")
  problem = config.get("problem_type")
  if kind in ("classification", "multiple_choice") and pooling != "cls":
    raise InteropError(
      f"{where}: classifier_pooling={pooling!r}; maskedlm's head reads [CLS]: "
      "import the encoder alone by --part encoder."
    )
  if problem == "multi_label_classification":
    raise InteropError(
      f"{where}: problem_type={problem!r}; maskedlm's classification has one "
      "label for a text: import the encoder alone by --part encoder."
    )
  task = {"kind": kind, "options": {}, "about": {}}
  task["length"] = min(max_positions, MAX_LENGTH)
  if kind == "classification":
    labels = _labels(config)
    # config.json doesn't tell whether it was trained on texts or on pairs.
    task["options"] = {"layout": "texts"}
    if len(labels) == 1:
      task["options"]["regression"] = True
      # Scores as they are. The range of those in training is not known.
      task["about"] = {"low": -1e9, "high": 1e9, "mean": 0.0, "stddev": 1.0}
    else:
      task["about"] = {"labels": labels}
  if kind == "tagging":
    labels = _labels(config)
    scheme = tag_labels.scheme_of(labels)
    task["about"] = {"labels": labels}
    task["options"] = (
      {"task": "ner", "scheme": scheme} if scheme else {"task": "pos"}
    )
  return task


def write_task(task: Mapping[str, Any]) -> dict[str, Any]:
  """What config.json says of a kind, from meta["task"]."""
  kind = task.get("kind")
  labels = list(task.get("about", {}).get("labels", ()))
  written: dict[str, Any] = {}
  if labels:
    written["id2label"] = {str(i): label for i, label in enumerate(labels)}
    written["label2id"] = {label: i for i, label in enumerate(labels)}
  if kind == "classification":
    written["problem_type"] = (
      "single_label_classification" if labels else "regression"
    )
    if not labels:
      written["id2label"], written["label2id"] = {"0": "score"}, {"score": 0}
  return written


def in_their_units(params: Params, task: Mapping[str, Any]) -> Params:
  """Params whose logits are what is predicted.

  Our regression learns deviations from the mean of the training set; theirs,
  scores.
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


def _labels(config: Mapping[str, Any]) -> list[str]:
  found = config.get("id2label")
  if not found:  # transformers' own names of those that were never told.
    return [f"LABEL_{i}" for i in range(config.get("num_labels", 2))]
  return [found[key] for key in sorted(found, key=int)]
