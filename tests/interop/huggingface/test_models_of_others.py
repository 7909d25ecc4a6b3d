"""Directories whose config.json names no class, or another; prefixed names."""

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from helpers import peers
from helpers.workdirs import assert_same_trees
from maskedlm.core.errors import InteropError

TAGS = dict(enumerate(["O", "B-a", "I-a", "B-b", "I-b"]))


def save(folder, architecture, ending, **changes):
  """Saves a model; returns its folder."""
  if ending == "ForTokenClassification":
    changes = {"id2label": TAGS, **changes}
  peers.save_model(folder, architecture, ending, **changes)
  return folder


def read(folder):
  """Returns (the model, the lines that were logged, but two kinds).

  These are on labels, and on what ESM's files hold besides.
  """
  lines = []
  model = peers.read_model(folder, log=lines.append)
  usual = " labels", "contact_head"
  return model, [x for x in lines if not any(part in x for part in usual)]


@pytest.mark.parametrize(
  ("architecture", "stated", "ending", "named"),
  [
    ("Bert", "BertModel", "ForMultipleChoice", "BertForMultipleChoice"),
    ("Bert", "MyTagger", "ForTokenClassification", "BertForTokenCl"),
    ("Bert", "BertForMaskedLM", "ForQuestionAnswering", "BertForQuestionA"),
    ("ModernBert", "", "ForTokenClassification", "ModernBertForSequenceCl"),
  ],
)
def test_a_head_is_not_dropped_for_the_stated_class(
  architecture, stated, ending, named, tmp_path
):
  """A base model's config.json beside fine-tuned weights."""
  folder = save(tmp_path, architecture, ending)
  peers.change_config(folder, architectures=[stated])
  with pytest.raises(InteropError) as error:
    read(folder)
  assert f"names {stated or 'no class'}, but the file has" in str(error.value)
  assert named in str(error.value)


def test_a_stated_head_that_the_file_lacks(tmp_path):
  folder = save(tmp_path, "Bert", "ForMaskedLM")
  peers.change_config(folder, architectures=["BertForTokenClassification"])
  with pytest.raises(InteropError, match=r"classifier\.weight is missing"):
    read(folder)


def test_another_architectures_class_name(tmp_path):
  """RoBERTa's model_type with XLM-R's class."""
  folder = save(tmp_path, "Roberta", "ForSequenceClassification")
  expected, _ = read(folder)
  name = "XLMRobertaForSequenceClassification"
  peers.change_config(folder, architectures=[name])
  found, lines = read(folder)
  assert lines == [] and found.task["kind"] == "classification"
  assert_same_trees(found.params, expected.params)


@pytest.mark.parametrize(
  ("prefix", "architecture", "ending"),
  [
    ("module.", "Bert", "ForMaskedLM"),
    ("0.auto_model.", "Bert", "Model"),
    ("encoder.", "DistilBert", "ForTokenClassification"),
    ("module.net.", "ModernBert", "ForSequenceClassification"),
    ("encoder.", "ModernBert", "Model"),
  ],
)
def test_a_prefix_of_all_names(prefix, architecture, ending, tmp_path):
  folder = save(tmp_path, architecture, ending)
  expected, _ = read(folder)
  peers.change_tensors(
    folder, lambda all: {prefix + k: x for k, x in all.items()}
  )
  found, (line,) = read(folder)
  assert f"begin with {prefix!r}, left out" in line
  assert_same_trees(found.params, expected.params)


@pytest.mark.parametrize("prefix", ["encoder.", "a.b."])
def test_a_prefix_of_the_encoder_alone(prefix, tmp_path):
  """A module of one's own, with the encoder in an attribute."""
  folder = save(tmp_path, "Roberta", "ForTokenClassification")
  expected, _ = read(folder)
  peers.change_tensors(
    folder,
    lambda all: {k.replace("roberta.", prefix): x for k, x in all.items()},
  )
  found, (line,) = read(folder)
  assert f"begin with {prefix!r}, left out" in line
  assert_same_trees(found.params, expected.params)
  # And all of it in another wrapper.
  peers.change_tensors(
    folder, lambda all: {f"module.{k}": x for k, x in all.items()}
  )
  assert_same_trees(read(folder)[0].params, expected.params)


def test_several_encoders_and_none_are_one_line(tmp_path):
  folder = save(tmp_path, "Bert", "ForMaskedLM")
  path = folder / "model.safetensors"
  tensors = load_file(path)
  both = {f"{of}.{k}": x for k, x in tensors.items() for of in ("query", "doc")}
  save_file(both, path)
  with pytest.raises(InteropError, match="2 encoders") as error:
    read(folder)
  assert "query.bert." in str(error.value) and "\n" not in str(error.value)
  save_file({k.replace("word", "w"): x for k, x in tensors.items()}, path)
  with pytest.raises(InteropError, match=r"no tensor embeddings\.word_em") as e:
    read(folder)
  assert "\n" not in str(e.value)


def test_half_precision_becomes_float32(tmp_path):
  dtype = pytest.importorskip("ml_dtypes").bfloat16
  folder = save(tmp_path, "Bert", "ForSequenceClassification")
  path = folder / "model.safetensors"
  half = {k: x.astype(dtype) for k, x in load_file(path).items()}
  save_file(half, path)
  found, lines = read(folder)
  assert lines == []
  kernel = found.params["class_head"]["dense"]["kernel"]
  assert kernel.dtype == np.float32
  np.testing.assert_array_equal(
    kernel, half["classifier.weight"].astype(np.float32).T
  )
