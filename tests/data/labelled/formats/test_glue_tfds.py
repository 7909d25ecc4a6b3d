"""GLUE from TFDS and from Hugging Face's Parquet files."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import tables
from maskedlm.data.labelled.formats import glue
from maskedlm.finetune.classification import classification
from maskedlm.finetune.classification.classification import Options


@pytest.fixture(scope="module")
def tfds_dir(tmp_path_factory):
  """GLUE-like datasets, prepared without TensorFlow."""
  tfds = pytest.importorskip("tensorflow_datasets")
  features = tfds.features

  class Like(tfds.core.GeneratorBasedBuilder, skip_registration=True):
    VERSION = tfds.core.Version("1.0.0")
    columns = {}  # noqa: RUF012
    rows = ()

    def _info(self):
      return tfds.core.DatasetInfo(
        builder=self,
        features=features.FeaturesDict({**self.columns, "idx": np.int32}),
      )

    def _split_generators(self, dl_manager):
      return {"train": self._generate_examples()}

    def _generate_examples(self):
      for index, row in enumerate(self.rows):
        columns = zip(self.columns, row, strict=True)
        yield index, {**dict(columns), "idx": index}

  class LikeMrpc(Like):
    columns = {  # noqa: RUF012
      "sentence1": features.Text(),
      "sentence2": features.Text(),
      "label": features.ClassLabel(names=["not_equivalent", "equivalent"]),
    }
    rows = [(f"é {i}", f"b {i}", i % 2) for i in range(7)] + [("x", "y", -1)]

  class LikeStsb(Like):
    columns = {  # noqa: RUF012
      "sentence1": features.Text(),
      "sentence2": features.Text(),
      "label": np.float32,
    }
    rows = (("a", "b", 3.8), ("c", "d", -1.0))

  path = tmp_path_factory.mktemp("tfds")
  for builder in (LikeMrpc, LikeStsb):
    builder(data_dir=path).download_and_prepare(file_format="array_record")
  return path


def test_tfds(tfds_dir):
  source = f"tfds:like_mrpc:train@{tfds_dir}"
  found = classification.make_task(Options(layout="mrpc")).read_examples(source)
  # In the order of idx, not of the dataset's files.
  assert [e.text for e in found] == [f"é {i}" for i in range(7)] + ["x"]
  assert [e.text_b for e in found] == [f"b {i}" for i in range(7)] + ["y"]
  assert [e.label for e in found] == [*"0101010", None]
  assert found[2].where == f"{source}:3"


def test_parquet_of_hugging_face(tmp_path):
  """The file has the columns, classes and -1 of nyu-mll/glue's mrpc."""
  names = ["not_equivalent", "equivalent"]
  features_json = {"info": {"features": {"label": {"names": names}}}}
  features_json["info"]["features"]["label"]["_type"] = "ClassLabel"
  table = pa.table(
    {
      "sentence1": ["a", "b", "c"],
      "sentence2": ["d", "e", "f"],
      "label": [1, 0, -1],
      "idx": [0, 1, 2],
    }
  ).replace_schema_metadata({"huggingface": json.dumps(features_json)})
  path = tmp_path / "train-00000-of-00001.parquet"
  pq.write_table(table, path)
  found = classification.make_task(Options(layout="mrpc")).read_examples(
    str(path)
  )
  assert [(e.text, e.text_b, e.label) for e in found] == [
    ("a", "d", "1"),
    ("b", "e", "0"),
    ("c", "f", None),
  ]
  own = classification.make_task(Options(text="sentence1")).read_examples(
    str(path)
  )
  assert [e.label for e in own[:2]] == ["equivalent", "not_equivalent"]


def test_tfds_knows_glue():
  """TFDS's own builders have the columns and classes of the layouts."""
  tfds = pytest.importorskip("tensorflow_datasets")
  import tensorflow_datasets.text  # noqa: F401

  for task in glue.TASKS:
    layout = glue.LAYOUTS[task]
    features = tfds.builder(f"glue/{task}").info.features
    columns = [
      names for names in (layout.text, layout.text_b, layout.label) if names
    ]
    assert all(set(names) & set(features) for names in columns)
    if not layout.regression:
      names = features["label"].names
      assert {layout.aliases.get(n, n) for n in names} == set(layout.labels)


def test_tfds_errors(tfds_dir):
  with pytest.raises(DataError, match="Unknown split 'dev'"):
    list(tables.read_records(f"tfds:like_mrpc:dev@{tfds_dir}"))
