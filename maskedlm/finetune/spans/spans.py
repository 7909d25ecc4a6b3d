"""Spans: each span of words has a label, or NULL: entities, nested ones too.

y_ij = softmax(FFN(spanRep_ij)) for all spans of at most max_span_words words
(Jurafsky & Martin, section 11.5.2, equations 11.21 to 11.27; the vectors are in
finetune/common/span_vectors.py). Unlike tags, spans may lie within each other,
and each is decided upon as a whole. With `identify` there is one label: is it
one or not.
"""

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from maskedlm.core.errors import ConfigError, DataError, check_known
from maskedlm.core.task import Array, Batch, Key, Params
from maskedlm.data.labelled.words import word_encoder
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.common import bio, span_vectors, unseen_labels
from maskedlm.finetune.common.bio import Entity
from maskedlm.finetune.common.span_vectors import SpanHead, score_all_spans
from maskedlm.finetune.contract import Application, Outputs, Prediction, Rows
from maskedlm.finetune.spans import decode as span_decode
from maskedlm.finetune.spans import layered_files as nested
from maskedlm.finetune.spans import metrics, text
from maskedlm.finetune.spans.rows import NULL, Example, make_rows
from maskedlm.modeling import masked_lm
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.losses import weighted_sum


class Options(NamedTuple):
  """config.task of this kind."""

  max_span_words: int = 10  # Wider spans are not looked at; costs time.
  # What a span's vector is: endpoints_mean | ffn_endpoints_mean |
  # self_attention.
  representation: str = "endpoints_mean"
  # Spans may lie within each other. All columns but the word's are then layers.
  nested: bool = False
  identify: bool = False  # All labels are one, SPAN: is it a span or not?
  # Columns of the files, from 0, or from the end.
  token_column: int = 0
  tag_column: int = -1  # Unless nested.
  file_scheme: str = "auto"  # How they write spans: auto | bio | iob1 | bioes.
  # Ill-formed BIO is read as conlleval does, instead of being refused.
  repair_bio: bool = False
  # Tokens from one window to the next, of sentences longer than a row; 0 =
  # half a row.
  stride: int = 0


READING = ("token_column", "tag_column", "file_scheme", "repair_bio")
EXAMPLES = ("The president of Harvard University spoke in New York.",)
_ANY_LABEL = "SPAN"
_SPAN_SHARE = 0.01  # Of the spans that have a label, before anything is learnt.
# Name of an option -> what it may be.
_CHOICES = {
  "representation": tuple(span_vectors.REPRESENTATIONS),
  "file_scheme": ("auto", *bio.SCHEMES),
}


def read(source: str, options: Options) -> list[Example]:
  """The sentences of a file.

  Raises:
    DataError: see nested.py.
    ConfigError: an option that is none.
  """
  check(options)
  columns = {
    "token_column": options.token_column,
    "file_scheme": options.file_scheme,
    "repair_bio": options.repair_bio,
  }
  if options.nested:
    sentences = nested.read_layers(source, **columns)
  else:
    sentences = nested.read_flat(
      source, tag_column=options.tag_column, **columns
    )
  return [
    Example(
      words=sentence.words,
      spans=_identified(sentence.spans, options),
      lines=sentence.lines,
      document=os.path.basename(source),
      where=f"{source}:{sentence.lines[0]}",
    )
    for sentence in sentences
  ]


def parse(line: str, options: Options) -> Example:
  """A line of predict's input: see span_text.parse."""
  del options
  return text.parse_line(line)


def group(example: Example) -> str:
  """The file: of several, a split of the training set divides none."""
  return example.document


def describe(
  examples: Sequence[Example], options: Options
) -> dict[str, list[str]]:
  """{"labels": NULL, then those of the training set, sorted}.

  Raises:
    DataError: no column of labels, or no span.
  """
  check(options)
  where = examples[0].where.rpartition(":")[0] if examples else "training set"
  if all(example.spans is None for example in examples):
    raise DataError(
      f"{where}: the words have no tags; expected a column of BIO to learn."
    )
  found = {span.type for example in examples for span in example.spans or ()}
  if not found:
    raise DataError(
      f"{where}: no span in {len(examples):,} sentences, all is O; expected "
      "some to learn. Is it the right column? --config.task.tag_column."
    )
  return {"labels": ["NULL", *sorted(found)]}


