"""Constituency: a label or NULL for each span of a sentence, as a tree.

y_ij = softmax(FFN(spanRep_ij)) for every span (Jurafsky & Martin, equation
11.27), and CKY for the best labels that nest (Stern, Andreas and Klein 2017,
arXiv:1705.03919; Kitaev and Klein 2018, arXiv:1805.01052). Brackets around the
same words are one label, such as "S VP". A second head tags the words.

The loss is the cross-entropy of each span, not a margin between trees: it is as
good (Teng and Zhang 2018, arXiv:1808.04850), needs no decoding in training, and
CKY finds the most probable tree under it.
"""

import dataclasses
import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.core.options import copy_option
from maskedlm.core.task import Batch, Key, Params
from maskedlm.data.labelled import sentences, tables
from maskedlm.data.labelled.formats import treebanks, trees
from maskedlm.data.labelled.formats.trees import Example
from maskedlm.finetune.common import entity_metrics
from maskedlm.finetune.common.decoding import Row, by_example
from maskedlm.finetune.common.head import Heads
from maskedlm.finetune.common.labels import file_of, ids_of
from maskedlm.finetune.common.options import Shared
from maskedlm.finetune.constituency import metrics
from maskedlm.finetune.constituency.decode import best_spans
from maskedlm.finetune.constituency.rows import GOLD, TAGS, make_rows
from maskedlm.finetune.contract import (
  Application,
  FinetuneTask,
  Prediction,
  Setup,
  task_option,
)
from maskedlm.modeling.losses import loss_and_accuracy
from maskedlm.modeling.task_heads import ensemble
from maskedlm.modeling.task_heads.label_heads import TagHead
from maskedlm.modeling.task_heads.span_labels import (
  expecting_null,
  likeliest_spans,
  loss_and_recall,
)
from maskedlm.modeling.task_heads.span_vectors import SpanHead, SpanScorer
from maskedlm.modeling.task_heads.tag_scores import (
  first_subword_scores,
  likeliest_tags,
)

# Spans of a row that decoding looks at, as a multiple of its tokens. A tree has
# fewer than two for each word.
_CANDIDATES = 4
# How a tree begins, on a line: (S (NP or ( (S.
_TREE = re.compile(r"\([A-Z0-9=|-]* *\([A-Z][A-Z0-9=|$-]* [^ ]")


@dataclasses.dataclass(frozen=True)
class Options:
  """config.task."""

  representation: str = copy_option(Shared, "representation")
  strip_functions: bool = task_option(
    True, "Read NP-SBJ as NP, as EVALB scores it."
  )


def parse_line(line: str) -> Example:
  """Parses words between spaces, or {"tokens": [words]}, {"text": ...} in JSON.

  Raises:
    DataError: there are no words, or a tree; the JSON has neither field.
  """
  if not tables.is_object(line) and _TREE.match(line):
    raise DataError(
      f"input {line[:60]!r} is a tree; expected words between spaces; give "
      'files of trees as --data, or such a text as {"text": "..."}.'
    )
  return Example(words=sentences.parse_words(line))


def describe_labels(examples: Sequence[Example]) -> dict[str, object]:
  """Returns {"labels": NULL, then chains, sorted; "tags": sorted; "root"}.

  The root is the most frequent label around the trees of the training set;
  TOP, which EVALB leaves out, if they have none.

  Raises:
    DataError: no tree has a bracket.
  """
  chains = {chain for chain, _ in GOLD.pairs(examples)}
  if not chains:
    where = file_of(examples)
    raise DataError(
      f"{where}: no bracket in {counted(len(examples), 'tree')} but those "
      "around single words and the whole; expected trees such as "
      "(S (NP (PRP He)) (VP (VBD left)))."
    )
  roots = [x.root for x in examples if x.root is not None]
  return {
    "labels": ["NULL", *sorted(chains)],
    "tags": sorted({tag for tag, _ in TAGS.pairs(examples)}),
    "root": max(sorted(set(roots)), key=roots.count, default="TOP"),
  }


