"""GLUE: official files, metrics, submissions and configs."""

import json

import pytest

from helpers.repository import ROOT
from maskedlm.cli import finetune
from maskedlm.config import overrides as flags
from maskedlm.core.errors import ConfigError, DataError
from maskedlm.finetune import config as config_lib
from maskedlm.finetune.classification import classification, glue
from maskedlm.finetune.classification.classification import Options

CONFIG = ROOT / "configs" / "glue.py"
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
  found = classification.read_examples(
    str(path), Options(layout=name.split()[0])
  )
  assert [(e.text, e.text_b, e.label) for e in found] == expected
  left_out = capsys.readouterr().err
  assert ("left out" in left_out) == (name == "qqp")
  if name == "qqp":
    assert f"{path}:3: the row has 4 columns; expected 6" in left_out


# Task -> files of ../shared/data, with their numbers of rows and labels.
REAL = {
  "cola": {"train": (8551, {"0": 2528, "1": 6023})},
  "sst2": {"train": (67349, {"0": 29780, "1": 37569})},
  "mrpc": {
    "train": (
      3667,
      {"0": 1194, "1": 2473},
    ),  # The published file has one row more.
    "dev": (408, {"0": 129, "1": 279}),
  },
  "stsb": {"train": (5749, None), "dev": (1500, None)},
  "mnli": {"train_from_dev": (17187, None)},
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
    found = classification.read_examples(str(path), Options(layout=task))
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


@pytest.mark.parametrize(
  ("task", "content", "message"),
  [
    (
      "rte",
      "index\tsentence1\tsentence2\tlabel\n0\tA\tB\tentails\n",
      "file.tsv:2: label 'entails'; expected one of entailment, not_entail",
    ),
    (
      "cola",
      "gj04\t1\t\tA.\ngj04\t2\t\tB.\n",
      "file.tsv:2: label '2'; expected one of 0, 1.",
    ),
    (
      "stsb",
      "sentence1\tsentence2\tscore\nA\tB\t3.8\nA\tB\thigh\n",
      "file.tsv:3: score 'high' is not a number",
    ),
    (
      "mrpc",
      "Quality\t#1 String\n1\tA\n",
      "file.tsv:2: no column '#2 String' or 'sentence2'; there are 'Quality'",
    ),
    ("cola", "gj04\t1\tA.\n", "file.tsv:1: the row has 3 columns; expected 4"),
    ("sst2", "", "file.tsv: the file is empty"),
    ("cola", "\n\n", "file.tsv: has no row"),
    ("sst2", b"sentence\tlabel\nna\xefve\t1\n", "file.tsv:2: not UTF-8"),
  ],
)
def test_bad_files(tmp_path, task, content, message):
  path = tmp_path / "file.tsv"
  path.write_bytes(content if isinstance(content, bytes) else content.encode())
  with pytest.raises(DataError) as error:
    classification.read_examples(str(path), Options(layout=task))
  assert message in str(error.value)
  assert "\n" not in str(error.value)


# --- Metrics and submissions ---


@pytest.mark.parametrize(
  ("task", "best"),
  [
    ("cola", "mcc"),
    ("sst2", "accuracy"),
    ("mrpc", "accuracy_f1"),
    ("stsb", "pearson_spearman"),
    ("qqp", "accuracy_f1"),
    ("mnli", "accuracy"),
    ("qnli", "accuracy"),
    ("rte", "accuracy"),
    ("wnli", "accuracy"),
  ],
)
def test_the_metric_of_each_task(task, best):
  assert classification.layout_of(Options(layout=task)).best == best


@pytest.mark.parametrize(
  ("task", "predictions", "name", "lines"),
  [
    ("cola", ["1", "0"], "CoLA", ["0\t1", "1\t0"]),
    ("sst2", ["1"], "SST-2", ["0\t1"]),
    ("mrpc", ["0"], "MRPC", ["0\t0"]),
    ("qqp", ["1"], "QQP", ["0\t1"]),
    (
      "mnli",
      ["neutral", "entailment"],
      "MNLI-m",
      ["0\tneutral", "1\tentailment"],
    ),
    ("mnli_mm", ["contradiction"], "MNLI-mm", ["0\tcontradiction"]),
    ("ax", ["neutral"], "AX", ["0\tneutral"]),
    ("qnli", ["not_entailment"], "QNLI", ["0\tnot_entailment"]),
    ("rte", ["entailment"], "RTE", ["0\tentailment"]),
    ("wnli", ["1"], "WNLI", ["0\t1"]),
  ],
)
def test_submissions(task, predictions, name, lines):
  made = classification.export_predictions(
    [{"label": label} for label in predictions], Options(layout=task)
  )
  assert made == {f"{name}.tsv": "\n".join(["index\tprediction", *lines, ""])}


def test_submission_of_scores():
  scores = [{"score": x} for x in (3.14159, 5.2, -0.1)]
  assert glue.format_submission("stsb", scores) == (
    "STS-B.tsv",
    "index\tprediction\n0\t3.142\n1\t5.000\n2\t0.000\n",
  )
  # Another regression, whose range isn't 0..5.
  assert glue.format_submission("", scores)[1].endswith("1\t5.200\n2\t-0.100\n")


# --- Configs ---


def load(task, *overrides):
  return flags.load_config(
    f"{CONFIG}:{task}", overrides, validate=config_lib.validate
  )


@pytest.mark.parametrize("task", glue.TASKS)
def test_the_config_of_each_task(task):
  config = load(task)
  assert config.task.layout == task
  assert 2e-5 <= config.optimizer.learning_rate <= 5e-5
  assert config.data.length == 128
  assert f"glue/{glue.FOLDERS[task]}/train" in config.data.train


def test_files_are_found(tmp_path, monkeypatch):
  monkeypatch.setenv("MASKEDLM_DATA", str(tmp_path))
  assert (load("all").suite, load("all").suite_without) == (glue.TASKS, ())
  folder = tmp_path / "glue" / "MNLI"
  folder.mkdir(parents=True)
  (folder / "train_from_dev.tsv").touch()
  config = load("mnli")
  assert config.data.train == str(folder / "train_from_dev.tsv")
  assert (config.data.dev, config.data.also_score) == ("", ())
  for name in ("train", "dev_matched", "dev_mismatched"):
    (folder / f"{name}.tsv").touch()
  config = load("mnli")
  assert config.data.train == str(folder / "train.tsv")
  assert config.data.dev == str(folder / "dev_matched.tsv")
  assert config.data.also_score == (str(folder / "dev_mismatched.tsv"),)
  assert load("all").suite == ("mnli",)
  assert load("all").suite_without == tuple(
    task for task in glue.TASKS if task != "mnli"
  )


def test_the_average_is_printed_with_what_it_leaves_out(tmp_path, capsys):
  results = {
    "mnli": {
      "best_metric": "accuracy",
      "accuracy": 0.5,
      "also_scored": {"mm.tsv": {"accuracy": 0.25, "loss": 1.0}},
    },
    "cola": {"best_metric": "mcc", "mcc": 0.25, "accuracy": 0.75},
  }
  finetune._print_suite(results, ("qqp", "wnli"), tmp_path)
  assert capsys.readouterr().out.splitlines()[4:] == [
    "| average of 2 | | 0.3750 |",
    "not in the average, because not run: qqp, wnli",
    "not in the average: mnli, mm.tsv: accuracy 0.2500",
  ]
  written = json.loads((tmp_path / "suite.json").read_text())
  assert written["average"] == 0.375
  assert written["without"] == ["qqp", "wnli"]


def test_an_unknown_task():
  with pytest.raises(ConfigError, match=r'did you mean "mrpc"\?; known: cola'):
    load("mrcp")


def test_the_default_is_mrpc():
  config = flags.load_config(str(CONFIG), validate=config_lib.validate)
  assert config.name == "glue_mrpc"


def test_configs_of_other_files():
  path = CONFIG.with_name("classification.py")
  config = flags.load_config(
    str(path),
    ("--config.task.text=review", "--config.task.header=('label','review')"),
    validate=config_lib.validate,
  )
  assert config.task.layout == "columns"
  assert config.task.header == ("label", "review")