def make(
  tokenizer: Tokenizer,
  cfg: EncoderConfig,
  about: Mapping[str, Any],
  options: Options,
  *,
  length: int,
) -> Application:
  """The Application: the encoder, and a SpanHead over all spans.

  Raises:
    ConfigError: options that don't exist or don't fit.
  """
  check(options)
  max_words, capacity = options.max_span_words, length - 2
  if max_words > capacity:
    raise ConfigError(
      f"task.max_span_words={max_words} is more than a row holds: at most "
      f"data.length - 2 = {capacity}; lower it, or raise data.length."
    )
  labels = tuple(about["labels"])
  head = SpanHead(cfg, options.representation, len(labels))
  find_tokens = word_encoder(tokenizer)
  select = (
    span_decode.without_crossings
    if options.nested
    else span_decode.without_overlaps
  )

  def init(key: Key) -> Params:
    hidden, token = jnp.zeros((1, 1, cfg.width)), jnp.zeros((1, 1), jnp.int32)
    made = head.init(key, hidden, token, token, train=False)["params"]
    return {"spans": _expecting_null(made)}

  def loss(params: Params, batch: Batch, key: Key, train: bool):
    hidden = masked_lm.encode(cfg, params, batch, key, train)

    def add(sums, labels, logits, scored):
      weights = scored * batch["example_weights"][:, None]
      terms, _ = unseen_labels.loss_and_accuracy(
        logits, labels, weights=weights
      )
      gold = weights * (labels != NULL)
      right = jnp.argmax(logits, axis=-1) == labels
      added = (terms, weighted_sum(right, gold))
      return jax.tree.map(jnp.add, sums, added), None

    zeros = ((jnp.zeros(len(hidden)), jnp.zeros(len(hidden))),) * 2
    (term, found), _ = score_all_spans(
      head,
      params["spans"],
      hidden,
      batch,
      add,
      zeros,
      per_width=jnp.moveaxis(batch["span_labels"], 1, 0),
      max_words=max_words,
      train=train,
      rngs=masked_lm.head_rngs(key, train),
    )
    return {"spans": term}, {"span_recall": found}

  def outputs(params: Params, batch: Batch):
    hidden = masked_lm.encode(cfg, params, batch, None, False)

    def judge(carry, _, logits, scored):
      best = jnp.argmax(logits[..., 1:], axis=-1) + 1
      logit = jnp.max(logits[..., 1:], axis=-1)
      margin = jnp.where(scored, logit - logits[..., NULL], -jnp.inf)
      probability = jnp.exp(logit - jax.nn.logsumexp(logits, axis=-1))
      return carry, (margin, best.astype(jnp.int32), probability)

    _, made = score_all_spans(
      head, params["spans"], hidden, batch, judge, (), max_words=max_words
    )
    return _likeliest(*made)

  def choose(
    examples: Sequence[Example], rows: Rows, outputs: Outputs
  ) -> list[list[span_decode.Candidate]]:
    """Of each sentence, the spans that agree with each other."""
    found: list[list[span_decode.Candidate]] = [[] for _ in examples]
    for i, index in enumerate(rows.example):
      of_row = {name: values[i] for name, values in outputs.items()}
      first_word = int(rows.values["first_word"][i])
      found[index] += span_decode.row_candidates(of_row, labels, first_word)
    return [select(candidates) for candidates in found]

  def tune(
    examples: Sequence[Example], rows: Rows, outputs: Outputs
  ) -> dict[str, float]:
    chosen = choose(examples, rows, outputs)
    gold = _gold(examples)
    threshold, _ = span_decode.calibrate_threshold(chosen, gold)
    argmax = [
      [c.span for c in span_decode.select_above(cs, 0.0)] for cs in chosen
    ]
    return {
      "threshold": threshold,
      "argmax_f1": metrics.evaluate_spans(gold, argmax)["f1"],
    }

  def decode(
    examples: Sequence[Example],
    rows: Rows,
    outputs: Outputs,
    tuned: Mapping[str, float],
  ) -> list[Prediction]:
    threshold = tuned.get("threshold", 0.0)
    return [
      text.span_prediction(example, span_decode.select_above(chosen, threshold))
      for example, chosen in zip(
        examples, choose(examples, rows, outputs), strict=True
      )
    ]

  def score(
    examples: Sequence[Example], predictions: Sequence[Prediction]
  ) -> dict[str, float]:
    gold, predicted = _gold(examples), _predicted(predictions)
    sizes = [
      [min(len(ids), capacity) for ids in find_tokens(example.words)]
      for example in examples
    ]
    return {
      **metrics.evaluate_spans(gold, predicted),
      **(
        metrics.evaluate_inner_spans(gold, predicted) if options.nested else {}
      ),
      **metrics.evaluate_reach(
        gold, sizes, labels=labels, max_words=max_words, capacity=capacity
      ),
    }

  return Application(
    rows=lambda examples: make_rows(
      examples,
      tokenizer,
      labels,
      length=length,
      max_words=max_words,
      stride=options.stride,
    ),
    init=init,
    loss=loss,
    outputs=outputs,
    decode=decode,
    score=score,
    best="f1",
    tune=tune,
    gold=_gold,
  )


