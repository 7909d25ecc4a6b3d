"""Labelled spans: files, labels, lines of input, predictions."""

import dataclasses
import json

import pytest

from maskedlm.core.errors import DataError
from maskedlm.data.labelled.bio import Entity
from maskedlm.finetune import data_files
from maskedlm.finetune.spans import spans
from maskedlm.finetune.spans.decode import Candidate
from maskedlm.finetune.spans.spans import Example, Options, span_prediction

TRAIN = "the\tO\ncat\tB-PER\nsat\tI-PER\n\na\tO\nhouse\tB-LOC\n"


def candidates(*given):
  return [Candidate(m, Entity(t, b, e), 0.5) for m, t, b, e in given]


def test_labels_come_from_the_training_set(file):
  path = file("a\tB-Z\tO\nb\tI-Z\tB-Y\n\nc\tO\tO\n")
  options = Options(nested=True)
  examples = spans.read_examples(path, options)
  assert spans.describe_labels(examples) == {"labels": ["NULL", "Y", "Z"]}
  assert examples[0].spans == (Entity("Z", 0, 2), Entity("Y", 1, 2))
  assert examples[1].where == f"{path}:4" and examples[1].lines == (4,)
  only = dataclasses.replace(options, identify=True)
  examples = spans.read_examples(path, only)
  assert spans.describe_labels(examples) == {"labels": ["NULL", "SPAN"]}
  assert examples[0].spans == (Entity("SPAN", 0, 2), Entity("SPAN", 1, 2))
  # Two labels of the same words become one span.
  twice = spans.read_examples(file("a\tB-Z\tB-Y\n", "twice.tsv"), only)
  assert twice[0].spans == (Entity("SPAN", 0, 1),)
  flat = Options(tag_column=1)
  assert spans.read_examples(path, flat)[0].spans == (Entity("Z", 0, 2),)


def test_files_are_documents(file, tmp_path):
  for name in ("b.tsv", "a.tsv"):
    file(TRAIN, name)
  examples = data_files.read_examples(
    spans.make_task(Options()), str(tmp_path / "*.tsv")
  )
  assert list(map(spans.make_task(Options()).split_key, examples)) == [
    "a.tsv",
    "a.tsv",
    "b.tsv",
    "b.tsv",
  ]


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("a\tO\nb\tO\n", "no span in 1 sentence, all tags are O"),
    ("a\nb\n", "the words have no tags"),
  ],
)
def test_nothing_to_learn(file, text, message):
  options = Options()
  with pytest.raises(DataError, match=message):
    spans.describe_labels(spans.read_examples(file(text), options))


def test_predictions_have_offsets_into_the_text():
  text = " Jane Lee  left."
  example = spans.make_task(Options()).parse_line(text)
  assert example.words == ("Jane", "Lee", "left", ".")
  found = candidates((2.0, "PER", 0, 2), (0.25, "NAME", 0, 1))
  made = span_prediction(example, found)
  assert made["entities"][0] == {
    "type": "PER",
    "text": "Jane Lee",
    "start": 1,
    "end": 9,
    "words": [0, 2],
    "score": 0.5,
    "margin": 2.0,
  }
  assert json.loads(json.dumps(made)) == made
  assert spans.make_task(Options()).format_prediction(made).splitlines() == [
    text,
    "     1-9    PER: Jane Lee (0.50)",
    "     1-5    NAME: Jane (0.50)",
  ]


def test_exported_files_are_read_again(file):
  predictions = [
    span_prediction(
      Example(("a", "b", "c")), candidates((1, "X", 0, 3), (1, "Y", 1, 2))
    ),
    span_prediction(Example(("d",)), []),
  ]
  options = Options(nested=True)
  (text,) = spans.export_predictions(predictions).values()
  again = spans.read_examples(file(text), options)
  assert again[0].spans == (Entity("X", 0, 3), Entity("Y", 1, 2))
  assert again[1].spans == ()
