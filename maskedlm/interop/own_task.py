"""Keeps a fine-tuned task in config.json, so that an import restores it.

transformers stores labels, but not what maskedlm's tasks have beside them: the
kind, options, thresholds, the length of rows. They are the entry "maskedlm",
which transformers carries along and ignores.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from maskedlm.core import own_file
from maskedlm.finetune.config import make_task

KEY = "maskedlm"


def write_own_task(
  task: Mapping[str, Any], heldout: Mapping[str, float]
) -> dict[str, Any]:
  """Returns the entry of config.json for a task; {} for a pretrained model.

  The task is meta["task"]; `heldout` has metrics and thresholds on the
  development set.
  """
  if "kind" not in task:
    return {}
  about = dict(task["about"])
  if "stddev" in about:  # See labels.undo_standardisation.
    about |= {"mean": 0.0, "stddev": 1.0}
  kept = {name: task[name] for name in ("kind", "options", "length")}
  finite = {name: x for name, x in heldout.items() if math.isfinite(x)}
  return {KEY: {**kept, "about": about, "heldout": finite}}


def is_stated_as_pos(config: Mapping[str, Any], labels: Sequence[str]) -> bool:
  """Returns whether the entry says that these labels are tags of words."""
  own = config.get(KEY)
  try:
    return (own["kind"], own["options"]["task"], own["about"]["labels"]) == (
      *("tagging", "pos"),
      list(labels),
    )
  except (KeyError, TypeError):
    return False


def read_own_task(
  config: Mapping[str, Any],
  found: Mapping[str, Any],
  *,
  max_positions: int,
  log: Callable[[str], None],
) -> tuple[dict[str, Any], dict[str, float]]:
  """Returns (the entries of meta["task"], heldout) of a model.

  Args:
    found: the entries as transformers' own fields have them (labels.py).
      They are returned if there is no entry, or it is another model's: after
      training by transformers, for example.
    max_positions: the largest number of tokens that a row can have.
    log: called with a line if the entry is left out.
  """
  own = config.get(KEY)
  if not isinstance(own, Mapping):
    return dict(found), {}
  try:
    task = {name: own[name] for name in ("kind", "options", "about", "length")}
    problem = _difference(task, found, max_positions)
    if not problem:
      make_task(task["kind"], task["options"])
    heldout = {name: float(x) for name, x in own.get("heldout", {}).items()}
  except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as e:
    problem = str(e)
  if problem:
    log(f"left out: {KEY} in config.json ({problem})")
    return dict(found), {}
  return {**found, **task}, heldout


def _difference(
  task: Mapping[str, Any], found: Mapping[str, Any], max_positions: int
) -> str:
  """Returns why the task is not that of the model, or ""."""
  if own_file.is_own(task["kind"]):
    return "its task is a file of code, which an import never runs"
  if found.get("kind", task["kind"]) != task["kind"]:
    return f"its head is one of {found['kind']}, not of {task['kind']}"
  if task["about"].get("labels") != found.get("about", {}).get("labels"):
    return "its labels differ from id2label"
  L = task["length"]
  if type(L) is not int or not 0 < L <= max_positions:
    return f"its length is {L!r:.40}, of {max_positions} positions"
  return ""
