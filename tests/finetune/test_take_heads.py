"""The heads of a fine-tuned checkpoint, taken over where they mean the same."""

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest

from maskedlm.finetune.contract import FinetuneTask, task_option
from maskedlm.finetune.take_heads import take_heads
from maskedlm.training.checkpoints.load import LoadedCheckpoint

HEADS = {"a": {"kernel": np.ones((5, 3)), "bias": np.zeros(3)}, "b": np.ones(7)}
ABOUT = {
  "labels": ["x", "y", "z"],
  "mean": 2.5,
  "examples": 40,  # A count.
  "counts": {"x": 11, "y": 29},
}


@dataclasses.dataclass(frozen=True)
class Options:
  """The options of a task whose head depends on `depth`."""

  depth: str = task_option("one", "How deep.", of_head=True)
  column: int = task_option(3, "Which column.")


def took(*, task=None, params=None, kind="t.py", about=None, **options):
  """Returns (the heads that are taken over, the lines that were logged)."""
  described = {"kind": "t.py", "about": ABOUT, "options": {"column": 7}}
  start = LoadedCheckpoint(
    {"encoder": np.ones(2), **(HEADS if params is None else params)},
    None,
    None,
    {"task": described if task is None else task},
  )
  nothing: dict[str, Any] = dict.fromkeys(FinetuneTask._fields)
  task = FinetuneTask(**{**nothing, "options": Options(**options)})
  lines = []
  shapes = jax.eval_shape(lambda: HEADS)
  about = {**ABOUT, **(about or {})}
  heads = take_heads(start, kind, task, about, shapes, lines.append)
  return heads, lines


@pytest.mark.parametrize(
  "same",
  [
    {},
    {"column": 4},
    {"about": {"examples": 2, "counts": {"x": 1, "y": 0}}},
    {"about": {"labels": ("x", "y", "z")}},
    {"params": {**HEADS, "other": np.ones(1)}},
  ],
)
def test_heads_that_mean_the_same_are_taken(same):
  heads, (line,) = took(**same)
  assert heads.keys() == HEADS.keys()
  assert heads["a"] is HEADS["a"]
  assert "from init_from" in line and "model.fresh_head=True" in line


@pytest.mark.parametrize(
  ("other", "named"),
  [
    ({"kind": "u"}, "task t.py (here u)"),
    (
      {"about": {"labels": ["x", "u"]}},
      "labels: only in init_from 'y', 'z', only here 'u'",
    ),
    (
      {"about": {"labels": ["z", "y", "x"]}},
      "labels: the same in another order",
    ),
    ({"about": {"labels": None}}, "labels: 'x', 'y', 'z' (here none)"),
    ({"about": {"mean": 1.75}}, "mean: 2.5 (here 1.75)"),
    ({"depth": "two"}, "task.depth: one (here two)"),
    ({"params": {**HEADS, "b": np.ones(6)}}, "b: (6,) (here (7,))"),
    ({"params": {"b": HEADS["b"]}}, "a/bias: none (here (3,))"),
  ],
)
def test_what_differs_is_named(other, named):
  heads, (line,) = took(**other)
  assert heads == {}
  assert line.endswith(f"as init_from's differs: {named}")
  assert "\n" not in line


def test_a_pretrained_model_has_no_head_to_take():
  assert took(task={"objective": "mlm_nsp"}) == ({}, [])
