"""GLUE: official files as they are, and submissions."""

import pytest

from maskedlm.data.labelled.formats import glue
from maskedlm.finetune.classification import classification
from maskedlm.finetune.classification.classification import Options

_PARSES = "\t".join(f"p{i}" for i in range(4))
_MNLI = "index\tpromptID\tpairID\tgenre\tpb1\tpb2\tp1\tp2\tsentence1\tsentence2"
_STSB = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1"

# Layout, the lines of an official file, (text, text_b, label) of its rows.
OFFICIAL = {
  "cola": (
    'gj04\t1\t\tHe said "no.\ngj04\t0\t*\tIs is.\n',
    [('He said "no.', None, "1"), ("Is is.", None, "0")],
  ),
  "cola test": (
    "index\tsentence\n0\tBill whistled.\n",
    [("Bill whistled.", None, None)],
  ),
  "sst2": (
    "sentence\tlabel\nhide new secretions \t0\nso good\t1\n",
    [("hide new secretions ", None, "0"), ("so good", None, "1")],
  ),
  "sst2 test": ("index\tsentence\n0\tuneasy\n", [("uneasy", None, None)]),
  "mrpc": (
    '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n1\t7\t8\tA "x\tB\r\n',
    [('A "x', "B", "1")],
  ),
  "mrpc test": (
    "\ufeffindex\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t7\t8\tA\tB\n",
    [("A", "B", None)],
  ),
  "stsb": (
    f"{_STSB}\tsentence2\tscore\n0\tg\tf\t2012\t1\tn\tn\tA\tB\t3.800\n",
    [("A", "B", 3.8)],
  ),
  "stsb test": (
    f"{_STSB}\tsentence2\n0\tg\tf\t2012\t1\tn\tn\tA\tB\n",
    [("A", "B", None)],
  ),
  "qqp": (
    "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
    "1\t2\t3\tA?\tB?\t1\n4\t5\t6\tcorrupt\n7\t8\t9\tC?\tD?\t0\n",
    [("A?", "B?", "1"), ("C?", "D?", "0")],
  ),
  "qqp test": ("id\tquestion1\tquestion2\n0\tA\tB\n", [("A", "B", None)]),
  "mnli": (
    f"{_MNLI}\tlabel1\tgold_label\n0\t1\t1n\tfiction\t{_PARSES}\tA\tB\t"
    "entailment\tneutral\n",
    [("A", "B", "neutral")],
  ),
  "mnli test": (
    f"{_MNLI}\n0\t1\t1n\tfiction\t{_PARSES}\tA\tB\n",
    [("A", "B", None)],
  ),
  "mnli subset": (
    "premise\thypothesis\tlabel\nA\tB\tcontradiction\n",
    [("A", "B", "contradiction")],
  ),
  "ax test": ("index\tsentence1\tsentence2\n0\tA\tB\n", [("A", "B", None)]),
  "qnli": (
    "index\tquestion\tsentence\tlabel\n0\tQ?\tS.\tnot_entailment\n",
    [("Q?", "S.", "not_entailment")],
  ),
  "rte": (
    "index\tsentence1\tsentence2\tlabel\n0\tA\tB\tentailment\n",
    [("A", "B", "entailment")],
  ),
  "wnli": (
    "index\tsentence1\tsentence2\tlabel\n0\tA\tB\t1\n",
    [("A", "B", "1")],
  ),
}


@pytest.mark.parametrize("name", OFFICIAL)
def test_official_layouts(tmp_path, name, capsys):
  content, expected = OFFICIAL[name]
  path = tmp_path / "file.tsv"
  path.write_bytes(content.encode())
  found = classification.make_task(
    Options(layout=name.split()[0])
  ).read_examples(str(path))
  assert [(e.text, e.text_b, e.label) for e in found] == expected
  left_out = capsys.readouterr().err
  assert ("left out" in left_out) == (name == "qqp")
  if name == "qqp":
    assert f"{path}:3: the row has 4 columns; expected 6" in left_out


# Task -> files of ../shared/data, with their numbers of rows and labels.
REAL = {
  "cola": {"train": (8551, {"0": 2528, "1": 6023})},
  "mrpc": {
    # The published file has one row more.
    "train": (3667, {"0": 1194, "1": 2473}),
    "dev": (408, {"0": 129, "1": 279}),
  },
  "stsb": {"train": (5749, None), "dev": (1500, None)},
  "qnli": {"train_from_dev": (4541, None)},
  "rte": {"train": (2490, {"entailment": 1249, "not_entailment": 1241})},
  "wnli": {"train": (635, {"0": 323, "1": 312})},
}


@pytest.mark.parametrize("task", REAL)
def test_real_files(data_dir, task):
  """Every line is an example."""
  for name, (count, labels) in REAL[task].items():
    path = data_dir / "glue" / glue.FOLDERS[task] / f"{name}.tsv"
    if not path.is_file():
      pytest.skip(f"no {path}")
    found = classification.make_task(Options(layout=task)).read_examples(
      str(path)
    )
    assert len(found) == count
    assert all(e.text.strip() for e in found)
    label_info = classification.describe_labels(found, Options(layout=task))
    if task == "stsb":
      assert (label_info["low"], label_info["high"]) == (0.0, 5.0)
    else:
      assert tuple(label_info["labels"]) == glue.LAYOUTS[task].labels
    if labels:
      assert labels == {
        x: sum(e.label == x for e in found) for x in label_info["labels"]
      }


# --- Submissions ---


@pytest.mark.parametrize(
  ("task", "name", "labels"),
  [
    ("cola", "CoLA", "1 0"),
    ("sst2", "SST-2", "1"),
    ("mrpc", "MRPC", "0"),
    ("qqp", "QQP", "1"),
    ("mnli", "MNLI-m", "neutral entailment"),
    ("mnli_mm", "MNLI-mm", "contradiction"),
    ("ax", "AX", "neutral"),
    ("qnli", "QNLI", "not_entailment"),
    ("rte", "RTE", "entailment"),
    ("wnli", "WNLI", "1"),
  ],
)
def test_submissions(task, name, labels):
  labels = labels.split()
  made = classification.export_predictions(
    [{"label": label} for label in labels], Options(layout=task)
  )
  lines = "".join(f"{i}\t{label}\n" for i, label in enumerate(labels))
  assert made == {f"{name}.tsv": f"index\tprediction\n{lines}"}


def test_submission_of_scores():
  scores = [{"score": x} for x in (3.14159, 5.2, -0.1)]
  assert glue.write_submission("stsb", scores) == (
    "STS-B.tsv",
    "index\tprediction\n0\t3.142\n1\t5.000\n2\t0.000\n",
  )
  # Another regression, whose range isn't 0..5.
  assert glue.write_submission("", scores)[1].endswith("1\t5.200\n2\t-0.100\n")
