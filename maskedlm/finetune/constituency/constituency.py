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
from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.core.task import Batch, Key, Params
from maskedlm.data.labelled.formats import treebanks, trees
from maskedlm.data.labelled.formats.trees import Example
from maskedlm.finetune.common import (
  ensemble,
  entity_metrics,
  labelled_or_null,
  span_vectors,
  unseen_labels,
)
from maskedlm.finetune.common.gold_labels import gold_labels
from maskedlm.finetune.common.tag_head import (
  TagHead,
  first_subword_scores,
  likeliest_tags,
)
from maskedlm.finetune.constituency import metrics, text
from maskedlm.finetune.constituency.decode import best_spans
from maskedlm.finetune.constituency.rows import make_rows
from maskedlm.finetune.contract import (
  Application,
  FinetuneTask,
  Outputs,
  Prediction,
  Rows,
  Setup,
  task_option,
)
from maskedlm.modeling import masked_lm

# Spans of a row that decoding looks at, as a multiple of its tokens. A tree has
# fewer than two for each word.
_CANDIDATES = 4


@dataclasses.dataclass(frozen=True)
class Options:
  """config.task."""

  representation: str = task_option(
    "endpoints_mean",
    "How the vector of a span is made.",
    choices=tuple(span_vectors.REPRESENTATIONS),
    of_head=True,
  )
  strip_functions: bool = task_option(
    True, "Read NP-SBJ as NP, as EVALB scores it."
  )
  punctuation: tuple[str, ...] = task_option(
    metrics.PUNCTUATION,
    "Tags of words that bracket scores leave out, as EVALB's DELETE_LABEL.",
    overridable=True,
  )


def read_examples(source: str, options: Options) -> list[Example]:
  """Returns the sentences of a file; treebanks.py lists the formats.

  Raises:
    DataError: see treebanks.read_file.
  """
  return treebanks.read_file(source, strip_functions=options.strip_functions)


def describe_labels(examples: Sequence[Example]) -> dict[str, object]:
  """Returns {"labels": NULL, then chains, sorted; "tags": sorted; "root"}.

  The root is the most frequent label around the trees of the training set;
  TOP, which EVALB leaves out, if they have none.

  Raises:
    DataError: no tree has a bracket.
  """
  chains = {
    chain
    for example in examples
    for chain in trees.join_chains(example.brackets or ()).values()
  }
  if not chains:
    where = examples[0].file if examples else "training set"
    raise DataError(
      f"{where}: no bracket in {counted(len(examples), 'tree')} but those "
      "around single words and the whole; expected trees such as "
      "(S (NP (PRP He)) (VP (VBD left)))."
    )
  roots = [x.root for x in examples if x.root is not None]
  return {
    "labels": ["NULL", *sorted(chains)],
    "tags": sorted({tag for x in examples for tag in x.tags or ()}),
    "root": max(sorted(set(roots)), key=roots.count, default="TOP"),
  }


