"""Classification and regression: a text or a pair of texts -> label or score.

y = softmax(W z_CLS) (eq. 11.13), through BERT's pooler or not; pairs as in
pretraining, [CLS] A [SEP] B [SEP] (section 11.4.2; Devlin et al. 2019,
arXiv:1810.04805, section 4.1). A score is W z_CLS with a single output, trained
by squared error. Files: GLUE's (glue.py) and others with named columns.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maskedlm.core.errors import ConfigError, did_you_mean
from maskedlm.core.options import copy_option
from maskedlm.data.batches.text_pairs import cut_sizes
from maskedlm.data.labelled.formats import glue, texts
from maskedlm.data.labelled.formats.texts import Example
from maskedlm.data.labelled.labels import find_classes, without_mark
from maskedlm.finetune.classification import glue_table, nsp_start
from maskedlm.finetune.classification.file_options import (
  OWN_LAYOUTS,
  FileOptions,
  layout_of,
)
from maskedlm.finetune.common import label_metrics, single_label
from maskedlm.finetune.common.head import Head, make_row_head
from maskedlm.finetune.common.labels import (
  Gold,
  file_of,
  ids_of,
  label_ids,
  require_two_labels,
)
from maskedlm.finetune.common.options import Shared
from maskedlm.finetune.common.text_pairs import row_maker
from maskedlm.finetune.contract import (
  Application,
  FinetuneTask,
  Prediction,
  Rows,
  Setup,
  task_option,
)
from maskedlm.modeling import reports
from maskedlm.modeling.task_heads import ensemble

DEMO_LINES = (
  "A moving film, though it is a little too long.",
  "A man is playing a guitar.\tSomeone is making music.",
)


@dataclasses.dataclass(frozen=True)
class Options(FileOptions):
  """config.task: the columns of the files, and the head."""

  pooler: bool = copy_option(Shared, "pooler")
  head_from: str = task_option(
    "",
    "nsp: of pairs with two labels, the head starts from the pretrained one of "
    "next-sentence prediction; `positive` is the label that means that B "
    "follows A.",
    choices=("", "nsp"),
  )


GOLD = Gold(
  "label", "a label", lambda example: [(example.label, example.where)]
)


def describe_labels(
  examples: Sequence[Example], options: FileOptions
) -> dict[str, Any]:
  """Returns the sorted labels, or for regression the statistics of the scores.

  Raises:
    DataError: no example has a label, all have the same one, or two classes
      can't be told apart (labels.find_classes).
  """
  examples = GOLD.labelled(examples)
  labels = GOLD.of(examples)
  require_two_labels(examples, labels, "label")
  layout = layout_of(options)
  if layout.regression:
    scores = np.array(labels, np.float64)
    return {
      "low": min(labels),
      "high": max(labels),
      "mean": float(scores.mean()),
      "stddev": float(scores.std()),
    }
  if options.labels:
    return {"labels": sorted(set(options.labels))}
  if layout.labels:
    return {"labels": sorted(set(labels))}
  where = file_of(examples)
  return {"labels": find_classes(labels, where)}


def make_application(setup: Setup, options: Options) -> Application:
  """Returns the Application.

  Raises:
    ConfigError: there is no such metric or positive label; the head can't be
      that of next-sentence prediction.
  """
  app = make_labeller(
    setup,
    options,
    lambda outputs: make_row_head(setup.cfg, outputs, pooler=options.pooler),
  )
  if not options.head_from:
    return app
  labels = setup.label_info.get("labels", ())
  return app._replace(
    initial_heads=nsp_start.initial_heads(
      labels,
      _positive_label(labels, options),
      pooler=options.pooler,
      pairs=bool(layout_of(options).text_b),
    )
  )


def make_labeller(
  setup: Setup, options: FileOptions, make_head: Callable[[int], Head]
) -> Application:
  """Returns the Application that labels texts or pairs with some head.

  Args:
    setup, options: as for make_application.
    make_head: number of outputs -> Head with logits [B, outputs].

  Raises:
    ConfigError: there is no such metric or positive label.
  """
  build = _regression if layout_of(options).regression else _classification
  return build(setup, options, make_head)


def _classification(
  setup: Setup, options: FileOptions, make_head: Callable[[int], Head]
) -> Application:
  tokenizer, cfg, label_info, length = setup
  labels = tuple(label_info["labels"])
  positive = _positive_label(labels, options)
  metrics = label_metrics.LABEL_METRICS
  best = _best_metric(
    options, metrics + label_metrics.POSITIVE_LABEL_METRICS * bool(positive)
  )
  head = make_head(len(labels))

  def has_label(example: Example) -> bool:
    return bool(example.label and without_mark(example.label, labels))

  def rows(examples: Sequence[Example]) -> Rows:
    gold = [x.label if has_label(x) else None for x in examples]
    return make_rows(
      tokenizer,
      cfg,
      examples,
      length,
      labels=label_ids(gold, ids_of(labels)),
      notes=GOLD.unseen_notes(list(filter(has_label, examples)), labels),
    )

  def predict(example: Example, shares: list[float]) -> Prediction:
    return {
      "label": labels[np.argmax(shares)],
      "probability": max(shares),
      "probabilities": dict(zip(labels, shares, strict=True)),
    }

  def score(examples, predictions):
    gold = GOLD.of(examples)
    return label_metrics.evaluate_labels(
      gold, [p["label"] for p in predictions], positive=positive
    )

  return single_label.make_classifier(
    head,
    make_rows=rows,
    predict=predict,
    score=score,
    best=best,
    has_label=has_label,
    require_labels=functools.partial(GOLD.require, known=labels),
    term="class",
  )


def _regression(
  setup: Setup, options: FileOptions, make_head: Callable[[int], Head]
) -> Application:
  tokenizer, cfg, label_info, length = setup
  mean, stddev = label_info["mean"], label_info["stddev"]
  # The range of an imported model's scores is unknown.
  limits = [label_info[x] for x in ("low", "high") if x in label_info]
  score_range = {"range": limits} if limits else {}
  best = _best_metric(options, label_metrics.SCORE_METRICS)
  head = make_head(1)

  def rows(examples: Sequence[Example]) -> Rows:
    scores = [0.0 if e.label is None else e.label for e in examples]
    return make_rows(
      tokenizer, cfg, examples, length, scores=np.array(scores, np.float32)
    )

  # The head predicts how many standard deviations a score is from the mean.
  # With a learning rate for fine-tuning, just reaching the mean would take an
  # epoch.
  def loss(params, batch, key, train):
    deviations = head.logits(params, batch, key, train)[:, 0]
    weights = batch["example_weights"]
    reports.report(deviations[:, None], weights)
    error = deviations - (batch["scores"] - mean) / stddev
    total = error**2 * weights
    return {"score": (total, weights)}, {"mse": (total * stddev**2, weights)}

  def decode(examples, rows, outputs, tuned) -> list[Prediction]:
    return [
      {"score": mean + stddev * float(x), **score_range}
      for x in outputs["deviations"]
    ]

  def score(examples, predictions):
    gold = GOLD.of(examples)
    return label_metrics.evaluate_scores(
      gold, [p["score"] for p in predictions]
    )

  def outputs(params, batch, every=ensemble.alone):
    deviations = every(head.logits(params, batch, None, False))
    return {"deviations": ensemble.mean(deviations)[:, 0]}

  return Application(
    make_rows=rows,
    init=head.init,
    loss=loss,
    outputs=outputs,
    decode=decode,
    score=score,
    best=best,
    has_label=GOLD.has,
    require_labels=GOLD.of,
  )


def make_rows(tokenizer, cfg, examples, length, *, notes=(), **values) -> Rows:
  """Returns a row for each example; `values` become Rows.values."""
  ids = tokenizer.encode_batch([example.text for example in examples])
  ids_b = tokenizer.encode_batch([example.text_b or "" for example in examples])
  row = row_maker(tokenizer, cfg, length)
  rows = [
    row(a, None if example.text_b is None else b)
    for example, a, b in zip(examples, ids, ids_b, strict=True)
  ]
  return Rows(
    tokens={
      "input_ids": [row.input_ids for row in rows],
      "token_type_ids": [row.token_type_ids for row in rows],
    },
    values=values,
    example=np.arange(len(rows)),
    cut=cut_sizes([row] for row in rows),
    notes=notes,
  )


def _positive_label(labels: Sequence[str], options: FileOptions) -> str:
  if options.positive and options.positive not in labels:
    raise ConfigError(
      f"task.positive={options.positive!r} is not a label"
      f"{did_you_mean(options.positive, labels)}; there are "
      f"{', '.join(labels)}."
    )
  return options.positive or (labels[1] if len(labels) == 2 else "")


def _best_metric(options: FileOptions, known: Sequence[str]) -> str:
  best = layout_of(options).best
  if best not in known:
    raise ConfigError(
      f"task.metric={best!r} is not available for this task"
      f"{did_you_mean(best, known)}; known: {', '.join(known)} (f1 needs two "
      "labels, or task.positive)."
    )
  return best


def format_prediction(prediction: Prediction) -> str:
  """Returns the label and its probability, or the score within its range."""
  if "score" in prediction:
    score = prediction["score"]
    low, high = prediction.get("range", (score, score))
    return f"{min(max(score, low), high):.3f}"
  return f"{prediction['label']}\t{prediction['probability']:.3f}"


def format_tables(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, str]:
  """Returns confusion.tsv and labels.txt, or scores.tsv."""
  gold = GOLD.of(examples)
  if "score" in predictions[0]:
    predicted = [prediction["score"] for prediction in predictions]
    return {"scores.tsv": label_metrics.score_table(gold, predicted, "score")}
  from sklearn.metrics import classification_report

  predicted = [prediction["label"] for prediction in predictions]
  return {
    "confusion.tsv": label_metrics.confusion_table(gold, predicted),
    "labels.txt": classification_report(
      gold, predicted, digits=4, zero_division=0.0
    ),
  }


def export_predictions(
  predictions: Sequence[Prediction], options: FileOptions
) -> dict[str, str]:
  """Returns GLUE's submission, or predictions.tsv in the same format."""
  task = "" if options.layout in OWN_LAYOUTS else options.layout
  return dict([glue.write_submission(task, predictions)])


def make_task(options: Options) -> FinetuneTask:
  return make_labelling_task("classification", options, make_application)


def make_labelling_task(
  name: str, options: FileOptions, build: Callable[..., Application]
) -> FinetuneTask:
  """Returns the task of a name, with build(setup, options) as Application."""
  layout = layout_of(options)
  return FinetuneTask(
    name=name,
    options=options,
    read_examples=functools.partial(texts.read_examples, layout=layout),
    parse_line=functools.partial(texts.parse_line, layout=layout),
    describe_labels=functools.partial(describe_labels, options=options),
    make_application=functools.partial(build, options=options),
    format_prediction=format_prediction,
    format_tables=format_tables,
    export_predictions=functools.partial(export_predictions, options=options),
    summarise_suite=glue_table.summarise_suite,
    split_key=lambda example: example.text,
    demo_lines=DEMO_LINES,
  )
