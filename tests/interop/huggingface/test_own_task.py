"""What is exported comes back as it was: task, labels, options, score."""

import json

import numpy as np
import pytest

from helpers import task_files, untrained
from maskedlm.core.errors import InteropError
from maskedlm.data.labelled import bio
from maskedlm.finetune import predict
from maskedlm.interop import labels as task_labels
from maskedlm.interop import own_task
from maskedlm.interop.huggingface import exporter, importer

transformers = pytest.importorskip("transformers")

NER = {
  "bio": ({}, bio.all_tags({"PER"}, "bio")),
  "bioes": ({"scheme": "bioes"}, bio.all_tags({"PER", "a-b_C"}, "bioes")),
  "typeless": ({}, bio.all_tags({""}, "bio")),
  "typeless bioes": ({"scheme": "bioes"}, bio.all_tags({""}, "bioes")),
  "types that are prefixes": ({}, bio.all_tags({"B", "I", "PER"}, "bio")),
  "lower case": ({"decode": "combine"}, bio.all_tags({"per"}, "bio")),
  "pos": ({"task": "pos"}, ["B-PER", "I-PER", "O"]),
  "io as pos": ({"task": "pos"}, ["O", "PER"]),
}
# name -> (task, options, facts of a training set, thresholds).
MODELS = {
  **{
    name: ("tagging", options, {"labels": labels}, {})
    for name, (options, labels) in NER.items()
  },
  "classification": (
    "classification",
    {"positive": "bad", "layout": "texts"},
    {"labels": ["bad", "good"]},
    {"accuracy": 0.5},
  ),
  "unnamed labels": (
    "classification",
    {},
    {"labels": ["LABEL_0", "good", "bad"]},
    {},
  ),
  "multi_label": (
    "multi_label",
    {"threshold": 0.31, "separator": ", "},
    {"labels": ["cat", "company", "dog", "man"]},
    {},
  ),
  "question_answering": (
    "question_answering",
    {
      "allow_impossible": True,
      "max_answer_length": 3,
      "stride": 5,
    },
    {"questions": 3, "impossible": 1},
    {"null_threshold": 0.77, "f1": 0.5},
  ),
  "multiple_choice": ("multiple_choice", {}, {"choices": 3}, {}),
  "retrieval": (
    "retrieval",
    {"query_prefix": "it is ", "pool": "cls"},
    {},
    {"mrr": 0.5, "bad": float("nan")},
  ),
}


def evaluate(path, source):
  """Returns (model, its scores on a file)."""
  model = predict.open_model(path)
  examples = predict.read_labelled(model.task, model.app, str(source))
  predictions = predict.predict(model, examples)
  return model, model.app.score(examples, predictions)


@pytest.mark.parametrize("name", MODELS)
def test_export_and_import_restore_the_task(name, tmp_path):
  task_name, options, about, heldout = MODELS[name]
  ours = untrained.save_tuned(
    tmp_path / "ours", task_name, options, about, heldout=heldout
  )
  exporter.export_huggingface(ours, tmp_path / "theirs", log=print)
  importer.import_model(tmp_path / "theirs", tmp_path / "again", log=print)
  data = task_files.make_file(task_name, 9)
  text = data.text
  if name.startswith("typeless"):
    text = text.replace("-PER", "")
  if name == "lower case":
    text = text.replace("PER", "per")
  if name == "io as pos":
    text = text.replace("B-PER", "PER").replace("I-PER", "PER")
  if name == "unnamed labels":
    text = text.replace("\tbad\n", "\tLABEL_0\n")
  path = tmp_path / f"data{data.suffix}"
  path.write_text(text)
  a, of_a = evaluate(ours, path)
  b, of_b = evaluate(tmp_path / "again", path)
  assert (b.task.name, b.task.options, b.length) == (
    a.task.name,
    a.task.options,
    a.length,
  )
  assert b.label_info == a.label_info
  finite = {n: x for n, x in heldout.items() if np.isfinite(x)}
  assert b.tuned == finite
  assert of_b == pytest.approx(of_a, abs=1e-6)
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
    ({"kind": "guess"}, "guess"),
    ({"options": {"task": "pos", "new": 1}}, "new"),
    ({"length": 10_000}, "its length is 10000"),
    ({"length": None}, "int"),
    ({"about": []}, "attribute"),
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
    ("O B I", ("ner", "bio")),
    ("B E I O S", ("ner", "bioes")),
    ("O B-PER M-PER E-PER S-PER", ("ner", "bioes")),
    ("O B-PER I-PER L-PER U-PER", ("ner", "bioes")),
    ("O b-per i-per", ("ner", "bio")),
    ("O B_PER I_PER", ("ner", "bio")),
    ("O PER-B PER-I", ("ner", "bio")),
    ("O PER LOC ORG", ("ner", "bio")),
    ("O B-CARDINAL-1 I-CARDINAL-1", ("ner", "bio")),
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


@pytest.mark.parametrize("strange", ["B-", "PER", "B-X|B-Y", "(PER*", "O-PER"])
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
