"""Multi-label classification: a text, or a pair -> any number of labels.

Each label is a decision of its own, p = sigmoid(w z_CLS), by binary
cross-entropy: problem_type="multi_label_classification" of transformers. Rows
and head are those of classification.py, files those of tables.py.
"""

import ast
import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import optax

from maskedlm.core.errors import ConfigError, DataError, check_known
from maskedlm.core.task import Batch, Key, Params
from maskedlm.data.labelled import tables
from maskedlm.finetune.classification import classification, files, glue
from maskedlm.finetune.classification.files import Example
from maskedlm.finetune.common import entity_metrics, unseen_labels
from maskedlm.finetune.contract import Application, Outputs, Prediction, Rows
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.losses import weighted_sum

EXAMPLES = classification.EXAMPLES
READING = (
  *("text", "text_b", "label", "separator", "columns", "header", "language"),
  "threshold",
)
METRICS = ("micro_f1", "macro_f1", "exact_match")
# What a column of Options.columns may hold: 1.0, too, where pandas wrote it.
SAID = {"1": True, "1.0": True, "true": True}
SAID |= {"0": False, "0.0": False, "false": False}


class Options(NamedTuple):
  """What the labelled files are like, and how they are learnt."""

  text: str = "text"  # Column of the text.
  text_b: str = "text_b"  # Of the second text, where a row has it.
  label: str = "labels"  # Of the labels: a JSON list, or commas between them.
  separator: str = ","  # Instead of commas; "" = whitespace.
  # Or a column for each label, named so: 1 where it is said, 0 where it isn't.
  columns: tuple = ()
  header: tuple = ()  # The columns' names, for files without that line.
  language: str = ""  # Rows whose column "language" says another are left out.
  pooler: bool = True  # z_CLS through the pretrained dense and tanh, as BERT's.
  metric: str = "micro_f1"  # Of METRICS; chooses the best checkpoint.
  threshold: float = 0.5  # Labels of a higher probability are said.


# --- Files ---


def _layout(options: Options) -> glue.FileLayout:
  return glue.FileLayout(
    text=(options.text,),
    text_b=(options.text_b,),
    alone=True,
    label=options.columns[:1] or (options.label,),
    header=tuple(options.header),
    language=options.language,
  )


def read(source: str, options: Options) -> list[Example]:
  """The examples of a file (labelled.py), whose labels are tuples, sorted.

  Raises:
    DataError: see labelled.read; a list of labels that can't be read, a column
      of a label with something else than 1 and 0.
  """
  return [
    example._replace(label=_labels(example, options.separator))
    for example in files.read_examples(
      source, _layout(options), lambda record: _joined(record, options.columns)
    )
  ]


def _joined(record: tables.Record, columns: Sequence[str]) -> tables.Record:
  """A record whose first of these columns has the list of those that say 1.

  A record that has none of them, of a test set, stays as it is.
  """
  if not set(columns) & set(record.fields):
    return record
  said = []
  for name in columns:
    value = tables.get_field(record, name)
    if value.strip().lower() not in SAID:
      raise DataError(
        f"{record.where}: {name} is {value!r:.40}; expected 1 where the label "
        "is said, 0 where it isn't."
      )
    said += [name] * SAID[value.strip().lower()]
  fields = {**record.fields, columns[0]: json.dumps(said)}
  return record._replace(fields=fields)


def _labels(example: Example, separator: str) -> tuple[str, ...] | None:
  """From '["a", "b"]' or "b, a"; () from "" and "[]"; None if unsaid.

  Also from "['a', 'b']", as pandas writes a column of lists.
  """
  if example.label is None:
    return None
  found: Any = example.label.split(separator or None)  # "": at whitespace.
  if example.label.startswith("["):
    try:
      found = json.loads(example.label)
    except ValueError:
      found = _literal(example)
  named = {str(x).strip() for x in found if x is not None}
  return tuple(sorted(named - {""}))


def _literal(example: Example) -> list:
  """DataError if it is none."""
  with contextlib.suppress(ValueError, SyntaxError, MemoryError):
    found = ast.literal_eval(example.label)
    if isinstance(found, list):
      return found
  raise DataError(
    f"{example.where}: the labels {example.label!r:.60}; expected a list as "
    'JSON has it, such as ["a", "b"], or a and b with the separator between.'
  )


def parse(line: str, options: Options) -> Example:
  """A line of predict's input: text, pair or JSON object (labelled.py)."""
  return files.parse_line(line, _layout(options))


group = classification.group


# --- What the training set fixes ---


