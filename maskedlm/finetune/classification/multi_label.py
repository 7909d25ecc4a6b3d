"""Multi-label classification: a text or a pair -> any number of labels.

Each label is a separate decision, p = sigmoid(w z_CLS), trained by binary
cross-entropy, like problem_type="multi_label_classification" in transformers.
Rows and head are shared with classification.py; label_lists.py reads the files.
"""

import dataclasses
import functools
from collections.abc import Sequence

import jax
import numpy as np
import optax

from maskedlm.core.options import copy_option
from maskedlm.core.task import Batch, Key, Params
from maskedlm.data.labelled.formats import label_lists, texts
from maskedlm.data.labelled.formats.texts import Example, FileLayout
from maskedlm.data.labelled.labels import check_distinct
from maskedlm.finetune.classification import classification
from maskedlm.finetune.common import entity_metrics
from maskedlm.finetune.common.decoding import Row, by_example
from maskedlm.finetune.common.head import make_row_head
from maskedlm.finetune.common.labels import Gold, file_of, require_two_labels
from maskedlm.finetune.common.options import Shared
from maskedlm.finetune.contract import (
  Application,
  FinetuneTask,
  Prediction,
  Rows,
  Setup,
  task_option,
)
from maskedlm.modeling import reports
from maskedlm.modeling.losses import weighted_sum
from maskedlm.modeling.task_heads import ensemble

METRICS = ("micro_f1", "macro_f1", "exact_match")


@dataclasses.dataclass(frozen=True)
class Options:
  """config.task: the columns of the files, and the head."""

  text: str = task_option("text", "Column of the text.", overridable=True)
  text_b: str = task_option(
    "",
    "Column of the second text, used in rows that have one; '' for a usual "
    "name: text_b, text_pair, sentence2, ...",
    overridable=True,
  )
  label: str = task_option(
    "labels",
    "Column of the labels: a JSON list, or names joined by `separator`.",
    overridable=True,
    needs={"task.columns": False},
  )
  separator: str = task_option(
    ",",
    "Separator of the labels; '' for whitespace.",
    overridable=True,
    needs={"task.columns": False},
  )
  columns: tuple[str, ...] = task_option(
    (),
    "Instead of `label`, a column for each label, of its name: 1 or 0.",
    overridable=True,
  )
  header: tuple[str, ...] = copy_option(Shared, "header")
  language: str = copy_option(Shared, "language")
  pooler: bool = copy_option(Shared, "pooler")
  metric: str = task_option(
    "micro_f1", "Metric that chooses the best checkpoint.", choices=METRICS
  )
  threshold: float = task_option(
    0.5,
    "A label is predicted if its probability exceeds this.",
    above=0,
    below=1,
    overridable=True,
  )


GOLD = Gold(
  "label",
  "labels",
  lambda example: [(name, example.where) for name in example.label],
  thing="label",
)


def describe_labels(
  examples: Sequence[Example], options: Options
) -> dict[str, list[str]]:
  """Returns {"labels": sorted names in the training set and task.columns}.

  Raises:
    DataError: no example has labels, or all have the same ones.
  """
  examples = GOLD.labelled(examples)
  gold = GOLD.of(examples)
  require_two_labels(examples, list(map(", ".join, gold)), "labels")
  labels = sorted(set(options.columns).union(*gold))
  check_distinct(labels, file_of(examples))
  return {"labels": labels}