def make_application(setup: Setup, options: Options) -> Application:
  """Returns the Application: a SpanHead over all spans, and a TagHead."""
  tokenizer, cfg, label_info, length = setup
  labels, tags = tuple(label_info["labels"]), tuple(label_info["tags"])
  label_ids = {label: i for i, label in enumerate(labels)}
  tag_ids = {tag: i for i, tag in enumerate(tags)}
  head = span_vectors.SpanHead(cfg, options.representation, len(labels))
  tagger = TagHead(cfg, len(tags))

  def init(key: Key) -> Params:
    span_key, tag_key = jax.random.split(key)
    hidden, token = jnp.zeros((1, 1, cfg.width)), jnp.zeros((1, 1), jnp.int32)
    spans = head.init(span_key, hidden, token, token, train=False)["params"]
    return {
      "spans": labelled_or_null.expecting_null(spans),
      "tagger": tagger.init(tag_key, hidden, train=False)["params"],
    }

  def tag_scores(params: Params, hidden, batch: Batch, key, train: bool):
    scores = tagger.apply(
      {"params": params["tagger"]},
      hidden,
      train=train,
      rngs=masked_lm.head_rngs(key, train),
    )
    return first_subword_scores(scores, batch["word_begins"])

  def loss(params: Params, batch: Batch, key: Key, train: bool):
    hidden = masked_lm.encode(cfg, params, batch, key, train)
    (span_loss, _), found = labelled_or_null.loss_and_recall(
      head,
      params["spans"],
      hidden,
      batch,
      _dense_labels(batch),
      train=train,
      rngs=masked_lm.head_rngs(key, train),
    )
    words = batch["word_kept"] * batch["example_weights"][:, None]
    tag_term, tag_accuracy = unseen_labels.loss_and_accuracy(
      tag_scores(params, hidden, batch, key, train),
      batch["word_tags"],
      weights=words,
    )
    # Per word: nearly all spans are NULL, and a mean over spans would leave the
    # encoder to the tags.
    return {"spans": (span_loss, words.sum(axis=1)), "tags": tag_term}, {
      "span_recall": found,
      "word_tag_accuracy": tag_accuracy,
    }

  def outputs(params: Params, batch: Batch, every=ensemble.alone):
    hidden = masked_lm.encode(cfg, params, batch, None, False)
    L = hidden.shape[1]
    best = labelled_or_null.likeliest_spans(
      head,
      params["spans"],
      hidden,
      batch,
      max_words=_most_words(batch),
      count=_CANDIDATES * L,
      # A tree then scores the mean of its members' scores.
      mean=lambda logits: ensemble.mean(every(logits)),
    )
    scores = every(tag_scores(params, hidden, batch, None, False))
    found = likeliest_tags(ensemble.mean_softmax(scores))
    return {
      **best,
      "tags": found["tags"],
      "tag_probabilities": found["probabilities"],
    }

  def decode(
    examples: Sequence[Example],
    rows: Rows,
    outputs: Outputs,
    tuned: Mapping[str, float],
  ) -> list[Prediction]:
    each = zip(examples, rows.of_each(len(examples)), strict=True)
    return [
      decode_sentence(example, rows, outputs, own) for example, own in each
    ]

  def decode_sentence(
    example: Example, rows: Rows, outputs: Outputs, own: Sequence[int]
  ) -> Prediction:
    names = ("widths", "margins", "labels", "probabilities")
    widths, margins, ids, shares = (
      np.concatenate([outputs[name][i] for i in own]) for name in names
    )
    begins = np.concatenate(
      [rows.values["first_word"][i] + outputs["begins"][i] for i in own]
    )
    chosen = best_spans(len(example.words), begins, widths, margins)
    spans = [(int(begins[i]), int(begins[i] + widths[i])) for i in chosen]
    kept = [int(np.sum(rows.tokens["word_kept"][i])) for i in own]
    found, certain = (
      np.concatenate(
        [outputs[name][i][:n] for i, n in zip(own, kept, strict=True)]
      )
      for name in ("tags", "tag_probabilities")
    )
    return text.tree_prediction(
      example.words,
      [tags[tag] for tag in found],
      certain,
      {s: labels[ids[i]] for s, i in zip(spans, chosen, strict=True)},
      {s: shares[i] for s, i in zip(spans, chosen, strict=True)},
      root=label_info["root"],
    )

  def require_labels(examples: Sequence[Example]) -> None:
    gold = [
      (chain, example.where)
      for example, brackets in zip(
        examples,
        gold_labels(examples, "brackets", "a bracketed tree"),
        strict=True,
      )
      for chain in trees.join_chains(brackets).values()
    ]
    unseen_labels.check_known(gold, labels[1:])
    unseen_labels.note_none(gold, examples, "bracket", "bracket_f1")

  return Application(
    make_rows=lambda examples: make_rows(
      examples, tokenizer, label_ids, tag_ids, length=length
    ),
    init=init,
    loss=loss,
    outputs=outputs,
    decode=decode,
    score=lambda examples, predictions: metrics.evaluate(
      _gold(examples), _predicted(predictions), options.punctuation
    ),
    best="bracket_f1",
    require_labels=require_labels,
  )


def _most_words(batch: Batch) -> int:
  """Returns the most words that a row of the batch can have."""
  return max(batch["word_begins"].shape[1] - 2, 1)


def _dense_labels(batch: Batch):
  """Returns the labels [widths, B, W] of all spans, given those that have one.

  The slots that are not used say NULL, 0, which adds nothing.
  """
  begins, widths, labels = (
    batch[f"gold_{name}"].reshape(len(batch["word_begins"]), -1)
    for name in ("begins", "widths", "labels")
  )
  B, W = batch["word_begins"].shape
  rows = jnp.arange(B)[:, None]
  zeros = jnp.zeros((_most_words(batch), B, W), jnp.int32)
  return zeros.at[jnp.maximum(widths - 1, 0), rows, begins].add(labels)


def _gold(examples: Sequence[Example]) -> list[metrics.Parse]:
  """Returns the trees; raises DataError for an example without one."""
  gold_labels(examples, "brackets", "a bracketed tree")
  return [metrics.Parse(x.tags, x.brackets) for x in examples]


def _predicted(predictions: Sequence[Prediction]) -> list[metrics.Parse]:
  return [
    metrics.Parse(
      p["tags"],
      [trees.Bracket(b["label"], *b["words"]) for b in p["brackets"]],
    )
    for p in predictions
  ]


def format_tables(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, str]:
  """Returns report.txt by label and tag, and gold.ptb, predictions.ptb.

  Both have a tree on each line, as EVALB reads them, with the same root.
  """
  gold, predicted = _gold(examples), _predicted(predictions)
  tags = entity_metrics.count_words(
    [x.tags for x in gold], [x.tags for x in predicted]
  )
  brackets = metrics.count_brackets(gold, predicted)
  gold_trees = (
    trees.format_tree(x.words, x.tags, x.brackets, x.root or "TOP")
    for x in examples
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
  """Returns the task."""
  return FinetuneTask(
    name="constituency",
    options=options,
    read_examples=functools.partial(read_examples, options=options),
    parse_line=text.parse_line,
    describe_labels=describe_labels,
    make_application=functools.partial(make_application, options=options),
    format_prediction=lambda prediction: prediction["tree"],
    format_tables=format_tables,
    export_predictions=export_predictions,
    split_key=lambda example: example.document,
    demo_lines=("The president of Harvard University spoke in New York .",),
  )