def make_application(setup: Setup, options: Options) -> Application:
  """Returns the Application: a SpanHead over all spans, and a TagHead."""
  tokenizer, cfg, label_info, length = setup
  labels, tags, root = (label_info[name] for name in ("labels", "tags", "root"))
  hidden, token = jnp.zeros((1, 1, cfg.width)), jnp.zeros((1, 1), jnp.int32)
  spans = SpanHead(cfg, options.representation, len(labels))
  heads = Heads(
    cfg,
    {
      "spans": (spans, (hidden, token, token)),
      "tagger": (TagHead(cfg, len(tags)), (hidden,)),
    },
  )
  parser = Parser(labels, tags, root, heads)
  return Application(
    make_rows=functools.partial(
      make_rows,
      tokenizer=tokenizer,
      chain_ids=ids_of(labels),
      tag_ids=ids_of(tags),
      length=length,
    ),
    init=parser.init,
    loss=parser.loss,
    outputs=parser.outputs,
    decode=by_example(parser.predict),
    score=lambda examples, predictions: metrics.evaluate(
      examples, _predicted(predictions)
    ),
    best="bracket_f1",
    require_labels=functools.partial(GOLD.require, known=labels[1:]),
  )


class Parser(NamedTuple):
  """The task with given labels."""

  labels: Sequence[str]  # Chains, by id; the first is NULL.
  tags: Sequence[str]
  root: str
  heads: Heads

  def init(self, key: Key) -> Params:
    """Returns the parameters of the heads, to which most spans are NULL."""
    params = self.heads.init(key)
    return {**params, "spans": expecting_null(params["spans"])}

  def _tag_scores(self, params: Params, hidden, batch: Batch, key, train: bool):
    scores = self.heads.apply("tagger", params, hidden, key=key, train=train)
    return first_subword_scores(scores, batch["word_begins"])

  def loss(self, params: Params, batch: Batch, key: Key, train: bool):
    """Returns the cross-entropies of all spans and of tags, per word."""
    hidden = self.heads.encode(params, batch, key, train)
    module, _ = self.heads.modules["spans"]
    (span_loss, _), recall = loss_and_recall(
      SpanScorer(module, params["spans"], key, train),
      hidden,
      batch,
      _dense_labels(batch),
    )
    words = batch["word_kept"] * batch["example_weights"][:, None]
    tag_term, tag_accuracy = loss_and_accuracy(
      self._tag_scores(params, hidden, batch, key, train),
      batch["word_tags"],
      weights=words,
    )
    # Per word: nearly all spans are NULL, and a mean over spans would leave the
    # encoder to the tags.
    return {"spans": (span_loss, words.sum(axis=1)), "tags": tag_term}, {
      "span_recall": recall,
      "word_tag_accuracy": tag_accuracy,
    }

  def outputs(self, params: Params, batch: Batch, every=ensemble.alone):
    """Returns the spans of each row with the largest margins, and the tags."""
    hidden = self.heads.encode(params, batch, None, False)
    module, _ = self.heads.modules["spans"]
    best = likeliest_spans(
      SpanScorer(module, params["spans"]),
      hidden,
      batch,
      max_words=_most_words(batch),
      count=_CANDIDATES * hidden.shape[1],
      # A tree then scores the mean of its members' scores.
      mean=lambda logits: ensemble.mean(every(logits)),
    )
    scores = every(self._tag_scores(params, hidden, batch, None, False))
    tags = likeliest_tags(ensemble.mean_softmax(scores))
    return {
      **best,
      "tags": tags["tags"],
      "tag_probabilities": tags["probabilities"],
    }

  def predict(self, example: Example, rows: Sequence[Row]) -> Prediction:
    """Returns the prediction for a sentence, JSON-able.

    Returns:
      tokens, tags, probabilities (of the tags), brackets (outer ones first),
      each with label, text, words (the first, and the one after the last) and
      score (the probability of all labels of these words), and tree.
    """
    words = example.words
    widths, margins, labels, shares = (
      np.concatenate([row[name] for row in rows])
      for name in ("widths", "margins", "labels", "probabilities")
    )
    begins = np.concatenate([x["first_word"] + x["begins"] for x in rows])
    chosen = {
      (int(begins[i]), int(begins[i] + widths[i])): i
      for i in best_spans(len(words), begins, widths, margins)
    }
    brackets = trees.split_chains(
      {span: self.labels[labels[i]] for span, i in chosen.items()}
    )
    ids, certain = (
      np.concatenate([x[name][np.flatnonzero(x["word_kept"])] for x in rows])
      for name in ("tags", "tag_probabilities")
    )
    tags = [self.tags[i] for i in ids]
    return {
      "tokens": list(words),
      "tags": tags,
      "probabilities": [round(float(p), 4) for p in certain],
      "brackets": [
        {
          "label": label,
          "text": " ".join(words[begin:end]),
          "words": [begin, end],
          "score": round(float(shares[chosen[begin, end]]), 4),
        }
        for label, begin, end in brackets
      ],
      "tree": trees.format_tree(words, tags, brackets, self.root),
    }


