"""Every task reads the columns of the Hub's Parquet files and of TFDS.

The rows are made up; columns, types and metadata are those of the data sets.
"""

import importlib.util
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers.tfrecords import as_tfrecord
from maskedlm.core.errors import DataError
from maskedlm.data.labelled.bio import Entity
from maskedlm.finetune import config as configs


def classes(*names):
  return {"names": list(names), "_type": "ClassLabel"}


def sequence(of):
  return {"feature": of, "_type": "Sequence"}


def write(path, rows, **features):
  """Writes rows as Hugging Face's datasets does."""
  info = {"info": {"features": features}}
  table = pa.Table.from_pylist(rows).replace_schema_metadata(
    {"huggingface": json.dumps(info)}
  )
  pq.write_table(table, path)
  return str(path)


def read(name, source, **options):
  return configs.make_task(name, options).read_examples(source)


@pytest.fixture
def path(tmp_path):
  return tmp_path / "train-00000-of-00001.parquet"


ONTONOTES = {
  "document_id": "nw/x",
  "sentences": [
    {
      "part_id": 0,
      "words": ["Ann", "Lee", "slept"],
      "pos_tags": [0, 0, 1],
      "parse_tree": "(TOP(S(NP (NNP Ann) (NNP Lee) ) (VP (VBD slept) )))",
      "named_entities": [1, 2, 0],
      "srl_frames": [{"verb": "slept", "frames": ["B-ARG0", "I-ARG0", "B-V"]}],
      "coref_spans": [[7, 0, 1], [4, 1, 1]],
    },
    {
      "part_id": 0,
      "words": ["She", "left"],
      "pos_tags": [2, 1],
      "parse_tree": "(TOP(S(NP*)(VP*)))",
      "named_entities": [0, 0],
      "srl_frames": [],
      "coref_spans": [[7, 0, 0]],
    },
    {
      "part_id": 1,
      "words": ["Yes"],
      "pos_tags": [0],
      "parse_tree": "(TOP*)",
      "named_entities": [0],
      "srl_frames": [],
      "coref_spans": [],
    },
  ],
}


def test_ontonotes_of_the_hub(path):
  """Five tasks read a document; its classes are within lists of objects."""
  features = {
    "pos_tags": sequence(classes("NNP", "VBD", "PRP")),
    "named_entities": [classes("O", "B-PERSON", "I-PERSON")],
    "words": sequence({"dtype": "string", "_type": "Value"}),
  }
  source = write(path, [ONTONOTES], sentences=[features])
  words = [("Ann", "Lee", "slept"), ("She", "left"), ("Yes",)]
  tags = ("B-PERSON", "I-PERSON", "O")
  found = read("tagging", source)
  assert [e.words for e in found] == words and found[0].tags == tags
  found = read("tagging", source, task="pos")
  assert found[1].tags == ("PRP", "VBD")
  assert read("spans", source)[0].spans == (Entity("PERSON", 0, 2),)
  found = read("constituency", source)
  assert [e.words for e in found] == words
  assert found[1].tags == ("PRP", "VBD")
  first = read("semantic_roles", source)[0]
  [predicate] = first.predicates
  assert predicate[:2] == (2, (Entity("ARG0", 0, 2),))
  found = read("coreference_chains", source)
  assert [e.id for e in found] == ["(nw/x); part 000", "(nw/x); part 001"]
  assert [e.words for e in found] == [words[0] + words[1], words[2]]
  assert found[0].sentence_ends == (3, 5)
  assert found[0].chains == (((0, 2), (3, 4)), ((1, 2),))
  assert found[1].chains == ()


def choices(source, **options):
  found = read("multiple_choice", source, **options)
  return [(e.context, e.question, e.choices, e.label) for e in found]


AB = ("a b", "c d")
LETTERED = {"text": [*AB], "label": ["A", "B"]}
NUMBERED = {"text": [*AB], "label": ["1", "2"]}


SWAG = {"video-id": "v", "fold-ind": "1", "gold-source": "gold"}
SWAG |= {"startphrase": "He sat. He", "sent1": "He sat.", "sent2": "He"}
SWAG |= {"ending0": AB[0], "ending1": AB[1], "label": 1}
HELLASWAG = {"ind": 4, "ctx_a": "x", "endings": [*AB]}
RACE = {"example_id": "h", "article": "t", "answer": "B", "question": "q"}
WINOGRANDE = {"sentence": "The _ is", "option1": AB[0], "option2": AB[1]}
COPA = {"premise": "p", "question": "cause", "idx": 0, "label": 1}


