"""Which values are no gold label, and which labels are the same."""

from typing import NamedTuple

import pytest

from maskedlm.core.errors import DataError
from maskedlm.finetune.common import gold_labels, unseen_labels


class Example(NamedTuple):
  """An example with a label."""

  label: str | None
  where: str = "f:1"


@pytest.mark.parametrize(
  ("labels", "classes"),
  [
    (["b", "a", "b"], ["a", "b"]),
    (["1", "-1"], ["-1", "1"]),  # Two classes.
    (["-2", "-1", "0", "1", "2"], ["-1", "-2", "0", "1", "2"]),
    (["neg", "-1"], ["-1", "neg"]),
    (["0", "1", "2", "-1"], ["0", "1", "2"]),  # SNLI on the Hub.
    (["0.0", "1.0", "2.0", "-1.0"], ["0.0", "1.0", "2.0"]),
    (["007", "7"], ["007", "7"]),
    (["-100", "0", "1"], ["0", "1"]),  # What transformers ignores.
    (["-100", "-1", "0", "1", "2"], ["0", "1", "2"]),
  ],
)
def test_classes(labels, classes):
  assert gold_labels.find_classes(labels, "f") == classes


@pytest.mark.parametrize(
  "labels",
  [["1", "1.0", "0"], ["True", "1"], ["true", "True"], ["false", "0.", "a"]],
)
def test_a_label_in_two_forms_is_refused(labels):
  with pytest.raises(DataError, match=r"f: the labels .* are the same"):
    gold_labels.find_classes(labels, "f")


def test_another_form_of_a_character_is_reported(capsys):
  labels = ["caf\u00e9", "cafe\u0301"]
  assert gold_labels.find_classes(labels, "f") == sorted(labels)
  assert "they are two classes" in capsys.readouterr().err


@pytest.mark.parametrize(
  "label",
  [
    *("['a']", "[1 0]", "('a', 'b')", "[]", "{'a': 1}", "np.int64(1)"),
    *("np.str_('a')", "tensor(1)", "array(['a'], dtype=object)"),
  ],
)
def test_a_label_that_a_program_wrote_as_a_list_is_refused(label):
  with pytest.raises(DataError, match="multi_label"):
    gold_labels.find_classes([label, "b"], "f")


@pytest.mark.parametrize(
  "label", ["[neutral]", "(none)", "f(x)", "A-B(e1,e2)", "array", "{x}"]
)
def test_brackets_may_be_part_of_a_name(label):
  assert label in gold_labels.find_classes([label, "b"], "f")


@pytest.mark.parametrize("labels", [["-1", "0", "1"], ["1", "2", "3", "-1"]])
def test_minus_one_may_be_a_class(labels):
  with pytest.raises(DataError, match=r"'-1' may be .* --config.task.labels="):
    gold_labels.find_classes(labels, "f")


def test_another_case_is_reported(capsys):
  assert gold_labels.find_classes(["Pos", "pos"], "f") == ["Pos", "pos"]
  assert "'Pos' and 'pos' differ in case" in capsys.readouterr().err


def test_a_class_that_may_be_none_is_reported(capsys):
  assert gold_labels.find_classes(["None", "a"], "f") == ["None", "a"]
  assert "f: the label 'None' is taken as a class" in capsys.readouterr().err


def test_a_mark_that_is_a_class_is_one():
  assert gold_labels.without_mark("-", ["+", "-"]) == "-"
  assert gold_labels.without_mark("-", ["a", "b"]) is None
  assert gold_labels.without_mark("-1", ["0", "1", "2"]) is None
  assert gold_labels.without_mark("c", ["a", "b"]) == "c"


def test_examples_without_a_label_are_counted(capsys):
  examples = [Example("a"), Example(None, "f:2"), Example("b"), Example(None)]
  kept = gold_labels.keep_labelled(
    examples, lambda example: example.label is not None, "dev"
  )
  assert [example.label for example in kept] == ["a", "b"]
  assert "dev: 2 of 4 examples have no gold label" in capsys.readouterr().err
  # If none has one, require_labels says so.
  assert gold_labels.keep_labelled(examples[1:2], lambda e: False, "dev")


@pytest.mark.parametrize(
  ("gold", "known"),
  [
    (["LABEL_0", "LABEL_1"], ["neg", "pos"]),
    (["NEG"], ["neg", "pos"]),
    (["1.0", "0.0"], ["0", "1"]),
    (["0", "1.0"], ["0", "1"]),  # Some are known, but one is misread.
    (["true"], ["True", "False"]),
  ],
)
def test_gold_labels_of_another_kind_are_refused(gold, known):
  with pytest.raises(DataError) as error:
    unseen_labels.check_known([(label, "f:7") for label in gold], known)
  message = str(error.value)
  assert message.startswith("f:7: ")
  assert all(repr(label) in message for label in known)
  assert any(repr(label) in message for label in gold)


def test_gold_labels_of_which_some_are_known_are_scored():
  unseen_labels.check_known([("a", ""), ("new", "")], ["a", "b"])
  unseen_labels.check_known([], ["a", "b"])
