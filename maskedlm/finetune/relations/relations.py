"""Relations: how two marked parts of a text are related.

Span relation classification (Jurafsky & Martin, section 11.5.2), on the data of
SemEval-2010 task 8 (semeval.py). There are three ways to show the two parts to
the model (`task.pair`, PAIRS below):

  markers        <e1> child </e1> ... <e2> cradle </e2>; FFN(z_CLS), as in
                 SpanBERT's classifier for TACRED (arXiv:1907.10529)
  markers_start  the same text; FFN([z_<e1>; z_<e2>]), Baldini Soares et al.
                 2019 (arXiv:1906.03158)
  spans          the text as it is; FFN([g_1; g_2; z_CLS]), where g is the mean
                 of a part's tokens (11.21)
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from maskedlm.core.errors import ConfigError, did_you_mean
from maskedlm.core.task import Array, Batch
from maskedlm.data.labelled import objects, tables
from maskedlm.data.labelled.formats import relations as relation_files
from maskedlm.data.labelled.formats.relations import Example
from maskedlm.data.labelled.labels import check_distinct
from maskedlm.finetune.common import single_label
from maskedlm.finetune.common.head import make_head
from maskedlm.finetune.common.label_metrics import confusion_table
from maskedlm.finetune.common.labels import file_of, require_two_labels
from maskedlm.finetune.contract import (
  Application,
  FinetuneTask,
  Prediction,
  Setup,
  task_option,
)
from maskedlm.finetune.relations import semeval
from maskedlm.finetune.relations.rows import GOLD, make_markers, make_rows
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.heads import (
  gather_positions,
  sentence_vector,
  span_means,
)
from maskedlm.modeling.task_heads.label_heads import FeedForward
from maskedlm.runtime.console import log


@dataclasses.dataclass(frozen=True)
class Options:
  """config.task."""

  pair: str = task_option(
    "markers_start",
    "How the two entities are marked.",
    choices=("markers", "markers_start", "spans"),
    of_head=True,
  )
  other: str = task_option(
    "Other", "The relation that stands for none; it is not counted in f1."
  )


def parse_line(line: str) -> Example:
  """Returns the example in a line: a text with <e1>...</e1> and <e2>...</e2>.

  The line may also be a JSON object, as formats/relations.py has it.
  """
  where = f"input {line[:40]!r}"
  if not tables.is_object(line):
    return Example(*relation_files.parse_entity_tags(line, where=where))
  value = objects.parse_object(line, where)
  return relation_files.of_object(value, where)


def describe_labels(
  examples: Sequence[Example], options: Options
) -> dict[str, list[str]]:
  """Returns {"labels": relations of the training set, task.other first}.

  Raises:
    DataError: no example has a relation, or all have the same one.
    ConfigError: task.other differs from a relation only in its case.
  """
  examples = GOLD.labelled(examples)
  relations = GOLD.of(examples)
  require_two_labels(examples, relations, "relation")
  path = file_of(examples)
  check_distinct(sorted(set(relations)), path)
  _check_other(relations, options.other)
  return {"labels": semeval.directed_labels(relations, other=options.other)}


def _check_other(relations: Sequence[str], other: str) -> None:
  """Checks task.other: if it is misspelt, f1 counts the relation it means."""
  names = sorted(set(map(semeval.strip_direction, relations)))
  if not other or other in names:
    return
  for name in names:
    if name.casefold() == other.casefold():
      raise ConfigError(
        f"task.other={other!r} is no relation in the training set, but "
        f"{name!r} is: --config.task.other={name}."
      )
  log(
    f"task.other={other!r} is no relation in the training set, so all "
    f"{len(names)} are counted in f1{did_you_mean(other, names)}"
  )


def _cls_vectors(cfg: EncoderConfig, hidden: Array, batch: Batch):
  return sentence_vector(cfg, hidden, batch["segment_ids"])


def _span_and_cls_vectors(cfg: EncoderConfig, hidden: Array, batch: Batch):
  means = _flat(span_means(hidden, batch["spans"]))
  return jnp.concatenate([means, _cls_vectors(cfg, hidden, batch)], axis=-1)


def _flat(x):
  """Returns x [B, M, D] as [B, M * D]."""
  return x.reshape(x.shape[0], -1)


class Pair(NamedTuple):
  """A way of marking the two entities."""

  marked: bool  # Whether markers are inserted into the text.
  # (cfg, hidden [B, L, D], batch) -> [B, vectors * D], the FFN's input.
  gather: Callable[[EncoderConfig, Array, Batch], Array]
  vectors: int  # Number of concatenated vectors.


PAIRS = {
  "markers": Pair(True, _cls_vectors, 1),
  "markers_start": Pair(
    True, lambda cfg, x, batch: _flat(gather_positions(x, batch["starts"])), 2
  ),
  "spans": Pair(False, _span_and_cls_vectors, 3),
}


def make_application(setup: Setup, options: Options) -> Application:
  """Returns the Application.

  Raises:
    ConfigError: the tokenizer has no distinct tokens for markers, or they leave
      no room in a row.
  """
  tokenizer, cfg, label_info, length = setup
  pair, labels = PAIRS[options.pair], tuple(label_info["labels"])
  markers = make_markers(tokenizer) if pair.marked else ()
  least = 4 + sum(len(ids) for marker in markers for ids in marker)
  if length < least:
    raise ConfigError(
      f"data.length={length} has no room for two entities and their markers; "
      f"expected at least {least} (beside a checkpoint, --length={least})."
    )
  inputs = pair.vectors * cfg.width
  head = make_head(
    cfg,
    "relation_head",
    FeedForward(cfg, inputs, len(labels)),
    (jnp.zeros((1, inputs)),),
    lambda hidden, batch: (pair.gather(cfg, hidden, batch),),
  )

  def score(
    examples: Sequence[Example], predictions: Sequence[Prediction]
  ) -> dict[str, float]:
    return semeval.evaluate_relations(
      GOLD.of(examples),
      [p["relation"] for p in predictions],
      other=options.other,
    )

  # Other says nothing about whether the relations have the model's names.
  related = GOLD._replace(
    labels=lambda x: [y for y in GOLD.labels(x) if y[0] != options.other],
    thing=f"relation other than {options.other!r}",
  )

  def require_labels(examples: Sequence[Example]) -> None:
    GOLD.require(examples, labels)
    related.require(examples, [x for x in labels if x != options.other])

  return single_label.make_classifier(
    head,
    make_rows=functools.partial(
      make_rows,
      tokenizer=tokenizer,
      labels=labels,
      markers=markers,
      length=length,
    ),
    predict=functools.partial(_prediction, labels),
    score=score,
    best="f1",
    has_label=GOLD.has,
    require_labels=require_labels,
    term="relation",
  )


def _prediction(
  labels: Sequence[str], example: Example, shares: list[float]
) -> Prediction:
  (begin1, end1), (begin2, end2) = example.e1, example.e2
  return {
    "id": example.id,
    "text": example.text,
    "e1": example.text[begin1:end1],
    "e1_offset": begin1,
    "e2": example.text[begin2:end2],
    "e2_offset": begin2,
    "relation": labels[int(np.argmax(shares))],
    "probability": max(shares),
    "probabilities": dict(zip(labels, shares, strict=True)),
  }


def format_prediction(prediction: Prediction) -> str:
  """Returns the relation, its probability and the entities."""
  p = prediction
  return f"{p['relation']}\t{p['probability']:.3f}\t{p['e1']}\t{p['e2']}"


def format_tables(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, str]:
  """Returns relations.tsv, confusion.tsv and the official scorer's two files.

  relations.tsv has the direction-aware counts of each relation and of Other.
  """
  gold = GOLD.of(examples)
  predicted = [p["relation"] for p in predictions]
  ids = [example.id for example in examples]
  return {
    "relations.tsv": semeval.format_report(gold, predicted),
    "confusion.tsv": confusion_table(gold, predicted),
    "answer_key.txt": semeval.format_answers(ids, gold),
    "proposed_answers.txt": semeval.format_answers(ids, predicted),
  }


def export_predictions(predictions: Sequence[Prediction]) -> dict[str, str]:
  """Returns the official scorer's input: lines of `id<TAB>relation`."""
  ids, labels = ([p[name] for p in predictions] for name in ("id", "relation"))
  return {"proposed_answers.txt": semeval.format_answers(ids, labels)}


def make_task(options: Options) -> FinetuneTask:
  return FinetuneTask(
    name="relations",
    options=options,
    read_examples=functools.partial(
      relation_files.read_file, other=options.other
    ),
    parse_line=parse_line,
    describe_labels=functools.partial(describe_labels, options=options),
    make_application=functools.partial(make_application, options=options),
    format_prediction=format_prediction,
    format_tables=format_tables,
    export_predictions=export_predictions,
    split_key=lambda example: example.text,
    demo_lines=(
      "The <e1>child</e1> was carefully wrapped into the <e2>cradle</e2>.",
    ),
  )
