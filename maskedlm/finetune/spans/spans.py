"""Spans: a label or NULL for each span of words, such as nested entities.

y_ij = softmax(FFN(spanRep_ij)) for all spans of at most max_span_words words
(Jurafsky & Martin, section 11.5.2, equations 11.21 to 11.27; the vectors are in
modeling/task_heads/span_vectors.py). Unlike tags, spans may lie within each
other, and each is labelled as a whole. With task.identify, the only labels are
NULL and SPAN.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import jax.numpy as jnp

from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError, DataError
from maskedlm.core.options import copy_option
from maskedlm.core.task import Batch, Key, Params
from maskedlm.data.labelled import sentences
from maskedlm.data.labelled.bio import Entity
from maskedlm.data.labelled.formats import layers
from maskedlm.data.labelled.formats.layers import Example
from maskedlm.finetune.common.decoding import Row, by_example
from maskedlm.finetune.common.head import Heads
from maskedlm.finetune.common.labels import file_of
from maskedlm.finetune.common.options import Shared
from maskedlm.finetune.common.parts import format_entities, part
from maskedlm.finetune.common.word_rows import encode_words
from maskedlm.finetune.contract import (
  Application,
  FinetuneTask,
  Outputs,
  Prediction,
  Rows,
  Setup,
  task_option,
)
from maskedlm.finetune.spans import metrics
from maskedlm.finetune.spans.decode import (
  Candidate,
  calibrate_threshold,
  row_candidates,
  select_above,
  without_crossings,
  without_overlaps,
)
from maskedlm.finetune.spans.rows import GOLD, make_rows
from maskedlm.modeling.task_heads import ensemble
from maskedlm.modeling.task_heads.span_labels import (
  expecting_null,
  likeliest_spans,
  loss_and_recall,
)
from maskedlm.modeling.task_heads.span_vectors import SpanHead, SpanScorer


@dataclasses.dataclass(frozen=True)
class Options:
  """config.task."""

  max_span_words: int = task_option(
    10, "Words of the widest span that is scored; costs time.", low=1, high=512
  )
  representation: str = copy_option(Shared, "representation")
  nested: bool = task_option(
    False,
    "Spans may lie within each other. All columns but the word's are layers.",
  )
  identify: bool = task_option(
    False,
    "Replace all labels by one, SPAN, to find spans without labelling them.",
  )
  threshold: float | None = task_option(
    None,
    "The margin above which a span is labelled, instead of the calibrated one; "
    "0 for the argmax.",
    overridable=True,
  )
  token_column: int = copy_option(Shared, "token_column")
  tag_column: int = task_option(
    -1,
    "Column of the tags, unless nested.",
    overridable=True,
    needs={"task.nested": False},
  )
  file_scheme: str = copy_option(Shared, "file_scheme")
  repair_bio: bool = copy_option(Shared, "repair_bio")
  stride: int = copy_option(Shared, "stride")


_ANY_LABEL = "SPAN"


def read_examples(source: str, options: Options) -> list[Example]:
  """Returns the sentences of a file."""
  read_flat = functools.partial(layers.read_flat, tag_column=options.tag_column)
  read = layers.read_layers if options.nested else read_flat
  examples = read(
    source,
    token_column=options.token_column,
    file_scheme=options.file_scheme,
    repair_bio=options.repair_bio,
  )
  if not options.identify:
    return examples
  # Each once, with the same label.
  return [
    x._replace(
      spans=x.spans
      and tuple(dict.fromkeys(s._replace(type=_ANY_LABEL) for s in x.spans))
    )
    for x in examples
  ]


def describe_labels(examples: Sequence[Example]) -> dict[str, list[str]]:
  """Returns {"labels": NULL, then the training set's labels, sorted}.

  Raises:
    DataError: there is no column of tags, or no span.
  """
  where = file_of(examples)
  if all(example.spans is None for example in examples):
    raise DataError(
      f"{where}: the words have no tags; expected a column of BIO to learn."
    )
  types = {span.type for example in examples for span in example.spans or ()}
  if not types:
    raise DataError(
      f"{where}: no span in {counted(len(examples), 'sentence')}, all tags "
      "are O. Is it "
      "the right column? --config.task.tag_column."
    )
  return {"labels": ["NULL", *sorted(types)]}


def make_application(setup: Setup, options: Options) -> Application:
  """Returns the Application: a SpanHead over all spans.

  Raises:
    ConfigError: max_span_words is more than a row holds.
  """
  tokenizer, cfg, label_info, length = setup
  max_words, capacity = options.max_span_words, length - 2
  if max_words > capacity:
    raise ConfigError(
      f"task.max_span_words={max_words} is more than a row holds: at most "
      f"data.length - 2 = {capacity}; lower it, or raise data.length "
      "(beside a checkpoint, --length)."
    )
  labels = tuple(label_info["labels"])
  module = SpanHead(cfg, options.representation, len(labels))
  hidden, token = jnp.zeros((1, 1, cfg.width)), jnp.zeros((1, 1), jnp.int32)
  heads = Heads(cfg, {"spans": (module, (hidden, token, token))})
  labeller = SpanLabeller(setup, options, labels, heads)
  return Application(
    make_rows=functools.partial(
      make_rows,
      tokenizer=tokenizer,
      labels=labels,
      length=length,
      max_words=max_words,
      stride=options.stride,
    ),
    init=labeller.init,
    loss=labeller.loss,
    outputs=labeller.outputs,
    decode=labeller.decode,
    score=labeller.score,
    best="f1",
    calibrate=labeller.calibrate,
    require_labels=functools.partial(GOLD.require, known=labels[1:]),
  )


class SpanLabeller(NamedTuple):
  """The task with given labels."""

  setup: Setup
  options: Options
  labels: tuple[str, ...]
  heads: Heads

  def init(self, key: Key) -> Params:
    """Returns the parameters of the head, to which most spans are NULL."""
    return {"spans": expecting_null(self.heads.init(key)["spans"])}

  def loss(self, params: Params, batch: Batch, key: Key, train: bool):
    """Returns the cross-entropy of all spans, and the share that is found."""
    module, _ = self.heads.modules["spans"]
    term, recall = loss_and_recall(
      SpanScorer(module, params["spans"], key, train),
      self.heads.encode(params, batch, key, train),
      batch,
      jnp.moveaxis(batch["span_labels"], 1, 0),
    )
    return {"spans": term}, {"span_recall": recall}

  def outputs(self, params: Params, batch: Batch, every=ensemble.alone):
    """Returns the spans of each row with the largest margins."""
    module, _ = self.heads.modules["spans"]
    return likeliest_spans(
      SpanScorer(module, params["spans"]),
      self.heads.encode(params, batch, None, False),
      batch,
      max_words=self.options.max_span_words,
      count=batch["word_begins"].shape[1],
      mean=lambda logits: ensemble.mean_softmax(every(logits)),
    )

  def _compatible_spans(
    self, examples: Sequence[Example], rows: Rows, outputs: Outputs
  ) -> list[list[Candidate]]:
    """Returns each sentence's compatible spans, before the threshold."""
    select = without_crossings if self.options.nested else without_overlaps

    def choose(example: Example, its_rows: Sequence[Row]) -> list[Candidate]:
      candidates = (row_candidates(row, self.labels) for row in its_rows)
      return select(chain.from_iterable(candidates))

    return by_example(choose)(examples, rows, outputs, {})

  def calibrate(
    self, examples: Sequence[Example], rows: Rows, outputs: Outputs
  ) -> dict[str, float]:
    """Returns the threshold of the highest F1, and the argmax's F1."""
    chosen = self._compatible_spans(examples, rows, outputs)
    gold, threshold = GOLD.of(examples), self.options.threshold
    if threshold is None:
      threshold, _ = calibrate_threshold(chosen, gold)
    argmax = [[c.span for c in select_above(cs, 0.0)] for cs in chosen]
    argmax_f1 = metrics.evaluate_spans(gold, argmax)["f1"]
    return {"threshold": threshold, "argmax_f1": argmax_f1}

  def decode(
    self,
    examples: Sequence[Example],
    rows: Rows,
    outputs: Outputs,
    tuned: Mapping[str, float],
  ) -> list[Prediction]:
    """Returns the sentences' predictions, as span_prediction makes them."""
    threshold = self.options.threshold
    if threshold is None:
      threshold = tuned.get("threshold", 0.0)
    chosen = self._compatible_spans(examples, rows, outputs)
    return [
      span_prediction(example, select_above(spans, threshold))
      for example, spans in zip(examples, chosen, strict=True)
    ]

  def score(
    self, examples: Sequence[Example], predictions: Sequence[Prediction]
  ) -> dict[str, float]:
    """Returns the scores of spans, and which gold ones could be found."""
    gold, predicted = GOLD.of(examples), _predicted(predictions)
    scores = metrics.evaluate_spans(gold, predicted)
    if self.options.nested:
      scores |= metrics.evaluate_inner_spans(gold, predicted)
    length = self.setup.length
    words = [example.words for example in examples]
    return scores | metrics.evaluate_reach(
      gold,
      encode_words(words, self.setup.tokenizer, length).sizes,
      labels=self.labels,
      max_words=self.options.max_span_words,
      capacity=length - 2,
    )


def span_prediction(example: Example, spans: Sequence[Candidate]) -> Prediction:
  """Returns the prediction for a sentence, JSON-able.

  Returns:
    text (given words are joined by spaces), tokens and entities, each a part of
    the text (common/parts.py) with its type, score (the probability of the
    type) and margin (its log-odds against NULL).
  """
  sentence, offsets = sentences.sentence_text(example)
  return {
    "text": sentence,
    "tokens": list(example.words),
    "entities": [
      {
        "type": label,
        **part(sentence, offsets, begin, end),
        "score": round(float(probability), 4),
        "margin": round(float(margin), 3),
      }
      for margin, (label, begin, end), probability in spans
    ],
  }


def format_tables(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, str]:
  """Returns report.txt: scores by label, by width and of inner spans."""
  gold = GOLD.of(examples)
  return {"report.txt": metrics.format_report(gold, _predicted(predictions))}


def export_predictions(predictions: Sequence[Prediction]) -> dict[str, str]:
  """Returns a file for read_examples: words and predicted spans, in layers."""
  words = [prediction["tokens"] for prediction in predictions]
  pairs = zip(words, _predicted(predictions), strict=True)
  return {"predictions.tsv": layers.format_layers(pairs)}


def _predicted(predictions: Sequence[Prediction]) -> list[list[Entity]]:
  return [
    [Entity(e["type"], *e["words"]) for e in p["entities"]] for p in predictions
  ]


def make_task(options: Options) -> FinetuneTask:
  return FinetuneTask(
    name="spans",
    options=options,
    read_examples=functools.partial(read_examples, options=options),
    parse_line=lambda line: Example(**sentences.parse_line(line)._asdict()),
    describe_labels=describe_labels,
    make_application=functools.partial(make_application, options=options),
    format_prediction=format_entities,
    format_tables=format_tables,
    export_predictions=export_predictions,
    split_key=lambda example: example.document,
    demo_lines=("The president of Harvard University spoke in New York.",),
  )
