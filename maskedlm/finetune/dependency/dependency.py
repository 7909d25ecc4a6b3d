"""Dependency parsing: the head of every word, and the label of the arc to it.

Deep biaffine attention on the words' vectors, each that of the first subword
(Dozat and Manning 2017, arXiv:1611.01734; Kondratyuk and Straka 2019,
arXiv:1904.02099, on BERT), with [CLS] as the root. The loss is the
cross-entropy of each word's head and of its label, given the head. The heads
that are predicted are the best tree, crossing arcs included, with one root.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.core.task import Batch, Key, Params
from maskedlm.data.labelled import columns as token_columns
from maskedlm.data.labelled.formats import conllu
from maskedlm.data.labelled.formats.conllu import Example
from maskedlm.data.labelled.sentences import parse_words
from maskedlm.finetune.common import entity_metrics
from maskedlm.finetune.common.decoding import Row, by_example
from maskedlm.finetune.common.head import Heads
from maskedlm.finetune.common.labels import file_of, ids_of
from maskedlm.finetune.contract import (
  Application,
  FinetuneTask,
  Prediction,
  Setup,
)
from maskedlm.finetune.dependency import metrics
from maskedlm.finetune.dependency.decode import best_tree
from maskedlm.finetune.dependency.rows import GOLD, make_rows
from maskedlm.modeling.losses import loss_and_accuracy
from maskedlm.modeling.task_heads import ensemble
from maskedlm.modeling.task_heads.biaffine import ArcHead, LabelHead

# How many words, the likeliest, may become a word's head. A table of all pairs
# of a row's words would grow with the square of its length.
_CANDIDATES = 16
_NO_ARC = -1e9  # The score of a head that is no candidate.
# Of the vectors from which heads and labels are scored; as in the paper.
ARC_WIDTH, LABEL_WIDTH = 500, 100


@dataclasses.dataclass(frozen=True)
class Options:
  """config.task: there is nothing to choose."""


def parse_line(line: str) -> Example:
  """Parses words between spaces, or {"tokens": [words]}, {"text": ...} in JSON.

  Raises:
    DataError: there are no words, or a line of CoNLL-U; the JSON has neither
      field.
  """
  if line.count("\t") == token_columns.CONLLU_COLUMNS - 1:
    raise DataError(
      f"input {line[:60]!r} is a line of CoNLL-U; expected words between "
      "spaces; give files of CoNLL-U as --data."
    )
  return conllu.of_words(parse_words(line))


def describe_labels(examples: Sequence[Example]) -> dict[str, list[str]]:
  """Returns {"labels": those of arcs between words, "root_labels"}, sorted.

  Raises:
    DataError: no sentence has an arc between words.
  """
  inner: set[str] = set()
  outer: set[str] = set()  # At the root.
  for example in GOLD.labelled(examples):
    for head, label in zip(
      example.heads or (), example.labels or (), strict=True
    ):
      (inner if head else outer).add(label)
  if not inner:
    where = file_of(examples)
    raise DataError(
      f"{where}: no word in {counted(len(examples), 'sentence')} has another "
      "as its head; expected numbers as HEAD in CoNLL-U, or as 'head' in "
      "JSON."
    )
  return {"labels": sorted(inner), "root_labels": sorted(outer)}


def make_application(setup: Setup) -> Application:
  """Returns the Application: an ArcHead and a LabelHead."""
  tokenizer, cfg, label_info, length = setup
  inner, outer = label_info["labels"], label_info["root_labels"]
  # The same name at the root and elsewhere is two labels.
  names = (*inner, *outer)
  ids = ids_of(
    [*((False, label) for label in inner), *((True, label) for label in outer)]
  )
  vectors, place = jnp.zeros((1, 2, cfg.width)), jnp.zeros((1, 1, 1), int)
  heads = Heads(
    cfg,
    {
      "arcs": (ArcHead(cfg, ARC_WIDTH), (vectors,)),
      "labels": (LabelHead(cfg, LABEL_WIDTH, len(names)), (vectors, place)),
    },
  )
  parser = Parser(names, len(inner), heads)
  return Application(
    make_rows=functools.partial(
      make_rows, tokenizer=tokenizer, ids=ids, length=length
    ),
    init=heads.init,
    loss=parser.loss,
    outputs=parser.outputs,
    decode=by_example(parser.predict),
    score=lambda examples, predictions: metrics.evaluate(
      examples, _predicted(predictions)
    ),
    best="las",
    has_label=GOLD.has,
    require_labels=functools.partial(GOLD.require, known=inner),
  )


class Parser(NamedTuple):
  """The task with given labels."""

  names: tuple[str, ...]  # Of labels, by id; those of the root are the last.
  num_inner: int  # How many labels are not the root's.
  heads: Heads

  def _candidates(self, params: Params, batch: Batch, key, train: bool):
    """Returns the vectors [B, L + 1, D] of [CLS] and words."""
    hidden = self.heads.encode(params, batch, key, train)
    starts = jnp.pad(batch["word_starts"], ((0, 0), (1, 0)))
    return jnp.take_along_axis(hidden, starts[..., None], axis=1)

  def _arc_logits(self, params: Params, vectors, batch: Batch, key, train):
    """Returns the logits [B, L, L + 1]; a word is not its own head."""
    logits = self.heads.apply("arcs", params, vectors, key=key, train=train)
    is_word = jnp.pad(
      batch["word_starts"] > 0, ((0, 0), (1, 0)), constant_values=True
    )
    is_other = ~jnp.eye(logits.shape[1], logits.shape[2], 1, dtype=bool)
    return jnp.where(is_word[:, None] & is_other, logits, _NO_ARC)

  def loss(self, params: Params, batch: Batch, key: Key, train: bool):
    """Returns the cross-entropies of heads, and of labels given the head."""
    vectors = self._candidates(params, batch, key, train)
    heads = batch["word_heads"]
    weights = batch["word_kept"] * batch["example_weights"][:, None]
    arc_loss, head_accuracy = loss_and_accuracy(
      self._arc_logits(params, vectors, batch, key, train),
      heads,
      weights=weights,
    )
    places = jnp.maximum(heads, 0)[..., None]
    logits = self.heads.apply(
      "labels", params, vectors, places, key=key, train=train
    )
    label_loss, label_accuracy = loss_and_accuracy(
      logits[:, :, 0], batch["word_labels"], weights=weights
    )
    return {"heads": arc_loss, "labels": label_loss}, {
      "head_accuracy": head_accuracy,
      "gold_head_label_accuracy": label_accuracy,
    }

  def outputs(self, params: Params, batch: Batch, every=ensemble.alone):
    """Returns each word's likeliest heads, the root first, and their labels."""
    vectors = self._candidates(params, batch, None, False)
    logits = self._arc_logits(params, vectors, batch, None, False)
    scores = jax.nn.log_softmax(ensemble.mean_softmax(every(logits)), axis=-1)
    best, places = jax.lax.top_k(
      scores[..., 1:], min(_CANDIDATES, scores.shape[1])
    )
    places = jnp.pad(places + 1, ((0, 0), (0, 0), (1, 0)))  # The root is 0.
    labels = self.heads.apply(
      "labels", params, vectors, places, key=None, train=False
    )
    is_root_label = jnp.arange(len(self.names)) >= self.num_inner
    is_root = places[..., None] == 0
    labels = jnp.where(is_root == is_root_label, labels, _NO_ARC)
    labels = ensemble.mean_softmax(every(labels))
    return {
      "heads": places.astype(jnp.int32),
      "scores": jnp.concatenate([scores[..., :1], best], axis=-1),
      "labels": labels.argmax(axis=-1).astype(jnp.int32),
      "label_shares": jax.nn.softmax(labels, axis=-1).max(axis=-1),
    }

  def predict(self, example: Example, rows: Sequence[Row]) -> Prediction:
    """Returns the prediction for a sentence, JSON-able.

    Returns:
      tokens; heads, from 1, 0 for the root; labels of the arcs; probabilities,
      of the head and the label together; and conllu, all of it in CoNLL-U.
    """
    heads, scores, ids, shares = (
      np.concatenate(
        [row[name][np.flatnonzero(row["word_kept"])] for row in rows]
      )
      for name in ("heads", "scores", "labels", "label_shares")
    )
    begins = np.concatenate(
      [[row["first_word"]] * int(np.sum(row["word_kept"])) for row in rows]
    )
    # From 1 within the sentence, as in CoNLL-U.
    heads = np.where(heads > 0, heads + begins[:, None], 0)
    is_arc = (heads > 0) & (scores > _NO_ARC / 2)
    words, columns = np.nonzero(is_arc)
    tree = best_tree(
      words, heads[words, columns] - 1, scores[words, columns], scores[:, 0]
    )
    chosen = np.array(tree)[:, None] + 1
    is_chosen = (heads == chosen) & (is_arc | (heads == 0))
    # Neighbours that no row joins have the label of the word's likeliest head.
    column = np.where(is_chosen.any(axis=1), is_chosen.argmax(axis=1), 1)
    word = np.arange(len(tree))
    certain = np.exp(scores[word, column]) * shares[word, column]
    certain = np.where(is_chosen.any(axis=1), certain, 0.0)
    labels = [self.names[label] for label in ids[word, column]]
    heads = chosen[:, 0].tolist()
    return {
      "tokens": list(example.words),
      "heads": heads,
      "labels": labels,
      "probabilities": [round(float(p), 4) for p in certain],
      "conllu": conllu.format_sentence(example, heads, labels),
    }


