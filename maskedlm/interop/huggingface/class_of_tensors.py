"""Finds out which class of transformers the tensors of a directory belong to.

config.json may name no class, or one whose head the file lacks: a base model's
config beside fine-tuned weights, a class with custom code. Then the class is
the one that has the head in the file.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from maskedlm.interop.huggingface.match_tensors import Find
from maskedlm.interop.huggingface.parameter_names import Architecture, Names
from maskedlm.interop.huggingface.tensors import Tensors
from maskedlm.interop.labels import TASKS

# Suffixes of classes for pretraining, the one with most heads first.
PRETRAINED = (
  *("ForPreTraining", "ForMaskedLM", "ForNextSentencePrediction"),
  "ForCausalLM",
)


def with_class(
  config: Mapping[str, Any],
  architecture: Architecture,
  found: Tensors,
  find: Find,
  *,
  where,
  log: Callable[[str], None],
) -> dict[str, Any]:
  """Returns config.json with the class of the tensors as `architectures`.

  If it doesn't state the labels, their number is added. A line is logged if
  config.json, of the directory `where`, states another class, or none.
  """
  stated = (config.get("architectures") or [""])[0]
  ending = _ending(stated, architecture)
  has = _present(architecture, find)
  rows_of = _rows(architecture, found, find)
  by_tensors = _by_tensors(config, has, rows_of)
  if ending in (*PRETRAINED, "Model"):  # Their heads may be absent.
    differs = by_tensors in TASKS and (ending == "Model" or ending not in has)
  elif ending in TASKS:
    differs = ending not in has and bool(by_tensors)
  else:
    differs = True
  if differs:
    ending = by_tensors or "Model"
    log(
      f"{where}/config.json names {stated or 'no class'}; by its tensors, the "
      f"model is {architecture.class_prefix}{ending}: if it is another, write "
      'its class to "architectures"'
    )
  made = {**config, "architectures": [architecture.class_prefix + ending]}
  rows = rows_of.get(ending)
  if rows and not config.get("id2label") and not config.get("num_labels"):
    made["num_labels"] = rows
  return made


def _ending(name: str, architecture: Architecture) -> str:
  """Returns the suffix of a class name, also of another architecture's class.

  XLM-R's classes occur with RoBERTa's model_type, for example.
  """
  ending = name.removeprefix(architecture.class_prefix)
  known = (e for e in architecture.heads if e != "Model" and name.endswith(e))
  return ending if ending in architecture.heads else next(known, ending)


def _modules(names: Names) -> list[str]:
  return [str(name) for name in names.values()]


def _present(architecture: Architecture, find: Find) -> set[str]:
  """Returns the suffixes of the classes whose heads are all in the file."""
  return {
    ending
    for ending, names in architecture.heads.items()
    if all(find(f"{n}.weight") or find(n) for n in _modules(names))
  } | {"Model"}


def _rows(
  architecture: Architecture, found: Tensors, find: Find
) -> dict[str, int]:
  """Returns the number of outputs of each fine-tuned head in the file."""
  rows = {}
  for ending in TASKS:
    *_, last = _modules(architecture.heads.get(ending, {"": ""}))
    if name := find(f"{last}.weight"):
      rows[ending] = found.shapes[name][0]
  return rows


def _by_tensors(
  config: Mapping[str, Any], has: set[str], rows: Mapping[str, int]
) -> str:
  """Returns the suffix of the class; "" for an encoder without heads.

  Heads of several classes may have the same names. Choices have one output,
  answers two; a class for tokens has labels such as B-PER, or no pooler.
  """
  tuned = [ending for ending in TASKS if ending in has]
  stated = config.get("id2label")
  labels = list(map(str, stated.values())) if isinstance(stated, dict) else []
  count = len(labels) or config.get("num_labels")
  if "ForMultipleChoice" in tuned and (
    rows["ForMultipleChoice"] != 1 or count == 1
  ):
    tuned.remove("ForMultipleChoice")
  elif "ForMultipleChoice" in tuned:
    return "ForMultipleChoice"
  if {"ForSequenceClassification", "ForTokenClassification"} <= set(tuned):
    is_tags = any(re.match("O$|[BI][-_]", label) for label in labels)
    return f"For{'Token' if is_tags else 'Sequence'}Classification"
  known = (ending for ending in (*tuned, *PRETRAINED) if ending in has)
  return next(known, "")
