"""The nine tasks of GLUE: their columns, labels, metrics and submissions.

Wang et al. 2018, https://arxiv.org/abs/1804.07461; files as distributed by
gluebenchmark.com, or with the same columns from elsewhere (TFDS, a subset).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from maskedlm.data.labelled.formats.texts import FileLayout, write_predictions
from maskedlm.data.labelled.labels import NO_LABEL, NO_NUMBER

_PAIR = FileLayout(
  text=("sentence1",),
  text_b=("sentence2",),
  unlabelled=(*NO_LABEL, *NO_NUMBER),  # As in TFDS's test splits.
)
_BINARY = _PAIR._replace(labels=("0", "1"))
_SINGLE = _BINARY._replace(text=("sentence",), text_b=())
_ENTAILMENT = _PAIR._replace(labels=("entailment", "not_entailment"))
# MNLI and XNLI (Conneau et al. 2018, https://arxiv.org/abs/1809.05053), whose
# translated training sets have the columns premise, hypo and label.
_NLI = _PAIR._replace(
  text=("sentence1", "premise"),
  text_b=("sentence2", "hypothesis", "hypo"),
  label=("gold_label", "label"),
  labels=("contradiction", "entailment", "neutral"),
  aliases={"contradictory": "contradiction"},
)

LAYOUTS = {
  "cola": _SINGLE._replace(
    aliases={"unacceptable": "0", "acceptable": "1"},
    # Source, label, the author's own mark, sentence. Only test has a header.
    header=("source", "label", "mark", "sentence"),
    best="mcc",
  ),
  "sst2": _SINGLE._replace(aliases={"negative": "0", "positive": "1"}),
  "mrpc": _BINARY._replace(
    text=("#1 String", "sentence1"),
    text_b=("#2 String", "sentence2"),
    label=("Quality", "label"),
    aliases={"not_equivalent": "0", "equivalent": "1"},
    best="accuracy_f1",
  ),
  "stsb": _PAIR._replace(
    label=("score", "label"),
    regression=True,
    best="pearson_spearman",
  ),
  "qqp": _BINARY._replace(
    text=("question1",),
    text_b=("question2",),
    label=("is_duplicate", "label"),
    aliases={"not_duplicate": "0", "duplicate": "1"},
    corrupt_rows=True,  # The official file has a few.
    best="accuracy_f1",
  ),
  "mnli": _NLI,
  "mnli_mm": _NLI,  # The mismatched genres.
  "ax": _NLI,  # GLUE's diagnostic set, for a model trained on MNLI.
  "qnli": _ENTAILMENT._replace(text=("question",), text_b=("sentence",)),
  "rte": _ENTAILMENT,
  "wnli": _BINARY._replace(aliases={"not_entailment": "0", "entailment": "1"}),
}

# Task -> its folder in the official archive.
FOLDERS = {
  "cola": "CoLA",
  "sst2": "SST-2",
  "mrpc": "MRPC",
  "stsb": "STS-B",
  "qqp": "QQP",
  "mnli": "MNLI",
  "qnli": "QNLI",
  "rte": "RTE",
  "wnli": "WNLI",
}
TASKS = tuple(FOLDERS)
# Submissions whose file is not named after the folder.
_FILES = {"": "predictions", "mnli": "MNLI-m", "mnli_mm": "MNLI-mm", "ax": "AX"}


def write_submission(
  task: str, predictions: Sequence[Mapping[str, Any]]
) -> tuple[str, str]:
  """Returns (file name, text) of a submission to gluebenchmark.com.

  Args:
    task: one of LAYOUTS; "" for other files, which gives predictions.tsv.
    predictions: one per row of the test file, in order, with "label" or
      "score"; STS-B's scores are clipped to 0..5.
  """

  def answer(prediction: Mapping[str, Any]) -> str:
    if "score" not in prediction:
      return prediction["label"]
    score = prediction["score"]
    return f"{min(max(score, 0.0), 5.0) if task == 'stsb' else score:.3f}"

  name = _FILES.get(task) or FOLDERS[task]
  return f"{name}.tsv", write_predictions([answer(p) for p in predictions])