def _most_words(batch: Batch) -> int:
  """Returns the most words that a row of the batch can have."""
  return max(batch["word_begins"].shape[1] - 2, 1)


def _dense_labels(batch: Batch):
  """Returns the labels [widths, B, W] of all spans, given those that have one.

  Unused slots have the label NULL, 0, which adds nothing.
  """
  begins, widths, labels = (
    batch[f"gold_{name}"].reshape(len(batch["word_begins"]), -1)
    for name in ("begins", "widths", "labels")
  )
  B, W = batch["word_begins"].shape
  rows = jnp.arange(B)[:, None]
  zeros = jnp.zeros((_most_words(batch), B, W), jnp.int32)
  return zeros.at[jnp.maximum(widths - 1, 0), rows, begins].add(labels)


def _predicted(predictions: Sequence[Prediction]) -> list[metrics.Parse]:
  return [
    metrics.Parse(
      p["tags"], [trees.Bracket(b["label"], *b["words"]) for b in p["brackets"]]
    )
    for p in predictions
  ]


def format_tables(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, str]:
  """Returns report.txt by label and tag, and gold.ptb, predictions.ptb.

  Both have a tree on each line, as EVALB reads them, with the same root.
  """
  gold = [metrics.Parse(x.tags or (), x.brackets or ()) for x in examples]
  predicted = _predicted(predictions)
  brackets = metrics.count_brackets(gold, predicted)
  tags = entity_metrics.count_words(
    [x.tags for x in gold], [x.tags for x in predicted]
  )
  gold_trees = (
    trees.format_tree(example.words, *parse, example.root or "TOP")
    for example, parse in zip(examples, gold, strict=True)
  )
  return {
    "report.txt": entity_metrics.format_table(brackets, "bracket")
    + "\n"
    + entity_metrics.format_table(tags, "tag"),
    "gold.ptb": "".join(f"{tree}\n" for tree in gold_trees),
    **export_predictions(predictions),
  }


def export_predictions(predictions: Sequence[Prediction]) -> dict[str, str]:
  """Returns predictions.ptb: a tree on each line."""
  return {"predictions.ptb": "".join(f"{p['tree']}\n" for p in predictions)}


def make_task(options: Options) -> FinetuneTask:
  return FinetuneTask(
    name="constituency",
    options=options,
    read_examples=functools.partial(
      treebanks.read_file, strip_functions=options.strip_functions
    ),
    parse_line=parse_line,
    describe_labels=describe_labels,
    make_application=functools.partial(make_application, options=options),
    format_prediction=lambda prediction: prediction["tree"],
    format_tables=format_tables,
    export_predictions=export_predictions,
    split_key=lambda example: example.document,
    demo_lines=("The president of Harvard University spoke in New York .",),
  )
