"""Which values are no gold label, and which labels are the same."""

import pytest

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import labels as labels_lib


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
  assert labels_lib.find_classes(labels, "f") == classes


@pytest.mark.parametrize(
  "labels",
  [["1", "1.0", "0"], ["True", "1"], ["true", "True"], ["false", "0.", "a"]],
)
def test_a_label_in_two_forms_is_refused(labels):
  with pytest.raises(DataError, match=r"f: the labels .* are the same"):
    labels_lib.find_classes(labels, "f")


def test_another_form_of_a_character_is_reported(capsys):
  for other, one, shown in (
    ("caf\u00e9", "cafe\u0301", r"'caf\xe9' and 'cafe\u0301'"),
    ("pos", "pos\u200b", r"'pos' and 'pos\u200b'"),
    ("non-toxic", "non\u2011toxic", r"'non-toxic' and 'non\u2011toxic'"),
    ("a-b", "a\u2212b\ufeff", r"'a\u2212b\ufeff'"),
    ("Pos", "pos", "'Pos' and 'pos' differ in case"),
  ):
    labels_lib.report_alike([other, one, "c"], "f")
    err = capsys.readouterr().err
    assert err.count("they are two classes") == 1 and shown in err


@pytest.mark.parametrize(
  "label",
  [
    *("['a']", "[1 0]", "('a', 'b')", "[]", "{'a': 1}", "np.int64(1)"),
    *("np.str_('a')", "tensor(1)", "array(['a'], dtype=object)"),
  ],
)
def test_a_label_that_a_program_wrote_as_a_list_is_refused(label):
  with pytest.raises(DataError, match="multi_label"):
    labels_lib.find_classes([label, "b"], "f")


@pytest.mark.parametrize(
  "label", ["[neutral]", "(none)", "f(x)", "A-B(e1,e2)", "array", "{x}"]
)
def test_brackets_may_be_part_of_a_name(label):
  assert label in labels_lib.find_classes([label, "b"], "f")


@pytest.mark.parametrize("labels", [["-1", "0", "1"], ["1", "2", "3", "-1"]])
def test_minus_one_may_be_a_class(labels):
  with pytest.raises(DataError, match=r"'-1' may be .* --config.task.labels="):
    labels_lib.find_classes(labels, "f")


def test_a_mark_that_is_a_class_is_one():
  assert labels_lib.without_mark("-", ["+", "-"]) == "-"
  assert labels_lib.without_mark("-", ["a", "b"]) is None
  assert labels_lib.without_mark("-1", ["0", "1", "2"]) is None
  assert labels_lib.without_mark("c", ["a", "b"]) == "c"