@pytest.mark.parametrize(
  ("rows", "features", "expected"),
  [
    ([SWAG], {"label": classes("0", "1")}, [("He sat.", "He", AB, 1)]),
    (
      [
        {**HELLASWAG, "ctx": "x y", "label": "1"},
        {**HELLASWAG, "ctx": "x z", "label": ""},
      ],
      {},
      [("x y", "", AB, 1), ("x z", "", AB, None)],
    ),
    (  # ARC.
      [
        {"id": "1", "question": "q?", "choices": LETTERED, "answerKey": "B"},
        {"id": "2", "question": "r?", "choices": NUMBERED, "answerKey": "1"},
        {"id": "3", "question": "s?", "choices": NUMBERED, "answerKey": ""},
      ],
      {},
      [("q?", "", AB, 1), ("r?", "", AB, 0), ("s?", "", AB, None)],
    ),
    ([{**RACE, "options": [*AB]}], {}, [("t", "q", AB, 1)]),
    (  # PIQA.
      [{"goal": "g", "sol1": AB[0], "sol2": AB[1], "label": 0}],
      {"label": classes("0", "1")},
      [("g", "", AB, 0)],
    ),
    ([{**WINOGRANDE, "answer": "2"}], {}, [("The _ is", "", AB, 1)]),
    (
      [{**COPA, "choice1": AB[0], "choice2": AB[1]}],
      {"label": classes("choice1", "choice2")},
      [("p", "cause", AB, 1)],
    ),
  ],
)
def test_multiple_choice_of_the_hub(path, rows, features, expected):
  assert choices(write(path, rows, **features)) == expected


# --- TFDS ---

CONTEXT = "Ada met Bob. Then Bob left."
CONLL = {"tokens": ["Ann", "left"], "pos": ["NNP", "VBD"]}
CONLL |= {"chunks": ["B-NP", "B-VP"], "ner": ["B-PER", "O"]}
ARC = {"id": "1", "question": "q?", "choices": LETTERED, "answerKey": "B"}
OF_TFDS = {"context": "x y", "endings": [*AB], "label": 1}
OF_TFDS |= dict.fromkeys(("activity_label", "split_type", "source_id"), "")
SQUAD = {"id": "q1", "title": "T", "context": CONTEXT, "question": "Who?"}
SQUAD["answers"] = {"text": ["Bob"], "answer_start": [18]}
MRPC = [
  {"sentence1": f"é {i}", "sentence2": f"b {i}", "label": i % 2, "idx": i}
  for i in range(7)
]
MRPC.append({"sentence1": "x", "sentence2": "y", "label": -1, "idx": 7})
TFDS_ROWS = {"conll2003": [CONLL], "ai2_arc": [ARC], "hellaswag": [OF_TFDS]}
TFDS_ROWS |= {"squad": [SQUAD], "glue/mrpc": MRPC}


@pytest.fixture(scope="module")
def tfds_dir(tmp_path_factory):
  """Datasets with the features of TFDS's own, as TFRecord."""
  import tensorflow_datasets as tfds
  import tensorflow_datasets.text

  class Like(tfds.core.GeneratorBasedBuilder, skip_registration=True):
    VERSION = tfds.core.Version("1.0.0")
    of = ""

    def _info(self):
      features = tfds.builder(self.of).info.features
      return tfds.core.DatasetInfo(builder=self, features=features)

    def _split_generators(self, dl_manager):
      return {"train": self._generate_examples()}

    def _generate_examples(self):
      yield from enumerate(TFDS_ROWS[self.of])

  folder = tmp_path_factory.mktemp("tfds")
  for of in TFDS_ROWS:
    name = f"like_{of.rpartition('/')[2]}"
    made = type(name, (Like,), {"of": of}, skip_registration=True)
    made.name = name
    made(data_dir=folder).download_and_prepare(file_format="array_record")
  as_tfrecord(folder)
  return folder


def test_tasks_read_tfds(tfds_dir):
  def source(name, split=""):
    return f"tfds:like_{name}{split}@{tfds_dir}"

  [found] = read("tagging", source("conll2003"))
  assert (found.words, found.tags) == (("Ann", "left"), ("B-PER", "O"))
  [found] = read("tagging", source("conll2003"), task="pos")
  assert found.tags == ("NNP", "VBD")
  [found] = read("spans", source("conll2003"))
  assert found.spans == (Entity("PER", 0, 1),)
  assert choices(source("ai2_arc")) == [("q?", "", AB, 1)]
  assert choices(source("hellaswag")) == [("x y", "", AB, 1)]
  [found] = read("question_answering", source("squad"))
  assert (found.id, found.answers) == ("q1", (("Bob", 18),))
  [found] = read("retrieval", source("squad"))
  assert (found.query, found.passages) == ("Who?", (CONTEXT,))
  # In the order of idx, not of the dataset's files.
  mrpc = source("mrpc", ":train")
  found = read("classification", mrpc, layout="mrpc")
  pairs = [(f"é {i}", f"b {i}") for i in range(7)]
  assert [(e.text, e.text_b) for e in found] == [*pairs, ("x", "y")]
  assert [e.label for e in found] == [*"0101010", None]
  assert found[2].where == f"{mrpc}:3"
  with pytest.raises(DataError, match="Unknown split 'dev'"):
    read("tagging", source("conll2003", ":dev"))


@pytest.mark.skipif(
  importlib.util.find_spec("tensorflow") is not None,
  reason="TensorFlow is installed",
)
def test_a_builder_that_needs_tensorflow(tmp_path):
  (tmp_path / "goemotions" / "0.1.0").mkdir(parents=True)
  with pytest.raises(DataError, match=r"'tensorflow'.* is 0\.1\.0.*VERSION"):
    read("multi_label", f"tfds:goemotions@{tmp_path}")
