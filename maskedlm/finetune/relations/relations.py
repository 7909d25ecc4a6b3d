"""Relations: how are two marked parts of a text related?

Span relation classification (Jurafsky & Martin, section 11.5.2), on the data of
SemEval-2010 task 8 (semeval.py). Which two parts are meant is told in one of
these ways (`task.pair`, PAIRS below):

  markers        <e1> child </e1> ... <e2> cradle </e2>; FFN(z_CLS), as the
                 classifier of SpanBERT's TACRED (arXiv:1907.10529)
  markers_start  the same text; FFN([z_<e1>; z_<e2>]), Baldini Soares et al.
                 2019 (arXiv:1906.03158)
  spans          the text as it is; FFN([g_1; g_2; z_CLS]), g the mean of the
                 tokens of each (11.21)
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from maskedlm.core.errors import (
  ConfigError,
  DataError,
  check_known,
  did_you_mean,
)
from maskedlm.core.task import Array, Batch, Key, Params
from maskedlm.data.labelled import tables
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.common import mentions, single_label
from maskedlm.finetune.common.confusion import confusion_table
from maskedlm.finetune.common.pair_scorer import FeedForward, span_means
from maskedlm.finetune.contract import Application, Prediction
from maskedlm.finetune.relations import semeval
from maskedlm.finetune.relations.rows import make_markers, make_rows
from maskedlm.finetune.relations.semeval import Example
from maskedlm.modeling import masked_lm
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.heads import gather_positions, sentence_vector
from maskedlm.runtime.console import log

EXAMPLES = (
  "The <e1>child</e1> was carefully wrapped into the <e2>cradle</e2>.",
)


class Options(NamedTuple):
  """config.task of this kind."""

  # How the two entities are told: markers | markers_start | spans.
  pair: str = "markers_start"
  other: str = "Other"  # The relation that is none: it isn't in f1.


# --- Files ---


def read(source: str, options: Options) -> list[Example]:
  """The sentences of a file in the format of SemEval-2010 task 8."""
  del options
  return semeval.read_sentences(source)


def parse(line: str, options: Options) -> Example:
  """A line of predict's input: a text with <e1>...</e1> and <e2>...</e2>.

  Or {"text": such a text}, or {"text", "e1", "e1_offset", "e2", "e2_offset"}
  without tags, offsets of characters.

  Raises:
    DataError: not such an object, a tag is missing, an entity is elsewhere.
  """
  del options
  where = f"input {line[:40]!r}"
  if not line.startswith("{"):
    return Example(*semeval.parse_entity_tags(line, where=where))
  fields = tables.parse_json_fields(line, where)
  marked = "e1" not in fields and "e2" not in fields
  wanted = ("text", "e1", "e1_offset", "e2", "e2_offset")
  for name in wanted[:1] if marked else wanted:
    if name not in fields:
      raise DataError(
        f"{where}: no {name!r}; expected an object such as "
        '{"text": "The <e1>child</e1> in the <e2>cradle</e2>."}, or one with '
        f"{', '.join(wanted)}."
      )
  text = fields["text"]
  if marked:
    return Example(*semeval.parse_entity_tags(text, where=where))
  e1, e2 = (
    mentions.find_mention(
      text, fields[name], fields[f"{name}_offset"], what=name, where=where
    )
    for name in ("e1", "e2")
  )
  return Example(text, e1, e2)


def group(example: Example) -> str:
  """A sentence may be there with several pairs: all stay on one side."""
  return example.text


def describe(
  examples: Sequence[Example], options: Options
) -> dict[str, list[str]]:
  """{"labels": those of the training set, Other first}; see labels_of.

  Raises:
    DataError: no relations, or all examples have the same.
    ConfigError: task.other is one of them but for its case.
  """
  relations = _gold(examples)
  if len(set(relations)) < 2:
    raise DataError(
      f"{examples[0].where.rpartition(':')[0]}: all {len(examples):,} examples "
      f"for training have the relation {relations[0]!r}; expected at least two."
    )
  _check_other(relations, options.other)
  return {"labels": semeval.directed_labels(relations, other=options.other)}


def _check_other(relations: Sequence[str], other: str) -> None:
  """A misspelt task.other would have the real one count in f1, silently."""
  names = sorted(set(map(semeval.strip_direction, relations)))
  if not other or other in names:
    return
  for name in names:
    if name.casefold() == other.casefold():
      raise ConfigError(
        f"task.other={other!r} is no relation of the training set, but "
        f"{name!r} is: --config.task.other={name}."
      )
  log(
    f"task.other={other!r} is no relation of the training set, so all "
    f"{len(names)} count in f1{did_you_mean(other, names)}"
  )


# --- The model ---


def _of_cls(cfg: EncoderConfig, hidden: Array, batch: Batch):
  return sentence_vector(cfg, hidden, batch["segment_ids"])


def _of_starts(cfg: EncoderConfig, hidden: Array, batch: Batch):
  del cfg
  return _flat(gather_positions(hidden, batch["starts"]))


def _of_spans(cfg: EncoderConfig, hidden: Array, batch: Batch):
  means = _flat(span_means(hidden, batch["spans"]))
  return jnp.concatenate([means, _of_cls(cfg, hidden, batch)], axis=-1)


def _flat(x):
  """[B, M, D] -> [B, M * D]."""
  return x.reshape(x.shape[0], -1)


class Pair(NamedTuple):
  """A way of telling which two parts are meant."""

  marked: bool  # By markers in the text.
  # (cfg, hidden [B, L, D], batch) -> [B, vectors * D], what the FFN is given.
  gather: Callable[[EncoderConfig, Array, Batch], Array]
  vectors: int


PAIRS = {
  "markers": Pair(True, _of_cls, 1),
  "markers_start": Pair(True, _of_starts, 2),
  "spans": Pair(False, _of_spans, 3),
}


def make(
  tokenizer: Tokenizer,
  cfg: EncoderConfig,
  about: Mapping[str, Any],
  options: Options,
  *,
  length: int,
) -> Application:
  """See application.py.

  Raises:
    ConfigError: an unknown pair, markers that can't be had, or a length that
      they fill.
  """
  check_known("task", options, {"pair": PAIRS})
  pair, labels = PAIRS[options.pair], tuple(about["labels"])
  markers = make_markers(tokenizer) if pair.marked else ()
  least = 4 + sum(len(ids) for both in markers for ids in both)
  if length < least:
    raise ConfigError(
      f"data.length={length} has no room for two entities and their markers; "
      f"expected {least} at the least."
    )
  head = FeedForward(cfg, pair.vectors * cfg.width, len(labels))

  def init(key: Key) -> Params:
    x = jnp.zeros((1, head.inputs))
    return {"relation_head": head.init(key, x, train=False)["params"]}

  def logits(params: Params, batch: Batch, key: Key, train: bool):
    """float32 [B, labels]."""
    hidden = masked_lm.encode(cfg, params, batch, key, train)
    return head.apply(
      {"params": params["relation_head"]},
      pair.gather(cfg, hidden, batch),
      train=train,
      rngs=masked_lm.head_rngs(key, train),
    )

  def score(
    examples: Sequence[Example], predictions: Sequence[Prediction]
  ) -> dict[str, float]:
    return semeval.evaluate_relations(
      _gold(examples),
      [p["relation"] for p in predictions],
      other=options.other,
    )

  return Application(
    rows=lambda examples: make_rows(
      examples, tokenizer, labels, markers=markers, length=length
    ),
    init=init,
    loss=single_label.loss(logits, term="relation"),
    outputs=single_label.outputs(logits),
    decode=single_label.decode(functools.partial(_prediction, labels)),
    score=score,
    best="f1",
    gold=_gold,
  )


def _gold(examples: Sequence[Example]) -> list[str]:
  """DataError where there is none."""
  for example in examples:
    if example.relation is None:
      raise DataError(
        f"{example.where}: the sentence has no relation; expected it in the "
        "next line, such as Cause-Effect(e1,e2) or Other."
      )
  return [example.relation for example in examples]


# --- What is said of the predictions ---


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
    "relation": labels[np.argmax(shares)],
    "probability": max(shares),
    "probabilities": dict(zip(labels, shares, strict=True)),
  }


def show(prediction: Prediction) -> str:
  """The relation, its probability, the entities."""
  p = prediction
  return f"{p['relation']}\t{p['probability']:.3f}\t{p['e1']}\t{p['e2']}"


def report(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, str]:
  """relations.tsv, confusion.tsv, and both sides for the official scorer.

  relations.tsv has the direction-aware counts of each relation and of Other.
  """
  gold = _gold(examples)
  found = [p["relation"] for p in predictions]
  ids = [example.id for example in examples]
  return {
    "relations.tsv": semeval.format_report(gold, found),
    "confusion.tsv": confusion_table(gold, found),
    "answer_key.txt": semeval.format_answers(ids, gold),
    "proposed_answers.txt": semeval.format_answers(ids, found),
  }


def export(
  predictions: Sequence[Prediction], options: Options
) -> dict[str, str]:
  """What the official scorer takes: a line `id<TAB>relation` for each."""
  del options
  ids, found = ([p[name] for p in predictions] for name in ("id", "relation"))
  return {"proposed_answers.txt": semeval.format_answers(ids, found)}
