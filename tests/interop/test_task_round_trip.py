"""What config.json has of a task comes back as it was, for any labels."""

import dataclasses
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import untrained
from maskedlm.core.errors import InteropError
from maskedlm.data.labelled import bio
from maskedlm.finetune.config import make_task
from maskedlm.interop import labels, own_task
from maskedlm.interop.huggingface import exporter

LONGEST = 64
# Names that mean something to one of the readers.
KNOWN = ["LABEL_0", "0", "O", "B-PER", "I-PER", "B", "S-X", "PER", "-", "null"]
LABEL = st.one_of(
  st.sampled_from(KNOWN),
  st.text(st.characters(blacklist_categories=["Cs"]), max_size=6),
)
LABELS = st.lists(LABEL, min_size=2, max_size=6, unique=True)
TYPES = st.sets(
  st.one_of(st.sampled_from(["B", "I", "O", "PER", "a-b_C"]), st.text("xyÄ-9")),
  min_size=1,
  max_size=3,
).map(lambda types: types - {""} or {"PER"})
FLOATS = st.floats(-9, 9)


def task(kind, options=None, about=None):
  """Returns a strategy of a task's entries from those of its parts."""
  return st.tuples(
    st.just(kind),
    st.fixed_dictionaries(options or {}),
    st.fixed_dictionaries(about or {}),
  )


TASKS = st.one_of(
  task("classification", about={"labels": LABELS}),
  task(
    "classification",
    {"regression": st.just(True)},
    {"low": FLOATS, "high": FLOATS, "mean": st.just(0.0)}
    | {"stddev": st.just(1.0)},
  ),
  task("multi_label", {"threshold": st.floats(0.01, 0.99)}, {"labels": LABELS}),
  task("question_answering", {"stride": st.integers(1, 9)}),
  task("multiple_choice", about={"choices": st.integers(2, 5)}),
  task("tagging", {"task": st.just("pos")}, {"labels": LABELS}),
  *(
    task(
      "tagging",
      {"scheme": st.just(scheme), "decode": st.sampled_from(["first", "crf"])},
      {"labels": TYPES.map(lambda t, s=scheme: bio.all_tags(t, s))},
    )
    for scheme in ("bio", "bioes")
  ),
)
SCORES = st.dictionaries(st.sampled_from(["f1", "null_threshold"]), st.floats())


@settings(max_examples=60, deadline=None, derandomize=True)
@given(TASKS, SCORES, st.integers(1, LONGEST))
def test_a_task_comes_back(parts, scores, length):
  kind, options, about = parts
  options = dataclasses.asdict(make_task(kind, options).options)
  made = {"kind": kind, "options": options, "about": about, "length": length}
  config = labels.write_task(made) | own_task.write_own_task(made, scores)
  config = json.loads(json.dumps(config))
  lines = []
  found = labels.read_task(
    config, labels.TASKS[labels.CLASSES[kind]], LONGEST, "here"
  )
  task, heldout = own_task.read_own_task(
    config, found, max_positions=LONGEST, log=lines.append
  )
  assert json.loads(json.dumps(task)) == json.loads(json.dumps(made))
  assert heldout == {n: x for n, x in scores.items() if math.isfinite(x)}
  assert not lines


@settings(max_examples=40, deadline=None, derandomize=True)
@given(TYPES, st.sampled_from(["bio", "bioes"]))
def test_entities_are_recognised_by_their_labels_alone(types, scheme):
  tags = bio.all_tags(types, scheme)
  config = {"id2label": {str(i): tag for i, tag in enumerate(tags)}}
  made = labels.read_task(config, "tagging", LONGEST, "here")
  assert made["about"] == {"labels": tags}
  assert made["options"] == {"task": "ner", "scheme": scheme}


@pytest.mark.parametrize(
  ("kind", "options", "found"),
  [
    ("constituency", {}, ["NULL", "S VP"]),
    ("semantic_roles", {}, ["O", "B-V", "I-V"]),
    ("features", {"lstm_width": 13}, ["B-PER", "I-PER", "O"]),
  ],
)
def test_heads_of_other_tasks_are_refused(tmp_path, kind, options, found):
  about = {"labels": found, "tags": ["NN"], "root": "TOP"} if found else {}
  about |= {"root_labels": ["root"]} if kind == "dependency" else {}
  path = untrained.save_tuned(tmp_path / "run", kind, options, about)
  with pytest.raises(InteropError, match=r"only maskedlm.*--part=encoder"):
    exporter.export_huggingface(path, tmp_path / "theirs", log=print)