def describe(
  examples: Sequence[Example], options: Options
) -> dict[str, list[str]]:
  """{"labels": those of the training set, or that have columns, sorted}.

  Raises:
    DataError: an example of which nothing is said, or of all the same.
  """
  gold = _gold(examples)
  if len(set(gold)) < 2:
    raise DataError(
      f"{examples[0].where.rpartition(':')[0]}: all {len(gold):,} examples for "
      f"training have the labels {list(gold[0])}; expected others as well."
    )
  return {"labels": sorted(set(options.columns).union(*gold))}


# --- The model ---


def make(
  tokenizer,
  cfg: EncoderConfig,
  about: Mapping[str, Any],
  options: Options,
  *,
  length: int,
) -> Application:
  """See application.py.

  Raises:
    ConfigError: a metric that there is not, a threshold that is no share.
  """
  check_known("task", options, {"metric": METRICS})
  if not 0 < options.threshold < 1:
    raise ConfigError(
      f"task.threshold={options.threshold}: expected more than 0, less than 1."
    )
  labels = tuple(about["labels"])
  net = classification.make_net(cfg, len(labels), pooler=options.pooler)

  def rows(examples: Sequence[Example]) -> Rows:
    gold = [example.label or () for example in examples]
    chosen = [[label in of_one for label in labels] for of_one in gold]
    made = classification.make_rows(
      tokenizer, cfg, examples, length, labels=np.array(chosen, np.int32)
    )
    odd = [
      (label, example.where)
      for example, of_one in zip(examples, gold, strict=True)
      for label in of_one
      if label not in labels
    ]
    return made._replace(notes=unseen_labels.unseen_notes(odd))

  def loss(params: Params, batch: Batch, key: Key, train: bool):
    logits, chosen = net.apply(params, batch, key, train), batch["labels"]
    # Of all decisions on a text the mean, as transformers has it.
    nats = optax.sigmoid_binary_cross_entropy(logits, chosen).mean(axis=-1)
    said = jax.nn.sigmoid(logits) > options.threshold
    hits = (said == chosen).mean(axis=-1)
    weights = batch["example_weights"]
    return {"labels": weighted_sum(nats, weights)}, {
      "label_accuracy": weighted_sum(hits, weights)
    }

  def decode(examples, rows, outputs: Outputs, tuned) -> list[Prediction]:
    predictions = []
    for found in outputs["probabilities"]:
      shares = dict(zip(labels, found.tolist(), strict=True))
      said = [n for n, share in shares.items() if share > options.threshold]
      predictions.append({"labels": said, "probabilities": shares})
    return predictions

  return Application(
    rows=rows,
    init=net.init,
    loss=loss,
    outputs=lambda params, batch: {
      "probabilities": jax.nn.sigmoid(net.apply(params, batch, None, False))
    },
    decode=decode,
    score=lambda examples, predictions: scores(
      _gold(examples), [p["labels"] for p in predictions]
    ),
    best=options.metric,
    gold=_gold,
  )


def _gold(examples: Sequence[Example]) -> list[tuple[str, ...]]:
  """DataError where there is none."""
  return [files.require_label(example) for example in examples]


# --- How good it is ---

Labels = Sequence[Sequence[str]]  # Of each text, each once.


class _Label(NamedTuple):
  """What tag_metrics counts."""

  type: str


def counts(
  gold: Labels, predicted: Labels
) -> dict[str, entity_metrics.MatchCounts]:
  """label -> Counts, sorted; of those that occur in either."""
  return entity_metrics.count_entities(
    gold, predicted, lambda labels: map(_Label, labels)
  )


def scores(gold: Labels, predicted: Labels) -> dict[str, float]:
  """As fractions.

  micro_f1, micro_precision and micro_recall are of all labels together,
  macro_f1 is the mean over those that occur in either, exact_match the share
  of the texts of which just the right ones are said.
  """
  each = counts(gold, predicted)
  together = entity_metrics.sum_counts(each)
  pairs = zip(gold, predicted, strict=True)
  return {
    "micro_f1": together.f1,
    "micro_precision": together.precision,
    "micro_recall": together.recall,
    "macro_f1": float(np.mean([c.f1 for c in each.values()] or 0)),
    "exact_match": float(np.mean([{*g} == {*p} for g, p in pairs])),
  }


def show(prediction: Prediction) -> str:
  """The labels, each with its probability, between tabs."""
  shares = prediction["probabilities"]
  found = [f"{n}\t{shares[n]:.3f}" for n in prediction["labels"]]
  return "\t".join(found) or "(none)"


def report(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, str]:
  """labels.txt: precision, recall and F1 of each label, and of all."""
  each = counts(_gold(examples), [p["labels"] for p in predictions])
  return {"labels.txt": entity_metrics.format_table(each, "label")}
