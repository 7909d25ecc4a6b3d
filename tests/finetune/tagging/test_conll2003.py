"""configs/conll2003.py: the shared task's files, by either name."""

import dataclasses

import pytest

from helpers.repository import ROOT
from maskedlm.config import overrides
from maskedlm.core.errors import DataError
from maskedlm.finetune import config as configs
from maskedlm.finetune import data_files
from maskedlm.finetune.tagging import tagging

# As in eng.train: four columns between spaces, IOB1, and documents.
TEXT = """-DOCSTART- -X- -X- O

Ann NNP I-NP I-PER
Lee NNP I-NP I-PER
Bob NNP B-NP B-PER
met VBD I-VP O
Ann NNP I-NP I-PER
in IN I-PP O
Ulm NNP I-NP I-LOC
. . O O

-DOCSTART- -X- -X- O

Ulm NNP I-NP I-ORG
won VBD I-VP O
"""
TAGS = [
  ("B-PER", "I-PER", "B-PER", "O", "B-PER", "O", "B-LOC", "O"),
  ("B-ORG", "O"),
]


def load():
  return overrides.load_config(
    f"{ROOT}/configs/conll2003.py", validate=configs.validate
  )


@pytest.mark.parametrize(
  "names",
  [
    ("eng.train", "eng.testa", "eng.testb"),
    ("train.txt", "valid.txt", "test.txt"),
  ],
)
def test_files_are_found_and_read(names, tmp_path, monkeypatch):
  monkeypatch.setenv("MASKEDLM_DATA", str(tmp_path))
  folder = tmp_path / "ner" / "conll2003"
  folder.mkdir(parents=True)
  for name in names:
    (folder / name).write_text(TEXT)
  config = load()
  data = config.data
  found = (data.train, data.dev, *data.also_score)
  assert found == tuple(str(folder / name) for name in names)
  values = config.task.to_dict()
  assert values.pop("kind") == "tagging"
  options = tagging.Options(**values)
  examples = data_files.read_examples(tagging.make_task(options), data.train)
  assert [e.tags for e in examples] == TAGS
  assert examples[1].words == ("Ulm", "won")
  assert examples[1].where == f"{folder / names[0]}:14"
  chunks = dataclasses.replace(options, task="pos", tag_column=2)
  read = data_files.read_examples(tagging.make_task(chunks), data.train)
  assert read[1].tags == ("I-NP", "I-VP")


def test_missing_files_are_named_with_the_remedy(tmp_path, monkeypatch):
  monkeypatch.setenv("MASKEDLM_DATA", str(tmp_path))
  config = load()
  with pytest.raises(DataError, match=r"eng\.train: no such.*MASKEDLM_DATA"):
    data_files.find_files(config.data.train)
