"""Tagging: files, labels, lines of input, predictions, configs."""

import dataclasses
import json

import pytest

from maskedlm.core.errors import DataError
from maskedlm.finetune.tagging import tagging
from maskedlm.finetune.tagging.tagging import Example, Options, tag_prediction

TRAIN = "the\tO\ncat\tB-PER\nsat\tI-PER\n\na\tO\nhouse\tB-LOC\n"


def test_labels_come_from_the_training_set(file):
  label_info = tagging.describe_labels(
    tagging.read_examples(file(TRAIN), Options()), Options()
  )
  # Every LOC has one word, but a development set may need its I.
  assert label_info == {"labels": ["O", "B-LOC", "B-PER", "I-LOC", "I-PER"]}
  pos = Options(task="pos")
  label_info = tagging.describe_labels(
    tagging.read_examples(file("a\tDET\ncat\tNOUN\na\tDET\n"), pos), pos
  )
  assert label_info == {"labels": ["DET", "NOUN"]}


@pytest.mark.parametrize(
  ("text", "options", "message"),
  [
    ("a\tO\nb\tO\n", Options(), "every word has the tag 'O'; expected at"),
    ("a\tX\n", Options(task="pos"), "every word has the tag 'X'"),
    ("a\nb\n", Options(), "the words have no tags"),
  ],
)
def test_nothing_to_learn(file, text, options, message):
  path = file(text)
  with pytest.raises(DataError) as error:
    tagging.describe_labels(tagging.read_examples(path, options), options)
  assert message in str(error.value) and path in str(error.value)


def test_predictions_have_offsets_into_the_text():
  text = " Jane  met Ann Lee."
  example = tagging.make_task(Options()).parse_line(text)
  tags = ["B-PER", "O", "B-PER", "I-PER", "O"]
  sure = [0.9, 0.8, 0.7, 0.6, 0.5]
  made = tag_prediction(example, tags, sure, has_entities=True)
  assert made["text"] == text
  assert made["entities"] == [
    {
      "type": "PER",
      "text": "Jane",
      "start": 1,
      "end": 5,
      "words": [0, 1],
      "score": 0.9,
    },
    {
      "type": "PER",
      "text": "Ann Lee",
      "start": 11,
      "end": 18,
      "words": [2, 4],
      "score": 0.6,
    },
  ]
  for entity in made["entities"]:
    assert text[entity["start"] : entity["end"]] == entity["text"]
  assert json.loads(json.dumps(made)) == made
  assert tagging.make_task(Options()).format_prediction(made).splitlines() == [
    text,
    "     1-5    PER: Jane (0.90)",
    "    11-18   PER: Ann Lee (0.60)",
  ]
  nothing = {**made, "entities": []}
  assert tagging.make_task(Options()).format_prediction(nothing) == (
    f"{text}\n  (no entities)"
  )
  # Words without a text are joined.
  made = tag_prediction(
    Example(("a", "b")), ["X", "Y"], [1, 1], has_entities=False
  )
  assert (
    "entities" not in made
    and tagging.make_task(Options()).format_prediction(made) == "a/X b/Y"
  )


def test_files_that_a_run_writes_can_be_read(file):
  options = Options()
  examples = tagging.read_examples(file(TRAIN), options)
  tags = [["O", "B-LOC", "I-LOC"], ["O", "B-LOC"]]
  predictions = [
    tag_prediction(e, t, [1] * len(t), has_entities=True)
    for e, t in zip(examples, tags, strict=True)
  ]
  files = tagging.format_tables(examples, predictions)
  assert set(files) == {"report.txt", "confusion.tsv", "predictions.conll"}
  written = file(files["predictions.conll"], "p.conll")
  assert [e.tags for e in tagging.read_examples(written, options)] == list(
    map(tuple, tags)
  )
  gold = tagging.read_examples(
    written, dataclasses.replace(options, tag_column=1)
  )
  assert [e.tags for e in gold] == [e.tags for e in examples]
  out = tagging.export_predictions(predictions, options)
  again = tagging.read_examples(
    file(out["predictions.conll"], "q.conll"), options
  )
  assert [e.tags for e in again] == list(map(tuple, tags))
