"""SQuAD from TFDS."""

import numpy as np
import pytest

from helpers.squad_files import CONTEXT, question, read
from maskedlm.core.errors import DataError
from maskedlm.data.labelled.formats.questions import Example, GoldAnswer


@pytest.fixture(scope="module")
def tfds_dir(tmp_path_factory):
  """Prepares datasets with the features of TFDS's squad, without TensorFlow."""
  tfds = pytest.importorskip("tensorflow_datasets")
  features = tfds.features
  answers = features.Sequence(
    {"text": features.Text(), "answer_start": np.int32}
  )
  of_v1 = {
    "id": np.str_,
    "title": features.Text(),
    "context": features.Text(),
    "question": features.Text(),
    "answers": answers,
  }
  of_v2 = {"is_impossible": np.bool_, "plausible_answers": answers}
  entries = [
    ("q1", "Who?", [("Bob", 8), ("Köln", 26)]),
    ("q2", "Ä?", [("😀", 37)]),
  ]

  class LikeSquad(tfds.core.GeneratorBasedBuilder, skip_registration=True):
    VERSION = tfds.core.Version("3.0.0")
    columns = of_v1
    rows = entries

    def _info(self):
      return tfds.core.DatasetInfo(
        builder=self, features=features.FeaturesDict(self.columns)
      )

    def _split_generators(self, dl_manager):
      return {"train": self._generate_examples()}

    def _generate_examples(self):
      for key, text, found in self.rows:
        row = question(key, text, found, title="T", context=CONTEXT)
        if "is_impossible" in self.columns:
          row |= {"is_impossible": not found, "plausible_answers": []}
        yield key, row

  class LikeSquad2(LikeSquad):
    columns = of_v1 | of_v2
    rows = (*entries, ("q3", "Not?", []))

  path = tmp_path_factory.mktemp("tfds")
  for builder in (LikeSquad, LikeSquad2):
    builder(data_dir=path).download_and_prepare(file_format="array_record")
  return path


def test_tfds(tfds_dir):
  source = f"tfds:like_squad:train@{tfds_dir}"
  found = sorted(read(source), key=lambda e: e.id)
  assert found == [
    Example(
      "Who?",
      CONTEXT,
      "q1",
      (GoldAnswer("Bob", 8), GoldAnswer("Köln", 26)),
      f"{source}: question q1",
    ),
    Example(
      "Ä?", CONTEXT, "q2", (GoldAnswer("😀", 37),), f"{source}: question q2"
    ),
  ]
  assert found[0].context is found[1].context


def test_tfds_version_2(tfds_dir):
  source = f"tfds:like_squad2:train@{tfds_dir}"
  found = {e.id: e.answers for e in read(source, allow_impossible=True)}
  assert found["q3"] == () and len(found["q1"]) == 2
  with pytest.raises(DataError, match=r"question q3: no answer; expected"):
    read(source)


def test_tfds_knows_squad():
  """TFDS's own builders have the features that are read."""
  tfds = pytest.importorskip("tensorflow_datasets")
  for version in ("v1.1", "v2.0"):
    features = tfds.builder(f"squad/{version}").info.features
    assert {"id", "context", "question", "answers"} <= set(features)
    assert {"text", "answer_start"} == set(features["answers"].feature)
    assert ("is_impossible" in features) == (version == "v2.0")
