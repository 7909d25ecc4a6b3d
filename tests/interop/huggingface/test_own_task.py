"""What is exported comes back as it was: task, labels, options, score."""

import json

import numpy as np
import pytest

from helpers import untrained
from maskedlm.core.errors import InteropError
from maskedlm.data.labelled import bio
from maskedlm.finetune import predict
from maskedlm.interop import labels as task_labels
from maskedlm.interop import own_task
from maskedlm.interop.huggingface import exporter, importer

transformers = pytest.importorskip("transformers")

# name -> (task, options, facts of a training set, thresholds).
MODELS = {
  "bioes": (
    "tagging",
    {"scheme": "bioes", "decode": "combine"},
    {"labels": bio.all_tags({"PER", "a-b_C"}, "bioes")},
    {},
  ),
  "question_answering": (
    "question_answering",
    {"allow_impossible": True, "max_answer_length": 3, "stride": 5},
    {"questions": 3, "impossible": 1},
    {"null_threshold": 0.77, "f1": 0.5},
  ),
  "retrieval": (
    "retrieval",
    {"query_prefix": "it is ", "pool": "cls"},
    {},
    {"mrr": 0.5, "bad": float("nan")},
  ),
}


@pytest.mark.parametrize("name", MODELS)
def test_export_and_import_restore_the_task(name, tmp_path):
  """test_round_trip.py has what they predict, test_task_round_trip others."""
  task_name, options, about, heldout = MODELS[name]
  ours = untrained.save_tuned(
    tmp_path / "ours", task_name, options, about, heldout=heldout
  )
  exporter.export_huggingface(ours, tmp_path / "theirs", log=print)
  importer.import_model(tmp_path / "theirs", tmp_path / "again", log=print)
  a, b = (predict.open_model(tmp_path / name) for name in ("ours", "again"))
  for field in ("name", "options"):
    assert getattr(b.task, field) == getattr(a.task, field)
  assert (b.length, b.label_info) == (a.length, a.label_info)
  assert b.tuned == {n: x for n, x in heldout.items() if np.isfinite(x)}
  if labels := about.get("labels"):
    config = transformers.AutoConfig.from_pretrained(tmp_path / "theirs")
    assert [config.id2label[i] for i in range(len(labels))] == labels
    # transformers keeps the entry.
    config.save_pretrained(tmp_path / "saved")
    saved = json.loads((tmp_path / "saved" / "config.json").read_text())
    assert saved[own_task.KEY]["kind"] == task_name


@pytest.mark.parametrize(
  ("changes", "reason"),
  [
    ({"about": {"labels": ["O", "B-X", "I-X"]}}, "its labels differ"),
    ({"kind": "classification"}, "its head is one of tagging"),
    ({"options": {"task": "pos", "new": 1}}, "new"),
    ({"length": 10_000}, "its length is 10000"),
    ({"about": []}, "attribute"),
    ({"length": float("inf")}, "its length is inf"),  # 1e999
    ({"length": "30"}, "its length is '30'"),
    ({"heldout": {"f1": 10**400}}, "too large"),
  ],
)
def test_an_entry_of_another_model_is_left_out(changes, reason):
  labels = ["O", "B-PER", "I-PER"]
  config = {"id2label": {str(i): label for i, label in enumerate(labels)}}
  found = task_labels.read_task(config, "tagging", 64, "here")
  options = {"task": "pos"}
  made = {"kind": "tagging", "options": options, "length": 30}
  made = own_task.write_own_task(
    made | {"about": {"labels": labels}}, {"f1": 1}
  )
  lines = []

  def read(**entry):
    config = {own_task.KEY: made[own_task.KEY] | entry}
    return own_task.read_own_task(
      config, found, max_positions=64, log=lines.append
    )

  task, heldout = read()
  assert (task["options"], task["length"], heldout) == (
    options,
    30,
    {"f1": 1.0},
  )
  assert not lines
  assert read(**changes) == (found, {})
  assert len(lines) == 1 and reason in lines[0]


# --- Models of others ---


def read_labels(*labels):
  config = {"id2label": {str(i): label for i, label in enumerate(labels)}}
  return task_labels.read_task(config, "tagging", 64, "here")


@pytest.mark.parametrize(
  ("labels", "options"),
  [
    ("O B-PER I-PER", ("ner", "bio")),
    ("O B-PER M-PER E-PER S-PER", ("ner", "bioes")),
    ("O B-PER I-PER L-PER U-PER", ("ner", "bioes")),
    ("O B_PER I_PER", ("ner", "bio")),
    ("O PER-B PER-I", ("ner", "bio")),
    ("O PER LOC ORG", ("ner", "bio")),
    ("[PAD] X O B-PER I-PER _ -DOCSTART- <s>", ("ner", "bio")),
    ("NOUN VERB X", ("pos", None)),
    ("N V O ^ S", ("pos", None)),  # Gimpel et al. 2011; O is a pronoun.
    ("LABEL_0 LABEL_1", ("pos", None)),
  ],
)
def test_labels_of_others(labels, options):
  task = read_labels(*labels.split())
  made = task["options"]
  assert (made["task"], made.get("scheme")) == options
  assert any(task_labels.notes(task))


@pytest.mark.parametrize("strange", ["B-", "PER", "(PER*"])
def test_a_label_among_tags_that_is_none_is_refused(strange):
  with pytest.raises(InteropError) as error:
    read_labels("O", "B-PER", "I-PER", strange)
  assert f"the label {strange!r}" in str(error.value)
  assert "--part encoder" in str(error.value)


def test_labels_without_names_are_reported():
  config = {"num_labels": 3}
  for name in ("tagging", "classification"):
    task = task_labels.read_task(config, name, 64, "here")
    note, *_ = task_labels.notes(task)
    assert "no names of the 3 labels: they are LABEL_0, ..." in note
