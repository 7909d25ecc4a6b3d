"""Keeps a fine-tuned task in config.json, so that an import restores it.

transformers stores labels, but not the kind, options, thresholds and length of
rows of maskedlm's tasks. They are the entry "maskedlm", which transformers
carries along and ignores.
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
  fields = {name: task[name] for name in ("kind", "options", "length")}
  finite = {name: x for name, x in heldout.items() if math.isfinite(x)}
  return {KEY: {**fields, "about": about, "heldout": finite}}


def is_stated_as_pos(config: Mapping[str, Any], labels: Sequence[str]) -> bool:
  """Returns whether the entry says that these labels are tags of words."""
  try:
    entry = config[KEY]
    facts = entry["kind"], entry["options"]["task"], entry["about"]["labels"]
  except (KeyError, TypeError):
    return False
  return facts == ("tagging", "pos", list(labels))


def read_own_task(
  config: Mapping[str, Any],
  stated: Mapping[str, Any],
  *,
  max_positions: int,
  log: Callable[[str], None],
) -> tuple[dict[str, Any], dict[str, float]]:
  """Returns (the entries of meta["task"], heldout) of a model.

  Args:
    stated: the entries that transformers' own fields state (labels.py).
      They are returned if there is no entry, or it is another model's: after
      training by transformers, for example.
    max_positions: the largest number of tokens that a row can have.
    log: called with a line if the entry is left out.
  """
  entry = config.get(KEY)
  if not isinstance(entry, Mapping):
    return dict(stated), {}
  try:
    names = ("kind", "options", "about", "length")
    task = {name: entry[name] for name in names}
    problem = _find_problem(task, stated, max_positions)
    if not problem:
      make_task(task["kind"], task["options"])
    heldout = {name: float(x) for name, x in entry.get("heldout", {}).items()}
  except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as e:
    problem = str(e)
  if problem:
    log(f"left out: {KEY} in config.json ({problem})")
    return dict(stated), {}
  return {**stated, **task}, heldout


def _find_problem(
  task: Mapping[str, Any], stated: Mapping[str, Any], max_positions: int
) -> str:
  """Returns why the task doesn't fit the model, or ""."""
  if own_file.is_own(task["kind"]):
    return "its task is a file of code, which an import never runs"
  if stated.get("kind", task["kind"]) != task["kind"]:
    return f"its head is one of {stated['kind']}, not of {task['kind']}"
  if task["about"].get("labels") != stated.get("about", {}).get("labels"):
    return "its labels differ from id2label"
  L = task["length"]
  if type(L) is not int or not 0 < L <= max_positions:
    return f"its length is {L!r:.40}, of {max_positions} positions"
  return ""