def _predicted(predictions: Sequence[Prediction]) -> list[metrics.Tree]:
  return [metrics.Tree(p["heads"], p["labels"]) for p in predictions]


def format_tables(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, str]:
  """Returns report.txt by label, and gold.conllu, predictions.conllu.

  The official script, conll18_ud_eval.py, reads the last two.
  """
  gold = [metrics.Tree(x.heads or (), x.labels or ()) for x in examples]
  counts = metrics.count_arcs(gold, _predicted(predictions))
  trees = (
    conllu.format_sentence(example, *tree)
    for example, tree in zip(examples, gold, strict=True)
  )
  return {
    "report.txt": entity_metrics.format_table(counts, "label"),
    "gold.conllu": "".join(f"{tree}\n" for tree in trees),
    **export_predictions(predictions),
  }


def export_predictions(predictions: Sequence[Prediction]) -> dict[str, str]:
  """Returns predictions.conllu."""
  text = "".join(f"{p['conllu']}\n" for p in predictions)
  return {"predictions.conllu": text}


def make_task(options: Options) -> FinetuneTask:
  return FinetuneTask(
    name="dependency",
    options=options,
    read_examples=conllu.read_file,
    parse_line=parse_line,
    describe_labels=describe_labels,
    make_application=make_application,
    format_prediction=lambda prediction: prediction["conllu"],
    format_tables=format_tables,
    export_predictions=export_predictions,
    demo_lines=("The president of Harvard University spoke in New York .",),
  )
