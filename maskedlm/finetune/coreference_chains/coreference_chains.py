"""Coreference chains: the mentions of a document, by what they are about.

Mentions are found and linked in one model (Jurafsky & Martin, section 11.5;
Lee et al. 2017, arXiv:1707.07045, and 2018, arXiv:1804.05392): head.py scores
spans and links, rows.py cuts documents, linking.py decodes. The files are
CoNLL-2012's, and so are the metrics (metrics.py). The task
`coreference` is GAP's, of one pronoun and two names.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import jax.numpy as jnp
import numpy as np

from maskedlm.core.errors import ConfigError, DataError
from maskedlm.core.task import Batch, Key, Params
from maskedlm.data.labelled.formats import chains as chain_files
from maskedlm.data.labelled.formats.chains import Chains, Example
from maskedlm.finetune.common import ensemble, span_vectors, unseen_labels
from maskedlm.finetune.common.gold_labels import gold_labels
from maskedlm.finetune.contract import (
  Application,
  FinetuneTask,
  Outputs,
  Prediction,
  Rows,
  Setup,
  task_option,
)
from maskedlm.finetune.coreference_chains import (
  head,
  linking,
  metrics,
)
from maskedlm.finetune.coreference_chains.rows import make_rows
from maskedlm.finetune.coreference_chains.text import (
  chain_prediction,
  format_prediction,
  parse_line,
  predicted_chains,
)


@dataclasses.dataclass(frozen=True)
class Options:
  """config.task."""

  max_mention_words: int = task_option(
    10, "Words of the widest mention; costs time.", low=1, high=512
  )
  top_ratio: float = task_option(
    0.4, "Spans that are kept as mentions, per word.", low=0.01, high=10.0
  )
  segments: int = task_option(
    11,
    "Rows of a document that are trained together, so that links between them "
    "are learnt; costs memory.",
    low=1,
    high=1024,
  )
  max_antecedents: int = task_option(
    2000,
    "Kept spans back to which a link is possible; bounds the time of long "
    "documents.",
    low=1,
    overridable=True,
  )
  mention_loss: float = task_option(
    1.0,
    "Weight of the loss of mentions by themselves (arXiv:1805.04893); 0 to "
    "learn from links alone.",
    low=0.0,
    high=1000.0,
  )
  representation: str = task_option(
    "self_attention",
    "How the vector of a span is made.",
    choices=tuple(span_vectors.REPRESENTATIONS),
    of_head=True,
  )


def read_examples(source: str) -> list[Example]:
  """Returns the documents of a file: CoNLL-2012, JSON or Parquet.

  Raises:
    DataError: see chain_files.read_file.
  """
  return chain_files.read_file(source)


def describe_labels(examples: Sequence[Example]) -> dict[str, int]:
  """Returns {"chains": the number of the training set's}.

  Raises:
    DataError: there is none.
  """
  count = sum(len(example.chains or ()) for example in examples)
  if not count:
    where = examples[0].where.rpartition(":")[0] if examples else "train"
    raise DataError(
      f"{where}: no chain in {len(examples):,} documents; expected marks such "
      "as (7 and 7) in the last column."
    )
  return {"chains": count}


def make_application(setup: Setup, options: Options) -> Application:
  """Returns the Application.

  Raises:
    ConfigError: max_mention_words is more than a row holds.
  """
  tokenizer, cfg, _, length = setup
  max_words = options.max_mention_words
  if max_words > length - 2:
    raise ConfigError(
      f"task.max_mention_words={max_words} is more than a row holds: at most "
      f"data.length - 2 = {length - 2}; lower it, or raise data.length "
      "(beside a checkpoint, --length)."
    )
  module = head.ChainHead(cfg, options.representation)

  def keep(params: Params, batch: Batch, key, train: bool, every):
    kept, scores = head.keep_spans(
      module,
      params,
      batch,
      key,
      train,
      max_words=max_words,
      top_ratio=options.top_ratio,
      every=every,
    )
    distance_scores = module.apply(
      {"params": params["chains"]}, method="distance_scores"
    )
    return kept, scores, ensemble.mean(every(distance_scores))

  def loss(params: Params, batch: Batch, key: Key, train: bool):
    kept, scores, distance_scores = keep(
      params, batch, key, train, ensemble.alone
    )
    return head.chain_loss(
      kept,
      scores,
      head.link_scores(kept, distance_scores, options.max_antecedents),
      batch,
      max_words=max_words,
      mention_loss=options.mention_loss,
    )

  def outputs(params: Params, batch: Batch, every=ensemble.alone):
    kept, _, distance_scores = keep(params, batch, None, False, every)
    B = len(kept.valid)
    return {
      "segments": kept.segments,
      "words": kept.words,
      "widths": kept.widths,
      "scores": jnp.where(kept.valid, kept.scores, -jnp.inf),
      "queries": kept.queries,
      "keys": kept.keys,
      "distance_scores": jnp.tile(distance_scores, (B, 1)),
    }

  def decode(
    examples: Sequence[Example],
    rows: Rows,
    outputs: Outputs,
    tuned: Mapping[str, float],
  ) -> list[Prediction]:
    each = zip(examples, rows.of_each(len(examples)), strict=True)
    return [
      chain_prediction(example, _chains(own, rows, outputs, options))
      for example, own in each
    ]

  def score(
    examples: Sequence[Example], predictions: Sequence[Prediction]
  ) -> dict[str, float]:
    return metrics.evaluate_chains(
      _gold_chains(examples), predicted_chains(predictions)
    )

  def require_labels(examples: Sequence[Example]) -> None:
    gold = [chain for chains in _gold_chains(examples) for chain in chains]
    unseen_labels.note_none(gold, examples, "chain", "conll_f1")

  return Application(
    make_rows=lambda examples: make_rows(
      examples,
      tokenizer,
      length=length,
      segments=options.segments,
      max_words=max_words,
    ),
    init=lambda key: {"chains": head.init(module, key)},
    loss=loss,
    outputs=outputs,
    decode=decode,
    score=score,
    best="conll_f1",
    has_label=lambda example: example.chains is not None,
    require_labels=require_labels,
  )


def _chains(
  which: Sequence[int], rows: Rows, outputs: Outputs, options: Options
) -> Chains:
  """Returns the chains of a document, given the indices of its rows."""
  parts = []
  for row in which:
    of_row = {name: values[row] for name, values in outputs.items()}
    valid = np.isfinite(of_row["scores"])
    first = rows.values["first_words"][row][of_row["segments"]]
    begins = first.astype(np.int64) + of_row["words"]
    spans = linking.Spans(
      begins,
      begins + of_row["widths"] + 1,
      of_row["scores"],
      of_row["queries"],
      of_row["keys"],
    )
    parts.append(linking.Spans(*(x[valid] for x in spans)))
  spans = linking.without_crossings(
    linking.Spans(*map(np.concatenate, zip(*parts, strict=True)))
  )
  antecedents = linking.best_antecedents(
    spans,
    head.DISTANCES,
    outputs["distance_scores"][which[0]],
    options.max_antecedents,
  )
  return linking.make_chains(spans, antecedents)


def format_tables(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, str]:
  """Returns scores.tsv, and the predicted and the gold chains as CoNLL-2012."""
  gold, found = _gold_chains(examples), predicted_chains(predictions)
  documents = [
    (e.id, e.words, e.sentence_ends, chains)
    for e, chains in zip(examples, gold, strict=True)
  ]
  return {
    "scores.tsv": metrics.format_scores(metrics.evaluate_chains(gold, found)),
    "gold.conll": chain_files.format_documents(documents),
    **export_predictions(predictions),
  }


def export_predictions(predictions: Sequence[Prediction]) -> dict[str, str]:
  """Returns predictions.conll, the official scorer's response file."""
  chains = predicted_chains(predictions)
  documents = [
    (p["id"], p["tokens"], p["sentence_ends"], found)
    for p, found in zip(predictions, chains, strict=True)
  ]
  return {"predictions.conll": chain_files.format_documents(documents)}


def _gold_chains(examples: Sequence[Example]) -> list[Chains]:
  """Returns the chains; raises DataError for an example without any column."""
  return gold_labels(
    examples,
    "chains",
    "a document of a CoNLL-2012 file, whose last column marks chains",
  )


def make_task(options: Options) -> FinetuneTask:
  """Returns the task."""
  return FinetuneTask(
    name="coreference_chains",
    options=options,
    read_examples=read_examples,
    parse_line=parse_line,
    describe_labels=describe_labels,
    make_application=functools.partial(make_application, options=options),
    format_prediction=format_prediction,
    format_tables=format_tables,
    export_predictions=export_predictions,
    split_key=lambda example: example.id.rpartition("; part")[0] or example.id,
    demo_lines=("Ann said that she lost her keys. Her brother found them.",),
  )
