"""GLUE from TFDS and from Hugging Face's Parquet files."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maskedlm.data.labelled.formats import glue
from maskedlm.finetune.classification import classification
from maskedlm.finetune.classification.classification import Options


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