def _expecting_null(params: Params) -> Params:
  """A head's fresh parameters, but that it knows that most spans are NULL.

  Nearly all are, and the first steps would teach nothing else (Lin et al.,
  arXiv:1708.02002, section 4.1).
  """
  dense = params["label_dense"]
  odds = (1 - _SPAN_SHARE) / _SPAN_SHARE * (len(dense["bias"]) - 1)
  bias = dense["bias"].at[NULL].set(math.log(odds))
  return {**params, "label_dense": {**dense, "bias": bias}}


def _likeliest(margins, labels, probabilities) -> dict[str, Array]:
  """What is said of all spans, [widths, B, W] -> of W of each row, [B, W]."""
  widths, B, W = margins.shape
  margins, labels, probabilities = (
    jnp.moveaxis(x, 0, 2).reshape(B, W * widths)
    for x in (margins, labels, probabilities)
  )
  margins, places = jax.lax.top_k(margins, W)
  return {
    "margins": margins,
    "begins": (places // widths).astype(jnp.int32),
    "widths": (places % widths + 1).astype(jnp.int32),
    "labels": jnp.take_along_axis(labels, places, axis=1),
    "probabilities": jnp.take_along_axis(probabilities, places, axis=1),
  }


show = text.show


def report(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, str]:
  """report.txt: by label, by width, and of spans that lie within others."""
  gold = _gold(examples)
  return {"report.txt": metrics.format_report(gold, _predicted(predictions))}


def export(
  predictions: Sequence[Prediction], options: Options
) -> dict[str, str]:
  """A file that `read` reads: words, and the spans found, in layers."""
  del options
  words = [prediction["tokens"] for prediction in predictions]
  pairs = zip(words, _predicted(predictions), strict=True)
  return {"predictions.tsv": nested.format_layers(pairs)}


def check(options: Options) -> None:
  """Raises ConfigError for options that don't exist."""
  check_known("task", options, _CHOICES)
  if options.max_span_words < 1:
    raise ConfigError(
      f"task.max_span_words={options.max_span_words}: expected 1 or more."
    )
  if options.stride < 0:
    raise ConfigError(
      f"task.stride={options.stride} is below 0; expected tokens, or 0 for "
      "half a row."
    )


def _identified(
  spans: tuple[Entity, ...] | None, options: Options
) -> tuple[Entity, ...] | None:
  """The spans, each once, with one label if that is all that is asked."""
  if spans is None or not options.identify:
    return spans
  return tuple(dict.fromkeys(s._replace(type=_ANY_LABEL) for s in spans))


def _gold(examples: Sequence[Example]) -> list[tuple[Entity, ...]]:
  """DataError where there is none."""
  for example in examples:
    if example.spans is None:
      raise DataError(
        f"{example.where.rpartition(':')[0]}: the words have no tags to score "
        "against; expected a column of BIO."
      )
  return [example.spans for example in examples]


def _predicted(predictions: Sequence[Prediction]) -> list[list[Entity]]:
  return [
    [Entity(e["type"], *e["words"]) for e in p["entities"]] for p in predictions
  ]
