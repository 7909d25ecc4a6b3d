"""Hundreds of odd files of token columns: read as they are, or one line."""

import gzip

import pytest

from helpers import odd_columns
from maskedlm.core.errors import DataError
from maskedlm.data.labelled import bio
from maskedlm.finetune import data_files
from maskedlm.finetune.config import make_task

TASKS = {
  "ner": ("tagging", {}),
  "pos": ("tagging", {"task": "pos"}),
  "spans": ("spans", {}),
}
WORDS = [tuple(text.split(" ")) for text, _ in odd_columns.SENTENCES]
ENTITIES = [entities for _, entities in odd_columns.SENTENCES]


def read(path, name, options):
  task_name, more = TASKS[name]
  task = make_task(task_name, {**options, **more})
  return data_files.read_examples(task, str(path))


def found_entities(examples, name):
  if name == "spans":
    return [tuple(map(tuple, e.spans)) for e in examples]
  return [tuple(map(tuple, bio.find_entities(e.tags))) for e in examples]


@pytest.mark.parametrize("name", TASKS)
def test_good_files_have_their_words_and_entities(name, tmp_path):
  count = 0
  for odd in odd_columns.good_files():
    path = tmp_path / odd.name
    path.write_bytes(odd.content)
    if name == "pos" and odd.name.startswith("rows"):
      continue  # Its tags are entities'.
    examples = read(path, name, odd.options)
    assert [e.words for e in examples] == WORDS, odd.name
    if name != "pos":
      found = [
        tuple((type_.upper(), *place) for type_, *place in entities)
        for entities in found_entities(examples, name)
      ]
      assert found == ENTITIES, odd.name
    lines = [line for e in examples for line in e.lines]
    assert lines == sorted(lines)
    if not odd.name.startswith("rows"):
      packed = odd.name.endswith(".gz")
      content = gzip.decompress(odd.content) if packed else odd.content
      text = content.decode("utf-8-sig").split("\n")
      for line, word in zip(lines, sum(WORDS, ()), strict=True):
        assert word in text[line - 1]
    count += 1
  assert count > 150


@pytest.mark.parametrize("name", TASKS)
def test_broken_files_are_refused_in_a_line_or_reported(name, tmp_path, capsys):
  count = 0
  for odd in odd_columns.broken_files():
    path = tmp_path / odd.name
    path.write_bytes(odd.content)
    capsys.readouterr()
    try:
      examples = read(path, name, odd.options)
    except DataError as error:
      message = str(error)
      assert "\n" not in message and message.startswith(str(path)), odd.name
      assert len(message) < 700
    else:
      # Tags of any name are parts of speech.
      assert name == "pos" or capsys.readouterr().err, odd.name
      assert sum(len(e.words) for e in examples) >= 1
    count += 1
  assert count > 100
