"""Labelled texts: columns, labels, lines of input, and bad files."""

import json

import pytest

from maskedlm.core.errors import ConfigError, DataError
from maskedlm.finetune.classification import classification
from maskedlm.finetune.classification.classification import Options


def write(path, text):
  path.write_text(text, encoding="utf-8")
  return str(path)


def read(path, **options):
  return classification.make_task(Options(**options)).read_examples(path)


def test_a_second_text_that_is_not_read(tmp_path, capsys):
  path = write(tmp_path / "a.tsv", "text\ttext_b\tlabel\nx\ty\t1\n")
  assert read(path, text_b="text_b")[0].text_b == "y"
  path = write(tmp_path / "b.tsv", "text\tsentence2\tlabel\nx\ty\t1\n")
  assert read(path)[0].text_b is None
  assert "'sentence2' is not read" in capsys.readouterr().err


def test_unusable_training_sets(tmp_path):
  path = write(tmp_path / "a.tsv", "text\tlabel\nx\tyes\ny\tyes\nz\tyes\n")
  with pytest.raises(DataError) as error:
    classification.describe_labels(read(path), Options())
  assert str(error.value) == (
    f"{path}: all 3 examples for training have the label 'yes'; expected at "
    "least two."
  )
  path = write(tmp_path / "b.tsv", "text\tlabel\nx\t3\ny\t3.0\n")
  with pytest.raises(DataError, match=r"have the label 3\.0"):
    classification.describe_labels(
      read(path, regression=True), Options(regression=True)
    )


def test_parse_line():
  def parse(line, **options):
    return classification.make_task(Options(**options)).parse_line(line)[:2]

  assert parse("one\ttext") == ("one\ttext", None)
  assert parse('{"text": "x", "n": 1}') == ("x", None)
  assert parse('{"review": "x"}', text="review") == ("x", None)
  assert parse("a b\tc", layout="mrpc") == ("a b", "c")
  assert parse('{"text": "a", "text_b": "b"}', layout="mrpc") == ("a", "b")
  assert parse('{"premise": "a", "hypothesis": "b"}', layout="mnli") == (
    "a",
    "b",
  )
  with pytest.raises(DataError, match=r"this model takes pairs; expected two"):
    parse("one text", layout="rte")
  with pytest.raises(DataError, match=r"no 'sentence2'; there are 'text'"):
    parse('{"text": "a"}', layout="rte")
  with pytest.raises(DataError, match=r"input: not JSON"):
    parse('{"text": ')


def test_a_second_text_is_never_dropped(tmp_path):
  def parse(line, **options):
    return classification.make_task(Options(**options)).parse_line(line)[:2]

  for name in ("text_b", "text_pair", "hypothesis"):
    line = json.dumps({"text": "a", name: "b"})
    with pytest.raises(DataError, match=rf"{name!r} is not read.*b={name}; if"):
      parse(line)
    assert parse(line, text_b=name) == parse(line, layout="texts") == ("a", "b")
  line = '{"premise": "a", "hypothesis": "b"}'
  assert parse(line, layout="texts") == ("a", "b")
  with pytest.raises(
    DataError, match=r"is 3 texts, but .* two texts with a tab"
  ):
    parse("a\tb\tc", layout="texts")
  # The columns that were trained come first.
  line = '{"text": "c", "text_b": "d", "review": "a", "reply": "b"}'
  assert parse(line, text="review", text_b="reply") == ("a", "b")
  assert parse("a b", layout="texts") == ("a b", None)
  assert parse("a\tb", layout="texts") == ("a", "b")
  assert parse('{"text": "a"}', layout="texts") == ("a", None)
  assert parse('{"text": "a", "text_b": "b"}', layout="texts") == ("a", "b")
  for header, expected in (("text\ttext_b", "b"), ("text\tid", None)):
    path = tmp_path / "data.tsv"
    path.write_text(f"{header}\na\tb\n")
    (example,) = classification.make_task(
      Options(layout="texts")
    ).read_examples(str(path))
    assert (example.text, example.text_b) == ("a", expected)


def test_files_without_labels_can_only_be_predicted(tmp_path):
  path = write(tmp_path / "a.tsv", "text\tlable\nx\t1\n")
  (example,) = read(path)
  assert example.label is None
  message = f"{path}:2: no 'label'; there are 'text', 'lable' (did you mean "
  with pytest.raises(DataError) as error:
    classification.describe_labels([example], Options())
  assert str(error.value).startswith(message)
  path = write(tmp_path / "b.tsv", "text\tlabel\nx\t\ny\t\n")
  with pytest.raises(DataError, match=r"b\.tsv:2: label '' means no label"):
    classification.describe_labels(read(path), Options())


# --- No gold label ---


def test_marks_are_no_classes(tmp_path):
  rows = ["a,x", "b,-", "c,y", "d,", "e,?", "f,nan"]
  path = write(tmp_path / "a.csv", "\n".join(["text,label", *rows, ""]))
  found = read(path)
  assert [e.label for e in found] == ["x", None, "y", None, None, None]
  info = classification.describe_labels(found, Options())
  assert info == {"labels": ["x", "y"]}
  # Where - is a class, task.labels says so.
  options = {"labels": ("-", "x", "y")}
  found = read(path, **options)
  assert [e.label for e in found] == ["x", "-", "y", None, None, None]
  info = classification.describe_labels(found, Options(**options))
  assert info == {"labels": ["-", "x", "y"]}
  with pytest.raises(ConfigError, match=r"task\.labels are classes"):
    read(path, regression=True, labels=("0", "1"))


def test_minus_one(tmp_path):
  path = write(tmp_path / "a.csv", "text,label\na,0\nb,1\nc,2\nd,-1\n")
  info = classification.describe_labels(read(path), Options())
  assert info == {"labels": ["0", "1", "2"]}
  path = write(tmp_path / "b.csv", "text,label\na,0\nb,1\nd,-1\n")
  with pytest.raises(DataError, match=r"b\.csv: the label '-1' may be a class"):
    classification.describe_labels(read(path), Options())
  options = Options(labels=("-1", "0", "1"))
  examples = classification.make_task(options).read_examples(path)
  info = classification.describe_labels(examples, options)
  assert info == {"labels": ["-1", "0", "1"]}