def make_application(setup: Setup, options: Options) -> Application:
  """Returns the Application."""
  tokenizer, cfg, label_info, length = setup
  labels = tuple(label_info["labels"])
  head = make_row_head(cfg, len(labels), pooler=options.pooler)

  def rows(examples: Sequence[Example]) -> Rows:
    gold = [example.label or () for example in examples]
    is_gold = [[name in names for name in labels] for names in gold]
    return classification.make_rows(
      tokenizer,
      cfg,
      examples,
      length,
      labels=np.array(is_gold, np.int32),
      notes=GOLD.unseen_notes(examples, labels),
    )

  def loss(params: Params, batch: Batch, key: Key, train: bool):
    logits, gold = head.logits(params, batch, key, train), batch["labels"]
    # The mean over a text's decisions, as in transformers.
    loss = optax.sigmoid_binary_cross_entropy(logits, gold).mean(axis=-1)
    predicted = jax.nn.sigmoid(logits) > options.threshold
    correct = (predicted == gold).mean(axis=-1)
    weights = batch["example_weights"]
    decision_weights = weights[:, None] / np.full(len(labels), len(labels))
    reports.report_binary(logits, decision_weights)
    return {"labels": weighted_sum(loss, weights)}, {
      "label_accuracy": weighted_sum(correct, weights)
    }

  def predict(example: Example, rows: Sequence[Row]) -> Prediction:
    shares = dict(zip(labels, rows[0]["probabilities"].tolist(), strict=True))
    predicted = [n for n, share in shares.items() if share > options.threshold]
    return {"labels": predicted, "probabilities": shares}

  def outputs(params: Params, batch: Batch, every=ensemble.alone):
    probabilities = jax.nn.sigmoid(head.logits(params, batch, None, False))
    return {"probabilities": ensemble.mean(every(probabilities))}

  return Application(
    make_rows=rows,
    init=head.init,
    loss=loss,
    outputs=outputs,
    decode=by_example(predict),
    score=lambda examples, predictions: evaluate_label_sets(
      GOLD.of(examples), [p["labels"] for p in predictions]
    ),
    best=options.metric,
    has_label=GOLD.has,
    require_labels=functools.partial(
      GOLD._replace(metric=options.metric).require, known=labels
    ),
  )


Labels = Sequence[Sequence[str]]  # The labels of each text, each once.


def count_labels(
  gold: Labels, predicted: Labels
) -> dict[str, entity_metrics.MatchCounts]:
  """Returns {label: counts}, sorted, of the labels that occur in either."""
  return entity_metrics.count_entities(
    gold, predicted, lambda labels: [(label,) for label in labels]
  )


def evaluate_label_sets(gold: Labels, predicted: Labels) -> dict[str, float]:
  """Returns the metrics, as fractions of 1.

  micro_f1, micro_precision and micro_recall count all labels together; macro_f1
  is the mean over the labels that occur in either; exact_match is the share of
  the texts whose predicted labels are exactly the gold ones.
  """
  counts = count_labels(gold, predicted)
  together = entity_metrics.sum_counts(counts)
  pairs = zip(gold, predicted, strict=True)
  return {
    "micro_f1": together.f1,
    "micro_precision": together.precision,
    "micro_recall": together.recall,
    "macro_f1": float(np.mean([c.f1 for c in counts.values()] or 0)),
    "exact_match": float(np.mean([{*g} == {*p} for g, p in pairs])),
  }


def format_prediction(prediction: Prediction) -> str:
  """Returns the labels, each with its probability, separated by tabs."""
  shares = prediction["probabilities"]
  cells = [f"{n}\t{shares[n]:.3f}" for n in prediction["labels"]]
  return "\t".join(cells) or "(none)"


def format_tables(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, str]:
  """Returns labels.txt: precision, recall and F1 of each label and of all."""
  counts = count_labels(GOLD.of(examples), [p["labels"] for p in predictions])
  return {"labels.txt": entity_metrics.format_table(counts, "label")}


def make_task(options: Options) -> FinetuneTask:
  layout = FileLayout(
    text=(options.text,),
    text_b=(options.text_b,) if options.text_b else texts.SECOND_TEXTS,
    alone=True,
    label=(options.label,),
    header=tuple(options.header),
    language=options.language,
  )
  return FinetuneTask(
    name="multi_label",
    options=options,
    read_examples=functools.partial(
      label_lists.read_examples,
      layout=layout,
      separator=options.separator,
      columns=options.columns,
    ),
    parse_line=functools.partial(texts.parse_line, layout=layout),
    describe_labels=functools.partial(describe_labels, options=options),
    make_application=functools.partial(make_application, options=options),
    format_prediction=format_prediction,
    format_tables=format_tables,
    split_key=lambda example: example.text,
    demo_lines=classification.DEMO_LINES,
  )
